"""Rows of any number -> new fragments of bounded size, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.encodings.version import FileVersion
from lance_core.file.arguments import checked_number
from lance_core.operations.data_files import NewDataFile, discard
from lance_core.proto import table_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from lance_core.io.store import ObjectStore
    from lance_core.schema.tree import LanceSchema

_MAX_ROWS_PER_FILE = 1 << 20
_MAX_BYTES_PER_FILE = 90 << 30
_LARGEST_FRAGMENT = 1 << 32
"""Rows that row addresses can count."""


@dataclass(frozen=True, slots=True)
class FragmentOptions:
    """How large new fragments become, and how they are encoded.

    Parameters
    ----------
    max_rows_per_file
        Rows of a fragment; all but the last have as many.
    max_bytes_per_file
        Bytes of rows, before encoding, after which a fragment takes no further batch.
    file_version
        Version of the data files, which is that of the dataset: a `FileVersion`, or its text.

    Raises
    ------
    InvalidRequestError
        A size is not positive or more than row addresses can count, or there is no such version.
    """

    max_rows_per_file: int = _MAX_ROWS_PER_FILE
    max_bytes_per_file: int = _MAX_BYTES_PER_FILE
    file_version: FileVersion | str = FileVersion.V2_2

    def __post_init__(self) -> None:
        checked_number("max_rows_per_file", self.max_rows_per_file, 1, _LARGEST_FRAGMENT)
        checked_number("max_bytes_per_file", self.max_bytes_per_file, 1)
        FileVersion.of(self.file_version)


_DEFAULTS = FragmentOptions()


def write_fragments(
    store: ObjectStore,
    schema: LanceSchema,
    batches: Iterable[pa.RecordBatch],
    options: FragmentOptions = _DEFAULTS,
) -> list[table_pb2.DataFragment]:
    """Write rows to data files, one per fragment, in their order.

    Parameters
    ----------
    store
        Rooted at the dataset, which need not exist yet.
    schema
        Fields of the rows, with the ids that the table knows them by. It may leave out fields of
        the table, which read as null then.
    batches
        Every column of ``schema``, in any order. They are read one by one and may be of any size.
    options
        Sizes and version.

    Returns
    -------
    list[table_pb2.DataFragment]
        Without ids, which are given out when a version is built; none if there are no rows.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
        As `LanceFileWriter`. Nothing is left of what was written then, nor after any other error.
    """
    under_way = _Fragments(store, schema, options)
    try:
        for batch in batches:
            under_way.add(batch)
        under_way.close()
    except BaseException:
        under_way.discard()
        raise
    return under_way.finished


class _Fragments:
    """Fragments that are complete, and the file of the one that is not."""

    def __init__(self, store: ObjectStore, schema: LanceSchema, options: FragmentOptions) -> None:
        self._store = store
        self._schema = schema
        self._options = options
        self._version = FileVersion.of(options.file_version)
        self._file: NewDataFile | None = None
        self._num_rows = 0
        self._num_bytes = 0
        self.finished: list[table_pb2.DataFragment] = []

    def add(self, batch: pa.RecordBatch) -> None:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, self._options.max_rows_per_file - self._num_rows)
            self._write(piece)
            start += piece.num_rows

    def close(self) -> None:
        """Complete the fragment under way."""
        if self._file is None:
            return
        described, written = self._file.finish()
        self._file = None
        fragment = table_pb2.DataFragment(files=[described], physical_rows=written.num_rows)
        self.finished.append(fragment)
        self._num_rows = self._num_bytes = 0

    def discard(self) -> None:
        if self._file is not None:
            self._file.discard()
        discard(self._store, (file.path for each in self.finished for file in each.files))

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._file is None:
            self._file = NewDataFile(self._store, self._schema, self._version)
        self._file.writer.write_batch(batch)
        self._num_rows += batch.num_rows
        self._num_bytes += batch.nbytes
        is_long = self._num_rows == self._options.max_rows_per_file
        if is_long or self._num_bytes >= self._options.max_bytes_per_file:
            self.close()
