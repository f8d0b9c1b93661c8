"""Values under a byte budget: the least recently used leave, each key is loaded once at a time."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from cachetools import Cache, LRUCache

from lance_core.cache.figures import FiguresByStore
from lance_core.cache.single_flight import SingleFlight
from lance_core.errors import InvalidRequestError
from lance_core.io.metering import current_meter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from lance_core.cache.figures import StoreFigures


class Sized(Protocol):
    """What the cache keeps: anything that knows the memory it holds."""

    @property
    def nbytes(self) -> int:
        """Bytes held, the large parts at least; may grow while the value is cached."""


class Growing(Sized, Protocol):
    """A value that grows with use and tells when it may have."""

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each use that may have changed the size."""


V = TypeVar("V", bound=Sized)


@cache
def _can_grow(kind: type[object]) -> bool:
    """Tell whether values are `Growing`: once for their type, as it takes tens of microseconds."""
    return hasattr(kind, "watch_growth")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The cache at one moment. Every key asked for is one hit or one miss."""

    budget_bytes: int
    used_bytes: int
    entries: int
    hits: int
    misses: int
    evictions: int
    loads_in_flight: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """A value, its size when last measured, and whom to tell when it leaves."""

    value: Sized
    nbytes: int
    on_evict: Callable[[Hashable], object] | None


class _Entries(LRUCache["Hashable", _Entry]):
    """Entries by recency; those that leave wait in ``departed`` until the lock is released."""

    def __init__(self, budget_bytes: int) -> None:
        super().__init__(budget_bytes, getsizeof=lambda entry: entry.nbytes)
        self.departed: list[tuple[Hashable, _Entry]] = []
        self.evictions = 0
        self.figures = FiguresByStore()

    def popitem(self) -> tuple[Hashable, _Entry]:
        """Remove the least recently used entry; called by the base class to make room."""
        item = super().popitem()
        self.departed.append(item)
        self.evictions += 1
        self.figures.of(item[0]).evictions += 1
        return item

    def __setitem__(self, key: Hashable, entry: _Entry) -> None:
        super().__setitem__(key, entry)
        figures = self.figures.of(key)
        figures.entries += 1
        figures.used_bytes += entry.nbytes

    def __delitem__(self, key: Hashable) -> None:
        figures = self.figures.of(key)
        figures.entries -= 1
        figures.used_bytes -= Cache.__getitem__(self, key).nbytes
        super().__delitem__(key)

    def admit(self, key: Hashable, entry: _Entry) -> None:
        """Put ``entry`` in place of what ``key`` had; one larger than the budget leaves at once."""
        self.pop(key, None)
        if entry.nbytes > self.maxsize:
            self.departed.append((key, entry))
        else:
            self[key] = entry


class ByteCache:
    """A thread-safe cache of loaded values with a budget in bytes.

    Keys must name what never changes (incarnation of the dataset, file, part), so that no entry
    can be stale. A value handed out stays alive while its user holds it, evicted or not; the budget
    bounds what the cache holds. Some values grow with use: their sizes are measured when they are
    loaded, then of a `Growing` one whenever it says so, of others at each hit. So more than the
    budget is in memory only while a new value stands beside those that have to leave for it.

    What belongs to old versions leaves first, as nobody asks for it, and before that where whoever
    serves versions says that one is not used any more (`lance_core.query.old_versions`).

    ``on_evict(key)`` is called, in whichever thread made the room and outside the lock, when the
    entry has left: evicted, discarded, cleared, or larger than the budget and so never kept. It
    must not raise. A caller that keeps a table of what is loaded sets its marks inside the load,
    which always comes before the eviction.

    Parameters
    ----------
    budget_bytes
        Upper bound of the bytes held; 0 keeps nothing.
    """

    def __init__(self, budget_bytes: int) -> None:
        if budget_bytes < 0:
            raise InvalidRequestError(f"the cache budget is {budget_bytes} bytes, must be >= 0")
        self._lock = threading.Lock()
        self._entries = _Entries(budget_bytes)
        self._flights: SingleFlight[Hashable, Sized] = SingleFlight()
        self._hits = 0
        self._misses = 0

    def get_or_load(
        self,
        key: Hashable,
        load: Callable[[], V],
        *,
        on_evict: Callable[[Hashable], object] | None = None,
    ) -> V:
        """Return the value of ``key``, by ``load()`` if it is not held.

        Threads that ask while it loads wait for the same value. A failed load raises in all of
        them and leaves no trace. A key stands for one type of value, the one its ``load`` gives.
        """
        held = self._hit(key)
        if held is not None:
            return cast("V", held)
        found = self._flights.do_many(
            [key], lambda claimed: self._load(claimed, lambda _: [load()], on_evict)
        )
        return cast("V", found[key])

    def get_or_load_many(
        self,
        keys: Sequence[Hashable],
        load_many: Callable[[list[Hashable]], Sequence[V]],
        *,
        on_evict: Callable[[Hashable], object] | None = None,
    ) -> list[V]:
        """Return the values of ``keys`` in their order, loading what is missing in one call.

        ``load_many(missing)`` gets the keys that are neither held nor being loaded elsewhere,
        without repeats, and returns one value for each; it may call the cache for other keys. What
        another thread is loading is waited for, after the own load.
        """
        found = self._lookup(keys)
        missing = [key for key in keys if key not in found]
        if missing:
            found.update(
                self._flights.do_many(
                    missing, lambda claimed: self._load(claimed, load_many, on_evict)
                )
            )
        return cast("list[V]", [found[key] for key in keys])

    def __contains__(self, key: Hashable) -> bool:
        """Tell whether a key is held; neither a hit nor a use."""
        with self._lock:
            return key in self._entries

    def held_keys(self) -> list[Hashable]:
        """Return the keys held at this moment."""
        with self._lock:
            return list(self._entries)

    def touch(self, keys: Iterable[Hashable]) -> None:
        """Mark keys as just used, without counting hits; keys not held are passed over."""
        with self._lock:
            for key in keys:
                self._entries.get(key)

    def discard(self, keys: Iterable[Hashable]) -> None:
        """Let go of keys; keys not held are passed over."""
        with self._lock:
            for key in keys:
                entry = self._entries.pop(key, None)
                if entry is not None:
                    self._entries.departed.append((key, entry))
        self._announce_departures()

    def clear(self) -> None:
        """Let go of everything; the counters go on."""
        with self._lock:
            held = list(self._entries)
        self.discard(held)

    def add_hits(self, store: str, count: int) -> None:
        """Count hits of values of a dataset that were found without asking the cache."""
        with self._lock:
            self._hits += count
            self._entries.figures.of_store(store).hits += count

    def figures(self) -> Mapping[str, StoreFigures]:
        """Return the figures of each dataset, by the key of the store that it lies in."""
        with self._lock:
            return self._entries.figures.copy()

    def figures_of(self, store: str) -> StoreFigures:
        """Return the figures of the dataset that lies in a store."""
        with self._lock:
            return self._entries.figures.copy_of(store)

    @property
    def is_half_full(self) -> bool:
        """Whether half of the budget is used; a glance without the lock."""
        return bool(2 * self._entries.currsize > self._entries.maxsize)

    @property
    def stats(self) -> CacheStats:
        """Sizes and counters, taken together."""
        with self._lock:
            return CacheStats(
                budget_bytes=int(self._entries.maxsize),
                used_bytes=int(self._entries.currsize),
                entries=len(self._entries),
                hits=self._hits,
                misses=self._misses,
                evictions=self._entries.evictions,
                loads_in_flight=len(self._flights),
            )

    def _hit(self, key: Hashable) -> Sized | None:
        """Return one value as ``_lookup`` does, at less cost; None if it is not held."""
        with self._lock:
            value = self._held([key]).get(key)
            figures = self._entries.figures.of(key)
            if value is None:
                self._misses += 1
                figures.misses += 1
            else:
                self._hits += 1
                figures.hits += 1
        self._announce_departures()
        meter = current_meter()
        if value is None:
            meter.cache_misses += 1
        else:
            meter.cache_hits += 1
        return value

    def _lookup(self, keys: Sequence[Hashable]) -> dict[Hashable, Sized]:
        """Return the values held among ``keys``, counting hits and misses."""
        with self._lock:
            found = self._held(keys)
            hits = sum(key in found for key in keys)
            self._hits += hits
            self._misses += len(keys) - hits
            for key in keys:
                figures = self._entries.figures.of(key)
                if key in found:
                    figures.hits += 1
                else:
                    figures.misses += 1
        self._announce_departures()
        meter = current_meter()
        meter.cache_hits += hits
        meter.cache_misses += len(keys) - hits
        return found

    def _held(self, keys: Iterable[Hashable]) -> dict[Hashable, Sized]:
        """Return the values held among ``keys`` and make them the most recent; needs the lock."""
        found: dict[Hashable, Sized] = {}
        for key in keys:
            entry = self._entries.get(key)
            if entry is None:
                continue
            found[key] = entry.value
            if not _can_grow(type(entry.value)):  # those that can tell when they have
                self._weigh(key, entry)
        return found

    def _weigh(self, key: Hashable, entry: _Entry) -> None:
        """Take the size of an entry anew; needs the lock."""
        nbytes = entry.value.nbytes
        if nbytes != entry.nbytes:
            self._entries.admit(key, _Entry(entry.value, nbytes, entry.on_evict))

    def _load(
        self,
        claimed: list[Hashable],
        load_many: Callable[[list[Hashable]], Sequence[V]],
        on_evict: Callable[[Hashable], object] | None,
    ) -> list[Sized]:
        # A load that ended between the look-up and the claim has left its value here.
        with self._lock:
            values = self._held(claimed)
        missing = [key for key in claimed if key not in values]
        if missing:
            loaded = dict(zip(missing, load_many(missing), strict=True))
            for key, value in loaded.items():
                if _can_grow(type(value)):
                    cast("Growing", value).watch_growth(partial(self._measure, key))
            with self._lock:
                for key, value in loaded.items():
                    self._entries.admit(key, _Entry(value, value.nbytes, on_evict))
            values.update(loaded)
        self._announce_departures()
        return [values[key] for key in claimed]

    def _measure(self, key: Hashable) -> None:
        """Take the size anew of a value that may have grown."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._weigh(key, entry)
        self._announce_departures()

    def _announce_departures(self) -> None:
        """Tell owners what has left; outside the lock, because they may take locks of their own."""
        if not self._entries.departed:
            return
        with self._lock:
            departed, self._entries.departed = self._entries.departed, []
        for key, entry in departed:
            if entry.on_evict is not None:
                entry.on_evict(key)
