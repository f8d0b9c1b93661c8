"""What a compressive encoding can do: decode values in one or more of three contexts.

The same message has another byte form in each context (file format, section 5):

* *chunks*: the value buffers of mini-block chunks;
* *blocks*: a buffer of its own, for levels and dictionaries;
* *zipped values*: single values, as full-zip pages keep them.

Each encoding overrides the contexts the format knows for it; the others are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Values to decode: for each the number of its chunk and its position there, shape ``(n,)``.

    Positions are below the counts of their chunks: whoever makes a selection has seen to it.
    """

    chunks: NDArray[np.int64]
    positions: NDArray[np.int64]

    def among(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions among all values of chunks that hold ``counts`` values each."""
        before: NDArray[np.int64] = np.cumsum(counts) - counts
        return before[self.chunks] + self.positions


class Compression:
    """One node of a compressive encoding, immutable."""

    __slots__ = ()
    name: ClassVar[str]

    @property
    def family(self) -> object:
        """What pages must share to be decoded together; equal objects are one family."""
        return self

    @property
    def num_buffers(self) -> int:
        """Value buffers of a mini-block chunk."""
        return 1

    @property
    def elements_per_value(self) -> int:
        """Innermost elements of one value; more than 1 for fixed-size lists."""
        return 1

    @property
    def raw_bits(self) -> int | None:
        """Bits of one row if rows lie uncompressed one after another, else None."""
        return None

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> Values:
        """Decode the value buffers of many mini-block chunks.

        Parameters
        ----------
        buffers
            ``num_buffers`` runs of blocks; block ``i`` of each belongs to chunk ``i``.
        counts
            Shape ``(chunks,)``; values of each chunk.
        place
            The column, for errors.

        Returns
        -------
        Values
            ``sum(counts)`` values.
        """
        raise place.unsupported(f"{self.name} in mini-block chunks")

    def take_chunks(
        self,
        buffers: Sequence[Blocks],
        counts: NDArray[np.int64],
        selection: Selection,
        place: Place,
    ) -> Values:
        """Decode only some values of many chunks; arguments as ``decode_chunks``.

        An encoding that can reach single values overrides this.
        """
        values = self.decode_chunks(buffers, counts, place)
        return values.take(selection.among(counts))

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> Values:
        """Decode buffers of their own: ``counts[i]`` values from block ``i``."""
        raise place.unsupported(f"{self.name} in a block")

    def decode_zipped(self, values: Blocks, place: Place) -> Values:
        """Decode single values, one per block; a null of variable width has size 0."""
        raise place.unsupported(f"{self.name} in full-zip values")
