"""Field tree -> Arrow schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.schema.field import LanceField
    from lance_core.schema.tree import LanceSchema

_BFLOAT16 = "lance.bfloat16"
_FIXED: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    **{f"{sign}int{bits}": pa.type_for_alias(f"{sign}int{bits}")
       for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "json": pa.json_(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    _BFLOAT16: pa.binary(2),
}  # fmt: skip
_MAX_DEPTH = 16
_EXTENSION_KEYS = {"ARROW:extension:name", "ARROW:extension:metadata"}


def _timestamp(rest: str) -> pa.DataType:
    unit, _, zone = rest.partition(":")  # zone names may contain colons
    return pa.timestamp(unit, None if zone in {"", "-"} else zone)


def _decimal128(rest: str) -> pa.DataType:
    precision, _, scale = rest.partition(":")
    return pa.decimal128(int(precision), int(scale))


def _decimal256(rest: str) -> pa.DataType:
    precision, _, scale = rest.partition(":")
    return pa.decimal256(int(precision), int(scale))


def _dictionary(rest: str) -> pa.DataType:
    match = re.fullmatch(r"(.+):(u?int(?:8|16|32|64)):(true|false)", rest)
    if match is None:
        raise ValueError(rest)
    return pa.dictionary(_parse(match[2]), _parse(match[1]), ordered=match[3] == "true")


def _width(text: str) -> int:
    """Read a number of bytes; Arrow takes negative ones for "variable"."""
    if re.fullmatch(r"[0-9]{1,10}", text) is None:
        raise ValueError(text)
    return int(text)


def _size(text: str) -> int:
    """Read a dimension, which is never 0."""
    size = _width(text)
    if size == 0:
        raise ValueError(text)
    return size


def _fixed_size_list(rest: str) -> pa.DataType:
    element, _, dimension = rest.rpartition(":")
    # Arrow has no such type: the name says what the two bytes mean when they are written again
    metadata = {"ARROW:extension:name": element} if element == _BFLOAT16 else None
    return pa.list_(pa.field("item", _parse(element), metadata=metadata), _size(dimension))


_PARAMETRIC: dict[str, Callable[[str], pa.DataType]] = {
    "fixed_size_binary": lambda width: pa.binary(_width(width)),
    "decimal:128": _decimal128,
    "decimal:256": _decimal256,
    "timestamp": _timestamp,
    "duration": pa.duration,
    "dict": _dictionary,
    "fixed_size_list": _fixed_size_list,
}


def _parse(logical_type: str) -> pa.DataType:
    if logical_type in _FIXED:
        return _FIXED[logical_type]
    for prefix, parse in _PARAMETRIC.items():
        if logical_type.startswith(f"{prefix}:"):
            return parse(logical_type[len(prefix) + 1 :])
    raise ValueError(logical_type)


def parse_logical_type(logical_type: str) -> pa.DataType:
    """Return the Arrow type of a type string that needs no child fields.

    Raises
    ------
    UnsupportedFeatureError
        The string names no type of the format.

    Notes
    -----
    Strings: file format, section 2.2. Names and nullability of the elements of a fixed-size list
    are not stored; they read back as nullable ``item``.

    Examples
    --------
    >>> parse_logical_type("fixed_size_list:float:128")
    FixedSizeListType(fixed_size_list<item: float>[128])
    """
    if logical_type.count(":") > _MAX_DEPTH:
        raise UnsupportedFeatureError(f"logical type {logical_type[:80]!r} is nested too deeply")
    try:
        return _parse(logical_type)
    except (ValueError, KeyError, pa.ArrowException, OverflowError):
        raise UnsupportedFeatureError(f"logical type {logical_type[:80]!r} is not known") from None


def arrow_type(field: LanceField) -> pa.DataType:
    """Return the Arrow type of a field, with its children.

    Raises
    ------
    UnsupportedFeatureError
        The logical type is not one of the format.
    """
    kind = field.logical_type
    if kind == "struct":
        return pa.struct([to_arrow_field(child) for child in field.children])
    try:
        if kind in _WITH_ONE_CHILD or kind.startswith(_LIST_OF_STRUCTS):
            return _of_child(field)
        return parse_logical_type(kind)
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"column {field.name!r}: {error}") from None


_LIST_OF_STRUCTS = "fixed_size_list:struct:"
_WITH_ONE_CHILD = {"list", "list.struct", "large_list", "large_list.struct", "map"}


def _of_child(field: LanceField) -> pa.DataType:
    if len(field.children) != 1:
        raise UnsupportedFeatureError(f"{field.logical_type} with {len(field.children)} children")
    child = to_arrow_field(field.children[0])
    if field.logical_type.startswith("large_list"):
        return pa.large_list(child)
    if field.logical_type.startswith("list"):
        return pa.list_(child)
    if field.logical_type == "map":
        return _map_type(child)
    try:
        return pa.list_(child, _size(field.logical_type.removeprefix(_LIST_OF_STRUCTS)))
    except (ValueError, OverflowError):
        raise UnsupportedFeatureError(f"{field.logical_type[:80]!r} is not known") from None


def _map_type(entries: pa.Field) -> pa.DataType:
    if not pa.types.is_struct(entries.type) or entries.type.num_fields != len(("key", "value")):
        raise UnsupportedFeatureError("map without key and value")
    if entries.type.field(0).nullable:
        raise UnsupportedFeatureError("map with nullable keys")
    return pa.map_(entries.type.field(0), entries.type.field(1))


def to_arrow_field(field: LanceField) -> pa.Field:
    """Return the Arrow field: name, type, nullability and metadata.

    A JSON column has Arrow's own extension type; the name by which it is stored is left out.
    """
    kind = arrow_type(field)
    metadata = dict(field.metadata)
    if isinstance(kind, pa.BaseExtensionType):
        metadata = {key: value for key, value in metadata.items() if key not in _EXTENSION_KEYS}
    nullable = field.nullable or pa.types.is_null(kind)  # Arrow knows no other nulls
    return pa.field(
        field.name, kind, nullable=nullable, metadata=metadata if len(metadata) > 0 else None
    )


def part_of(array: pa.Array, way: Sequence[str]) -> pa.Array:
    """Return a part of structs, by the names on the way to it; null where a struct is null."""
    for name in way:
        array = pc.struct_field(array, array.type.get_field_index(name))
    return array


def to_arrow_schema(schema: LanceSchema) -> pa.Schema:
    """Return the Arrow schema of all top-level fields."""
    metadata = dict(schema.metadata) if len(schema.metadata) > 0 else None
    return pa.schema([to_arrow_field(field) for field in schema.fields], metadata=metadata)
