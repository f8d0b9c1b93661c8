"""What the cache does for one caller, and for several at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lance_core.cache.byte_cache import ByteCache, CacheStats
from lance_core.errors import InvalidRequestError, StoreUnavailableError
from lance_core.io.metering import metered

if TYPE_CHECKING:
    from collections.abc import Hashable

WAIT_S = 10


@dataclass
class Block:
    """A value of a size, which can change."""

    nbytes: int
    name: str = ""


def never() -> Block:
    pytest.fail("this must not be loaded")


def load_named(keys: list[Hashable]) -> list[Block]:
    return [Block(10, str(key)) for key in keys]


def test_a_held_value_is_not_loaded_again() -> None:
    cache = ByteCache(100)
    value = cache.get_or_load("a", lambda: Block(10))
    assert cache.get_or_load("a", never) is value


def test_the_least_recently_used_leaves_first() -> None:
    cache = ByteCache(30)
    left: list[Hashable] = []
    for key in ("a", "b", "c"):
        cache.get_or_load(key, lambda: Block(10), on_evict=left.append)
    cache.get_or_load("a", never)
    cache.get_or_load("d", lambda: Block(20), on_evict=left.append)
    assert left == ["b", "c"]
    assert cache.stats.used_bytes == 30


def test_touching_keeps_a_value_without_counting_a_hit() -> None:
    cache = ByteCache(20)
    for key in ("a", "b"):
        cache.get_or_load(key, lambda: Block(10))
    cache.touch(["a", "no such key"])
    cache.get_or_load("c", lambda: Block(10))
    cache.get_or_load("a", never)
    assert (cache.stats.hits, cache.stats.misses) == (1, 3)


def test_a_value_larger_than_the_budget_is_given_but_not_kept() -> None:
    cache = ByteCache(100)
    left: list[Hashable] = []
    cache.get_or_load("small", lambda: Block(60))
    assert cache.get_or_load("large", lambda: Block(101), on_evict=left.append).nbytes == 101
    assert left == ["large"]
    assert (cache.stats.entries, cache.stats.used_bytes, cache.stats.evictions) == (1, 60, 0)


def test_without_a_budget_every_value_is_loaded_and_none_kept() -> None:
    cache = ByteCache(0)
    for name in ("first", "second"):
        assert cache.get_or_load("a", partial(Block, 1, name)).name == name
    assert cache.stats.entries == 0


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="-1"):
        ByteCache(-1)


def test_arrays_and_their_sizes_can_be_kept() -> None:
    cache = ByteCache(100)
    cache.get_or_load(("incarnation", "p", 7), lambda: np.zeros(8, np.float32))
    assert cache.stats.used_bytes == 32


def test_a_value_that_grew_is_measured_at_its_next_use() -> None:
    cache = ByteCache(100)
    left: list[Hashable] = []
    growing = cache.get_or_load("growing", lambda: Block(10))
    cache.get_or_load("other", lambda: Block(50), on_evict=left.append)
    growing.nbytes = 60
    assert cache.get_or_load("growing", never) is growing
    assert left == ["other"]
    assert cache.stats.used_bytes == 60


def test_a_value_that_outgrew_the_budget_leaves() -> None:
    cache = ByteCache(100)
    left: list[Hashable] = []
    growing = cache.get_or_load("a", lambda: Block(10), on_evict=left.append)
    growing.nbytes = 1000
    assert cache.get_or_load("a", never) is growing
    assert left == ["a"]
    assert (cache.stats.entries, cache.stats.used_bytes) == (0, 0)


def test_many_come_in_the_order_asked_for_and_load_in_one_call() -> None:
    cache = ByteCache(1000)
    cache.get_or_load("b", lambda: Block(10, "held"))
    asked: list[list[Hashable]] = []

    def load_many(keys: list[Hashable]) -> list[Block]:
        asked.append(keys)
        return load_named(keys)

    values = cache.get_or_load_many(["c", "b", "a", "c"], load_many)
    assert [value.name for value in values] == ["c", "held", "a", "c"]
    assert asked == [["c", "a"]]
    assert values[0] is values[3]


def test_many_that_do_not_fit_together_are_given_all_the_same() -> None:
    cache = ByteCache(25)
    left: list[Hashable] = []
    values = cache.get_or_load_many(["a", "b", "c"], load_named, on_evict=left.append)
    assert [value.name for value in values] == ["a", "b", "c"]
    assert left == ["a"]


def test_asking_for_no_keys_loads_nothing() -> None:
    def load_none(keys: list[Hashable]) -> list[Block]:
        pytest.fail(f"{keys} must not be loaded")

    assert ByteCache(10).get_or_load_many([], load_none) == []


def test_a_failed_load_leaves_no_trace_and_the_next_caller_tries_again() -> None:
    cache = ByteCache(100)

    def fail(_: list[Hashable]) -> list[Block]:
        raise StoreUnavailableError("the store is away")

    with pytest.raises(StoreUnavailableError):
        cache.get_or_load_many(["a", "b"], fail)
    assert cache.get_or_load("a", lambda: Block(10, "again")).name == "again"
    assert cache.stats == CacheStats(100, 10, 1, 0, 3, 0, 0)


def test_discarded_and_cleared_values_leave_with_a_notice() -> None:
    cache = ByteCache(100)
    left: list[Hashable] = []
    cache.get_or_load_many(["a", "b", "c"], load_named, on_evict=left.append)
    cache.discard(["b", "no such key"])
    assert left == ["b"]
    cache.clear()
    assert sorted(map(str, left)) == ["a", "b", "c"]
    assert (cache.stats.entries, cache.stats.used_bytes, cache.stats.evictions) == (0, 0, 0)


def test_who_is_told_of_an_eviction_may_use_the_cache() -> None:
    cache = ByteCache(10)
    seen: list[int] = []

    def told(_: Hashable) -> None:
        seen.append(cache.stats.entries)

    cache.get_or_load("a", lambda: Block(10), on_evict=told)
    cache.get_or_load("b", lambda: Block(10))
    assert seen == [1]


def test_the_query_that_asks_has_the_hits_and_misses_in_its_meter() -> None:
    cache = ByteCache(100)
    cache.get_or_load("a", lambda: Block(10))
    with metered() as meter:
        cache.get_or_load_many(["a", "b", "c", "a"], load_named)
    assert (meter.cache_hits, meter.cache_misses) == (2, 2)


def test_a_load_may_ask_the_cache_for_other_keys() -> None:
    cache = ByteCache(100)

    def load_partitions(keys: list[Hashable]) -> list[Block]:
        header = cache.get_or_load("header", lambda: Block(10, "header"))
        return [Block(10, f"{header.name}/{key}") for key in keys]

    wanted: list[list[Hashable]] = [["p1", "p2"], ["p2", "p1"], ["p2", "p3"], ["p3", "p1"]] * 10
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda keys: cache.get_or_load_many(keys, load_partitions), wanted)
        for keys, values in zip(wanted, answers, strict=True):
            assert [value.name for value in values] == [f"header/{key}" for key in keys]


def test_threads_that_ask_at_once_share_one_load() -> None:
    cache = ByteCache(100)
    started, finish = threading.Event(), threading.Event()

    def load() -> Block:
        started.set()
        assert finish.wait(WAIT_S)
        return Block(10)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get_or_load, "a", load)
        assert started.wait(WAIT_S)
        assert cache.stats.loads_in_flight == 1
        second = pool.submit(cache.get_or_load, "a", never)
        while cache.stats.misses < 2:
            threading.Event().wait(0.001)
        finish.set()
        assert first.result(WAIT_S) is second.result(WAIT_S)
    assert cache.stats == CacheStats(100, 10, 1, 0, 2, 0, 0)


def test_a_key_is_never_loaded_twice_while_it_fits() -> None:
    cache = ByteCache(1 << 20)
    loads: list[Hashable] = []

    def load_many(keys: list[Hashable]) -> list[Block]:
        loads.extend(keys)
        return load_named(keys)

    windows = [[(first + step) % 40 for step in range(8)] for first in range(40)] * 5
    with ThreadPoolExecutor(4) as pool:
        for window, values in zip(
            windows,
            pool.map(lambda keys: cache.get_or_load_many(keys, load_many), windows),
            strict=True,
        ):
            assert [value.name for value in values] == [str(key) for key in window]
    assert sorted(map(str, loads)) == sorted(map(str, range(40)))
