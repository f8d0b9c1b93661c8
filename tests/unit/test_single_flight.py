"""One load per key at a time, whatever the threads do."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lance_core.cache.single_flight import SingleFlight
from lance_core.errors import DeadlineExceededError, LanceError, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WAIT_S = 10


@pytest.fixture
def flight() -> SingleFlight[str, int]:
    return SingleFlight()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def failing_load() -> int:
    raise StoreUnavailableError("the store is away")


def until(condition: Callable[[], bool]) -> None:
    """Wait, without sleeping long, for another thread to reach a state."""
    tick = threading.Event()
    for _ in range(WAIT_S * 1000):
        if condition():
            return
        tick.wait(0.001)
    pytest.fail("another thread did not get there")


class HeldLoad:
    """A load that starts, says so, and ends when told, with a value or an error."""

    def __init__(self, outcome: int | LanceError) -> None:
        self.started = threading.Event()
        self.finish = threading.Event()
        self.calls = 0
        self._outcome = outcome

    def __call__(self) -> int:
        self.calls += 1
        self.started.set()
        assert self.finish.wait(WAIT_S)
        if isinstance(self._outcome, LanceError):
            raise self._outcome
        return self._outcome


def test_a_failed_load_reaches_its_caller_and_the_next_one_tries_again(
    flight: SingleFlight[str, int],
) -> None:
    with pytest.raises(StoreUnavailableError):
        flight.do("v3/idx/p17", failing_load)
    assert flight.do("v3/idx/p17", lambda: 7) == 7


def test_who_asks_during_a_load_gets_its_value(
    flight: SingleFlight[str, int], pool: ThreadPoolExecutor
) -> None:
    load = HeldLoad(7)
    first = pool.submit(flight.do, "a", load)
    assert load.started.wait(WAIT_S)
    others = [pool.submit(flight.do, "a", failing_load) for _ in range(3)]
    until(lambda: len(flight._waiting) == 3)
    load.finish.set()
    assert [future.result(WAIT_S) for future in (first, *others)] == [7] * 4
    assert load.calls == 1


def test_who_asks_during_a_load_gets_its_error(
    flight: SingleFlight[str, int], pool: ThreadPoolExecutor
) -> None:
    load = HeldLoad(StoreUnavailableError("the store is away"))
    futures = [pool.submit(flight.do, "a", load)]
    assert load.started.wait(WAIT_S)
    futures.append(pool.submit(flight.do, "a", lambda: 1))
    until(lambda: len(flight._waiting) == 1)
    load.finish.set()
    for future in futures:
        with pytest.raises(StoreUnavailableError):
            future.result(WAIT_S)


def test_the_deadline_of_the_first_caller_does_not_end_those_who_wait(
    flight: SingleFlight[str, int], pool: ThreadPoolExecutor
) -> None:
    load = HeldLoad(DeadlineExceededError("out of time"))
    first = pool.submit(flight.do, "a", load)
    assert load.started.wait(WAIT_S)
    second = pool.submit(flight.do, "a", lambda: 1)
    until(lambda: len(flight._waiting) == 1)
    load.finish.set()
    with pytest.raises(DeadlineExceededError):
        first.result(WAIT_S)
    assert second.result(WAIT_S) == 1


def test_many_keys_are_loaded_in_one_call_without_those_under_way(
    flight: SingleFlight[str, int], pool: ThreadPoolExecutor
) -> None:
    asked: list[list[str]] = []

    def load_many(keys: list[str]) -> list[int]:
        asked.append(keys)
        return [ord(key) for key in keys]

    load = HeldLoad(2)
    first = pool.submit(flight.do, "b", load)
    assert load.started.wait(WAIT_S)
    many = pool.submit(flight.do_many, ["a", "b", "c", "a"], load_many)
    until(lambda: len(flight._waiting) == 1)
    load.finish.set()
    assert many.result(WAIT_S) == {"a": 97, "b": 2, "c": 99}
    assert first.result(WAIT_S) == 2
    assert asked == [["a", "c"]]


def test_nothing_is_under_way_afterwards(flight: SingleFlight[str, int]) -> None:
    flight.do("a", lambda: 1)
    with pytest.raises(StoreUnavailableError):
        flight.do("b", failing_load)
    assert len(flight) == 0
    assert flight._waiting == {}


def test_a_load_that_gives_too_few_values_fails_and_leaves_nothing_behind(
    flight: SingleFlight[str, int],
) -> None:
    with pytest.raises(ValueError, match="zip"):
        flight.do_many(["a", "b"], lambda _: [1])
    assert len(flight) == 0


def test_a_load_may_ask_for_another_key(flight: SingleFlight[str, int]) -> None:
    assert flight.do("partition", lambda: 1 + flight.do("header", lambda: 10)) == 11


def test_a_load_that_asks_for_its_own_key_does_not_wait_for_itself(
    flight: SingleFlight[str, int],
) -> None:
    assert flight.do("a", lambda: 1 + flight.do("a", lambda: 10)) == 11


def test_loads_that_ask_for_each_other_do_not_wait_for_ever(
    flight: SingleFlight[str, int], pool: ThreadPoolExecutor
) -> None:
    both_started = threading.Barrier(2, timeout=WAIT_S)

    def load_after(other: str) -> int:
        both_started.wait()
        return 1 + flight.do(other, lambda: 10)

    first = pool.submit(flight.do, "a", lambda: load_after("b"))
    second = pool.submit(flight.do, "b", lambda: load_after("a"))
    # One of the two closes the circle and loads for itself; the other waits for it.
    assert sorted([first.result(WAIT_S), second.result(WAIT_S)]) == [11, 12]


def test_threads_with_overlapping_keys_in_opposite_order_all_finish(
    flight: SingleFlight[str, int], pool: ThreadPoolExecutor
) -> None:
    def load_many(keys: Sequence[str]) -> list[int]:
        return [ord(key) for key in keys]

    orders = [list("abcdefgh"), list("hgfedcba")] * 50
    expected = {key: ord(key) for key in "abcdefgh"}
    results = pool.map(lambda keys: flight.do_many(keys, load_many), orders)
    assert all(result == expected for result in results)
