"""Arrow schemas in the JSON form of ``describe`` (rest-api section 5.3).

The two dialects name types differently, and each client family refuses the other's names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from service.api.exchange import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    JsonType = dict[str, object]

_PLAIN_TYPES = (
    pa.null(),
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.binary(),
    pa.large_binary(),
)
_NAMES_OF_BOTH = {kind: str(kind) for kind in _PLAIN_TYPES}
_LANCEDB_NAMES: Mapping[pa.DataType, str] = {
    **_NAMES_OF_BOTH,
    pa.float16(): "halffloat",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "large_string",
    pa.date32(): "date32:day",
    pa.date64(): "date64:ms",
}
_NAMESPACE_NAMES: Mapping[pa.DataType, str] = {
    **_NAMES_OF_BOTH,
    pa.float16(): "float16",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.string(): "utf8",
    pa.large_string(): "large_utf8",
    pa.date32(): "date32",
    pa.date64(): "date64",
}
# The Namespace form of a decimal packs both numbers into "length".
_PRECISION_FACTOR = 1000


def describe_schema(schema: pa.Schema, dialect: Dialect) -> dict[str, object]:
    """Return a schema as ``{"fields": [...], "metadata": {...}}``."""
    return {
        "fields": [_describe_field(field, dialect) for field in schema],
        "metadata": _describe_metadata(schema.metadata),
    }


def _describe_field(field: pa.Field, dialect: Dialect) -> dict[str, object]:
    described: dict[str, object] = {
        "name": field.name,
        "nullable": field.nullable,
        "type": _describe_type(field.type, dialect),
    }
    if field.metadata:
        described["metadata"] = _describe_metadata(field.metadata)
    return described


def _describe_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in ({} if metadata is None else metadata).items()
    }


def _describe_type(kind: pa.DataType, dialect: Dialect) -> JsonType:
    names = _LANCEDB_NAMES if dialect is Dialect.LANCEDB else _NAMESPACE_NAMES
    name = names.get(kind)
    if name is not None:
        return {"type": name}
    for matches, describe in _DESCRIBERS:
        if matches(kind):
            return describe(kind, dialect)
    return {"type": str(kind)}


def _time(kind: pa.DataType, dialect: Dialect) -> JsonType:
    width = "time32" if pa.types.is_time32(kind) else "time64"
    return {"type": f"{width}:{kind.unit}" if dialect is Dialect.LANCEDB else width}


def _timestamp(kind: pa.DataType, dialect: Dialect) -> JsonType:
    if dialect is Dialect.NAMESPACE:
        return {"type": "timestamp"}
    zone = "-" if kind.tz is None else kind.tz
    return {"type": f"timestamp:{kind.unit}:{zone}"}


def _duration(kind: pa.DataType, dialect: Dialect) -> JsonType:
    return {"type": f"duration:{kind.unit}" if dialect is Dialect.LANCEDB else "duration"}


def _decimal(kind: pa.DataType, dialect: Dialect) -> JsonType:
    if dialect is Dialect.LANCEDB:
        return {"type": f"decimal:{kind.bit_width}:{kind.precision}:{kind.scale}"}
    length = kind.precision * _PRECISION_FACTOR + kind.scale
    return {"type": f"decimal{kind.bit_width}", "length": length}


def _fixed_size_binary(kind: pa.DataType, _: Dialect) -> JsonType:
    return {"type": "fixed_size_binary", "length": kind.byte_width}


def _list(kind: pa.DataType, dialect: Dialect) -> JsonType:
    name = "large_list" if pa.types.is_large_list(kind) else "list"
    return {"type": name, "fields": [_describe_field(kind.value_field, dialect)]}


def _fixed_size_list(kind: pa.DataType, dialect: Dialect) -> JsonType:
    fields = [_describe_field(kind.value_field, dialect)]
    return {"type": "fixed_size_list", "length": kind.list_size, "fields": fields}


def _struct(kind: pa.DataType, dialect: Dialect) -> JsonType:
    return {"type": "struct", "fields": [_describe_field(field, dialect) for field in kind]}


def _map(kind: pa.DataType, dialect: Dialect) -> JsonType:
    """LanceDB's clients know no maps, so they are shown the list of pairs that a map is."""
    is_lancedb = dialect is Dialect.LANCEDB
    entries = pa.field(
        "item" if is_lancedb else "entries",
        pa.struct([kind.key_field, kind.item_field]),
        nullable=False,
    )
    name = "large_list" if is_lancedb else "map"
    return {"type": name, "fields": [_describe_field(entries, dialect)]}


def _dictionary(kind: pa.DataType, dialect: Dialect) -> JsonType:
    value = _describe_type(kind.value_type, dialect)
    if dialect is Dialect.NAMESPACE:
        return value
    index = _describe_type(kind.index_type, dialect)
    return {"type": f"dict:{value['type']}:{index['type']}:false"}


def _extension(kind: pa.DataType, dialect: Dialect) -> JsonType:
    return _describe_type(kind.storage_type, dialect)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


_DESCRIBERS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, Dialect], JsonType]], ...
] = (
    (pa.types.is_time, _time),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_duration, _duration),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_fixed_size_binary, _fixed_size_binary),
    (_is_list, _list),
    (pa.types.is_fixed_size_list, _fixed_size_list),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
    (pa.types.is_dictionary, _dictionary),
    (_is_extension, _extension),
)
