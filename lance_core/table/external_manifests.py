"""Versions that an external store decides on, for object stores that cannot put conditionally.

Two writers may put the same object; which of them has committed is for the external store to say,
a table with one row per version. The manifest is uploaded under a name of its own before, and
copied to its final name after that; whoever finds that the second half is missing does it.
"""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lance_core.errors import CorruptFileError, ObjectExistsError, ObjectNotFoundError, StoreError
from lance_core.io.store import HoldsRanges
from lance_core.table.naming import VERSIONS_FOLDER, is_detached, parse_manifest_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.io.sink import ObjectSink
    from lance_core.io.store import ObjectMeta, ObjectStore

_STAGED = re.compile(r"(.*\.manifest)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """What an external store knows of one version.

    ``path`` is the object that holds the manifest, as the external store writes it: staged under a
    name that ends in a UUID, or final. ``size`` is None where it was not recorded.
    """

    version: int
    path: str
    size: int | None


class ManifestStore(Protocol):
    """A table of versions with conditional writes; reads see all writes before them.

    Every method raises ``StoreThrottledError`` or ``StoreUnavailableError`` for passing faults and
    ``StoreError`` for other failures. Safe to share between threads.
    """

    def latest(self, base_uri: str) -> ManifestRow | None:
        """Return the row of the newest version of a dataset, None if there is none."""

    def put_if_absent(self, base_uri: str, row: ManifestRow) -> None:
        """Add a row, or raise ``ObjectExistsError`` if the version has one."""

    def put_if_present(self, base_uri: str, row: ManifestRow) -> None:
        """Replace the row of a version, or raise ``ObjectNotFoundError`` if it has none."""


class ExternallyVersionedStore:
    """An object store, the versions of whose dataset an external store decides on.

    Everything else goes to ``store`` as it is.

    Parameters
    ----------
    store
        Rooted at the dataset.
    rows
        The external store.
    base_uri
        The dataset, as the external store names it; the paths in its rows begin with it.
    uri
        The dataset, as users name it.

    Notes
    -----
    Lance table format, section "External manifest store".
    """

    def __init__(self, store: ObjectStore, rows: ManifestStore, base_uri: str, *, uri: str) -> None:
        self.uri = uri
        self.key = f"{store.key}?{uri}"
        self.coalesce_gap = store.coalesce_gap
        self._store = store
        self._rows = rows
        self._base_uri = base_uri.rstrip("/")

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Commit a manifest: stage it, add its row, give it its final name.

        Once the row is there the version is committed, so that later failures are left to readers.
        """
        version = _version_of(path)
        if version is None:
            self._store.put_if_absent(path, data)
            return
        staged = f"{path}-{uuid.uuid4()}"
        self._store.put(staged, data)
        row = ManifestRow(version, self._row_path(staged), len(data))
        try:
            self._rows.put_if_absent(self._base_uri, row)
        except ObjectExistsError:
            self._store.delete(staged)
            raise
        with suppress(StoreError):
            self._publish(row, path, staged, data)

    def list_folder(self, prefix: str) -> tuple[list[str], list[ObjectMeta]]:
        """List a folder; that of the versions has the newest one under its final name.

        Raises
        ------
        CorruptFileError
            The external store knows of a version whose manifest is missing or of another size.
        """
        if prefix.rstrip("/") != VERSIONS_FOLDER:
            return self._store.list_folder(prefix)
        newest = self._repaired()
        names, objects = self._store.list_folder(prefix)
        if newest is not None:
            self._check(newest, objects)
        return names, objects

    def head(self, path: str) -> ObjectMeta:
        """Describe one object; a manifest that is committed but not yet in place is put there."""
        try:
            return self._store.head(path)
        except ObjectNotFoundError:
            if _version_of(path) is None:
                raise
        self._repaired()
        return self._store.head(path)

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        """Read from the store."""
        return self._store.get_range(path, start, end)

    def held_range(self, path: str, start: int, end: int) -> memoryview | None:
        """Return bytes of an object that the store has at hand."""
        store = self._store
        return store.held_range(path, start, end) if isinstance(store, HoldsRanges) else None

    def held_size(self, path: str) -> int | None:
        """Return the size of an object that the store has at hand."""
        store = self._store
        return store.held_size(path) if isinstance(store, HoldsRanges) else None

    def list_tree(self, prefix: str) -> Iterator[ObjectMeta]:
        """List the store."""
        return self._store.list_tree(prefix)

    def put(self, path: str, data: bytes) -> None:
        """Write to the store."""
        self._store.put(path, data)

    def delete(self, path: str) -> None:
        """Remove an object from the store."""
        self._store.delete(path)

    def open_sink(self, path: str) -> ObjectSink:
        """Write to the store in pieces."""
        return self._store.open_sink(path)

    def map(self, path: str) -> memoryview | None:
        """Map an object of the store."""
        return self._store.map(path)

    def _repaired(self) -> ManifestRow | None:
        """Return the newest row, after giving its manifest the final name if it has none yet."""
        row = self._rows.latest(self._base_uri)
        if row is None:
            return None
        staged = self._relative(row.path)
        match = _STAGED.fullmatch(staged)
        if match is None:
            return row
        final = match[1]
        try:
            size = self._store.head(staged).size
            data = bytes(self._store.get_range(staged, 0, size))
        except ObjectNotFoundError:  # somebody else has copied it since, or it is lost
            return ManifestRow(row.version, self._row_path(final), row.size)
        return self._publish(row, final, staged, data)

    def _publish(self, row: ManifestRow, final: str, staged: str, data: bytes) -> ManifestRow:
        self._store.put(final, data)
        published = ManifestRow(row.version, self._row_path(final), len(data))
        self._rows.put_if_present(self._base_uri, published)
        self._store.delete(staged)
        return published

    def _check(self, row: ManifestRow, objects: list[ObjectMeta]) -> None:
        path = self._relative(row.path)
        sizes = {meta.path: meta.size for meta in objects}
        found = sizes.get(path)
        if found is None:
            raise CorruptFileError(path, f"version {row.version} is committed, but missing")
        if row.size is not None and found != row.size:
            raise CorruptFileError(path, f"has {found} bytes, {row.size} were committed")

    def _row_path(self, path: str) -> str:
        return f"{self._base_uri}/{path}"

    def _relative(self, path: str) -> str:
        if not path.startswith(f"{self._base_uri}/{VERSIONS_FOLDER}/"):
            raise CorruptFileError(path, f"is no manifest of {self._base_uri}")
        return path.removeprefix(f"{self._base_uri}/")


def _version_of(path: str) -> int | None:
    """Return the version whose manifest lies at ``path``; detached ones are in no history."""
    folder, _, name = path.rpartition("/")
    parsed = parse_manifest_name(name) if folder == VERSIONS_FOLDER else None
    return None if parsed is None or is_detached(parsed.version) else parsed.version
