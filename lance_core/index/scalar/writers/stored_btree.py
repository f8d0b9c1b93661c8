"""The rows of a BTREE in the order of its file, for a segment that takes them over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.keys import keys_of
from lance_core.index.scalar.writers.indexed_rows import IndexedRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.index.row_routes import RowRoute
    from lance_core.index.scalar.btree import BTreeSegment


class StoredBTree:
    """Rows of a BTREE under their new names; those without a value come first.

    Parameters
    ----------
    segment
        The segment.
    route
        Leads its rows to the new segment.
    read_bytes
        About how much is read at once.
    """

    def __init__(self, segment: BTreeSegment, route: RowRoute, read_bytes: int) -> None:
        self._segment = segment
        self._route = route
        num_rows = segment.reader.num_rows
        stored_bytes = segment.reader.stored_bytes(segment.columns)(0, num_rows)
        self._at_once = max(int(read_bytes * num_rows / max(stored_bytes, 1)), 1)
        self._num_nulls = int(segment.lookup.null_counts.sum())

    def nulls(self) -> Iterator[IndexedRows]:
        """Yield the rows without a value, in pieces that are not empty; errors as `rows`."""
        yield from self._read(0, self._num_nulls)

    def rows(self) -> Iterator[IndexedRows]:
        """Yield the others by ascending value, in pieces that are not empty.

        Raises
        ------
        CorruptFileError
            They do not ascend, or a row has no name.
        """
        last = pa.array([], self._segment.columns[0].arrow_type)
        for piece in self._read(self._num_nulls, self._segment.reader.num_rows):
            if not keys_of(pa.concat_arrays([last, piece.values])).is_ascending():
                raise self._corrupt("the values are not sorted")
            last = piece.values.slice(len(piece) - 1)
            yield piece

    def _read(self, start: int, stop: int) -> Iterator[IndexedRows]:
        for first in range(start, stop, self._at_once):
            last = min(first + self._at_once, stop)
            values, names = self._segment.reader.read(self._segment.columns, [(first, last)])
            is_null = start < self._num_nulls
            if names.null_count > 0 or values.null_count != (len(values) if is_null else 0):
                raise self._corrupt("nulls are out of place")
            new_names, is_kept = self._route.follow(names.to_numpy())
            positions = np.flatnonzero(is_kept)
            if len(positions) > 0:
                yield IndexedRows(values, new_names).take(positions)

    def _corrupt(self, what: str) -> CorruptFileError:
        return CorruptFileError(self._segment.reader.path, what)
