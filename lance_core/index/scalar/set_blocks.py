"""Very many small sets of rows, kept as they are stored and looked through together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.named_rows import rows_of_names
from lance_core.index.scalar.tree_map import decode_tree_map
from lance_core.kernels.small_sets import NOT_SMALL, copy_small_sets, count_small_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from lance_core.index.scalar.fragment_rows import FragmentRows


@dataclass(frozen=True, slots=True, eq=False)
class SetBlock:
    """Serialized sets of neighbouring keys.

    Parameters
    ----------
    sets
        The sets, none of them null.
    offsets
        Where they begin and end in the bytes of ``sets``, shape ``(n + 1,)``.
    """

    sets: pa.BinaryArray
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sets: pa.BinaryArray, path: str) -> SetBlock:
        """Take sets, copied; ``CorruptFileError`` if one is missing."""
        if sets.null_count > 0:
            raise CorruptFileError(path, "a key has no set of rows")
        own = sets.take(pa.array(np.arange(len(sets))))
        start = own.offset * np.int32().itemsize
        offsets = np.frombuffer(own.buffers()[1], np.int32, len(own) + 1, start)
        return cls(own, offsets.astype(np.int64))

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.offsets[-1] - self.offsets[0]) + 2 * int(self.offsets.nbytes)

    def members(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return the members of some sets, and the positions of those that are not small."""
        counts = self.counts(positions)
        return self.small_members(positions, counts), positions[counts == NOT_SMALL]

    def counts(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many members some sets have; ``NOT_SMALL`` for those that are not small."""
        counts = np.empty(len(positions), np.int64)
        count_small_sets(self._base, self.offsets, positions, counts)
        return counts

    def small_members(
        self, positions: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Return the members of the small ones among some sets, of which `counts` told how many."""
        names = np.empty(counts.sum(where=counts != NOT_SMALL), np.uint64)
        copy_small_sets(self._base, self.offsets, positions, counts, names)
        return names

    @property
    def _base(self) -> int:
        data = self.sets.buffers()[2]
        return 0 if data is None else int(data.address)


def rows_in_blocks(
    blocks: Iterable[SetBlock], positions: Iterable[NDArray[np.int64]], path: str
) -> Iterator[FragmentRows]:
    """Yield the rows of the sets at ``positions`` of each block, together and in no order.

    Raises
    ------
    CorruptFileError
        The bytes of a set are none; ``path`` is the file that they came from.
    """
    names: list[NDArray[np.uint64]] = []
    for block, wanted in zip(blocks, positions, strict=True):
        members, others = block.members(wanted)
        names.append(members)
        for other in others.tolist():
            yield decode_tree_map(block.sets[other].as_buffer(), path)
    yield rows_of_names(names)
