"""Notices callers that go away, so that work for nobody stops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from starlette.types import Receive

_WATCH_AFTER_S = 0.05


class ClientWatch:
    """Watches a connection while an answer is made.

    The watch begins after 50 ms: a task per request would cost short ones more than it saves. Enter
    it after the body was read. ``has_left`` may be read from any thread.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._has_left = False
        self._task: asyncio.Task[None] | None = None

    def has_left(self) -> bool:
        """Say whether the caller is known to have gone."""
        return self._has_left

    def __enter__(self) -> ClientWatch:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_WATCH_AFTER_S, self._begin, loop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._task = loop.create_task(self._watch())

    async def _watch(self) -> None:
        while not self._has_left:
            message = await self._receive()
            self._has_left = message["type"] == "http.disconnect"
