"""Rows of one column that wait until they make a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.file.row_bytes import row_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_PARTS = 256
_RETAINS_TOO_MUCH = 4
"""A slice that keeps more than this times its own bytes alive is copied."""


class PendingRows:
    """Cuts what arrives into pieces of about ``page_bytes``, whatever the size of the batches.

    Memory is bounded by two pages and one batch. Rows are never cut: one that is larger than a
    page makes a page of its own.
    """

    def __init__(self, page_bytes: int) -> None:
        self._page_bytes = page_bytes
        self._parts: list[pa.Array] = []
        self._num_bytes = 0

    def add(self, array: pa.Array) -> Iterator[pa.Array]:
        """Take rows; yield the pieces that are complete now, which may share memory with them."""
        num_bytes = row_bytes(array)
        self._parts.append(array)
        self._num_bytes += num_bytes
        if self._num_bytes >= self._page_bytes or len(self._parts) > _MAX_PARTS:
            *complete, last = self._all_joined()
            full = _full_rows(last, self._page_bytes)
            complete.append(last.slice(0, full))
            self._keep(last.slice(full))
            del last, array  # a piece is all that is left while its taker waits for other work
            while len(complete) > 0:
                yield from _cut(complete.pop(0), self._page_bytes)
        elif array.get_total_buffer_size() > _RETAINS_TOO_MUCH * max(num_bytes, 1):
            self._parts[-1] = _joined([array])

    def rest(self) -> Iterator[pa.Array]:
        """Yield the rows that are left."""
        if len(self._parts) > 0:
            for part in self._all_joined():
                yield from _cut(part, self._page_bytes)
            self._parts, self._num_bytes = [], 0

    def _all_joined(self) -> list[pa.Array]:
        """Return one array of all parts, or the parts themselves where there can be none.

        The indices of dictionaries may be too narrow for all items together, 32-bit offsets for
        all text.
        """
        if len(self._parts) == 1:
            return self._parts
        try:
            return [_joined(self._parts)]
        except pa.ArrowInvalid:
            return self._parts

    def _keep(self, rest: pa.Array) -> None:
        """Start anew with a copy of ``rest``, so that the memory it is cut from can go."""
        self._parts = [_joined([rest])] if len(rest) > 0 else []
        self._num_bytes = row_bytes(rest)


def _joined(parts: list[pa.Array]) -> pa.Array:
    """Copy parts into one array.

    Other threads drop it than the one that makes it, and Arrow's own pool would keep what they
    dropped: half as much memory again.
    """
    return pa.concat_arrays(parts, memory_pool=pa.system_memory_pool())


def _full_rows(array: pa.Array, page_bytes: int) -> int:
    """Return how many rows make whole pages, taking all rows for equally large."""
    rows_per_page = max(1, len(array) * page_bytes // max(row_bytes(array), 1))
    return len(array) // rows_per_page * rows_per_page


def _cut(array: pa.Array, page_bytes: int) -> Iterator[pa.Array]:
    """Yield pieces of equal numbers of rows; those that are still too large are cut again."""
    num_pieces = -(-row_bytes(array) // page_bytes)
    if num_pieces <= 1 or len(array) <= 1:
        if len(array) > 0:
            yield array
        return
    rows = -(-len(array) // num_pieces)
    for start in range(0, len(array), rows):
        yield from _cut(array.slice(start, rows), page_bytes)
