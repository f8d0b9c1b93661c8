"""Random histories of a cache against a simple model, and laws that hold under threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lance_core.cache.byte_cache import ByteCache

if TYPE_CHECKING:
    from collections.abc import Hashable

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
