"""The files of a segment under way, and what the manifest is told of the finished segment."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.file.writer import MAX_PAGE_BYTES, LanceFileWriter
from lance_core.table.index_metadata import IndexFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from lance_core.encodings.version import FileVersion
    from lance_core.io.store import ObjectStore


@dataclass(frozen=True, slots=True)
class IndexDetails:
    """What the manifest says of a segment's kind: message, its bytes, and the kind's version."""

    type_url: str
    value: bytes
    index_version: int


class SegmentFiles:
    """Writes the files of one segment.

    Parameters
    ----------
    store
        Rooted at the dataset.
    folder
        Where the files go.
    version
        Of their encodings.
    """

    def __init__(self, store: ObjectStore, folder: str, version: FileVersion) -> None:
        self._store = store
        self._folder = folder
        self._version = version
        self._finished: list[IndexFile] = []

    @property
    def finished(self) -> tuple[IndexFile, ...]:
        """The files that are complete."""
        return tuple(self._finished)

    @contextmanager
    def create(
        self, file_name: str, schema: pa.Schema, *, page_bytes: int = MAX_PAGE_BYTES
    ) -> Iterator[LanceFileWriter]:
        """Write a file, which is finished at the end of the block, or aborted by an exception.

        Its pages have up to ``page_bytes``; several of each column are in memory.
        """
        path = f"{self._folder}/{file_name}"
        with LanceFileWriter(
            self._store, path, schema, version=self._version, max_page_bytes=page_bytes
        ) as writer:
            yield writer
            self._finished.append(IndexFile(file_name, writer.finish().size))
