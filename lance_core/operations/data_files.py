"""Data files of a dataset: how new ones are named, described in a manifest, and given up."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from lance_core.file.writer import LanceFileWriter
from lance_core.proto import table_pb2
from lance_core.table.naming import data_file_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.encodings.version import FileVersion
    from lance_core.file.writer import WrittenFile
    from lance_core.io.store import ObjectStore
    from lance_core.schema.tree import LanceSchema

_SUFFIX = ".lance"
_BINARY_BYTES = 3


class NewDataFile:
    """A data file under way.

    Parameters
    ----------
    store
        Rooted at the dataset.
    schema
        Columns of the file; field ids are those of the table.
    version
        Of its encodings.
    """

    def __init__(self, store: ObjectStore, schema: LanceSchema, version: FileVersion) -> None:
        self._store = store
        self.path = new_name()
        self.writer = LanceFileWriter(store, data_file_path(self.path), schema, version=version)

    def finish(self) -> tuple[table_pb2.DataFile, WrittenFile]:
        """Make the file readable; return what a fragment says about it, and its other facts."""
        written = self.writer.finish()
        return _described(self.path, written), written

    def discard(self) -> None:
        """Leave no file, whether or not it was finished."""
        self.writer.abort()
        discard(self._store, [self.path])


def new_name() -> str:
    """Return a random name, as a manifest gives it.

    Notes
    -----
    Lance table format, section "Directory layout": a UUID, the first three bytes of it in binary,
    so that object stores spread the files over their servers.

    Examples
    --------
    >>> len(new_name())
    56
    """
    number = uuid.uuid4().bytes
    head, tail = number[:_BINARY_BYTES], number[_BINARY_BYTES:]
    return "".join(f"{byte:08b}" for byte in head) + tail.hex() + _SUFFIX


def discard(store: ObjectStore, paths: Iterable[str]) -> None:
    """Delete data files that no manifest names, with the blobs that lie beside them."""
    for path in paths:
        whole = data_file_path(path)
        store.delete(whole)
        for blob in list(store.list_tree(whole.removesuffix(_SUFFIX))):
            store.delete(blob.path)


def _described(path: str, written: WrittenFile) -> table_pb2.DataFile:
    major, minor = map(int, written.version.value.split("."))
    return table_pb2.DataFile(
        path=path,
        fields=list(written.column_indices),
        column_indices=list(written.column_indices.values()),
        file_major_version=major,
        file_minor_version=minor,
        file_size_bytes=written.size,
    )
