"""How the scheduler treats errors, threads and stores that wait."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lance_core.errors import CorruptFileError, ObjectNotFoundError, StoreUnavailableError
from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.metering import QueryMeter, metered
from lance_core.io.scheduler import ByteRange, RangeScheduler

if TYPE_CHECKING:
    from lance_core.io.store import ObjectStore

FAR_APART = [(0, 1), (100, 101), (200, 201), (300, 301)]


class MeetingStore(CountingStore):
    """Its reads wait until ``parties`` of them are under way, and note how many ever were."""

    def __init__(self, store: ObjectStore, parties: int) -> None:
        super().__init__(store)
        self.most_at_once = 0
        self._under_way = 0
        self._meet = threading.Barrier(parties, timeout=10)
        self._counting = threading.Lock()

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        with self._counting:
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        self._meet.wait()
        try:
            return super().get_range(path, start, end)
        finally:
            with self._counting:
                self._under_way -= 1


class FailingStore(CountingStore):
    """Fails every read that begins at 100."""

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        if start == 100:
            raise StoreUnavailableError("the store is away")
        return super().get_range(path, start, end)


@pytest.fixture
def memory() -> MemoryStore:
    store = MemoryStore()
    store.put("a", bytes(1000))
    store.put("b", bytes(1000))
    return store


def test_requests_are_under_way_together(memory: MemoryStore) -> None:
    store = MeetingStore(memory, parties=4)
    RangeScheduler(store).read("a", FAR_APART)
    assert store.most_at_once == 4


def test_requests_of_several_objects_are_under_way_together(memory: MemoryStore) -> None:
    store = MeetingStore(memory, parties=2)
    RangeScheduler(store).read_many([ByteRange("a", 0, 10), ByteRange("b", 0, 10)])
    assert store.most_at_once == 2


def test_no_more_requests_than_allowed_are_under_way(memory: MemoryStore) -> None:
    store = MeetingStore(memory, parties=2)
    RangeScheduler(store, max_concurrency=2).read("a", FAR_APART)
    assert store.most_at_once == 2


def test_a_single_request_runs_in_the_calling_thread(memory: MemoryStore) -> None:
    threads: list[int] = []

    class NotingStore(CountingStore):
        def get_range(self, path: str, start: int, end: int) -> memoryview:
            threads.append(threading.get_ident())
            return super().get_range(path, start, end)

    RangeScheduler(NotingStore(memory)).read("a", [(0, 10), (10, 20)])
    assert threads == [threading.get_ident()]


def test_a_failed_request_fails_the_read(memory: MemoryStore) -> None:
    with pytest.raises(StoreUnavailableError, match="the store is away"):
        RangeScheduler(FailingStore(memory)).read("a", FAR_APART)


def test_a_failed_read_is_not_counted(memory: MemoryStore) -> None:
    with metered() as meter, pytest.raises(StoreUnavailableError):
        RangeScheduler(FailingStore(memory)).read("a", [(100, 101)])
    assert meter == QueryMeter()


def test_reading_nothing_asks_the_store_nothing(memory: MemoryStore) -> None:
    store = CountingStore(memory)
    scheduler = RangeScheduler(store)
    assert scheduler.read("no such object", []) == []
    assert scheduler.read_many([]) == []
    assert [bytes(view) for view in scheduler.read("a", [(5, 5)])] == [b""]
    assert store.num_requests == 0


def test_an_empty_range_draws_in_no_bytes_around_it(memory: MemoryStore) -> None:
    store = CountingStore(memory, coalesce_gap=1000)
    RangeScheduler(store).read("a", [(0, 0), (40, 50), (600, 600)])
    assert store.ranges == [("a", 40, 50)]


@pytest.mark.parametrize("maps", [True, False])
@pytest.mark.parametrize("bounds", [(0, 1001), (-1, 5), (7, 3), (1 << 60, 1 << 61)])
def test_a_range_outside_the_object_is_corruption(
    memory: MemoryStore, maps: bool, bounds: tuple[int, int]
) -> None:
    scheduler = RangeScheduler(memory if maps else CountingStore(memory))
    with pytest.raises(CorruptFileError):
        scheduler.read("a", [(0, 10), bounds])
    with pytest.raises(CorruptFileError):
        scheduler.read_many([ByteRange("b", 0, 10), ByteRange("a", *bounds)])


@pytest.mark.parametrize("maps", [True, False])
def test_a_missing_object_is_not_found(memory: MemoryStore, maps: bool) -> None:
    scheduler = RangeScheduler(memory if maps else CountingStore(memory))
    with pytest.raises(ObjectNotFoundError):
        scheduler.read("c", [(0, 10)])
    with pytest.raises(ObjectNotFoundError):
        scheduler.tail("c", None, 10)


def test_a_tail_of_unknown_size_is_two_requests_and_of_known_size_one(
    memory: MemoryStore,
) -> None:
    scheduler = RangeScheduler(CountingStore(memory))
    with metered() as unknown:
        scheduler.tail("a", None, 64)
    with metered() as known:
        scheduler.tail("a", 1000, 64)
    assert unknown == QueryMeter(bytes_read=64, store_requests=2)
    assert known == QueryMeter(bytes_read=64, store_requests=1)


def test_a_tail_longer_than_a_file_that_is_shorter_than_said_is_corruption(
    memory: MemoryStore,
) -> None:
    with pytest.raises(CorruptFileError):
        RangeScheduler(memory).tail("a", 2000, 64)


def test_schedulers_can_share_threads(memory: MemoryStore) -> None:
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            scheduler = RangeScheduler(CountingStore(memory), pool=pool)
            assert len(scheduler.read("a", FAR_APART)) == 4


def test_the_threads_of_a_dropped_scheduler_end(memory: MemoryStore) -> None:
    scheduler = RangeScheduler(CountingStore(memory))
    scheduler.read("a", FAR_APART)
    ours = [one for one in threading.enumerate() if one.name.startswith("lance-serve-read")]
    assert ours != []
    del scheduler
    gc.collect()
    for thread in ours:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in ours)


def test_a_mapping_store_needs_no_threads(memory: MemoryStore) -> None:
    before = threading.active_count()
    RangeScheduler(memory).read("a", FAR_APART)
    assert threading.active_count() == before
