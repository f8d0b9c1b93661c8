from __future__ import annotations

import threading

import pytest

from lance_core.errors import StoreUnavailableError
from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.metering import current_meter, metered
from lance_core.io.waiting import for_each

FREE = MemoryStore()
WAITING = CountingStore(MemoryStore(), coalesce_gap=4096)


@pytest.mark.parametrize("store", [FREE, WAITING], ids=["free", "waiting"])
def test_answers_come_in_the_order_of_the_items(store: MemoryStore | CountingStore) -> None:
    assert for_each(store, lambda number: number * 2, range(40)) == list(range(0, 80, 2))


def test_a_store_that_waits_is_asked_for_several_items_at_once() -> None:
    all_there = threading.Barrier(3, timeout=10)
    for_each(WAITING, lambda _: all_there.wait(), range(3))


def test_a_store_that_costs_nothing_is_asked_in_the_calling_thread() -> None:
    threads = for_each(FREE, lambda _: threading.current_thread(), range(3))
    assert set(threads) == {threading.current_thread()}


@pytest.mark.parametrize("store", [FREE, WAITING], ids=["free", "waiting"])
def test_the_caller_pays_for_all_reads(store: MemoryStore | CountingStore) -> None:
    def read(number: int) -> None:
        current_meter().bytes_read += number
        current_meter().store_requests += 1

    with metered() as meter:
        for_each(store, read, range(5))
    assert (meter.bytes_read, meter.store_requests) == (10, 5)


@pytest.mark.parametrize("store", [FREE, WAITING], ids=["free", "waiting"])
def test_a_failure_reaches_the_caller(store: MemoryStore | CountingStore) -> None:
    def fail(number: int) -> None:
        if number == 3:
            raise StoreUnavailableError("away")

    with pytest.raises(StoreUnavailableError, match="away"):
        for_each(store, fail, range(5))
