"""Columns of a dataset as Spark takes them.

Spark knows fewer types, and takes of Arrow just those that it makes itself (Spark page, section 3):

=============================== ================================================================
in the dataset                  in Spark
=============================== ================================================================
``uint8``, ``uint16``           ``smallint``, ``int``
``uint32``, ``uint64``          ``bigint``, ``decimal(20,0)``
``float16``                     ``float``
lists of any kind               ``array``
texts and bytes of any kind     ``string``, ``binary``
``date64``                      ``date``
times of day                    ``time``
timestamps                      ``timestamp`` with a zone, else ``timestamp_ntz``; microseconds,
                                nanoseconds are cut
durations                       day-time intervals; microseconds, nanoseconds are cut
decimals                        ``decimal``, if it has 38 digits at most
dictionaries                    what is in them
JSON                            ``string``
null                            ``string``
=============================== ================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from pipeline.nested_arrays import as_lists, as_maps, as_structs

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_DIGITS = 38
_ELEMENT = "element"
_NARROW: dict[pa.DataType, pa.DataType] = {
    pa.null(): pa.string(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def readable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as Spark takes them, without metadata.

    Raises
    ------
    UnsupportedFeatureError
        Spark has no type for a column.
    """
    return pa.schema([_readable_column(field) for field in schema])


def readable(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as Spark takes them.

    Parameters
    ----------
    batch
        Rows of a dataset.
    schema
        The columns as Spark expects them, of types as `readable_schema` says.

    Raises
    ------
    InvalidRequestError
        A value is beyond those that Spark's type has, such as the year 300,000.
    """
    arrays = [
        _readable_values(column, field) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def readable_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark takes in place of one.

    Raises
    ------
    UnsupportedFeatureError
        There is none.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return readable_type(kind.storage_type)
    if kind in _NARROW:
        return _NARROW[kind]
    for holds, make in _RULES:
        if holds(kind):
            return make(kind)
    return kind


def readable_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values as a type of `readable_type`; ``kind`` names parts as Spark does."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type == kind and not pa.types.is_nested(kind):
        return array
    if pa.types.is_list(kind):
        return as_lists(array, kind, readable_array)
    if pa.types.is_map(kind):
        return as_maps(array, kind, readable_array)
    if pa.types.is_struct(kind):
        return as_structs(array, kind, readable_array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    # Digits behind the last that Spark has are cut; nothing else is lost.
    return pc.cast(array, kind, safe=not pa.types.is_temporal(kind) or _is_widened(array.type))


def _readable_column(field: pa.Field) -> pa.Field:
    try:
        return pa.field(field.name, readable_type(field.type), _is_nullable(field))
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(
            f"column {field.name!r}: {error}; name the other ones by the option columns"
        ) from None


def _readable_values(array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return readable_array(array, field.type)
    except pa.ArrowInvalid as error:
        raise InvalidRequestError(
            f"column {field.name!r} is {array.type} and cannot be had as {field.type}: {error};"
            " name the other columns by the option columns"
        ) from None


def _is_nullable(field: pa.Field) -> bool:
    return bool(field.nullable) or pa.types.is_null(field.type)


def _list_type(kind: pa.DataType) -> pa.DataType:
    field = kind.value_field
    return pa.list_(pa.field(_ELEMENT, readable_type(field.type), _is_nullable(field)))


def _map_type(kind: pa.DataType) -> pa.DataType:
    key, item = kind.key_field, kind.item_field
    return pa.map_(
        pa.field("key", readable_type(key.type), nullable=False),
        pa.field("value", readable_type(item.type), _is_nullable(item)),
    )


def _struct_type(kind: pa.DataType) -> pa.DataType:
    return pa.struct(
        [pa.field(child.name, readable_type(child.type), _is_nullable(child)) for child in kind]
    )


def _decimal_type(kind: pa.DataType) -> pa.DataType:
    digits = kind.precision - min(kind.scale, 0)
    if digits > _MOST_DIGITS:
        raise UnsupportedFeatureError(
            f"it is {kind}, of {digits} digits, Spark's decimals have {_MOST_DIGITS} at most"
        )
    return pa.decimal128(digits, max(kind.scale, 0))


_RULES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (pa.types.is_dictionary, lambda kind: readable_type(kind.value_type)),
    (pa.types.is_fixed_size_list, _list_type),
    (pa.types.is_list, _list_type),
    (pa.types.is_large_list, _list_type),
    (pa.types.is_map, _map_type),
    (pa.types.is_struct, _struct_type),
    (pa.types.is_fixed_size_binary, lambda _: pa.binary()),
    (pa.types.is_decimal, _decimal_type),
    (pa.types.is_time, lambda _: pa.time64("ns")),
    (pa.types.is_duration, lambda _: pa.duration("us")),
    (
        pa.types.is_timestamp,
        lambda kind: pa.timestamp("us", None if kind.tz is None else "UTC"),
    ),
)


def _is_widened(kind: pa.DataType) -> bool:
    """Tell whether a time keeps all its digits in Spark."""
    return not hasattr(kind, "unit") or kind.unit != "ns" or pa.types.is_time(kind)
