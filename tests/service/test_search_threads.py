"""Lanes: own threads behind a bounded queue."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from service.api.errors import BusyError
from service.api.search_threads import Lane

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def lane() -> Iterator[Any]:
    lane = Lane("test", num_threads=1, max_waiting=2)
    yield lane
    lane.stop()


async def test_a_call_runs_on_a_thread_of_the_lane(lane: Lane) -> None:
    lane.start()
    assert await lane.run(lambda: threading.current_thread().name) == "test-0"


async def test_an_error_reaches_the_caller_and_the_thread_lives_on(lane: Lane) -> None:
    lane.start()
    for error in (KeyError("x"), SystemExit(1), StopAsyncIteration()):

        def fail(error: BaseException = error) -> None:
            raise error

        with pytest.raises(type(error)):
            await lane.run(fail)
    assert await lane.run(lambda: 7) == 7


async def test_calls_wait_until_the_threads_start(lane: Lane) -> None:
    waiting = asyncio.create_task(lane.run(lambda: 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    lane.start()
    assert await waiting == 1


async def test_a_full_queue_refuses(lane: Lane) -> None:
    waiting = [asyncio.create_task(lane.run(lambda: 1)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(BusyError, match="2 requests"):
        await lane.run(lambda: 1)
    lane.start()
    assert await asyncio.gather(*waiting) == [1, 1]


async def test_a_call_that_nobody_waits_for_any_more_never_runs(lane: Lane) -> None:
    ran = []
    forgotten = asyncio.create_task(lane.run(lambda: ran.append(1)))
    await asyncio.sleep(0)
    forgotten.cancel()
    await asyncio.gather(forgotten, return_exceptions=True)
    lane.start()
    await lane.run(lambda: None)
    assert ran == []


def test_a_loop_that_was_closed_does_no_harm() -> None:
    lane = Lane("test", num_threads=1, max_waiting=2)
    go_on = threading.Event()

    async def leave() -> None:
        asyncio.get_running_loop().create_task(lane.run(go_on.wait))
        await asyncio.sleep(0.01)

    lane.start()
    asyncio.run(leave())
    go_on.set()
    assert asyncio.run(lane.run(lambda: 3)) == 3
    lane.stop()
