"""The least that HTTP costs in Python: an ASGI application that reads a body and answers bytes.

``python -m uvicorn benchmarks.floor_app:app``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Message = dict[str, Any]

ANSWER_BYTES = 600
"""About what ten ids and distances take as JSON."""
_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-length", b"%d" % ANSWER_BYTES), (b"content-type", b"application/json")],
}
_BODY = {"type": "http.response.body", "body": b" " * ANSWER_BYTES}


async def app(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Answer any request alike."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body", False):
        pass
    await send(_START)
    await send(_BODY)
