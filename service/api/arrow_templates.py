"""Small Arrow answers from templates.

Answers with the same schema and the same number of rows, all of fixed width and none null, are the
same bytes but for the values. pyarrow's writer costs as much as reading the rows, most of it in
giving the GIL away and getting it back; so it writes the first answer of a kind, and the values of
later ones are put in their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.encodings.arrow_arrays import PlainValues
from service.api.arrow_bodies import encode_table
from service.api.negotiation import Encoding, Format

if TYPE_CHECKING:
    from lance_core.query.query_result import AnswerRows

_MAX_ROWS = 1000
_MAX_TEMPLATES = 64
_BYTE_BITS = 8
_TWO = 2
"""Buffers of a column of fixed width: which values are valid, and the values."""


class _Schema:
    """A schema as a key: equal to itself only, since equal schemas may differ in metadata."""

    __slots__ = ("given",)

    def __init__(self, given: pa.Schema) -> None:
        self.given = given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and other.given is self.given

    def __hash__(self) -> int:
        return id(self.given)


@dataclass(frozen=True, slots=True)
class _Template:
    """An answer, and where in it the values of each column lie: first byte and length."""

    body: bytes
    places: tuple[tuple[int, int], ...]


def encode_answer(rows: pa.Table | AnswerRows, encoding: Encoding) -> bytes:
    """Return an answer as one Arrow IPC message sequence."""
    if isinstance(rows, pa.Table):
        return encode_table(rows, encoding)
    values = _values(rows)
    if values is None or encoding.compression is not None:
        return encode_table(rows.to_table(), encoding)
    template = _template(_Schema(rows.schema), rows.num_rows, encoding.format)
    if template is None:
        return encode_table(rows.to_table(), encoding)
    body = bytearray(template.body)
    for (start, num_bytes), held in zip(template.places, values, strict=True):
        body[start : start + num_bytes] = held[:num_bytes]
    return bytes(body)


def _values(rows: AnswerRows) -> list[memoryview] | None:
    """Return the bytes of each column's values; None if they may not be all there is of one."""
    if not 0 < rows.num_rows <= _MAX_ROWS:
        return None
    values = [_plain_values(column) for column in rows.columns]
    known = [each for each in values if each is not None]
    return known if len(known) == len(values) else None


def _plain_values(column: pa.Array | pa.ChunkedArray | PlainValues) -> memoryview | None:
    if isinstance(column, PlainValues):
        return column.data.data
    if isinstance(column, pa.ChunkedArray) or column.offset or column.null_count:
        return None
    buffers = column.buffers()
    return memoryview(buffers[1]) if len(buffers) == _TWO else None


@lru_cache(_MAX_TEMPLATES)
def _template(key: _Schema, num_rows: int, wanted: Format) -> _Template | None:
    """Make a template; None unless all columns are numbers, or times, of whole bytes."""
    schema, encoding = key.given, Encoding(wanted)
    if not all(_is_plain(field.type) for field in schema):
        return None
    sizes = [num_rows * field.type.bit_width // _BYTE_BITS for field in schema]
    zeros = [
        pa.Array.from_buffers(field.type, num_rows, [None, pa.py_buffer(bytes(size))])
        for field, size in zip(schema, sizes, strict=True)
    ]
    body = pa.py_buffer(encode_table(pa.Table.from_arrays(zeros, schema=schema), encoding))
    starts = [column.buffers()[1].address - body.address for column in _read(body, wanted)]
    return _Template(body.to_pybytes(), tuple(zip(starts, sizes, strict=True)))


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind)) and kind.bit_width % _BYTE_BITS == 0


def _read(body: pa.Buffer, wanted: Format) -> list[pa.Array]:
    """Return the columns of the only batch, which lie inside ``body``."""
    if wanted is Format.ARROW_FILE:
        batch = pa.ipc.open_file(body).get_batch(0)
    else:
        batch = pa.ipc.open_stream(body).read_next_batch()
    columns: list[pa.Array] = batch.columns
    return columns
