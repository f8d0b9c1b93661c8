"""A store in a dictionary, for tests and for datasets that never touch a disk."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lance_core.errors import ObjectExistsError, ObjectNotFoundError
from lance_core.io.paths import check_folder, check_path
from lance_core.io.sink import ObjectSink
from lance_core.io.store import ObjectMeta, check_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_store_numbers = itertools.count(1)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _StoredObject:
    """Bytes as written, and what the store says about them."""

    view: memoryview
    meta: ObjectMeta


class _MemoryUpload:
    """Pieces of an object that the store does not know yet."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._content = bytearray()

    def write(self, piece: memoryview) -> None:
        self._content += piece

    def publish(self) -> None:
        self._store.put(self._path, bytes(self._content))

    def discard(self) -> None:
        self._content.clear()


class MemoryStore:
    """Objects in a dictionary; every store has a URI of its own, so caches never mix two.

    Parameters
    ----------
    clock
        Gives the time that new objects carry.
    """

    coalesce_gap = 0

    def __init__(self, *, clock: Callable[[], datetime] = _now) -> None:
        self.uri = self.key = f"memory://{next(_store_numbers)}"
        self._clock = clock
        self._e_tags = itertools.count(1)
        self._lock = threading.Lock()
        self._objects: dict[str, _StoredObject] = {}

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        """Return a slice of the stored bytes; nothing is copied."""
        view = self._find(path).view
        check_range(path, start, end, size=len(view))
        return view[start:end]

    def head(self, path: str) -> ObjectMeta:
        """Return what the store says about one object."""
        return self._find(path).meta

    def list_tree(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield the objects below ``prefix`` as they are now, ordered by path."""
        folder = check_folder(prefix)
        start = f"{folder}/" if folder else ""
        with self._lock:
            metas = [one.meta for path, one in self._objects.items() if path.startswith(start)]
        return iter(sorted(metas, key=lambda meta: meta.path))

    def list_folder(self, prefix: str) -> tuple[list[str], list[ObjectMeta]]:
        """Return the sub-folder names and the objects directly inside ``prefix``, ordered."""
        folder = check_folder(prefix)
        skip = len(folder) + 1 if folder else 0
        names: set[str] = set()
        objects: list[ObjectMeta] = []
        for meta in self.list_tree(folder):
            name, slash, _ = meta.path[skip:].partition("/")
            if slash:
                names.add(name)
            else:
                objects.append(meta)
        return sorted(names), objects

    def put(self, path: str, data: bytes) -> None:
        """Store a copy of ``data``, replacing what was there."""
        with self._lock:
            self._store(check_path(path), data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Store a copy of ``data`` unless the path is taken."""
        with self._lock:
            if check_path(path) in self._objects:
                raise ObjectExistsError(f"{self.uri}/{path} exists already")
            self._store(path, data)

    def delete(self, path: str) -> None:
        """Forget an object; views of it stay readable."""
        with self._lock:
            self._objects.pop(check_path(path), None)

    def open_sink(self, path: str) -> ObjectSink:
        """Gather the pieces; store them when they are complete."""
        return ObjectSink(f"{self.uri}/{path}", _MemoryUpload(self, check_path(path)))

    def map(self, path: str) -> memoryview | None:
        """Return the stored bytes; they are memory already."""
        return self._find(path).view

    def _find(self, path: str) -> _StoredObject:
        found = self._objects.get(path)
        if found is None:
            raise ObjectNotFoundError(f"no object {check_path(path)} in {self.uri}")
        return found

    def _store(self, path: str, data: bytes) -> None:
        meta = ObjectMeta(path, len(data), str(next(self._e_tags)), self._clock())
        self._objects[path] = _StoredObject(memoryview(bytes(data)), meta)
