"""Opened datasets, kept as long as they are the truth."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache

from lance_core.errors import NotFoundError
from service.catalog.freshness import ANY_AGE, Freshness, Look

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.dataset import Dataset


class OpenDataset(Protocol):
    """Opens a dataset: reads its manifest and nothing else."""

    def __call__(self, uri: str, version: int | None) -> Dataset:
        """Return the dataset at one version, None = the latest."""


def look_now() -> Look:
    """Return the present on both clocks."""
    return Look(time.time(), time.monotonic())


@dataclass(slots=True)
class _Slot:
    """One place in the cache; the lock lets one thread at a time ask the store."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    held: tuple[Dataset, Look] | None = None


class OpenDatasets:
    """Opened datasets by location and version.

    The store is asked again as often as requests demand, at most once at a time per dataset. An
    opened dataset is kept, with everything loaded for it, as long as the store shows the same
    incarnation: a dataset deleted and made anew at the same place and version is another one.
    """

    def __init__(
        self,
        open_dataset: OpenDataset,
        *,
        max_open: int,
        max_age_s: float,
        now: Callable[[], Look] = look_now,
    ) -> None:
        self._open_dataset = open_dataset
        self._max_age_s = max_age_s
        self._now = now
        self._lock = threading.Lock()
        self._slots: LRUCache[tuple[str, int | None], _Slot] = LRUCache(max_open)

    def resident(self, uri: str, version: int | None, demand: Freshness) -> Dataset | None:
        """Return the dataset if it is open and new enough; never waits for the store."""
        slot = self._known(uri, version)
        return None if slot is None else self._usable(slot, _demand(version, demand), self._now())

    def open(self, uri: str, version: int | None, demand: Freshness) -> Dataset:
        """Return the dataset, asking the store first where the demand says so.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError
            There is none, or no longer.
        """
        asked = self._now()
        slot = self._slot(uri, version)
        with slot.lock:
            held = self._usable(slot, _demand(version, demand), asked)
            return self._look_after(asked, slot, uri, version) if held is None else held

    def reopen(self, uri: str, version: int | None) -> Dataset:
        """Return the dataset that the store shows now, whatever is held; errors as ``open``."""
        asked = self._now()
        slot = self._slot(uri, version)
        with slot.lock:
            return self._look_after(asked, slot, uri, version)

    def _look_after(self, asked: Look, slot: _Slot, uri: str, version: int | None) -> Dataset:
        # Another request may have looked while this one waited for the lock.
        if slot.held is not None and slot.held[1].monotonic_s > asked.monotonic_s:
            return slot.held[0]
        return self._look(slot, uri, version)

    def _look(self, slot: _Slot, uri: str, version: int | None) -> Dataset:
        look = self._now()
        before, slot.held = slot.held, None
        try:
            found = self._open_dataset(uri, version)
        except NotFoundError:
            # Names that do not exist must not push open datasets out.
            self._forget(uri, version)
            raise
        for known in (None if before is None else before[0], self._latest(uri, version)):
            if known is not None and known.snapshot.incarnation == found.snapshot.incarnation:
                found = known
                break
        slot.held = (found, look)
        return found

    def _latest(self, uri: str, version: int | None) -> Dataset | None:
        """Return the open latest version, which a request for its number shares."""
        slot = None if version is None else self._known(uri, None)
        return None if slot is None or slot.held is None else slot.held[0]

    def _known(self, uri: str, version: int | None) -> _Slot | None:
        with self._lock:
            return self._slots.get((uri, version))

    def _forget(self, uri: str, version: int | None) -> None:
        with self._lock:
            self._slots.pop((uri, version), None)

    def _slot(self, uri: str, version: int | None) -> _Slot:
        with self._lock:
            slot = self._slots.get((uri, version))
            if slot is None:
                slot = self._slots[uri, version] = _Slot()
            return slot

    def _usable(self, slot: _Slot, demand: Freshness, now: Look) -> Dataset | None:
        if slot.held is None:
            return None
        dataset, look = slot.held
        version = dataset.version
        fresh = look.satisfies(demand, version=version, now=now, default_age_s=self._max_age_s)
        return dataset if fresh else None


def _demand(version: int | None, demand: Freshness) -> Freshness:
    """Return what a request can demand: a pinned version cannot get newer."""
    return demand if version is None else ANY_AGE
