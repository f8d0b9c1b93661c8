"""Rows as callers hand them over -> batches with the columns that a table has."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.expr.names import ROW_COLUMNS
from lance_core.schema.arrow import arrow_type
from lance_core.schema.from_arrow import schema_from_arrow, storage_type
from lance_core.schema.tree import LanceSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from lance_core.schema.field import LanceField

    class ArrowStream(Protocol):
        """Whatever speaks Arrow's C stream interface: tables and frames of many libraries."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            """Return a capsule with the stream."""

    RowSource = ArrowStream | pa.RecordBatch | Iterable[pa.RecordBatch]
    """A table, a reader of batches, a frame of another library, a batch, or some batches."""

_BLOB = "lance-encoding:blob"
_EXTENSION = "ARROW:extension:name"
_BLOB_V2 = "lance.blob.v2"
_DECLARED_BLOB = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])


RESERVED_NAMES = (*ROW_COLUMNS, "_row_created_at_version", "_row_last_updated_at_version")
"""Columns that every table has by itself: no other reader takes a table with its own of the name.

Source: observed with pylance 14.0.2, which refuses them in new tables.
"""


def open_rows(data: object) -> pa.RecordBatchReader:
    """Return the rows as a stream of batches; nothing but the first batch is read.

    Raises
    ------
    InvalidRequestError
        The data are of another kind, or no batch tells what columns there are.
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if isinstance(data, str | bytes | dict) or not hasattr(data, "__iter__"):
        raise _no_rows(data)
    batches = iter(data)
    first = next(batches, None)
    if first is None:
        raise InvalidRequestError("no batch is given, so the columns are unknown; give a table")
    if not isinstance(first, pa.RecordBatch):
        raise _no_rows(first)
    return pa.RecordBatchReader.from_batches(first.schema, _alike(first, batches))


def _alike(first: pa.RecordBatch, others: Iterable[object]) -> Iterator[pa.RecordBatch]:
    for batch in chain([first], others):
        if not isinstance(batch, pa.RecordBatch):
            raise _no_rows(batch)
        if batch.schema != first.schema:
            raise InvalidRequestError(
                f"a batch has columns {batch.schema.to_string()}, the first one"
                f" {first.schema.to_string()}; give batches of one schema"
            )
        yield batch


def schema_of_new(schema: pa.Schema, version: FileVersion) -> LanceSchema:
    """Return the field tree of a new table with these columns.

    Parameters
    ----------
    schema
        Columns as they are given.
    version
        Of the data files. Blobs become those of the second form from 2.2 on.

    Raises
    ------
    InvalidRequestError, UnsupportedFeatureError
        As `schema_from_arrow`, or there is no column, or one has a reserved name.

    Notes
    -----
    Blobs: observed with pylance 14.0.2.
    """
    if len(schema) == 0:
        raise InvalidRequestError("there is no column; a table has at least one")
    for name in schema.names:
        check_not_reserved(name)
    if version is FileVersion.V2_2:
        schema = pa.schema([_declared(field) for field in schema], metadata=schema.metadata)
    return schema_from_arrow(schema)


def check_not_reserved(name: str) -> None:
    """Refuse a name that a column of a table cannot have."""
    if name in RESERVED_NAMES:
        raise InvalidRequestError(
            f"a column cannot be named {name!r}: every table has it by itself; rename it"
        )


def matching_fields(given: pa.Schema, table: LanceSchema, *, may_lack: bool = False) -> LanceSchema:
    """Return the fields of a table that given rows have values of, in the order of the table.

    Parameters
    ----------
    given
        Columns in any order. Nullable columns of the table may be missing.
    table
        Its schema.
    may_lack
        Whether columns that may not be null can be missing too.

    Raises
    ------
    InvalidRequestError
        A column is unknown to the table, or missing though it may not be null.
    TypeMismatchError
        A column has another type.
    """
    columns = {field.name: field for field in schema_from_arrow(given).fields}
    unknown = [name for name in columns if name not in table.names]
    missing = [
        field.name
        for field in table.fields
        if field.name not in columns and not (field.nullable or may_lack)
    ]
    if len(unknown) + len(missing) > 0:
        raise InvalidRequestError(
            f"the table has columns {', '.join(table.names)}; the rows have {unknown} besides and"
            f" lack {missing}, which may not be null"
        )
    fields = tuple(field for field in table.fields if field.name in columns)
    for field in fields:
        _check_type(columns[field.name], field)
    return LanceSchema(fields, table.metadata)


def fitted(batches: Iterable[pa.RecordBatch], schema: LanceSchema) -> Iterator[pa.RecordBatch]:
    """Yield batches as files of ``schema`` take them: columns in order, blobs as declared there.

    Raises
    ------
    InvalidRequestError
        A batch lacks a column.
    """
    for batch in batches:
        missing = [name for name in schema.names if name not in batch.schema.names]
        if len(missing) > 0:
            raise InvalidRequestError(f"a batch lacks {missing}, which those before had")
        if batch.num_rows > 0:
            yield _fitted(batch, schema)


def declared_blobs(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Give blobs the type that their table declares.

    Parameters
    ----------
    array
        Their bytes, or structs with the bytes as ``data``.
    kind
        ``large_binary``, or a struct of ``data`` and what else may say where they are.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not pa.types.is_struct(kind):
        return array
    parts = {"data": array}
    if pa.types.is_struct(array.type):
        parts = dict(zip((part.name for part in array.type), array.flatten(), strict=True))
    children = [parts.get(child.name, pa.nulls(len(array), child.type)) for child in kind]
    mask = array.is_null() if array.null_count > 0 else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


def _fitted(batch: pa.RecordBatch, schema: LanceSchema) -> pa.RecordBatch:
    fields, arrays = [], []
    for field in schema.fields:
        given, array = batch.schema.field(field.name), batch.column(field.name)
        if field.is_blob:
            array = declared_blobs(array, arrow_type(field))
            given = pa.field(field.name, array.type, field.nullable, dict(field.metadata))
        fields.append(given)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _declared(field: pa.Field) -> pa.Field:
    """Return a column of blobs in the form that tables of the newest version have."""
    metadata = {} if field.metadata is None else dict(field.metadata)
    if _BLOB.encode() not in metadata or storage_type(field.type) != pa.large_binary():
        return field
    del metadata[_BLOB.encode()]
    kept = {**metadata, _EXTENSION.encode(): _BLOB_V2.encode()}
    return pa.field(field.name, _DECLARED_BLOB, field.nullable, kept)


def _check_type(given: LanceField, field: LanceField) -> None:
    if field.is_blob:
        is_fine = given.is_blob or given.logical_type == "large_binary"
    else:
        is_fine = _shape(given) == _shape(field)
    if not is_fine:
        raise TypeMismatchError(
            f"column {field.name!r} is {_text(field)} in the table and {_text(given)} in the rows;"
            " cast it"
        )


def _shape(field: LanceField) -> tuple[object, ...]:
    """Return what has to agree: names and types, but neither ids nor metadata."""
    return field.name, field.logical_type, tuple(map(_shape, field.children))


def _text(field: LanceField) -> str:
    if len(field.children) == 0:
        return field.logical_type
    inner = ", ".join(f"{child.name}: {_text(child)}" for child in field.children)
    return f"{field.logical_type}<{inner}>"


def _no_rows(data: object) -> InvalidRequestError:
    return InvalidRequestError(
        f"rows come as {type(data).__name__}; give a pyarrow table, a reader of record batches,"
        " an iterable of them, or a frame with __arrow_c_stream__"
    )
