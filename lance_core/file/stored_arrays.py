"""What the caller hands over -> arrays as the file keeps them: checked types, JSON as JSONB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.encodings import jsonb
from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.schema.from_arrow import schema_from_arrow

if TYPE_CHECKING:
    from lance_core.schema.field import LanceField
    from lance_core.schema.tree import LanceSchema

_JSON = "json"


class BatchChecker:
    """Compares the schemas of batches with that of the file; remembers the last good one."""

    def __init__(self, schema: LanceSchema) -> None:
        self._fields = {field.name: field for field in schema.fields}
        self._last: pa.Schema | None = None

    def check(self, schema: pa.Schema) -> None:
        """Accept columns in any order, extension types or their storage, views or plain strings.

        Raises
        ------
        InvalidRequestError
            A column is missing or not one of the file's.
        TypeMismatchError
            A column has another type.
        """
        if self._last is not None and schema.equals(self._last, check_metadata=True):
            return
        given = schema_from_arrow(schema)
        names = set(given.names)
        missing = [name for name in self._fields if name not in names]
        unknown = [name for name in given.names if name not in self._fields]
        if len(missing) + len(unknown) > 0:
            raise InvalidRequestError(
                f"the file has columns {', '.join(self._fields)}; the batch lacks"
                f" {missing} and has {unknown} besides"
            )
        for field in given.fields:
            expected = self._fields[field.name]
            if _shape(field) != _shape(expected):
                raise TypeMismatchError(
                    f"column {field.name!r} is {_text(expected)} in the file and"
                    f" {_text(field)} in the batch; cast it"
                )
        self._last = schema


def _shape(field: LanceField) -> tuple[object, ...]:
    """Return what has to agree: names and types, but neither ids nor metadata."""
    return field.name, field.logical_type, tuple(map(_shape, field.children))


def _text(field: LanceField) -> str:
    if len(field.children) == 0:
        return field.logical_type
    inner = ", ".join(f"{child.name}: {_text(child)}" for child in field.children)
    return f"{field.logical_type}<{inner}>"


def has_json(field: LanceField) -> bool:
    """Whether a field or one below it holds JSON documents."""
    return any(node.logical_type == _JSON for node in field.walk())


def stored_array(array: pa.Array, field: LanceField) -> pa.Array:
    """Turn the JSON text in an array into JSONB, at any depth; all else is kept as it is.

    Raises
    ------
    InvalidRequestError
        A text is not JSON; names the field.
    """
    if not has_json(field):
        return array
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    if field.logical_type == _JSON:
        return (
            storage if storage.type == pa.large_binary() else jsonb.from_text(storage, field.name)
        )
    if pa.types.is_struct(storage.type):
        return _struct(storage, field)
    return _lists(storage, field)


def _struct(array: pa.StructArray, field: LanceField) -> pa.StructArray:
    parts = [stored_array(array.field(i), child) for i, child in enumerate(field.children)]
    fields = [
        pa.field(child.name, part.type) for child, part in zip(field.children, parts, strict=True)
    ]
    mask = array.is_null() if array.null_count > 0 else None
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)


def _lists(array: pa.ListArray | pa.LargeListArray, field: LanceField) -> pa.Array:
    """Convert the elements; maps become lists of entries, which are written alike."""
    elements = stored_array(array.values, field.children[0])
    is_wide = pa.types.is_large_list(array.type)
    kind = (pa.large_list if is_wide else pa.list_)(elements.type)
    return pa.Array.from_buffers(
        kind,
        len(array),
        array.buffers()[:2],
        null_count=array.null_count,
        offset=array.offset,
        children=[elements],
    )
