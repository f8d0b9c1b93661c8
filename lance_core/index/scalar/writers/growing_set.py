"""A set of rows that is gathered piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.row_set import bitmaps_by_fragment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.writers.indexed_rows import IndexedRows


class GrowingSet:
    """Rows by fragment; unlike sets that are shared, its bitmaps are changed in place."""

    def __init__(self) -> None:
        self._bitmaps: dict[int, BitMap] = {}

    @property
    def rows(self) -> FragmentRows:
        """The rows so far; to be used before more are added."""
        return self._bitmaps

    def add(self, names: NDArray[np.uint64]) -> None:
        """Add rows by their names, shape ``(n,)``."""
        for key, bitmap in bitmaps_by_fragment(names).items():
            if key in self._bitmaps:
                self._bitmaps[key] |= bitmap
            else:
                self._bitmaps[key] = bitmap

    def add_nulls(self, piece: IndexedRows) -> None:
        """Add the rows of a piece that have no value."""
        names, _ = piece.split_nulls()
        self.add(names)
