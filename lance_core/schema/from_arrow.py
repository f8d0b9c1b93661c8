"""Arrow schema -> field tree, for writing."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.ids import FieldId
from lance_core.schema.arrow import parse_logical_type
from lance_core.schema.exported_metadata import exported_metadata
from lance_core.schema.field import LanceField
from lance_core.schema.tree import LanceSchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

EXTENSION_NAME = "ARROW:extension:name"
JSON_TEXT = "arrow.json"
JSON_STORED = "lance.json"
BFLOAT16 = "lance.bfloat16"
_MAX_DEPTH = 64
_BFLOAT16_BYTES = 2

_NAMES = {
    parse_logical_type(name): name
    for name in (
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *("null", "bool", "halffloat", "float", "double"),
        *("string", "large_string", "binary", "large_binary"),
        *("date32:day", "date64:ms", "time32:s", "time32:ms", "time64:us", "time64:ns"),
    )
}
_NAMES |= {pa.string_view(): "string", pa.binary_view(): "binary"}
_VARIABLE = frozenset(("string", "large_string", "binary", "large_binary"))


def schema_from_arrow(schema: pa.Schema) -> LanceSchema:
    """Return the tree that a new table of this schema has, with ids 0, 1, 2, … in pre-order.

    Extension types are kept as their storage type with the extension in the field's metadata;
    ``arrow.json`` becomes ``json``, views become plain strings.

    Raises
    ------
    UnsupportedFeatureError
        The format has no such type; names the column.
    InvalidRequestError
        Two columns, or two fields of one struct, have the same name, the name of a column has a
        dot in it, or metadata is not UTF-8.

    Notes
    -----
    Types and what is refused: file format, section 2.2.

    Examples
    --------
    >>> schema = schema_from_arrow(pa.schema({"v": pa.list_(pa.float32(), 4)}))
    >>> schema.fields[0].logical_type
    'fixed_size_list:float:4'
    """
    ids = map(FieldId, count())
    _check_names(schema.names, "the schema")
    for name in schema.names:
        if "." in name:  # the reference refuses to open such files
            raise InvalidRequestError(f"column {name!r} has a dot in its name; rename it")
    fields = tuple(_field(field, field.name, ids, _MAX_DEPTH) for field in schema)
    return LanceSchema(fields, _decode(schema.metadata, "the schema"))


def _field(field: pa.Field, path: str, ids: Iterator[FieldId], depth: int) -> LanceField:
    if depth == 0:
        raise UnsupportedFeatureError(
            f"column {path[:80]!r} is nested deeper than {_MAX_DEPTH} levels"
        )
    storage, metadata = _storage(field, path)
    is_json = metadata.get(EXTENSION_NAME) in {JSON_TEXT, JSON_STORED}
    if is_json:
        _check_json(storage, metadata, path)
        metadata |= {EXTENSION_NAME: JSON_STORED}
    number = next(ids)
    parts = _parts(storage, path)
    _check_names([part.name for part in parts], f"column {path!r}")
    children = tuple(_field(part, f"{path}.{part.name}", ids, depth - 1) for part in parts)
    kind = "json" if is_json else _logical_type(storage, path)
    return LanceField(number, field.name, kind, field.nullable, metadata, children)


def _storage(field: pa.Field, path: str) -> tuple[pa.DataType, dict[str, str]]:
    """Return the storage type of a field, and its metadata including its extension."""
    kind = storage_type(field.type)
    metadata = field.metadata if kind is field.type else exported_metadata(field)
    return kind, _decode(metadata, f"column {path!r}")


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Return what an extension type is stored as; other types as they are."""
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind


def _decode(metadata: Mapping[bytes, bytes] | None, where: str) -> dict[str, str]:
    try:
        return {} if metadata is None else {k.decode(): v.decode() for k, v in metadata.items()}
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"the metadata of {where} is not UTF-8: {error}") from None


def _check_names(names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidRequestError(f"{where} has two fields named {name!r}; rename one")
        if "\0" in name:  # the reference does not survive reading such files
            raise InvalidRequestError(f"{where} has a field {name!r} with a NUL; rename it")
        seen.add(name)


def _check_json(storage: pa.DataType, metadata: Mapping[str, str], path: str) -> None:
    is_text = metadata[EXTENSION_NAME] == JSON_TEXT
    allowed = ("string", "large_string") if is_text else ("large_binary",)
    if _NAMES.get(storage) not in allowed:
        raise InvalidRequestError(
            f"column {path!r}: {metadata[EXTENSION_NAME]} is kept in {' or '.join(allowed)},"
            f" not in {storage}"
        )


def _parts(kind: pa.DataType, path: str) -> list[pa.Field]:
    """Return the fields below a type that have ids of their own."""
    if pa.types.is_struct(kind):
        return [kind.field(index) for index in range(kind.num_fields)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [kind.value_field]
    if pa.types.is_map(kind):
        if kind.keys_sorted:
            raise UnsupportedFeatureError(
                f"column {path!r}: maps with sorted keys are not stored; use pa.map_ without"
                " keys_sorted"
            )
        entries = pa.struct([kind.key_field, kind.item_field])
        return [pa.field("entries", entries, nullable=False)]
    return []


def _logical_type(kind: pa.DataType, path: str) -> str:
    """Return the format's type string (file format, section 2.2)."""
    for matches, name in (
        (pa.types.is_struct, "struct"),
        (pa.types.is_map, "map"),
        (pa.types.is_list, "list"),
        (pa.types.is_large_list, "large_list"),
    ):
        if matches(kind):
            is_of_structs = name.endswith("list") and pa.types.is_struct(
                storage_type(kind.value_type)
            )
            return f"{name}.struct" if is_of_structs else name
    if pa.types.is_dictionary(kind):
        return _dictionary(kind, path)
    if pa.types.is_fixed_size_list(kind):
        return _fixed_size_list(kind, path)
    return _scalar(kind, path)


def _dictionary(kind: pa.DictionaryType, path: str) -> str:
    values = _NAMES.get(kind.value_type)
    if values is None or ":" in values or values == "null":
        # the reference cannot parse dict: strings whose value type has parameters
        raise UnsupportedFeatureError(
            f"column {path!r}: dictionaries of {kind.value_type} are not stored; cast the column"
            " to its values"
        )
    return f"dict:{values}:{_NAMES[kind.index_type]}:false"


def _fixed_size_list(kind: pa.FixedSizeListType, path: str) -> str:
    element, metadata = _storage(kind.value_field, f"{path}.{kind.value_field.name}")
    if metadata.get(EXTENSION_NAME) == BFLOAT16 and element == pa.binary(_BFLOAT16_BYTES):
        name = BFLOAT16
    elif pa.types.is_fixed_size_list(element):
        name = _fixed_size_list(element, path)
    elif pa.types.is_nested(element) or pa.types.is_dictionary(element):
        raise _refused(kind, path, "use a list without a fixed size")
    else:
        name = _scalar(element, path)
    if name in _VARIABLE:
        raise _refused(kind, path, "use a list without a fixed size")
    if kind.list_size == 0:
        raise _refused(kind, path, "give it a dimension of at least 1")
    return f"fixed_size_list:{name}:{kind.list_size}"


def _scalar(kind: pa.DataType, path: str) -> str:
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed_size_binary:{kind.byte_width}"
    if pa.types.is_decimal128(kind) or pa.types.is_decimal256(kind):
        return f"decimal:{kind.bit_width}:{kind.precision}:{kind.scale}"
    if pa.types.is_timestamp(kind):
        return f"timestamp:{kind.unit}:{'-' if kind.tz is None else kind.tz}"
    if pa.types.is_duration(kind):
        return f"duration:{kind.unit}"
    raise _refused(kind, path, "cast the column to a type that files can hold")


def _refused(kind: pa.DataType, path: str, advice: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"column {path!r}: {kind} is not stored; {advice}")
