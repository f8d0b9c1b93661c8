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
        jobs.submit(job)
    jobs.drain()
    jobs.close()
    assert found == [1, 2, 3]


def test_few_jobs_run_ahead_of_the_results() -> None:
    found: list[int] = []
    jobs = OrderedJobs(found.append, num_threads=1, max_waiting=2)
    for number in range(5):
        jobs.submit(partial(int, number))
        assert number - len(found) < 2
    jobs.close()


def test_an_error_of_a_job_reaches_the_caller() -> None:
    def fail() -> None:
        raise KeyError

    jobs: OrderedJobs[None] = OrderedJobs(lambda _: None, num_threads=1, max_waiting=1)
    jobs.submit(fail)
    with pytest.raises(KeyError):
        jobs.drain()
    jobs.close()
