"""Random histories of a cache against a simple model, and laws that hold under threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lance_core.cache.byte_cache import ByteCache
from lance_core.cache.keys import CacheKey

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

keys = st.integers(0, 9)
key_lists = st.lists(keys, max_size=6)
sizes = st.integers(0, 60)


@dataclass
class Block:
    key: int
    nbytes: int


class AgainstModel(RuleBasedStateMachine):
    """The model is a dictionary from key to size in order of use, trimmed from its front."""

    @initialize(budget=st.integers(0, 120))
    def begin(self, budget: int) -> None:
        self.budget = budget
        self.cache = ByteCache(budget)
        self.model: dict[int, int] = {}
        self.asked = 0
        self.hits = 0
        self.left: list[Hashable] = []
        self.expected_left: list[int] = []

    def admit(self, key: int, nbytes: int) -> None:
        self.model.pop(key, None)
        if nbytes > self.budget:
            self.expected_left.append(key)
            return
        while sum(self.model.values()) + nbytes > self.budget:
            oldest = next(iter(self.model))
            del self.model[oldest]
            self.expected_left.append(oldest)
        self.model[key] = nbytes

    def use(self, key: int) -> None:
        self.model[key] = self.model.pop(key)

    @rule(wanted=key_lists, nbytes=sizes)
    def ask(self, wanted: list[int], nbytes: int) -> None:
        missing = [key for key in dict.fromkeys(wanted) if key not in self.model]
        for key in wanted:
            if key in self.model:
                self.use(key)
        self.asked += len(wanted)
        self.hits += sum(key not in missing for key in wanted)

        def load_many(claimed: list[Hashable]) -> list[Block]:
            assert claimed == missing
            return [Block(key, nbytes) for key in missing]

        values = self.cache.get_or_load_many(wanted, load_many, on_evict=self.left.append)
        for key in missing:
            self.admit(key, nbytes)
        assert [value.key for value in values] == wanted

    @rule(used=key_lists)
    def touch(self, used: list[int]) -> None:
        self.cache.touch(used)
        for key in used:
            if key in self.model:
                self.use(key)

    @rule(unwanted=key_lists)
    def discard(self, unwanted: list[int]) -> None:
        self.cache.discard(unwanted)
        for key in unwanted:
            if self.model.pop(key, None) is not None:
                self.expected_left.append(key)

    @rule()
    def clear(self) -> None:
        self.cache.clear()
        self.expected_left += self.model
        self.model.clear()

    @invariant()
    def the_figures_are_those_of_the_model(self) -> None:
        stats = self.cache.stats
        assert stats.used_bytes == sum(self.model.values()) <= stats.budget_bytes == self.budget
        assert stats.entries == len(self.model)
        assert (stats.hits, stats.misses) == (self.hits, self.asked - self.hits)
        assert stats.loads_in_flight == 0

    @invariant()
    def everyone_who_left_was_announced_once(self) -> None:
        assert sorted(map(str, self.left)) == sorted(map(str, self.expected_left))


TestByteCacheAgainstModel = AgainstModel.TestCase


@given(
    histories=st.lists(st.lists(key_lists, max_size=10), min_size=2, max_size=3),
    budget=st.integers(0, 100),
)
def test_threads_always_get_the_values_of_their_keys_within_the_budget(
    histories: list[list[list[int]]], budget: int
) -> None:
    cache = ByteCache(budget)

    def load_many(claimed: list[Hashable]) -> list[Block]:
        return [Block(int(str(key)), 7 * int(str(key)) + 1) for key in claimed]

    def live(history: list[list[int]]) -> None:
        for wanted in history:
            values = cache.get_or_load_many(wanted, load_many)
            assert [value.key for value in values] == wanted
            assert cache.stats.used_bytes <= budget

    with ThreadPoolExecutor(len(histories)) as pool:
        for _ in pool.map(live, histories):
            pass
    stats = cache.stats
    assert stats.hits + stats.misses == sum(len(wanted) for one in histories for wanted in one)
    assert stats.loads_in_flight == 0


@dataclass(eq=False)
class Grower:
    """Like an open file: each use may leave more of it in memory."""

    nbytes: int
    told: Callable[[], object] | None = field(default=None, repr=False)

    def watch_growth(self, told: Callable[[], object]) -> None:
        self.told = told

    def use(self, nbytes: int) -> None:
        self.nbytes = nbytes
        if self.told is not None:
            self.told()


class GrowingValues(RuleBasedStateMachine):
    """Two datasets whose values grow and shrink, whether the cache still holds them or not."""

    @initialize(budget=st.integers(0, 200))
    def begin(self, budget: int) -> None:
        self.budget = budget
        self.cache = ByteCache(budget)
        self.values: dict[CacheKey, Grower] = {}
        self.asked = {"a": 0, "b": 0}
        self.late_uses: list[Grower] = []

    @rule(store=st.sampled_from("ab"), wanted=key_lists, nbytes=sizes)
    def ask(self, store: str, wanted: list[int], nbytes: int) -> None:
        names = [CacheKey("file", store, each) for each in wanted]

        def load(missing: list[Hashable]) -> list[Grower]:
            fresh = {name: Grower(nbytes) for name in names if name in missing}
            self.values |= fresh
            return list(fresh.values())

        self.late_uses += self.cache.get_or_load_many(names, load)
        self.asked[store] += len(wanted)

    @rule(which=st.integers(0, 1000), nbytes=st.integers(0, 300))
    def use(self, which: int, nbytes: int) -> None:
        if self.late_uses:
            self.late_uses[which % len(self.late_uses)].use(nbytes)

    @rule(which=keys)
    def discard(self, which: int) -> None:
        self.cache.discard([CacheKey("file", "a", which)])

    @rule(count=keys)
    def find_without_asking(self, count: int) -> None:
        self.cache.add_hits("b", count)
        self.asked["b"] += count

    @invariant()
    def what_is_held_is_measured_and_within_the_budget(self) -> None:
        held = {name: value for name, value in self.values.items() if name in self.cache}
        in_memory = sum(value.nbytes for value in held.values())
        assert in_memory == self.cache.stats.used_bytes <= self.budget
        for store in "ab":
            of_store = [value for name, value in held.items() if name.store == store]
            figures = self.cache.figures_of(store)
            assert figures.used_bytes == sum(value.nbytes for value in of_store)
            assert figures.entries == len(of_store)
            assert figures.hits + figures.misses == self.asked[store]

    @invariant()
    def the_figures_of_all_datasets_add_up(self) -> None:
        stats, each = self.cache.stats, list(self.cache.figures().values())
        assert stats.hits == sum(figures.hits for figures in each)
        assert stats.misses == sum(figures.misses for figures in each)
        assert stats.evictions == sum(figures.evictions for figures in each)


TestGrowingValues = GrowingValues.TestCase


@given(histories=st.lists(st.lists(sizes, max_size=30), min_size=2, max_size=3))
def test_values_that_grow_in_several_threads_stay_within_the_budget(
    histories: list[list[int]],
) -> None:
    cache = ByteCache(100)

    def live(number: int, history: list[int]) -> None:
        for step, nbytes in enumerate(history):
            key = CacheKey("file", str(number), step % 3)
            cache.get_or_load(key, partial(Grower, 1)).use(nbytes)
            assert cache.stats.used_bytes <= 100

    with ThreadPoolExecutor(len(histories)) as pool:
        for _ in pool.map(live, range(len(histories)), histories):
            pass
    assert cache.stats.used_bytes == sum(f.used_bytes for f in cache.figures().values())
