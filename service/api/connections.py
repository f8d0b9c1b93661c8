"""The connections of clients: how many there are, and which of them have stalled."""

from __future__ import annotations

import asyncio
from typing import Protocol

CONNECTIONS = "lance_serve.connections"
"""Where the server's protocol finds them, in the state of the application."""

_LOOK_EVERY = 8
"""Looks in the time after which a connection counts as stalled."""
_LONGEST_PAUSE_S = 5.0


class Connection(Protocol):
    """One connection, as the server keeps it."""

    def has_stalled_since(self, then_s: float) -> bool:
        """Tell whether it is in the middle of something and has got no further since."""

    def drop(self) -> None:
        """Close it at once."""


class Connections:
    """All open connections of a worker; belongs to the event loop.

    Parameters
    ----------
    max_open
        More are not taken.
    stall_s
        Seconds without progress after which one is closed.
    """

    def __init__(self, max_open: int, stall_s: float) -> None:
        self._max_open = max_open
        self._stall_s = stall_s
        self._open: set[Connection] = set()
        self.num_refused = 0
        self.num_stalled = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> bool:
        """Take a connection in, or tell that there are too many."""
        if len(self._open) >= self._max_open:
            self.num_refused += 1
            return False
        self._open.add(connection)
        return True

    def discard(self, connection: Connection) -> None:
        """Let go of a connection that was closed."""
        self._open.discard(connection)

    def drop_stalled(self, now_s: float) -> None:
        """Close those that have got no further for too long."""
        for each in [c for c in self._open if c.has_stalled_since(now_s - self._stall_s)]:
            self.num_stalled += 1
            each.drop()

    async def watch(self) -> None:
        """Look after stalled connections until cancelled.

        One look at all of them costs less than a timer for each that every piece of data resets.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(self._stall_s / _LOOK_EVERY, _LONGEST_PAUSE_S))
            self.drop_stalled(loop.time())
