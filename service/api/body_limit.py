"""Which request bodies are taken: a quick, readable refusal instead of a broken connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from service.api.errors import BodyTooLargeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Message, Receive

LIMIT_NAME = "max_body_bytes"
_ASKED = "the number of bytes in the body"
_LINGER_S = 5.0
_PLAIN = b"identity"


def require_small_body(headers: Mapping[bytes, bytes], limit: int) -> None:
    """Refuse a body by its announced length, before a byte of it is read."""
    announced = headers.get(b"content-length")
    if announced is not None and int(announced) > limit:
        raise BodyTooLargeError(LIMIT_NAME, limit, int(announced), asked=_ASKED)


def require_plain_body(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body that is compressed: nothing here would read it as what it is."""
    coding = headers.get(b"content-encoding", _PLAIN).strip()
    if coding.lower() != _PLAIN:
        name = coding.decode("latin-1")
        raise InvalidRequestError(f"content-encoding: no body is taken as {name}; send it as it is")


class BoundedBody:
    """Counts a body whose length was not announced."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._num_bytes = 0

    async def receive(self) -> Message:
        """Return the next message, or raise ``BodyTooLargeError``."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._num_bytes += len(message.get("body", b""))
            if self._num_bytes > self._limit:
                raise BodyTooLargeError(LIMIT_NAME, self._limit, self._num_bytes, asked=_ASKED)
        return message


async def discard_body(receive: Receive) -> None:
    """Read on for a while and keep nothing.

    Many clients send their whole body before they look at the answer. Closing under them turns the
    413 that was sent into a connection reset, and not reading makes them wait for ever.
    """
    try:
        async with asyncio.timeout(_LINGER_S):
            more = True
            while more:
                message = await receive()
                more = message["type"] == "http.request" and message.get("more_body", False)
    except TimeoutError:
        return
