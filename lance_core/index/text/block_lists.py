"""Lists of binaries as kernels take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class BlockLists:
    """Binaries of lists one after another.

    Parameters
    ----------
    firsts
        List ``i`` has the binaries from ``firsts[i]`` to ``firsts[i + 1]``; shape ``(n + 1,)``.
    offsets
        Binary ``j`` is the bytes ``[offsets[j], offsets[j + 1])`` from the address ``base``.
    base
        Where the bytes lie; 0 where there are none.
    binaries
        Keeps them alive.
    """

    firsts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    base: int
    binaries: pa.Array

    @classmethod
    def of(cls, lists: pa.Array, path: str) -> BlockLists:
        """View a list array of binaries; ``CorruptFileError`` if anything in it is null."""
        firsts, items = list_items(lists, path)
        if items.null_count > 0:
            raise CorruptFileError(path, "a block is null")
        wide = items.cast(pa.large_binary())
        _, offsets, data = wide.buffers()
        start = wide.offset * np.int64().itemsize
        bounds = np.frombuffer(offsets, np.int64, len(wide) + 1, start).copy()
        return cls(firsts, bounds, 0 if data is None else data.address, wide)

    def of_list(self, index: int) -> NDArray[np.int64]:
        """Return the offsets of one list's binaries, one more than they are."""
        return self.offsets[self.firsts[index] : self.firsts[index + 1] + 1]


def list_items(lists: pa.Array, path: str) -> tuple[NDArray[np.int64], pa.Array]:
    """Return where each list begins, shape ``(n + 1,)``, and the items of all of them.

    ``CorruptFileError`` if a list is null.
    """
    if lists.null_count > 0:
        raise CorruptFileError(path, "a token has no list")
    offsets = lists.offsets.to_numpy().astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return offsets - first, lists.values.slice(first, last - first)
