"""Work done ahead of its use."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lance_core.io.ahead import ahead
from lance_core.io.metering import current_meter, metered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def numbers(count: int, asked: list[int]) -> Iterator[Callable[[], int]]:
    for number in range(count):
        asked.append(number)
        yield partial(int, number)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_results_come_in_the_order_of_the_tasks(depth: int) -> None:
    assert list(ahead(numbers(20, []), num_threads=2, depth=lambda: depth)) == list(range(20))


def test_no_more_is_asked_for_than_may_exist_at_one_time() -> None:
    asked: list[int] = []
    results = ahead(numbers(20, asked), num_threads=2, depth=lambda: 2)
    assert next(results) == 0
    assert asked == [0]
    assert next(results) == 1
    assert asked == [0, 1, 2, 3]
    results.close()  # type: ignore[attr-defined]  # it is a generator


def test_a_failure_is_raised_in_its_place_and_ends_the_threads() -> None:
    def fail() -> int:
        raise ValueError("bad")

    before = threading.active_count()
    results = ahead(iter([lambda: 1, lambda: 2, fail, lambda: 4]), num_threads=2, depth=lambda: 2)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="bad"):
        next(results)
    assert threading.active_count() == before


def test_closing_early_ends_the_threads() -> None:
    before = threading.active_count()
    results = ahead(numbers(50, []), num_threads=2, depth=lambda: 4)
    next(results)
    next(results)
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert threading.active_count() == before


@pytest.mark.parametrize("depth", [0, 2])
def test_what_the_threads_read_is_counted_for_the_caller(depth: int) -> None:
    def read() -> int:
        current_meter().bytes_read += 10
        return 0

    with metered() as meter:
        list(ahead(iter([read] * 5), num_threads=2, depth=lambda: depth))
    assert meter.bytes_read == 50
