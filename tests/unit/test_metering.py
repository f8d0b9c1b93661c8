"""The meter of a query counts that query and no other."""

from __future__ import annotations

import contextvars
import threading

import pytest

from lance_core.io.metering import QueryMeter, current_meter, metered


def test_what_is_counted_inside_the_block_is_in_its_meter() -> None:
    with metered() as meter:
        current_meter().bytes_read += 7
        current_meter().cache_hits += 1
    assert meter == QueryMeter(bytes_read=7, cache_hits=1)


def test_outside_of_any_block_counting_goes_nowhere() -> None:
    current_meter().bytes_read += 7
    assert current_meter() == QueryMeter()


def test_an_inner_block_counts_for_itself_only() -> None:
    with metered() as outer:
        current_meter().bytes_read += 1
        with metered() as inner:
            current_meter().bytes_read += 10
        current_meter().bytes_read += 100
    assert (outer.bytes_read, inner.bytes_read) == (101, 10)


def test_an_error_ends_the_block() -> None:
    with pytest.raises(KeyError), metered():
        raise KeyError
    current_meter().bytes_read += 7
    assert current_meter() == QueryMeter()


def test_another_thread_counts_only_in_a_copy_of_the_context() -> None:
    def read() -> None:
        current_meter().bytes_read += 5

    with metered() as meter:
        context = contextvars.copy_context()
        for work in (read, lambda: context.run(read)):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert meter.bytes_read == 5
