"""One send for the head and the body of an answer.

The server writes them one after the other, and its loop sends each write at once: two system calls
on the event loop, two packets, and a client that is woken for half an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class JoinedWrites:
    """A transport that holds a piece until the next one comes, or for one turn of the loop.

    Everything but writing and closing is the given transport's.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: bytes | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport has
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send ``data`` behind what is held, or hold it."""
        if self._held is None:
            self._held = data
            self._loop.call_soon(self._release)
        else:
            held, self._held = self._held, None
            self._transport.writelines([held, data])

    def close(self) -> None:
        """Send what is held, then close."""
        self._release()
        self._transport.close()

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._transport.write(held)
