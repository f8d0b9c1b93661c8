"""Formats of text: what a column is has to be guessed, and a file is cut at ends of lines."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.json as pj

from lance_core.errors import InvalidRequestError
from lance_core.operations.csv_cuts import RowStarts
from lance_core.operations.csv_rows import csv_batches, csv_schema
from lance_core.schema.from_arrow import storage_type
from pipeline.source_formats import Piece
from pipeline.source_input import COMPRESSIONS, SourceFile, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Types = Mapping[str, pa.DataType]

_SAMPLE_BYTES = 1 << 20
_PIECE_BYTES = 128 << 20
_BLOCK_BYTES = 16 << 20
_GUESSED_ROW_BYTES = 50
_COMMA = ","
_TYPE_ADVICE = "; give the type of the column by --type"
_ALL_ADVICE = "; give the types of columns, also of rare ones, by --type"


@dataclass(frozen=True, slots=True)
class Csv:
    """Values between delimiters, the first line naming the columns: pieces are ranges of bytes.

    Parameters
    ----------
    types
        Types of columns that are known; those of others are guessed from the beginning of a file,
        and columns that are empty there are taken for text.
    delimiter
        What stands between values.
    """

    types: Types
    delimiter: str = _COMMA

    def schema(self, file: SourceFile) -> pa.Schema:
        """Return the columns of a file."""
        with reading(file.path, _advice):
            guessed = csv_schema(file.open_whole, self.types, self.delimiter)
        unclear = [field.name for field in guessed if pa.types.is_binary(field.type)]
        if any(name not in self.types for name in unclear):
            raise InvalidRequestError(f"{file.path}: {unclear} are no UTF-8{_TYPE_ADVICE}")
        return guessed

    def pieces(self, file: SourceFile, max_rows: int) -> Iterator[Piece]:
        """Cut a file into pieces, at ends of rows; it is read for them, as line breaks may lie."""
        if _is_compressed(file.path):
            yield from _byte_pieces(file, 0, max_rows)
            return
        starts = RowStarts(file.read, file.size, self.delimiter)
        begin = starts.at_or_after(1)
        for piece in _byte_pieces(file, begin, max_rows):
            end = starts.at_or_after(piece.end)
            if begin < end:
                yield replace(piece, start=begin, end=end)
            begin = end

    def batches(
        self, file: SourceFile, piece: Piece, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Read a piece."""
        types = _types_of(schema)
        with reading(file.path, _advice):
            if _is_compressed(file.path):
                yield from csv_batches(file.open_whole, types, self.delimiter)
                return
            header = csv_schema(file.open, self.types, self.delimiter).names
            opened = partial(file.open, piece.start, piece.end)
            yield from csv_batches(opened, types, self.delimiter, header)


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A JSON object per line: pieces are ranges of bytes.

    Parameters
    ----------
    types
        Types of columns that are known; those of others, and which there are, are what the
        beginnings of files have.
    """

    types: Types

    def schema(self, file: SourceFile) -> pa.Schema:
        """Return the columns that the first mebibyte of a file has, or its first line."""
        with reading(file.path):
            whole = _first_lines(file)
        try:
            rows = [_object(line) for line in whole.splitlines() if line.strip()]
            found = pa.array(rows, pa.struct([]) if len(rows) == 0 else None).type
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            raise InvalidRequestError(
                f"{file.path} cannot be read as a JSON object per line: {error}"
            ) from error
        return pa.schema([field.with_type(self._type_of(field)) for field in found])

    def pieces(self, file: SourceFile, max_rows: int) -> Iterator[Piece]:
        """Cut a file into pieces, at ends of lines."""
        return _byte_pieces(file, 0, max_rows)

    def batches(
        self, file: SourceFile, piece: Piece, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Read a piece."""
        options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
        sizes = pj.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)
        with reading(file.path, _advice):
            if _is_compressed(file.path):
                yield from pj.open_json(file.open_whole(), sizes, options)
                return
            start, end = (file.line_start(at) for at in (piece.start, piece.end))
            if start < end:
                yield from pj.open_json(file.open(start, end), sizes, options)

    def _type_of(self, field: pa.Field) -> pa.DataType:
        """Return how a column is read.

        Dates and times are texts, and texts may be written as numbers: both are cast then.
        """
        kind, known = field.type, self.types.get(field.name, field.type)
        is_day = pa.types.is_date(known) or pa.types.is_time(known) or pa.types.is_duration(known)
        is_number = pa.types.is_primitive(kind) and not pa.types.is_null(kind)
        return kind if is_day or (is_number and pa.types.is_string(known)) else known


def _advice(error: Exception) -> str:
    """Return what helps against an error, if that is to say what type a column has."""
    text = str(error)
    if "conversion error" in text:
        return _TYPE_ADVICE
    return _ALL_ADVICE if "changed from" in text or "unexpected field" in text else ""


def _first_lines(file: SourceFile) -> bytes:
    """Return whole lines from the beginning of a file, at least one, that fill about a sample."""
    stream = file.open_whole()
    data: bytes = stream.read(_SAMPLE_BYTES)
    block = data
    while len(block) > 0 and b"\n" not in block:
        if len(data) > _BLOCK_BYTES:
            raise InvalidRequestError(f"{file.path}: the first line has over {_BLOCK_BYTES} bytes")
        block = stream.read(_SAMPLE_BYTES)
        data += block
    return data if len(data) < _SAMPLE_BYTES or len(block) == 0 else data[: data.rfind(b"\n") + 1]


def _object(line: bytes) -> dict[str, object]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise TypeError(f"{line[:80]!r} is no object")
    return row


def _byte_pieces(file: SourceFile, start: int, max_rows: int) -> Iterator[Piece]:
    """Cut the rest of a file of lines into ranges of about equal length, unless it is compressed.

    They may begin and end within lines.
    """
    if start == file.size:
        return
    if _is_compressed(file.path):
        rows = max(1, file.size // _GUESSED_ROW_BYTES)
        yield Piece(file.path, 0, file.size, rows, 0, file.size)
        return
    sample = file.read(start, min(start + _SAMPLE_BYTES, file.size))
    row_bytes = len(sample) / max(1, sample.count(b"\n"))
    num_bytes = file.size - start
    limit = min(_PIECE_BYTES, math.ceil(max_rows * row_bytes))
    count = math.ceil(num_bytes / limit)
    for number in range(count):
        begin, end = (start + num_bytes * n // count for n in (number, number + 1))
        rows = max(1, round((end - begin) / row_bytes))
        yield Piece(file.path, begin, end, rows, 0 if number == 0 else None, file.size)


def readable(kind: pa.DataType) -> pa.DataType:
    """Return the type that text is read as to become a type: vectors come as lists, JSON as text.

    Examples
    --------
    >>> readable(pa.list_(pa.float16(), 3))
    ListType(list<item: float>)
    """
    kind = storage_type(kind)
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return pa.list_(readable(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(readable(part.type)) for part in kind])
    return pa.float32() if pa.types.is_float16(kind) else kind


def _types_of(schema: Iterable[pa.Field]) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def _is_compressed(path: str) -> bool:
    return any(path.lower().endswith(ending) for ending in COMPRESSIONS)
