"""Formats of files of rows: their columns, pieces that tasks read, and the rows of a piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lance_core.errors import InvalidRequestError
from pipeline.source_input import SourceFile, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH_ROWS = 8192
_BUFFER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file that one worker reads.

    Parameters
    ----------
    path
        The file.
    start, end
        Row groups, record batches or bytes, as the format counts.
    num_rows
        Rows, or about how many.
    first_row
        Place in the file of the first one; None where only reading the file tells.
    size
        Bytes of the file.
    """

    path: str
    start: int
    end: int
    num_rows: int
    first_row: int | None
    size: int

    def check(self, file: SourceFile) -> None:
        """Refuse a file that is another one than when it was cut.

        Raises
        ------
        InvalidRequestError
            It has another size.
        """
        if file.size != self.size:
            raise InvalidRequestError(
                f"{self.path} has changed since the job was planned: it had {self.size} bytes and"
                f" has {file.size}; ingest it as another job"
            )

    def place(self, row: int) -> str:
        """Say where a row of the piece is; rows are counted from 0."""
        if self.first_row is None:
            return f"{self.path}, row {row} of those after byte {self.start}"
        return f"{self.path}, row {self.first_row + row}"


class SourceFormat(Protocol):
    """One format."""

    def schema(self, file: SourceFile) -> pa.Schema:
        """Return the columns of a file."""

    def pieces(self, file: SourceFile, max_rows: int) -> Iterator[Piece]:
        """Cut a file into pieces; only those that can be no smaller have more rows."""

    def batches(
        self, file: SourceFile, piece: Piece, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Read a piece; ``schema`` tells the types of columns where the file does not."""


@dataclass(frozen=True, slots=True)
class Parquet:
    """Parquet: pieces are runs of row groups."""

    def schema(self, file: SourceFile) -> pa.Schema:
        """Return the columns of a file."""
        with reading(file.path):
            return _parquet(file).schema_arrow

    def pieces(self, file: SourceFile, max_rows: int) -> Iterator[Piece]:
        """Cut a file into pieces."""
        with reading(file.path):
            metadata = _parquet(file).metadata
        first = begin = rows = 0
        for group in range(metadata.num_row_groups):
            count = metadata.row_group(group).num_rows
            if rows > 0 and rows + count > max_rows:
                yield Piece(file.path, begin, group, rows, first, file.size)
                first, begin, rows = first + rows, group, 0
            rows += count
        if rows > 0:
            yield Piece(file.path, begin, metadata.num_row_groups, rows, first, file.size)

    def batches(
        self, file: SourceFile, piece: Piece, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Read a piece."""
        groups = list(range(piece.start, piece.end))
        with reading(file.path):
            yield from _parquet(file).iter_batches(_BATCH_ROWS, groups, use_threads=False)


@dataclass(frozen=True, slots=True)
class ArrowFile:
    """Arrow's file format, also called Feather: pieces are runs of record batches."""

    def schema(self, file: SourceFile) -> pa.Schema:
        """Return the columns of a file."""
        with reading(file.path):
            return pa.ipc.open_file(file.open()).schema

    def pieces(self, file: SourceFile, max_rows: int) -> Iterator[Piece]:
        """Cut a file into pieces; all batches but the last are taken to be as long as the first."""
        with reading(file.path):
            reader = pa.ipc.open_file(file.open())
            count = reader.num_record_batches
            rows = reader.get_batch(0).num_rows if count > 0 else 0
        step = max(1, max_rows // max(rows, 1))
        for begin in range(0, count, step):
            end = min(begin + step, count)
            yield Piece(file.path, begin, end, (end - begin) * rows, begin * rows, file.size)

    def batches(
        self, file: SourceFile, piece: Piece, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Read a piece."""
        with reading(file.path):
            reader = pa.ipc.open_file(file.open())
            for number in range(piece.start, piece.end):
                yield reader.get_batch(number)


def _parquet(file: SourceFile) -> pq.ParquetFile:
    """Open a file; columns of remote ones are read in steps, for a row group may be of any size."""
    return pq.ParquetFile(file.open(), buffer_size=0 if file.is_mapped else _BUFFER_BYTES)
