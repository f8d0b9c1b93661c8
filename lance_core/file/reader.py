"""Reading one Lance file: rows by range or by position, global buffers, raw pages."""

from __future__ import annotations

from os import fspath
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa

from lance_core.encodings.steps import drive, together
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.file.blobs import BlobSource
from lance_core.file.columns import ColumnTarget, column_indices
from lance_core.file.file_columns import FileColumns
from lance_core.file.file_scan import scan_file, scan_schema
from lance_core.file.metadata import read_metadata
from lance_core.file.stored_bytes import StoredBytes
from lance_core.file.target_reads import is_direct, read_target, take_mapped, take_target
from lance_core.io.open import open_parent
from lance_core.io.scheduler import RangeScheduler
from lance_core.schema.arrow import part_of
from lance_core.schema.blobs import described

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from lance_core.encodings.steps import ByteRanges, ReadSteps
    from lance_core.encodings.version import FileVersion
    from lance_core.file.fixed_width import FixedWidthPage
    from lance_core.file.metadata import FileMetadata
    from lance_core.ids import ColumnIndex, FieldId
    from lance_core.schema.tree import LanceSchema

__all__ = ["BlobHandling", "ColumnTarget", "LanceFileReader"]

BlobHandling = Literal["descriptions", "all_binary"]

_WHOLE_NUMBERS = frozenset("iu")


class LanceFileReader:
    """An open file; holds metadata and page states, never data. Safe to share between threads.

    Opening reads the end of the file. The metadata of a column is parsed when the column is first
    used, and the small buffers that say where rows lie are read when a page is first used.
    """

    def __init__(self, scheduler: RangeScheduler, metadata: FileMetadata) -> None:
        self._scheduler = scheduler
        self._metadata = metadata
        self._columns = FileColumns(metadata)
        self._indices = column_indices(metadata.schema, metadata.version)

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

    @classmethod
    def open_path(
        cls, path: str | PathLike[str], storage_options: Mapping[str, str] | None = None
    ) -> LanceFileReader:
        """Open a file by itself, by its path or URI; errors as `open`.

        Parameters
        ----------
        path
            A local path, a ``file://`` URI, or a URI such as ``s3://bucket/folder/a.lance``.
        storage_options
            Configuration of a remote store; None = from the environment.
        """
        store, name = open_parent(fspath(path), storage_options)
        return cls.open(RangeScheduler(store), name)

    @property
    def path(self) -> str:
        """The file, as the store names it."""
        return self._metadata.path

    @property
    def metadata(self) -> FileMetadata:
        """What the file says about itself."""
        return self._metadata

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
        return 4 * len(self._metadata.view) + self._columns.nbytes

    def column_indices(self) -> dict[FieldId, ColumnIndex]:
        """Return the column of each field by the rule for files that no manifest describes."""
        return dict(self._indices)

    def target(self, name: str, *, blob_handling: BlobHandling = "descriptions") -> ColumnTarget:
        """Name a field of the file's own schema as something to read.

        Parameters
        ----------
        name
            A column or a part of a nested one, as ``point.x``.
        blob_handling
            What stands for a blob: a description, the struct of position and size (in 2.2 files
            also of kind and file) that is stored, or with ``all_binary`` its bytes.

        Raises
        ------
        UnknownColumnError
            The file has no such field.
        """
        if blob_handling not in get_args(BlobHandling):
            raise InvalidRequestError(
                f"blob_handling is {blob_handling!r}; take one of {get_args(BlobHandling)}"
            )
        stored, way = self.schema.stored_field(name)
        field = described(stored)
        indices = self._indices
        columns = {node.id: indices[node.id] for node in field.walk() if node.id in indices}
        return ColumnTarget(field, columns, blob_handling == "all_binary", way)

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
        arrays = drive(self._read_all(targets, ranges), self._fetch)
        return self._served(targets, arrays)

    def scan(
        self,
        targets: Sequence[str | ColumnTarget] | None = None,
        ranges: Sequence[tuple[int, int]] | None = None,
        *,
        batch_rows: int = 8192,
        batch_bytes: int = 8 << 20,
        read_ahead: int = 2,
    ) -> pa.RecordBatchReader:
        """Stream rows in batches of bounded size.

        Some megabytes are decoded at once and cut into batches; the next are read and decoded in
        two threads meanwhile. Memory does not depend on the size of the file.

        Parameters
        ----------
        targets
            Names (see `target`) or targets; None = all columns. A name names its column.
        ranges
            Row ranges ``[start, stop)`` in any order; None = all rows.
        batch_rows, batch_bytes
            Largest batch. A single row may have more bytes.
        read_ahead
            Pieces of some megabytes that may be decoded or under way beside the one in use; 0
            does all the work in the caller's thread.

        Returns
        -------
        pa.RecordBatchReader
            Reads when it is iterated; errors as `read`. Dictionaries of later batches begin with
            those of earlier ones.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from lance_core.file import LanceFileReader, LanceFileWriter
        >>> table = pa.table({"id": [1, 2, 3], "text": ["a", None, "c"]})
        >>> with TemporaryDirectory() as folder:
        ...     with LanceFileWriter.open_path(f"{folder}/a.lance", table.schema) as writer:
        ...         writer.write_batch(table)
        ...     reader = LanceFileReader.open_path(f"{folder}/a.lance")
        ...     reader.scan(["text"], [(1, 3)]).read_all().to_pydict()
        {'text': [None, 'c']}
        """
        if min(batch_rows, batch_bytes) < 1 or read_ahead < 0:
            raise InvalidRequestError(
                f"batch_rows {batch_rows} and batch_bytes {batch_bytes} must be positive,"
                f" read_ahead {read_ahead} not negative"
            )
        ranges = [(0, self.num_rows)] if ranges is None else list(ranges)
        self._check_ranges(ranges)
        wanted = self.schema.names if targets is None else targets
        names = [each if isinstance(each, str) else each.field.name for each in wanted]
        found = [self.target(each) if isinstance(each, str) else each for each in wanted]
        schema = scan_schema(names, found)
        batches = scan_file(
            self,
            schema,
            found,
            ranges,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            read_ahead=0 if self._is_copied(found) else read_ahead,
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def stored_bytes(self, targets: Sequence[ColumnTarget]) -> StoredBytes:
        """Estimate the bytes that rows of several columns take in the file; reads no data."""
        columns = [self._columns[index] for target in targets for index in target.columns.values()]
        return StoredBytes(self.num_rows, [column.pages for column in columns])

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
            An offset is no whole number, or not inside the file.
        CorruptFileError, UnsupportedFeatureError
            As ``read``.
        """
        rows = self._checked_rows(offsets)
        whole = self._mapped()
        done = [take_mapped(self._columns, target, whole, rows) for target in targets]
        missing = [
            take_target(self._columns, target, rows)
            for target, array in zip(targets, done, strict=True)
            if array is None
        ]
        if len(missing) == 0:
            return done
        rest = iter(drive(together(missing), self._fetch))
        arrays = [next(rest) if array is None else array for array in done]
        return self._served(targets, arrays)

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
        return self._columns[column].fixed_width_pages()

    def _fetch(self, ranges: ByteRanges) -> Sequence[memoryview]:
        return self._scheduler.read(self.path, ranges)

    def _served(
        self, targets: Sequence[ColumnTarget], arrays: Sequence[pa.Array]
    ) -> list[pa.Array]:
        """Hand out what was asked for: the bytes of blobs, parts of packed structs."""
        source = BlobSource(self._scheduler, self.path, self._metadata.size)
        whole = [
            source.with_bytes(target.field, array) if target.has_bytes else array
            for target, array in zip(targets, arrays, strict=True)
        ]
        return [part_of(array, target.way) for target, array in zip(targets, whole, strict=True)]

    def _mapped(self) -> memoryview | None:
        """Return the file as mapped memory where the store can map."""
        whole = self._scheduler.store.map(self.path)
        if whole is not None and len(whole) < self._metadata.size:
            raise CorruptFileError(
                self.path, f"the file shrank from {self._metadata.size} to {len(whole)} bytes"
            )
        return whole

    def _is_copied(self, targets: Sequence[ColumnTarget]) -> bool:
        """Tell whether rows are copied from mapped memory, so fast that threads only cost."""
        is_mapped = self._scheduler.store.map(self.path) is not None
        return is_mapped and all(is_direct(self._columns, target) for target in targets)

    def _checked_rows(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a copy of the offsets, because kernels take writable arrays only."""
        rows = np.array(offsets)
        if rows.ndim != 1 or (rows.dtype.kind not in _WHOLE_NUMBERS and len(rows) > 0):
            raise InvalidRequestError(
                f"rows to take are a list of whole numbers, not {rows.ndim} dimensions of"
                f" {rows.dtype}"
            )
        if len(rows) > 0 and (int(rows.min()) < 0 or int(rows.max()) >= self.num_rows):
            raise InvalidRequestError(
                f"rows {rows.min()} to {rows.max()} are not inside the {self.num_rows}"
                f" of {self.path}"
            )
        return rows.astype(np.int64, copy=False)

    def _check_ranges(self, ranges: Sequence[tuple[int, int]]) -> None:
        for start, stop in ranges:
            if not 0 <= start <= stop <= self.num_rows:
                raise InvalidRequestError(
                    f"rows {start} to {stop} are not inside the {self.num_rows} of {self.path}"
                )

    def _read_all(
        self, targets: Sequence[ColumnTarget], ranges: Sequence[tuple[int, int]]
    ) -> ReadSteps[list[pa.Array]]:
        self._check_ranges(ranges)
        return together([read_target(self._columns, target, ranges) for target in targets])
