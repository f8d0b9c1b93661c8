"""What a compressive encoding can do: decode and encode values in one or more of three contexts.

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

from lance_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values
    from lance_core.proto import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True, eq=False)
class ChunkBuffer:
    """One value buffer of many chunks: ``sizes[i]`` bytes of chunk ``i``, one after another.

    ``data`` has shape ``(sum(sizes),)``; nothing is padded, and it may be memory of the values.
    """

    data: NDArray[np.uint8]
    sizes: NDArray[np.int64]


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

    def message(self) -> pb.CompressiveEncoding:
        """Return the message that ``describe`` turns into this encoding."""
        raise _not_written(f"{self.name}")

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Encode values as mini-block chunks.

        Parameters
        ----------
        values
            ``bounds[-1]`` values of the form that ``decode_chunks`` returns; what stands under
            nulls is written as it is.
        bounds
            Shape ``(chunks + 1,)``; ascending from 0, where chunks begin and the last one ends.

        Returns
        -------
        tuple[ChunkBuffer, ...]
            ``num_buffers`` of them, in the order of the format.
        """
        raise _not_written(f"{self.name} in mini-block chunks")

    def encode_blocks(self, values: Values, bounds: NDArray[np.int64]) -> ChunkBuffer:
        """Encode buffers of their own: values ``[bounds[i], bounds[i + 1])`` in block ``i``."""
        raise _not_written(f"{self.name} in a block")

    def encode_block(self, values: Values) -> NDArray[np.uint8]:
        """Encode all values as one block."""
        return self.encode_blocks(values, np.array([0, values.num_values], np.int64)).data

    def encode_zipped(self, values: Values) -> Values:
        """Encode single values.

        Returns
        -------
        Values
            ``FixedWidth`` or ``Variable``: what a full-zip page stores of each value, without the
            length that it puts before values of variable width.
        """
        raise _not_written(f"{self.name} in full-zip values")


def _not_written(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"values cannot be written as {what}")
