"""Jobs on threads with results in order."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from lance_core.file.ordered_jobs import OrderedJobs


def test_results_come_in_the_order_of_submission() -> None:
    found: list[int] = []
    second_ran = threading.Event()

    def first() -> int:
        second_ran.wait()
        return 1

    def second() -> int:
        second_ran.set()
        return 2

    jobs = OrderedJobs(found.append, num_threads=2, max_waiting=2)
    for job in (first, second, lambda: 3):
        jobs.submit(job, is_short=False)
    jobs.drain()
    jobs.close()
    assert found == [1, 2, 3]


def test_few_jobs_run_ahead_of_the_results() -> None:
    found: list[int] = []
    jobs = OrderedJobs(found.append, num_threads=1, max_waiting=2)
    for number in range(5):
        jobs.submit(partial(int, number), is_short=False)
        assert number - len(found) < 2
    jobs.close()


def test_an_error_of_a_job_reaches_the_caller() -> None:
    def fail() -> None:
        raise KeyError

    jobs: OrderedJobs[None] = OrderedJobs(lambda _: None, num_threads=1, max_waiting=1)
    jobs.submit(fail, is_short=False)
    with pytest.raises(KeyError):
        jobs.drain()
    jobs.close()


def test_short_jobs_are_done_by_the_caller_and_keep_their_order() -> None:
    found: list[tuple[int, int]] = []
    may_end = threading.Event()

    def long() -> tuple[int, int]:
        may_end.wait()
        return 1, threading.get_ident()

    jobs = OrderedJobs(found.append, num_threads=1, max_waiting=3)
    jobs.submit(lambda: (0, threading.get_ident()), is_short=True)
    jobs.submit(long, is_short=False)
    jobs.submit(lambda: (2, threading.get_ident()), is_short=True)
    may_end.set()
    jobs.drain()
    jobs.close()
    assert [number for number, _ in found] == [0, 1, 2]
    here = threading.get_ident()
    assert [thread == here for _, thread in found] == [True, False, True]
