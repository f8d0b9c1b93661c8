"""Reading one Lance file: rows by range or by position, global buffers, raw pages."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import fixed_width_rows
from lance_core.encodings.nested import leaf_array, nested_array
from lance_core.encodings.place import Place
from lance_core.encodings.rows import disjoint, runs_of
from lance_core.encodings.steps import drive, together
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.file.column import Column
from lance_core.file.columns import ColumnTarget, column_indices, fields_with_columns
from lance_core.file.footer import FileVersion
from lance_core.file.metadata import read_metadata
from lance_core.file.nested_v2_0 import read_node
from lance_core.file.pages import PageParser
from lance_core.io.metering import current_meter
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.steps import ByteRanges, ReadSteps
    from lance_core.file.fixed_width import FixedWidthPage
    from lance_core.file.metadata import FileMetadata
    from lance_core.ids import ColumnIndex, FieldId
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.schema.field import LanceField
    from lance_core.schema.tree import LanceSchema

__all__ = ["ColumnTarget", "LanceFileReader"]


class LanceFileReader:
    """An open file; holds metadata and page states, never data. Safe to share between threads.

    Opening reads the end of the file. The metadata of a column is parsed when the column is first
    used, and the small buffers that say where rows lie are read when a page is first used.
    """

    def __init__(self, scheduler: RangeScheduler, metadata: FileMetadata) -> None:
        self._scheduler = scheduler
        self._metadata = metadata
        self._fields = fields_with_columns(metadata.schema, metadata.version)
        self._columns: dict[int, Column] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, scheduler: RangeScheduler, path: str, size: int | None = None) -> LanceFileReader:
        """Open a file with one read of its last 64 KiB, and one more if that is too little.

        Parameters
        ----------
        scheduler
            Reads the file's store.
        path
            The file, as the store names it.
        size
            Its exact size where the caller knows it; None asks the store.

        Raises
        ------
        CorruptFileError
            No Lance file, cut off, or contradicting itself.
        UnsupportedFeatureError
            A legacy 0.x file or a version newer than 2.2.
        """
        return cls(scheduler, read_metadata(scheduler, path, size))

    @property
    def path(self) -> str:
        """The file, as the store names it."""
        return self._metadata.path

    @property
    def version(self) -> FileVersion:
        """Version of the file, by its own footer."""
        return self._metadata.version

    @property
    def schema(self) -> LanceSchema:
        """The file's own schema; names and types as they were when it was written."""
        return self._metadata.schema

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        return self._metadata.num_rows

    @property
    def num_columns(self) -> int:
        """Columns of the file; nested fields own several, by ``column_indices``."""
        return self._metadata.num_columns

    @property
    def nbytes(self) -> int:
        """Memory held: metadata and the states of pages used so far."""
        columns = list(self._columns.values())
        return 4 * len(self._metadata.view) + sum(column.nbytes for column in columns)

    def column_indices(self) -> dict[FieldId, ColumnIndex]:
        """Return the column of each field by the rule for files that no manifest describes."""
        return column_indices(self.schema, self.version)

    def target(self, name: str) -> ColumnTarget:
        """Name a field of the file's own schema as something to read.

        Raises
        ------
        UnknownColumnError
            The file has no such field.
        """
        field = self.schema.field(name)
        indices = self.column_indices()
        columns = {node.id: indices[node.id] for node in field.walk() if node.id in indices}
        return ColumnTarget(field, columns)

    def global_buffer(self, index: int) -> memoryview:
        """Read a global buffer; 0 is the file descriptor.

        Raises
        ------
        CorruptFileError
            The file has no such buffer: whoever referred to it was wrong about it.
        """
        buffers = self._metadata.buffers
        if not 0 <= index < len(buffers):
            raise CorruptFileError(
                self.path, f"there is no global buffer {index}, only {len(buffers)}"
            )
        return self._fetch([buffers[index]])[0]

    def read(
        self, targets: Sequence[ColumnTarget], ranges: Sequence[tuple[int, int]]
    ) -> list[pa.Array]:
        """Read row ranges of several columns.

        Parameters
        ----------
        targets
            What to read.
        ranges
            Row ranges ``[start, stop)`` in any order; they may overlap, repeat and be empty.

        Returns
        -------
        list[pa.Array]
            One array per target: the rows of all ranges one after another.

        Raises
        ------
        InvalidRequestError
            A range is not inside the file.
        CorruptFileError
            The bytes contradict the format.
        UnsupportedFeatureError
            A page is encoded in a way that is not read; names column and encoding.
        """
        return drive(self._read_all(targets, ranges), self._fetch)

    def take(self, targets: Sequence[ColumnTarget], offsets: NDArray[np.int64]) -> list[pa.Array]:
        """Read single rows of several columns.

        Parameters
        ----------
        targets
            What to read.
        offsets
            Shape ``(n,)``; row numbers in any order, repeats allowed.

        Returns
        -------
        list[pa.Array]
            One array of ``n`` rows per target, in the order of ``offsets``.

        Raises
        ------
        InvalidRequestError
            An offset is not inside the file.
        CorruptFileError, UnsupportedFeatureError
            As ``read``.
        """
        rows = np.ascontiguousarray(offsets, np.int64)
        if len(rows) > 0 and (int(rows.min()) < 0 or int(rows.max()) >= self.num_rows):
            raise InvalidRequestError(f"a row outside the {self.num_rows} rows of {self.path}")
        whole = self._mapped()
        done = [self._take_mapped(target, whole, rows) for target in targets]
        missing = [
            self._take_target(target, rows)
            for target, array in zip(targets, done, strict=True)
            if array is None
        ]
        if len(missing) == 0:
            return done
        rest = iter(drive(together(missing), self._fetch))
        return [next(rest) if array is None else array for array in done]

    def byte_ranges(
        self, targets: Sequence[ColumnTarget], ranges: Sequence[tuple[int, int]]
    ) -> ByteRanges:
        """Return the byte ranges that ``read`` asks the store for, in the order of asking.

        What page states already hold is not asked for again. The rows are read on the way, because
        strings are found by bytes read before them.
        """
        asked: ByteRanges = []

        def fetch(wanted: ByteRanges) -> Sequence[memoryview]:
            asked.extend(span for span in wanted if span[0] < span[1])
            return self._fetch(wanted)

        drive(self._read_all(targets, ranges), fetch)
        return asked

    def fixed_width_pages(self, column: ColumnIndex) -> list[FixedWidthPage] | None:
        """Return where the rows of a column lie, if all its pages keep them raw and contiguous.

        Returns
        -------
        list[FixedWidthPage] | None
            In row order; None if any page has levels, chunks or another encoding than raw rows.
        """
        return self._column(column).fixed_width_pages()

    def _fetch(self, ranges: ByteRanges) -> Sequence[memoryview]:
        return self._scheduler.read(self.path, ranges)

    def _mapped(self) -> memoryview | None:
        """Return the file as mapped memory where the store can map."""
        whole = self._scheduler.store.map(self.path)
        if whole is not None and len(whole) < self._metadata.size:
            raise CorruptFileError(
                self.path, f"the file shrank from {self._metadata.size} to {len(whole)} bytes"
            )
        return whole

    def _read_all(
        self, targets: Sequence[ColumnTarget], ranges: Sequence[tuple[int, int]]
    ) -> ReadSteps[list[pa.Array]]:
        for start, stop in ranges:
            if not 0 <= start <= stop <= self.num_rows:
                raise InvalidRequestError(
                    f"rows {start} to {stop} are not inside the {self.num_rows} of {self.path}"
                )
        return together([self._read_target(target, ranges) for target in targets])

    def _read_target(
        self, target: ColumnTarget, ranges: Sequence[tuple[int, int]]
    ) -> ReadSteps[pa.Array]:
        column = self._single_column(target)
        if column is not None and column.direct is not None:
            data = yield from column.direct.read(ranges)
            return fixed_width_rows(data, column.direct.row_bytes, target.arrow_type, column.place)
        pieces, positions = disjoint(ranges)
        array = yield from self._read_disjoint(target, pieces)
        if positions is None:
            return array
        return _pick_ranges(array, ranges, positions)

    def _take_target(self, target: ColumnTarget, rows: NDArray[np.int64]) -> ReadSteps[pa.Array]:
        column = self._single_column(target)
        if column is not None and column.direct is not None:
            data = yield from column.direct.take(rows)
            return fixed_width_rows(data, column.direct.row_bytes, target.arrow_type, column.place)
        distinct, places = np.unique(rows, return_inverse=True)
        array = yield from self._read_disjoint(target, runs_of(distinct))
        if len(distinct) == len(rows) and bool((places == np.arange(len(rows))).all()):
            return array
        return array.take(pa.array(places))

    def _take_mapped(
        self, target: ColumnTarget, whole: memoryview | None, rows: NDArray[np.int64]
    ) -> pa.Array | None:
        """Take rows by one kernel call where the file is mapped and needs nothing loaded."""
        column = self._single_column(target)
        if whole is None or column is None or column.direct is None:
            return None
        data = column.direct.take_mapped(whole, rows)
        if data is None:
            return None
        meter = current_meter()
        meter.bytes_read += len(data)
        meter.store_requests += 1
        return fixed_width_rows(data, column.direct.row_bytes, target.arrow_type, column.place)

    def _read_disjoint(
        self, target: ColumnTarget, pieces: list[tuple[int, int]]
    ) -> ReadSteps[pa.Array]:
        array = yield from self._read_pages(target, pieces)
        wanted = sum(stop - start for start, stop in pieces)
        if len(array) != wanted:
            place = Place(self.path, target.field.name)
            raise place.corrupt(f"the pages hold {len(array)} of the {wanted} rows asked for")
        return array

    def _read_pages(
        self, target: ColumnTarget, pieces: list[tuple[int, int]]
    ) -> ReadSteps[pa.Array]:
        column = self._single_column(target)
        if column is not None:
            pages = yield from column.read(pieces)
            return leaf_array(pages, target.arrow_type, column.place)
        if self.version is FileVersion.V2_0:
            return (yield from read_node(target.field, partial(self._column_of, target), pieces))
        leaves = {
            node.id: self._column(target.columns[node.id])
            for node in target.field.walk()
            if node.owns_column
        }
        scales = _rows_per_row(target.field)
        data = yield from together(
            [leaf.read(_scaled(pieces, scales[node])) for node, leaf in leaves.items()]
        )
        by_leaf = dict(zip(leaves, data, strict=True))
        return nested_array(target.field, by_leaf, Place(self.path, target.field.name))

    def _single_column(self, target: ColumnTarget) -> Column | None:
        """Return the column of a target that is neither list nor struct."""
        if not target.field.owns_column:
            return None
        return self._column(target.columns[target.field.id])

    def _column_of(self, target: ColumnTarget, field: LanceField) -> Column:
        return self._column(target.columns[field.id])

    def _column(self, index: ColumnIndex) -> Column:
        column = self._columns.get(index)
        if column is None:
            column = self._open_column(index)
            with self._lock:
                column = self._columns.setdefault(index, column)
        return column

    def _open_column(self, index: ColumnIndex) -> Column:
        if not 0 <= index < self.num_columns:
            raise CorruptFileError(
                self.path, f"there is no column {index}, only {self.num_columns}"
            )
        field = self._field_of(index)
        place = Place(self.path, field.name)
        if field.is_blob:
            raise place.unsupported("blob")
        parser = PageParser(field, self.version, self._metadata.size, place)
        pages = parser.pages_of(self._metadata.column(index))
        column = Column(pages, place, is_dictionary=field.logical_type.startswith("dict:"))
        if field in self.schema.fields and column.num_rows != self.num_rows:
            raise place.corrupt(f"the column has {column.num_rows} of {self.num_rows} rows")
        return column

    def _field_of(self, index: ColumnIndex) -> LanceField:
        if index >= len(self._fields):
            raise CorruptFileError(
                self.path, f"column {index} belongs to none of the {len(self._fields)} fields"
            )
        return self._fields[index]


def _rows_per_row(field: LanceField, factor: int = 1) -> dict[FieldId, int]:
    """Return for each leaf how many of its rows stand for one row of ``field``.

    Pages below fixed-size lists of structs count elements as rows (file format, section 4.2).
    """
    if field.owns_column:
        return {field.id: factor}
    if field.logical_type.startswith("fixed_size_list:"):
        factor *= arrow_type(field).list_size
    return {
        leaf: rows
        for child in field.children
        for leaf, rows in _rows_per_row(child, factor).items()
    }


def _scaled(pieces: list[tuple[int, int]], factor: int) -> list[tuple[int, int]]:
    return [(start * factor, stop * factor) for start, stop in pieces]


def _pick_ranges(
    array: pa.Array, ranges: Sequence[tuple[int, int]], positions: Sequence[int]
) -> pa.Array:
    """Return the rows of all ranges; range ``i`` begins at ``positions[i]`` of the array."""
    parts = [
        array.slice(position, stop - start)
        for (start, stop), position in zip(ranges, positions, strict=True)
    ]
    return pa.concat_arrays(parts)
