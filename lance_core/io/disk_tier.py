"""A tier of local disk in front of remote stores: what was read once is not fetched again.

Kept are exactly the byte ranges that were fetched, of objects that never change once written.
Datasets can be deleted and made anew at the same place, with the same names even, so ranges belong
to an *incarnation* of the place. It is told by the objects of one folder, those of the manifests,
which every opening of a dataset lists anyway: as long as some that were seen before are still the
same and none is another, it is the same dataset. Else nothing of what was kept is used any more.
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from heapq import nlargest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError, LanceError
from lance_core.io.disk_ranges import DiskRanges
from lance_core.io.spans import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lance_core.io.sink import ObjectSink
    from lance_core.io.store import ObjectMeta, ObjectStore

    TellIncarnation = Callable[[str, Sequence[ObjectMeta]], str]

_MARKS_KEPT = 64
"""Newest manifests that are written down; one of them must still be there at the next opening."""


@dataclass(frozen=True, slots=True)
class KeptObjects:
    """Which objects below the root of a store are kept.

    Parameters
    ----------
    folders
        Everything in these never changes and has a name that is not used again.
    marks
        Folder of the objects that tell one dataset from another at the same place. They never
        change either, but their names are used again.
    mark_suffix
        How their names end.
    """

    folders: tuple[str, ...]
    marks: str
    mark_suffix: str

    def is_mark(self, path: str) -> bool:
        """Tell whether an object is one of the marks."""
        return path.startswith(f"{self.marks}/") and path.endswith(self.mark_suffix)

    def is_kept(self, path: str) -> bool:
        """Tell whether an object never changes."""
        return path.partition("/")[0] in self.folders and "/" in path


@dataclass(frozen=True, slots=True)
class DiskTierStats:
    """The tier at one moment. ``hits`` are ranges of which all bytes were there.

    ``used_bytes`` counts what other processes keep there too.
    """

    budget_bytes: int
    used_bytes: int
    hits: int
    misses: int
    damaged: int


class DiskTier:
    """A folder with a budget of bytes, for any number of stores, threads and processes.

    Parameters
    ----------
    folder
        Where to keep files; made if it is missing, readable by its owner only.
    budget_bytes
        Bytes of files kept; those that were not read for longest leave.
    kept
        What is kept.

    Raises
    ------
    InvalidRequestError
        The folder cannot be made.
    """

    def __init__(self, folder: str | Path, budget_bytes: int, kept: KeptObjects) -> None:
        self._root = Path(folder)
        self._kept = kept
        try:
            self._ranges = DiskRanges(self._root, budget_bytes)
        except OSError as error:
            raise InvalidRequestError(
                f"the disk cache cannot be at {folder}: {error.strerror}"
            ) from error

    @property
    def stats(self) -> DiskTierStats:
        """Sizes and counters; the counters are of this process."""
        budget, counts = self._ranges.budget, self._ranges.counts
        return DiskTierStats(
            budget.budget_bytes, budget.used_bytes, counts.hits, counts.misses, counts.damaged
        )

    def over(self, store: ObjectStore) -> TieredStore:
        """Return a store that reads through this tier."""
        return TieredStore(store, self._ranges, self._kept, self._incarnation)

    def _incarnation(self, store_key: str, marks: Sequence[ObjectMeta]) -> str:
        """Return the name of the dataset that has these manifests, the one known if it is that."""
        digest = hashlib.sha256(store_key.encode()).hexdigest()[:40]
        file = self._root / f".place-{digest}"
        newest = nlargest(_MARKS_KEPT, marks, key=attrgetter("last_modified", "path"))
        fresh = {meta.path: _identity(meta) for meta in newest}
        with self._ranges.budget.locked():
            name, before = _load_place(file)
            if name is None or not _is_same(before, marks):
                name = uuid.uuid4().hex
            if before != fresh:
                _write_place(file, name, fresh)
        return name


class _Place:
    """What is known of the dataset behind a store: its incarnation, and its manifests."""

    __slots__ = ("incarnation", "marks")

    def __init__(self, incarnation: str | None, marks: Mapping[str, ObjectMeta]) -> None:
        self.incarnation = incarnation
        self.marks = marks


class TieredStore:
    """Another store, read through the tier.

    Listings always come from the store, and so do objects that may change. Made by `DiskTier.over`.
    """

    def __init__(
        self,
        store: ObjectStore,
        ranges: DiskRanges,
        kept: KeptObjects,
        incarnation: TellIncarnation,
    ) -> None:
        self.uri = store.uri
        self.key = store.key
        self.coalesce_gap = store.coalesce_gap
        self._store = store
        self._ranges = ranges
        self._kept = kept
        self._tell_incarnation = incarnation
        self._lock = threading.Lock()
        self._place: _Place | None = None

    def held_range(self, path: str, start: int, end: int) -> memoryview | None:
        """Return bytes ``[start, end)`` of an object if all of them are on disk."""
        name = self._name(path)
        return None if name is None else self._ranges.read(name, start, end)

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        """Return bytes of an object, fetching none that come before or after what is missing."""
        name = self._name(path)
        if name is None or not 0 <= start < end:
            return self._store.get_range(path, start, end)
        missing = self._ranges.missing(name, start, end)
        if missing is None:
            held = self._ranges.read(name, start, end)
            if held is not None:
                return held
            missing = Span(start, end)
        return self._completed(name, path, Span(start, end), missing)

    def held_size(self, path: str) -> int | None:
        """Return the size of an object if it is on disk."""
        name = self._name(path)
        return None if name is None else self._ranges.size(name)

    def head(self, path: str) -> ObjectMeta:
        """Ask the store, and keep the size."""
        meta = self._store.head(path)
        name = self._name(path)
        if name is not None:
            self._ranges.keep_size(name, meta.size)
        return meta

    def list_tree(self, prefix: str) -> Iterator[ObjectMeta]:
        """List the store."""
        return self._store.list_tree(prefix)

    def list_folder(self, prefix: str) -> tuple[list[str], list[ObjectMeta]]:
        """List a folder of the store; that of the manifests tells which dataset is there."""
        names, objects = self._store.list_folder(prefix)
        if prefix.strip("/") == self._kept.marks:
            self._place = self._place_of(objects)
        return names, objects

    def put(self, path: str, data: bytes) -> None:
        """Write to the store."""
        self._forget(path)
        self._store.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write to the store unless the path is taken."""
        self._store.put_if_absent(path, data)

    def delete(self, path: str) -> None:
        """Remove an object of the store, and what is kept of it."""
        self._forget(path)
        self._store.delete(path)

    def open_sink(self, path: str) -> ObjectSink:
        """Write to the store in pieces."""
        self._forget(path)
        return self._store.open_sink(path)

    def map(self, path: str) -> memoryview | None:
        """Return None: what is kept are ranges."""
        return None

    def _completed(self, name: str, path: str, wanted: Span, missing: Span) -> memoryview:
        """Fetch what is missing and put it between what is there."""
        (start, end), (first, last) = wanted, missing
        before = self._ranges.read(name, start, first) if start < first else memoryview(b"")
        after = self._ranges.read(name, last, end) if last < end else memoryview(b"")
        if before is None or after is None:  # removed by another process this very moment
            first, last, before, after = start, end, memoryview(b""), memoryview(b"")
        fetched = self._store.get_range(path, first, last)
        self._ranges.keep(name, first, fetched)
        if (first, last) == wanted:
            return fetched
        return memoryview(b"".join((before, fetched, after)))

    def _name(self, path: str) -> str | None:
        """Return the name under which an object is kept, None if it is not."""
        if self._kept.is_mark(path):
            # Without a listing nobody knows which object of that name it is.
            mark = None if self._place is None else self._place.marks.get(path)
            return None if mark is None else f"{self.key}\0{path}\0{_identity(mark)}"
        if not self._kept.is_kept(path):
            return None
        incarnation = self._known_place().incarnation
        return None if incarnation is None else f"{self.key}\0{incarnation}\0{path}"

    def _forget(self, path: str) -> None:
        name = self._name(path)
        if name is not None:
            self._ranges.forget(name)

    def _known_place(self) -> _Place:
        """Return what is known of the dataset; lists its manifests if nobody has done so yet."""
        found = self._place
        if found is None:
            with self._lock:
                if self._place is None:
                    self._place = self._look()
                found = self._place
        return found

    def _look(self) -> _Place:
        try:
            _, objects = self._store.list_folder(self._kept.marks)
        except LanceError:  # whoever may read objects need not be allowed to list them
            return _Place(None, {})
        return self._place_of(objects)

    def _place_of(self, objects: Sequence[ObjectMeta]) -> _Place:
        marks = [meta for meta in objects if self._kept.is_mark(meta.path)]
        if not marks:
            return _Place(None, {})
        try:
            incarnation = self._tell_incarnation(self.key, marks)
        except OSError:
            return _Place(None, {})
        return _Place(incarnation, {meta.path: meta for meta in marks})


def _identity(meta: ObjectMeta) -> str:
    return f"{meta.e_tag} {meta.size} {meta.last_modified.timestamp()}"


def _is_same(before: Mapping[str, str], present: Sequence[ObjectMeta]) -> bool:
    """Tell whether the manifests of two moments are those of one dataset."""
    common = [meta for meta in present if meta.path in before]
    return bool(common) and all(before[meta.path] == _identity(meta) for meta in common)


def _load_place(file: Path) -> tuple[str | None, dict[str, str]]:
    """Return the incarnation and the manifests that are written down; None where nothing is."""
    with suppress(OSError, ValueError, KeyError, AttributeError):
        document = json.loads(file.read_bytes())
        marks = {str(path): str(mark) for path, mark in document["marks"].items()}
        return str(document["incarnation"]), marks
    return None, {}


def _write_place(file: Path, name: str, marks: Mapping[str, str]) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps({"incarnation": name, "marks": marks}))
    temporary.replace(file)
