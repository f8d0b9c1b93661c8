"""Reading one Lance file: rows by range or by position, global buffers, raw pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa

from lance_core.encodings.steps import drive, together
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.file.arguments import (
    checked_list,
    checked_location,
    checked_number,
    checked_options,
    checked_ranges,
    checked_rows,
    checked_text,
)
from lance_core.file.blobs import BlobSource
from lance_core.file.columns import ColumnTarget, column_indices
from lance_core.file.file_columns import FileColumns
from lance_core.file.file_scan import scan_file, scan_schema
from lance_core.file.metadata import read_metadata
from lance_core.file.registered_types import typed_batches, with_registered_types
from lance_core.file.stored_bytes import StoredBytes
from lance_core.file.target_reads import (
    is_direct,
    read_target,
    take_mapped,
    take_plain,
    take_target,
)
from lance_core.file.windows import (
    COPIED_WINDOW_BYTES,
    WINDOW_BYTES,
    SharedDictionaries,
    only_rows,
)
from lance_core.io.open import open_parent
from lance_core.io.scheduler import RangeScheduler
from lance_core.schema.arrow import part_of
from lance_core.schema.blobs import described

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from types import TracebackType
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from lance_core.encodings.arrow_arrays import PlainValues
    from lance_core.encodings.steps import ByteRanges, ReadSteps
    from lance_core.encodings.version import FileVersion
    from lance_core.file.fixed_width import FixedWidthPage
    from lance_core.file.metadata import FileMetadata
    from lance_core.ids import ColumnIndex, FieldId
    from lance_core.schema.tree import LanceSchema

__all__ = ["BlobHandling", "ColumnTarget", "LanceFileReader"]

BlobHandling = Literal["descriptions", "all_binary"]


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
        self._on_use: Callable[[], object] | None = None

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
        if not isinstance(scheduler, RangeScheduler):
            raise InvalidRequestError("open takes a RangeScheduler; open_path takes a path or URI")
        if size is not None:
            checked_number("the size of a file", size, 0)
        return cls(scheduler, read_metadata(scheduler, checked_text("a path", path), size))

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
        store, name = open_parent(checked_location(path), checked_options(storage_options))
        return cls.open(RangeScheduler(store), name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing: a reader holds no open file; arrays that were read stay valid."""

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return (
            f"<LanceFileReader {self.path}: {self.num_rows} rows of {', '.join(self.schema.names)};"
            f" format {self.version.value}>"
        )

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
        return 2 * len(self._metadata.view) + self._columns.nbytes

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self._on_use = told

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
        if not isinstance(name, str):
            raise InvalidRequestError(f"a column is named by a str, not by {name!r}")
        stored, way = self.schema.stored_field(name)
        field = described(stored)
        indices = self._indices
        columns = {node.id: indices[node.id] for node in field.walk() if node.id in indices}
        has_bytes = blob_handling == "all_binary"
        return ColumnTarget(field, columns, has_bytes, way, self._metadata)

    def global_buffer(self, index: int) -> memoryview:
        """Read a global buffer; 0 is the file descriptor.

        Raises
        ------
        InvalidRequestError
            The file has no such buffer.
        """
        buffers = self._metadata.buffers
        checked_number(f"the index of a global buffer of {self.path}", index, 0, len(buffers) - 1)
        return self._fetch([buffers[index]])[0]

    def read(
        self, targets: Sequence[str | ColumnTarget], ranges: Sequence[tuple[int, int]]
    ) -> list[pa.Array]:
        """Read row ranges of several columns.

        Parameters
        ----------
        targets
            Names (see `target`) or targets.
        ranges
            Row ranges ``[start, stop)`` in any order; they may overlap, repeat and be empty.

        Returns
        -------
        list[pa.Array]
            One array per target: the rows of all ranges one after another.

        Raises
        ------
        InvalidRequestError
            A range is not inside the file, or a target was made for another file.
        CorruptFileError
            The bytes contradict the format.
        UnsupportedFeatureError
            A page is encoded in a way that is not read; names column and encoding.
        """
        found = self._targets(targets)
        arrays = drive(self._read_all(found, ranges), self._fetch)
        self._tell_use()
        return self._served(found, arrays)

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
            Its schema has the metadata of the file's, and the extension types that pyarrow knows;
            others are their storage, with the name in the field's metadata. Reads when it is
            iterated; errors as `read`. Dictionaries of later batches begin with those of earlier.

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
        checked_number("batch_rows", batch_rows, 1)
        checked_number("batch_bytes", batch_bytes, 1)
        checked_number("read_ahead", read_ahead, 0)
        whole = [(0, self.num_rows)] if ranges is None else ranges
        found, schema = self._wanted(targets)
        is_copied = self._is_copied(found)
        batches = scan_file(
            self,
            schema,
            found,
            checked_ranges(whole, self.num_rows, self.path),
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            read_ahead=0 if is_copied else read_ahead,
            window_bytes=COPIED_WINDOW_BYTES if is_copied else WINDOW_BYTES,
        )
        typed = with_registered_types(schema)
        return pa.RecordBatchReader.from_batches(typed, typed_batches(batches, schema, typed))

    def read_all(self, targets: Sequence[str | ColumnTarget] | None = None) -> pa.Table:
        """Read all rows into memory; parameters and errors as `scan`."""
        return self.scan(targets).read_all()

    def stored_bytes(self, targets: Sequence[str | ColumnTarget]) -> StoredBytes:
        """Estimate the bytes that rows of several columns take in the file; reads no data."""
        found = self._targets(targets)
        columns = [self._columns[index] for target in found for index in target.columns.values()]
        return StoredBytes(self.num_rows, [column.pages for column in columns])

    def take_table(
        self,
        offsets: Sequence[int] | NDArray[np.int64],
        targets: Sequence[str | ColumnTarget] | None = None,
    ) -> pa.Table:
        """Read single rows as a table; parameters and errors as `take` and `scan`.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from lance_core.file import LanceFileReader, LanceFileWriter
        >>> table = pa.table({"id": [1, 2, 3], "text": ["a", None, "c"]})
        >>> with TemporaryDirectory() as folder:
        ...     with LanceFileWriter.open_path(f"{folder}/a.lance", table.schema) as writer:
        ...         writer.write_batch(table)
        ...     with LanceFileReader.open_path(f"{folder}/a.lance") as reader:
        ...         reader.take_table([2, 0]).to_pydict()
        {'id': [3, 1], 'text': ['c', 'a']}
        """
        found, schema = self._wanted(targets)
        rows = checked_rows(offsets, self.num_rows, self.path)
        arrays = self.take(found, rows) if len(found) > 0 else only_rows(len(rows))
        batch = SharedDictionaries(schema).window(arrays)
        typed = with_registered_types(schema)
        return pa.Table.from_batches(list(typed_batches([batch], schema, typed)), typed)

    def take(
        self, targets: Sequence[str | ColumnTarget], offsets: Sequence[int] | NDArray[np.int64]
    ) -> list[pa.Array]:
        """Read single rows of several columns.

        Parameters
        ----------
        targets
            Names (see `target`) or targets.
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
        rows = checked_rows(offsets, self.num_rows, self.path)
        found = self._targets(targets)
        whole = self._mapped()
        done = [take_mapped(self._columns, target, whole, rows) for target in found]
        missing = [
            take_target(self._columns, target, rows)
            for target, array in zip(found, done, strict=True)
            if array is None
        ]
        if len(missing) == 0:
            return done
        rest = iter(drive(together(missing), self._fetch))
        arrays = [next(rest) if array is None else array for array in done]
        self._tell_use()
        return self._served(found, arrays)

    def take_plain(
        self, targets: Sequence[ColumnTarget], offsets: NDArray[np.int64]
    ) -> list[PlainValues | None]:
        """Read single rows like ``take``, of those columns for which copying bytes is all.

        These are numbers, and times, in mapped files whose pages hold no nulls; of others there is
        None.
        """
        rows = checked_rows(offsets, self.num_rows, self.path)
        whole = self._mapped()
        if whole is None:
            return [None] * len(targets)
        return [take_plain(self._columns, target, whole, rows) for target in targets]

    def byte_ranges(
        self, targets: Sequence[str | ColumnTarget], ranges: Sequence[tuple[int, int]]
    ) -> ByteRanges:
        """Return the byte ranges that ``read`` asks the store for, in the order of asking.

        What page states already hold is not asked for again. The rows are read on the way, because
        strings are found by bytes read before them.
        """
        asked: ByteRanges = []

        def fetch(wanted: ByteRanges) -> Sequence[memoryview]:
            asked.extend(span for span in wanted if span[0] < span[1])
            return self._fetch(wanted)

        drive(self._read_all(self._targets(targets), ranges), fetch)
        return asked

    def fixed_width_pages(self, column: ColumnIndex) -> list[FixedWidthPage] | None:
        """Return where the rows of a column lie, if all its pages keep them raw and contiguous.

        Returns
        -------
        list[FixedWidthPage] | None
            In row order; None if any page has levels, chunks or another encoding than raw rows.
        """
        checked_number(f"a column of {self.path}", column, 0, self.num_columns - 1)
        pages = self._columns[column].fixed_width_pages()
        self._tell_use()
        return pages

    def _tell_use(self) -> None:
        if self._on_use is not None:
            self._on_use()

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

    def _wanted(
        self, targets: Sequence[str | ColumnTarget] | None
    ) -> tuple[list[ColumnTarget], pa.Schema]:
        """Return targets and the schema of their rows; a name names its column."""
        wanted = self.schema.names if targets is None else checked_list("columns", targets)
        found = self._targets(wanted)
        names = [
            each if isinstance(each, str) else target.field.name
            for each, target in zip(wanted, found, strict=True)
        ]
        return found, scan_schema(names, found, self.schema.metadata)

    def _targets(self, targets: Sequence[object]) -> list[ColumnTarget]:
        return [self._target(each) for each in checked_list("columns", targets)]

    def _target(self, wanted: object) -> ColumnTarget:
        if isinstance(wanted, str):
            return self.target(wanted)
        if not isinstance(wanted, ColumnTarget):
            raise InvalidRequestError(
                f"what to read is named by a str or made by LanceFileReader.target, not {wanted!r}"
            )
        wanted.check_fits(self._metadata)
        return wanted

    def _read_all(
        self, targets: Sequence[ColumnTarget], ranges: Sequence[tuple[int, int]]
    ) -> ReadSteps[list[pa.Array]]:
        inside = checked_ranges(ranges, self.num_rows, self.path)
        return together([read_target(self._columns, target, inside) for target in targets])
