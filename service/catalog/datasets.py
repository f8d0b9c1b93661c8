"""Opened datasets, kept as long as they are the truth and somebody may ask for them."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache

from lance_core.errors import NotFoundError
from lance_core.query.old_versions import forget_version
from service.catalog.freshness import ANY_AGE, Freshness, Look
from service.catalog.pins import Pin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.dataset import Dataset
    from lance_core.table.snapshot import Snapshot

UNUSED_FOR_S = 60.0
"""Seconds after which a version that was asked for by its number or name is let go."""


class OpenDataset(Protocol):
    """Opens a dataset: reads its manifest and nothing else."""

    def __call__(
        self, uri: str, version: int | str | None, *, branch: str | None = None
    ) -> Dataset:
        """Return the dataset at a version by number or tag, None = the latest of a branch."""


class OpenAnyDataset(Protocol):
    """Opens a dataset anywhere, in the way of ``lance_core.open_dataset``."""

    def __call__(
        self,
        uri: str,
        version: int | str | None,
        *,
        branch: str | None = None,
        storage_options: Mapping[str, str],
        check_base: Callable[[str], None],
    ) -> Dataset:
        """Return the dataset at a version by number or tag, None = the latest of a branch."""


def look_now() -> Look:
    """Return the present on both clocks."""
    return Look(time.time(), time.monotonic())


@dataclass(slots=True)
class _Slot:
    """One place in the cache; the lock lets one thread at a time ask the store."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    held: tuple[Dataset, Look] | None = None
    used_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Key:
    """What a slot is for: places of two databases differ, as their credentials do."""

    database: str | None
    uri: str
    pin: Pin


@dataclass(frozen=True, slots=True)
class _Unheld:
    """A version that nobody holds any more, and where it lies."""

    database: str | None
    uri: str
    cache: ByteCache
    snapshot: Snapshot


class Slots:
    """The places where opened datasets are kept; all databases share them.

    Parameters
    ----------
    max_open
        Most datasets kept; those that nobody has asked for the longest leave first.
    """

    def __init__(self, max_open: int) -> None:
        self._lock = threading.Lock()
        self._slots: LRUCache[_Key, _Slot] = LRUCache(max_open)
        self._unheld: deque[_Unheld] = deque()

    def known(self, key: _Key) -> _Slot | None:
        """Return a slot if there is one."""
        with self._lock:
            return self._slots.get(key)

    def of(self, key: _Key) -> _Slot:
        """Return a slot, made if need be."""
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot()
            return slot

    def forget(self, key: _Key) -> None:
        """Drop a slot."""
        with self._lock:
            self._slots.pop(key, None)

    def watch(self, key: _Key, dataset: Dataset) -> None:
        """Note when nobody holds a dataset any more: neither a slot nor a request."""
        unheld = _Unheld(key.database, key.uri, dataset.session.cache, dataset.snapshot)
        # It may be called anywhere, even where a lock is held, so it does no more than this.
        weakref.finalize(dataset, self._unheld.append, unheld).atexit = False

    def release_unused(self, now_s: float) -> None:
        """Let go of old versions that nobody uses, with what the cache holds for them alone.

        These are those asked for by number or name, but not during a minute, and those that a newer
        one has taken the place of. Latest versions stay: whoever asks for one next should find it
        warm.
        """
        self._drop_unused(now_s)
        while self._unheld:
            unheld = self._unheld.popleft()
            kept = self._snapshots(unheld)
            if len(kept) > 0:  # else nobody knows what of it is old
                forget_version(unheld.cache, unheld.snapshot, kept)

    def _snapshots(self, of: _Unheld) -> list[Snapshot]:
        with self._lock:
            return [
                slot.held[0].snapshot
                for key, slot in self._slots.items()
                if (key.database, key.uri) == (of.database, of.uri) and slot.held is not None
            ]

    def _drop_unused(self, now_s: float) -> None:
        with self._lock:
            unused = [
                key
                for key, slot in self._slots.items()
                if key.pin.version is not None
                and now_s - slot.used_s > UNUSED_FOR_S
                and not slot.lock.locked()
            ]
            for key in unused:
                del self._slots[key]

    def held(self) -> list[Dataset]:
        """Return all datasets that are kept."""
        with self._lock:
            return [slot.held[0] for slot in self._slots.values() if slot.held is not None]


class OpenDatasets:
    """Opened datasets of one database, by location and version.

    The store is asked again as often as requests demand, at most once at a time per dataset. An
    opened dataset is kept, with everything loaded for it, as long as the store shows the same
    incarnation: a dataset deleted and made anew at the same place and version is another one.

    Parameters
    ----------
    open_dataset
        Opens one, with the credentials of the database.
    slots
        Where they are kept.
    max_age_s
        Seconds for which what was the latest version is taken for it.
    database
        Name of the database, None of the only one.
    now
        The clocks.
    """

    def __init__(
        self,
        open_dataset: OpenDataset,
        slots: Slots,
        *,
        max_age_s: float,
        database: str | None = None,
        now: Callable[[], Look] = look_now,
    ) -> None:
        self._open_dataset = open_dataset
        self._slots = slots
        self._max_age_s = max_age_s
        self._database = database
        self._now = now

    def resident(self, uri: str, pin: Pin, demand: Freshness) -> Dataset | None:
        """Return the dataset if it is open and new enough; never waits for the store."""
        slot = self._slots.known(_Key(self._database, uri, pin))
        return None if slot is None else self._usable(slot, _demand(pin, demand), self._now())

    def open(self, uri: str, pin: Pin, demand: Freshness) -> Dataset:
        """Return the dataset, asking the store first where the demand says so.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError
            There is none, or no longer.
        """
        asked = self._now()
        key = _Key(self._database, uri, pin)
        slot = self._slots.of(key)
        with slot.lock:
            held = self._usable(slot, _demand(pin, demand), asked)
            return self._look_after(asked, slot, key) if held is None else held

    def reopen(self, uri: str, pin: Pin) -> Dataset:
        """Return the dataset that the store shows now, whatever is held; errors as ``open``."""
        asked = self._now()
        key = _Key(self._database, uri, pin)
        slot = self._slots.of(key)
        with slot.lock:
            return self._look_after(asked, slot, key)

    def _look_after(self, asked: Look, slot: _Slot, key: _Key) -> Dataset:
        # Another request may have looked while this one waited for the lock.
        if slot.held is not None and slot.held[1].monotonic_s > asked.monotonic_s:
            return slot.held[0]
        return self._look(slot, key)

    def _look(self, slot: _Slot, key: _Key) -> Dataset:
        look = self._now()
        before, slot.held = slot.held, None
        try:
            found = self._open_dataset(key.uri, key.pin.version, branch=key.pin.branch)
        except NotFoundError:
            # Names that do not exist must not push open datasets out.
            self._slots.forget(key)
            raise
        for known in (None if before is None else before[0], self._latest(key)):
            if known is not None and known.snapshot.incarnation == found.snapshot.incarnation:
                found = known
                break
        else:
            self._slots.watch(key, found)
        slot.held = (found, look)
        slot.used_s = look.monotonic_s
        return found

    def _latest(self, key: _Key) -> Dataset | None:
        """Return the open latest version, which a request for its number or name shares."""
        if key.pin.version is None:
            return None
        slot = self._slots.known(_Key(key.database, key.uri, Pin(branch=key.pin.branch)))
        return None if slot is None or slot.held is None else slot.held[0]

    def _usable(self, slot: _Slot, demand: Freshness, now: Look) -> Dataset | None:
        if slot.held is None:
            return None
        dataset, look = slot.held
        version = dataset.version
        fresh = look.satisfies(demand, version=version, now=now, default_age_s=self._max_age_s)
        if not fresh:
            return None
        slot.used_s = now.monotonic_s
        return dataset


def _demand(pin: Pin, demand: Freshness) -> Freshness:
    """Return what a request can demand: a pinned version cannot get newer.

    A tag may be moved, so it is looked at again, but the version that it names need not be new.
    """
    if pin.is_fixed:
        return ANY_AGE
    return demand if pin.version is None else Freshness(0, demand.not_before_s, demand.max_age_s)
