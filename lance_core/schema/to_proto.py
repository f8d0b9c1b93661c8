"""Field tree -> schema messages (file format, sections 1.4 and 2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.proto import file_pb2

if TYPE_CHECKING:
    from lance_core.schema.field import LanceField
    from lance_core.schema.tree import LanceSchema

_TOP_LEVEL = -1
_UNASSIGNED = -1
_EXTENSION = "ARROW:extension:name"
_PRIMARY_KEY = "lance-schema:unenforced-primary-key"
_PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
_CLUSTERING_KEY_POSITION = "lance-schema:unenforced-clustering-key:position"
_MAX_POSITION = 2**32 - 1
_VARIABLE = frozenset(("string", "large_string", "binary", "large_binary", "json"))
_WITHOUT_ENCODING = frozenset(("struct", "null"))


def field_messages(schema: LanceSchema) -> list[file_pb2.Field]:
    """Return one message per field, parents before their children.

    Raises
    ------
    InvalidRequestError
        The position of a key in a field's metadata is no number.
    """
    messages: list[file_pb2.Field] = []
    for top in schema.fields:
        _append(messages, top, _TOP_LEVEL)
    return messages


def schema_message(schema: LanceSchema) -> file_pb2.Schema:
    """Return the schema as files keep it: fields and metadata."""
    metadata = {key: value.encode() for key, value in schema.metadata.items()}
    return file_pb2.Schema(fields=field_messages(schema), metadata=metadata)


def _append(messages: list[file_pb2.Field], field: LanceField, parent: int) -> None:
    message = file_pb2.Field(
        name=field.name,
        id=field.id,
        # descriptor children of a blob column have neither id nor parent
        parent_id=_TOP_LEVEL if field.id == _UNASSIGNED else parent,
        logical_type=field.logical_type,
        nullable=field.nullable,
        encoding=_encoding(field.logical_type),
        extension_name=field.metadata.get(_EXTENSION, ""),
        metadata={key: value.encode() for key, value in field.metadata.items()},
        unenforced_primary_key=field.metadata.get(_PRIMARY_KEY) == "true",
        unenforced_primary_key_position=_position(field, _PRIMARY_KEY_POSITION),
        unenforced_clustering_key_position=_position(field, _CLUSTERING_KEY_POSITION),
    )
    messages.append(message)
    for child in field.children:
        _append(messages, child, field.id)


def _encoding(logical_type: str) -> file_pb2.Encoding.ValueType:
    """Return what legacy readers would need; the reference still writes it."""
    if logical_type in _WITHOUT_ENCODING:
        return file_pb2.NONE
    if logical_type in _VARIABLE:
        return file_pb2.VAR_BINARY
    return file_pb2.DICTIONARY if logical_type.startswith("dict:") else file_pb2.PLAIN


def _position(field: LanceField, key: str) -> int:
    text = field.metadata.get(key, "0")
    if not (text.isascii() and text.isdigit() and int(text) <= _MAX_POSITION):
        raise InvalidRequestError(
            f"column {field.name!r}: {key} is {text!r}; write a number from 1 to {_MAX_POSITION}"
        )
    return int(text)
