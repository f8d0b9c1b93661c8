"""Writing one Lance file: batches in, pages out, memory bounded whatever the file's size."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import (
    checked_batch,
    checked_bytes,
    checked_location,
    checked_number,
    checked_options,
    checked_schema,
    checked_text,
)
from lance_core.file.blob_writer import BlobWriter
from lance_core.file.columns import column_indices
from lance_core.file.container_writer import ContainerWriter
from lance_core.file.field_writer import field_writer
from lance_core.file.narrow_dictionaries import NarrowDictionaries
from lance_core.file.ordered_jobs import OrderedJobs
from lance_core.file.pending_rows import PendingRows
from lance_core.file.row_bytes import row_bytes
from lance_core.file.storable import check_storable
from lance_core.file.stored_arrays import BatchChecker
from lance_core.io.open import open_parent
from lance_core.proto import encodings20_pb2
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.schema.to_proto import schema_message
from lance_core.schema.tree import LanceSchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike
    from types import TracebackType
    from typing import Self

    from lance_core.file.container_writer import FilePage
    from lance_core.file.field_writer import FieldWriter
    from lance_core.ids import ColumnIndex, FieldId
    from lance_core.io.sink import Piece
    from lance_core.io.store import ObjectStore

MAX_PAGE_BYTES = 8 << 20
"""Bytes of rows, before encoding, that make a page unless told otherwise."""

_MAX_BUFFERED_BYTES = 256 << 20
_MIN_PAGE_BYTES = 4 << 10
_NUM_THREADS = 2
_SHORT_BYTES = 64 << 10
"""Pages of fewer bytes are encoded before a thread pays."""

_BLOB_COLUMN = encodings20_pb2.ColumnEncoding(
    blob=encodings20_pb2.Blob(inner=encodings20_pb2.ColumnEncoding(values=encodings20_pb2.Empty()))
)
"""How a 2.0 file says that a column is one of blobs."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A complete file, as a manifest describes it.

    Attributes
    ----------
    path
        The file, as the store names it.
    size
        Its bytes, exactly.
    num_rows
        Its rows.
    version
        Of its encodings.
    column_indices
        Column of each field that owns one, in the order of the columns.
    """

    path: str
    size: int
    num_rows: int
    version: FileVersion
    column_indices: Mapping[FieldId, ColumnIndex]


class LanceFileWriter:
    """Writes record batches to a new file, which readers see when it is finished.

    Rows wait until they fill a page of their column; pages are encoded by two threads and written
    in the order of the rows, so that the same batches always give the same bytes. Used as a
    context manager, the file is finished at the end of the block, or aborted by an exception.
    Not to be shared between threads.

    Parameters
    ----------
    store
        Where to write; ``open_path`` writes to a path or URI instead.
    path
        The file, as the store names it; one that exists is replaced.
    schema
        Columns of the file. Field ids of a ``LanceSchema`` are kept, those of an Arrow schema
        count from 0.
    version
        2.2 unless older readers have to read the file: a `FileVersion`, or its text as "2.1".
    max_page_bytes
        Bytes of rows, before encoding, that make a page of one column.
    max_buffered_bytes
        Bytes of rows that wait in all columns together; files of many columns get smaller pages.

    Raises
    ------
    InvalidRequestError
        Two fields have one name, or a field's metadata contradicts its type.
    UnsupportedFeatureError
        A type that files of the version cannot hold; names the column.

    Examples
    --------
    >>> import tempfile
    >>> table = pa.table({"id": [1, 2], "name": ["a", None]})
    >>> path = tempfile.mkdtemp() + "/a.lance"
    >>> with LanceFileWriter.open_path(path, table.schema) as writer:
    ...     writer.write_batch(table)
    ...     writer.finish().num_rows
    2
    """

    def __init__(
        self,
        store: ObjectStore,
        path: str,
        schema: pa.Schema | LanceSchema,
        *,
        version: FileVersion | str = FileVersion.V2_2,
        max_page_bytes: int = MAX_PAGE_BYTES,
        max_buffered_bytes: int = _MAX_BUFFERED_BYTES,
    ) -> None:
        version = FileVersion.of(version)
        given = checked_schema(schema)
        tree = given if isinstance(given, LanceSchema) else schema_from_arrow(given)
        checked_text("a path", path)
        if not hasattr(store, "open_sink"):
            raise InvalidRequestError("a writer takes a store; open_path takes a path or URI")
        checked_number("max_page_bytes", max_page_bytes, 1)
        checked_number("max_buffered_bytes", max_buffered_bytes, 1)
        for field in tree.fields:
            check_storable(field, path, version)
        self._path = path
        self._version = version
        self._metadata = dict(tree.metadata)
        self._checker = BatchChecker(tree)
        self._columns = column_indices(tree, version)
        self._sink = store.open_sink(path)
        self._container = ContainerWriter(self._sink, version, len(self._columns))
        self._blobs = BlobWriter(store, path, self._container, version)
        page_bytes = _page_bytes(len(self._columns), max_page_bytes, max_buffered_bytes)
        self._fields = [
            _Field(
                field.name,
                field_writer(field, self._columns, version, self._blobs),
                PendingRows(page_bytes * sum(node.id in self._columns for node in field.walk())),
                NarrowDictionaries(field.name),
            )
            for field in tree.fields
        ]
        if version is FileVersion.V2_0:
            for field in tree.fields:
                if field.is_blob:
                    self._container.set_column_encoding(self._columns[field.id], _BLOB_COLUMN)
        self._jobs = OrderedJobs(
            self._add_pages, num_threads=_NUM_THREADS, max_waiting=_NUM_THREADS
        )
        self._num_rows = 0
        self._is_open = True
        self._written: WrittenFile | None = None

    @classmethod
    def open_path(
        cls,
        location: str | PathLike[str],
        schema: pa.Schema | LanceSchema,
        *,
        version: FileVersion | str = FileVersion.V2_2,
        max_page_bytes: int = MAX_PAGE_BYTES,
        max_buffered_bytes: int = _MAX_BUFFERED_BYTES,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Write a file at a path or URI; for use without a dataset.

        Parameters
        ----------
        location
            Path or URI of the file; folders that lack are made, ``~`` is the home of a user.
        schema, version, max_page_bytes, max_buffered_bytes
            As for the class.
        storage_options
            As ``open_store``.
        """
        store, name = open_parent(checked_location(location), checked_options(storage_options))
        return cls(
            store,
            name,
            schema,
            version=version,
            max_page_bytes=max_page_bytes,
            max_buffered_bytes=max_buffered_bytes,
        )

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows; they may be overwritten afterwards only where Arrow allows it.

        Parameters
        ----------
        batch
            All columns of the file, in any order. Of any size: it is cut into pages.

        Raises
        ------
        InvalidRequestError, TypeMismatchError
            The columns are not those of the file; nothing was written then.
        InvalidRequestError, UnsupportedFeatureError
            A value cannot be stored: nulls where the field allows none, text that is no JSON or not
            UTF-8, more dictionary items than the indices count. The file is aborted then, as it is
            by errors of the store.
        """
        self._check_open()
        batch = checked_batch(batch)
        self._checker.check(batch.schema)
        with self._aborting_on_error():
            for field in self._fields:
                column = batch.column(field.name)
                chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
                for chunk in chunks:
                    self._append(field, field.writer.prepare(self._sound(field, chunk)))
        self._num_rows += batch.num_rows

    def add_global_buffer(self, data: Piece) -> int:
        """Append a buffer that belongs to no column; return the index to find it by, from 1."""
        self._check_open()
        checked_bytes(data)
        with self._aborting_on_error():
            return self._container.add_global_buffer(data)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Set a value of the schema's metadata, replacing one of the same key."""
        self._check_open()
        self._metadata[checked_text("a key of metadata", key)] = checked_text(
            f"the metadata of {key!r}", value
        )

    def finish(self) -> WrittenFile:
        """Write what is left and make the file readable; a second call changes nothing."""
        if self._written is not None:
            return self._written
        self._check_open()
        with self._aborting_on_error():
            for field in self._fields:
                for piece in field.pending.rest():
                    self._submit(field, piece)
            self._jobs.drain()
            for field in self._fields:
                self._add_pages(field.writer.last_pages())
            self._blobs.finish()
            stored = LanceSchema(tuple(f.writer.stored for f in self._fields), self._metadata)
            size = self._container.finish(schema_message(stored), self._num_rows)
        self._jobs.close()
        self._is_open = False
        self._written = WrittenFile(self._path, size, self._num_rows, self._version, self._columns)
        return self._written

    def abort(self) -> None:
        """Leave no file; does nothing after ``finish`` or a first ``abort``."""
        if self._is_open:
            self._is_open = False
            self._jobs.close()
            self._blobs.abort()
            self._sink.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._is_open:
            self.finish()
        self.abort()

    @staticmethod
    def _sound(field: _Field, rows: pa.Array) -> pa.Array:
        """Refuse arrays that no reader could make sense of, whoever made them."""
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidRequestError(f"column {field.name!r} is no sound array: {error}") from None
        field.dictionaries.check(rows)
        return rows

    def _append(self, field: _Field, rows: pa.Array) -> None:
        for piece in field.pending.add(rows):
            self._submit(field, piece)

    def _submit(self, field: _Field, piece: pa.Array) -> None:
        is_short = row_bytes(piece) < _SHORT_BYTES
        self._jobs.submit(partial(field.writer.encode, piece), is_short=is_short)

    def _add_pages(self, pages: list[FilePage]) -> None:
        for page in pages:
            self._container.add_page(page)

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidRequestError(f"{self._path} takes nothing more: finished or aborted")

    @contextmanager
    def _aborting_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.abort()
            raise


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """A top-level field under way."""

    name: str
    writer: FieldWriter
    pending: PendingRows
    dictionaries: NarrowDictionaries


def _page_bytes(num_columns: int, max_page_bytes: int, max_buffered_bytes: int) -> int:
    share = max_buffered_bytes // max(num_columns, 1)
    return min(max_page_bytes, max(share, _MIN_PAGE_BYTES))
