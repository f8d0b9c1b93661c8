"""Schema messages -> field tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError
from lance_core.ids import FieldId
from lance_core.schema.field import LanceField
from lance_core.schema.tree import LanceSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lance_core.proto import file_pb2

_TOP_LEVEL = -1
_UNASSIGNED = -1
_MAX_DEPTH = 64
_EXTENSION = "ARROW:extension:name"


def schema_from_messages(
    fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes], *, path: str
) -> LanceSchema:
    """Build the tree from the flat, parents-first list that manifests and files keep.

    Parameters
    ----------
    fields
        Field messages, parents before their children.
    metadata
        Metadata of the whole schema; values are UTF-8.
    path
        File the messages come from, for errors.

    Raises
    ------
    CorruptFileError
        An id occurs twice, a parent is missing or not before its children, or nesting is deeper
        than 64 levels.
    """
    top: list[file_pb2.Field] = []
    children: dict[int, list[file_pb2.Field]] = {}
    seen: dict[int, None] = {}  # in order: blobs must know whom they follow
    for message in fields:
        _place(message, top, children, seen, path)
    return LanceSchema(
        tuple(_to_field(message, children, _MAX_DEPTH, path) for message in top),
        _decode(metadata, path),
    )


def _place(
    message: file_pb2.Field,
    top: list[file_pb2.Field],
    children: dict[int, list[file_pb2.Field]],
    seen: dict[int, None],
    path: str,
) -> None:
    if message.id == _UNASSIGNED and len(seen) > 0:
        # the descriptor children of a blob have neither id nor parent and follow it: 2.1
        children.setdefault(next(reversed(seen)), []).append(message)
        return
    if message.id in seen:
        raise CorruptFileError(path, f"field id {message.id} occurs twice in the schema")
    if message.parent_id == _TOP_LEVEL:
        top.append(message)
    elif message.parent_id in seen:
        children.setdefault(message.parent_id, []).append(message)
    else:
        raise CorruptFileError(
            path, f"field {message.id} comes before its parent {message.parent_id}"
        )
    seen[message.id] = None


def _to_field(
    message: file_pb2.Field, children: dict[int, list[file_pb2.Field]], depth: int, path: str
) -> LanceField:
    if depth == 0:
        raise CorruptFileError(path, f"schema is nested deeper than {_MAX_DEPTH} levels")
    below = () if message.id == _UNASSIGNED else children.get(message.id, ())
    metadata = _decode(message.metadata, path)
    if message.extension_name != "" and _EXTENSION not in metadata:
        metadata[_EXTENSION] = message.extension_name
    return LanceField(
        FieldId(message.id),
        message.name,
        message.logical_type,
        message.nullable,
        metadata,
        tuple(_to_field(child, children, depth - 1, path) for child in below),
    )


def _decode(metadata: Mapping[str, bytes], path: str) -> dict[str, str]:
    try:
        return {key: value.decode() for key, value in metadata.items()}
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, f"schema metadata is not UTF-8: {error}") from None
