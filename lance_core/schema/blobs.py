"""Blob columns: what a file keeps of a value whose bytes lie elsewhere (file format, 4.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lance_core.ids import FieldId
from lance_core.schema.field import LanceField

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_UNASSIGNED = FieldId(-1)
_BLOB = "lance-encoding:blob"
_PACKED = "lance-encoding:packed"
_VERSION_1 = {"position": "uint64", "size": "uint64"}
_VERSION_2 = {
    "kind": "uint8",
    "position": "uint64",
    "size": "uint64",
    "blob_id": "uint32",
    "blob_uri": "string",
}


def described(field: LanceField) -> LanceField:
    """Return a field with the descriptors of blobs in place of blobs, at any depth.

    Fields without blobs are returned as they are, the same object.

    Notes
    -----
    What pylance 14.0.2 hands out: version 1 is a struct of position and size, version 2, the one
    that tables of 2.2 and later have, says also where the bytes are kept.
    """
    return _replaced(field, _descriptor)


def with_bytes(field: LanceField) -> LanceField:
    """Return a field with ``large_binary`` in place of blobs, at any depth."""
    return _replaced(field, _bytes)


def _replaced(field: LanceField, of_blob: Callable[[LanceField], LanceField]) -> LanceField:
    if field.is_blob:
        return of_blob(field)
    children = tuple(_replaced(child, of_blob) for child in field.children)
    if all(new is old for new, old in zip(children, field.children, strict=True)):
        return field
    return replace(field, children=children)


def _descriptor(field: LanceField) -> LanceField:
    if field.logical_type != "struct":
        return _struct(field, _VERSION_1, field.metadata, nullable=True)
    return _struct(field, _VERSION_2, {_PACKED: "true", _BLOB: "true"}, nullable=False)


def _struct(
    field: LanceField, names: Mapping[str, str], metadata: Mapping[str, str], *, nullable: bool
) -> LanceField:
    children = tuple(
        LanceField(_UNASSIGNED, name, kind, nullable=nullable) for name, kind in names.items()
    )
    return replace(field, logical_type="struct", metadata=metadata, children=children)


def _bytes(field: LanceField) -> LanceField:
    metadata = field.metadata if field.logical_type != "struct" else {}
    return replace(field, logical_type="large_binary", metadata=metadata, children=())
