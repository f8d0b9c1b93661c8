"""Files of a dataset that results of jobs name, before any version does."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import ObjectNotFoundError
from lance_core.io.waiting import for_each
from lance_core.table.dataset_stores import open_dataset_store
from lance_core.table.naming import data_file_path, index_file_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance_core.io.store import ObjectStore
    from lance_core.proto import table_pb2


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file below the root of a dataset; ``size`` is None where it is not recorded."""

    path: str
    size: int | None


def data_files(fragments: Iterable[table_pb2.DataFragment]) -> list[WrittenFile]:
    """Return the data files of new fragments."""
    return [
        WrittenFile(data_file_path(file.path), file.file_size_bytes or None)
        for fragment in fragments
        for file in fragment.files
    ]


def segment_files(segment: table_pb2.IndexMetadata) -> list[WrittenFile]:
    """Return the files of a new index segment."""
    folder = str(uuid.UUID(bytes=segment.uuid.uuid))
    return [
        WrittenFile(index_file_path(folder, file.path), file.size_bytes) for file in segment.files
    ]


def are_there(
    uri: str, storage_options: Mapping[str, str] | None, files: Sequence[WrittenFile]
) -> bool:
    """Tell whether files are there, as large as they were written."""
    store = open_dataset_store(uri, storage_options)
    return all(for_each(store, partial(_is_there, store), files))


def _is_there(store: ObjectStore, file: WrittenFile) -> bool:
    try:
        return file.size in {None, store.head(file.path).size}
    except ObjectNotFoundError:
        return False
