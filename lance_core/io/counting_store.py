"""A store that remembers what was asked of another one, to show which bytes a query read."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.io.sink import ObjectSink
    from lance_core.io.store import ObjectMeta, ObjectStore


class CountingStore:
    """Passes everything on to ``store`` and records reads; safe to share between threads.

    It maps nothing, whatever ``store`` can do: bytes touched through a mapping cannot be counted.

    Attributes
    ----------
    ranges
        Every range read as ``(path, start, end)``, in the order of the calls.
    num_requests
        Range reads, head requests and listings.
    """

    def __init__(self, store: ObjectStore, *, coalesce_gap: int | None = None) -> None:
        self.uri = store.uri
        self.key = store.key
        self.coalesce_gap = store.coalesce_gap if coalesce_gap is None else coalesce_gap
        self._store = store
        self._lock = threading.Lock()
        self.ranges: list[tuple[str, int, int]] = []
        self.num_requests = 0

    @property
    def bytes_read(self) -> int:
        """Bytes of all ranges read so far."""
        with self._lock:
            return sum(end - start for _, start, end in self.ranges)

    def reset(self) -> None:
        """Forget what was read so far."""
        with self._lock:
            self.ranges.clear()
            self.num_requests = 0

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        """Read a range and record it, unless it fails."""
        view = self._store.get_range(path, start, end)
        with self._lock:
            self.ranges.append((path, start, end))
            self.num_requests += 1
        return view

    def head(self, path: str) -> ObjectMeta:
        """Ask the other store, one request."""
        self._count()
        return self._store.head(path)

    def list_tree(self, prefix: str) -> Iterator[ObjectMeta]:
        """List the other store, one request."""
        self._count()
        return self._store.list_tree(prefix)

    def list_folder(self, prefix: str) -> tuple[list[str], list[ObjectMeta]]:
        """List a folder of the other store, one request."""
        self._count()
        return self._store.list_folder(prefix)

    def put(self, path: str, data: bytes) -> None:
        """Write to the other store; writes are not counted."""
        self._store.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write to the other store unless the path is taken; writes are not counted."""
        self._store.put_if_absent(path, data)

    def delete(self, path: str) -> None:
        """Remove an object of the other store; this is not counted."""
        self._store.delete(path)

    def open_sink(self, path: str) -> ObjectSink:
        """Write to the other store in pieces; writes are not counted."""
        return self._store.open_sink(path)

    def map(self, path: str) -> memoryview | None:
        """Return None, so that every byte has to come through ``get_range``."""
        return None

    def _count(self) -> None:
        with self._lock:
            self.num_requests += 1
