"""The entry of the Fragment Reuse Index in a manifest: found, read and made."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.proto import table_pb2
from lance_core.proto.frag_reuse_pb2 import FragmentReuseIndexDetails
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.naming import index_file_path
from lance_core.table.reuse_history import (
    history_from_bytes,
    history_from_content,
    history_to_content,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lance_core.io.store import ObjectStore
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.reuse_history import ReuseHistory

_TYPE_URL = "/lance.table.FragmentReuseIndexDetails"
_UNTAGGED_VERSION = 0
_LARGEST_INLINE = 204_800
_DETAILS_FILE = "details.binpb"


def find_reuse_entry(indices: Iterable[IndexMetadata], path: str) -> IndexMetadata | None:
    """Return the entry among those of the manifest at ``path``, None if there is none.

    Raises
    ------
    CorruptFileError
        There are several.
    """
    found = [entry for entry in indices if entry.name == REUSE_INDEX_NAME]
    if len(found) > 1:
        raise CorruptFileError(path, f"{len(found)} fragment reuse indices")
    return found[0] if found else None


def read_reuse_history(
    entry: IndexMetadata, path: str, folder_of: Callable[[IndexMetadata], Place]
) -> ReuseHistory:
    """Read the history of an entry, from the manifest or from a file of its own.

    Parameters
    ----------
    entry
        The entry.
    path
        The manifest, for errors.
    folder_of
        Returns where the files of an entry lie; called only if there is one.

    Raises
    ------
    CorruptFileError
        The details or the history contradict the format, or the file is missing or too short.
    UnsupportedFeatureError
        The history is tagged, or of a version that this release does not know.

    Notes
    -----
    Lance table format, section "Fragment Reuse Index"; verified against pylance 14.0.2.
    """
    if entry.index_version != _UNTAGGED_VERSION:
        raise UnsupportedFeatureError(
            f"{path}: the fragment reuse index is of version {entry.index_version}"
            + (" (tagged)" if entry.index_version == 1 else "")
        )
    try:
        details = FragmentReuseIndexDetails.FromString(entry.details)
    except DecodeError as error:
        raise CorruptFileError(path, f"fragment reuse index: {error}") from error
    if details.WhichOneof("content") != "external":
        return history_from_content(details.inline, path)
    file, external = folder_of(entry).below(details.external.path), details.external
    span = (external.offset, external.offset + external.size)
    (data,) = file.scheduler.read(file.path, [span])
    return history_from_bytes(bytes(data), file.path)


def write_reuse_entry(
    store: ObjectStore,
    history: ReuseHistory,
    *,
    dataset_version: int,
    created_at_ms: int,
) -> table_pb2.IndexMetadata:
    """Make the entry of a history, and write its file if the history does not fit a manifest.

    Parameters
    ----------
    store
        Root of the dataset.
    history
        What the entry is to hold.
    dataset_version
        Version before the one that is being committed.
    created_at_ms
        Milliseconds since the epoch.

    Notes
    -----
    The bitmap names all fragments that came out of a compaction, which no reader uses.
    """
    entry_uuid = uuid.uuid4()
    content = history_to_content(history)
    data = content.SerializeToString()
    if len(data) <= _LARGEST_INLINE:
        details = FragmentReuseIndexDetails(inline=content)
    else:
        store.put(index_file_path(str(entry_uuid), _DETAILS_FILE), data)
        details = FragmentReuseIndexDetails(
            external=FragmentReuseIndexDetails.ExternalFile(path=_DETAILS_FILE, size=len(data))
        )
    return table_pb2.IndexMetadata(
        uuid=table_pb2.UUID(uuid=entry_uuid.bytes),
        name=REUSE_INDEX_NAME,
        dataset_version=dataset_version,
        fragment_bitmap=history.new_ids.serialize(),
        index_details=Any(type_url=_TYPE_URL, value=details.SerializeToString()),
        index_version=_UNTAGGED_VERSION,
        created_at=created_at_ms,
    )
