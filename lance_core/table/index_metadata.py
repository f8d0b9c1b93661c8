"""Entries of the index section: what a manifest says about its index segments."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError
from lance_core.ids import FieldId
from lance_core.row_set import bitmap_from_bytes

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lance_core.proto import table_pb2

REUSE_INDEX_NAME = "__lance_frag_reuse"
"""Name of the entry that says where compactions moved rows."""

SYSTEM_PREFIX = "__lance_"
_UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A file of a segment; ``path`` is relative to the segment's folder."""

    path: str
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class IndexMetadata:
    """One index segment; segments of equal ``name`` form one logical index.

    Parameters
    ----------
    field_ids
        Fields that the index is built on, without the columns it merely carries along.
    dataset_version
        Version that the segment was built from.
    fragment_bitmap
        Fragments the segment claims to cover, dead ones included; None = unknown. Shared: do not
        change it.
    type_name
        Last part of the type URL of the details, ``BTreeIndexDetails`` for example; empty where an
        old writer left the details out.
    details
        Serialized details message. Its map entries come in random order, so never compare it.
    index_version
        Version of the segment's own format.
    created_at_ms
        Milliseconds since the epoch, None where not recorded.
    files
        Files with their sizes in no particular order; empty in old datasets.
    base_id
        Names another dataset's root that holds the files.
    """

    uuid: str
    name: str
    field_ids: tuple[FieldId, ...]
    dataset_version: int
    fragment_bitmap: BitMap | None
    type_name: str
    details: bytes
    index_version: int
    created_at_ms: int | None
    files: tuple[IndexFile, ...]
    base_id: int | None

    @property
    def is_system(self) -> bool:
        """Whether the entry serves the table itself (fragment reuse, WAL) and answers no query."""
        return self.name.startswith(SYSTEM_PREFIX)


def index_from_proto(message: table_pb2.IndexMetadata, path: str) -> IndexMetadata:
    """Convert one index entry of the manifest at ``path``.

    Raises
    ------
    CorruptFileError
        The UUID has not 16 bytes, or the fragment bitmap cannot be decoded.

    Notes
    -----
    Lance table format: an empty ``fragment_bitmap`` field means unknown coverage, unlike a bitmap
    without members; ``covering_fields`` are the last of ``fields``.
    """
    raw_uuid = message.uuid.uuid
    if len(raw_uuid) != _UUID_BYTES:
        raise CorruptFileError(path, f"index {message.name} has a UUID of {len(raw_uuid)} bytes")
    covering = set(message.covering_fields)
    details = message.index_details
    return IndexMetadata(
        uuid=str(uuid.UUID(bytes=raw_uuid)),
        name=message.name,
        field_ids=tuple(FieldId(field) for field in message.fields if field not in covering),
        dataset_version=message.dataset_version,
        fragment_bitmap=bitmap_from_bytes(message.fragment_bitmap, path)
        if message.fragment_bitmap
        else None,
        type_name=details.type_url.rpartition("/")[2].rpartition(".")[2],
        details=details.value,
        index_version=message.index_version,
        created_at_ms=message.created_at if message.HasField("created_at") else None,
        files=tuple(IndexFile(file.path, file.size_bytes) for file in message.files),
        base_id=message.base_id if message.HasField("base_id") else None,
    )
