"""Changes of a table's configuration and metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from lance_core.proto import table_pb2
    from lance_core.table.transaction import MapUpdate, UpdateConfig


def apply_config(manifest: table_pb2.Manifest, change: UpdateConfig) -> None:
    """Change the maps of a manifest.

    Raises
    ------
    InvalidRequestError
        Metadata is given for a field that the schema does not have.
    """
    if change.config is not None:
        _apply_texts(manifest.config, change.config)
    if change.table_metadata is not None:
        _apply_texts(manifest.table_metadata, change.table_metadata)
    if change.schema_metadata is not None:
        _apply_bytes(manifest.schema_metadata, change.schema_metadata)
    fields = {field.id: field for field in manifest.fields}
    for field_id, update in change.field_metadata.items():
        if field_id not in fields:
            raise InvalidRequestError(f"there is no field {field_id} to describe")
        _apply_bytes(fields[field_id].metadata, update)


def _apply_texts(target: MutableMapping[str, str], change: MapUpdate) -> None:
    if change.replaces:
        target.clear()
    for key, value in change.entries.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def _apply_bytes(target: MutableMapping[str, bytes], change: MapUpdate) -> None:
    if change.replaces:
        target.clear()
    for key, value in change.entries.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value.encode()
