"""Rows of one fragment that are to be returned, of which columns are read piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.file.windows import WindowSizes, least_row_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.scan.fragment_columns import FragmentColumns
    from lance_core.scan.late_columns import SplitColumns
    from lance_core.scan.projection import Projection


class RowWindow:
    """Some rows of a fragment, in order.

    Parameters
    ----------
    split
        The columns of the result.
    late
        Where those lie that were not read yet.
    row_offsets
        Shape ``(n,)``, ascending: the rows.
    shared
        Their values in the columns that were read already.
    sizes
        Says how many rows are read at a time.
    num_judged
        Rows that were looked at to find these.
    """

    def __init__(
        self,
        split: SplitColumns,
        late: FragmentColumns,
        row_offsets: NDArray[np.int64],
        shared: Sequence[pa.Array],
        sizes: WindowSizes,
        *,
        num_judged: int,
    ) -> None:
        self.num_judged = num_judged
        self._split = split
        self._late = late
        self._row_offsets = row_offsets
        self._shared = shared
        self._sizes = sizes
        self._begun: tuple[int, list[pa.Array]] | None = None

    def __len__(self) -> int:
        return len(self._row_offsets)

    def begin(self, stop: int) -> None:
        """Read the first piece of rows ``[0, stop)`` ahead of `pieces`."""
        self._begun = next(self._read(0, stop), None)

    def pieces(self, start: int, stop: int) -> Iterator[list[pa.Array]]:
        """Yield the columns of rows ``[start, stop)``, some megabytes at a time; once."""
        begun, self._begun = self._begun, None
        if begun is not None and start == 0 and begun[0] <= stop:
            start = begun[0]
            yield begun[1]
            del begun
        for _, arrays in self._read(start, stop):
            yield arrays

    def _read(self, start: int, stop: int) -> Iterator[tuple[int, list[pa.Array]]]:
        """Yield where a piece ends, and its columns."""
        split = self._split
        if len(split.order) > 0 and len(split.late.columns) == 0:
            if start < stop:
                yield stop, split.in_order(self._shared_of(start, stop), [])
            return
        estimate = bytes_of_rows(self._late.row_bytes)
        for first, last in self._sizes.windows(start, stop, estimate):
            arrays = self._sizes.measured(first, last, estimate, self._read_late)()
            if len(split.order) > 0:
                arrays = split.in_order(self._shared_of(first, last), arrays)
            yield last, arrays

    def _read_late(self, first: int, last: int) -> list[pa.Array]:
        return self._late.pick(self._row_offsets[first:last])

    def _shared_of(self, start: int, stop: int) -> list[pa.Array]:
        return [array.slice(start, stop - start) for array in self._shared]


def sizes_for(projection: Projection, batch_rows: int, window_bytes: int) -> WindowSizes:
    """Return what chooses windows of the columns of a projection, of so many decoded bytes."""
    least = sum(least_row_bytes(field.type) for field in projection.schema)
    return WindowSizes(least, batch_rows, len(projection.schema), window_bytes)


def bytes_of_rows(row_bytes: float) -> Callable[[int, int], float]:
    """Return an estimate of what rows take, as if all took the same."""
    return lambda first, last: (last - first) * row_bytes
