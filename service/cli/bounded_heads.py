"""The server's HTTP protocol, with a bound on what it keeps of requests before a route sees them.

The server collects the request line and all headers, and the trailers of chunked bodies, however
long they are: one connection could fill the memory. What is no HTTP is refused here too, in the
same form as every other error.
"""

from __future__ import annotations

import array
import fcntl
import termios
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from service.api.connections import CONNECTIONS
from service.api.edge import FEATURE_LEVEL
from service.api.problems import Problem
from service.cli.joined_writes import JoinedWrites
from service.telemetry.request_log import RequestRecord

if TYPE_CHECKING:
    import asyncio

    from service.api.connections import Connections

MAX_HEAD_BYTES = 64 << 10
_CODE, _BUSY_CODE = 13, 21
_LINGER_S = 5.0
_LINE_BYTES = len(b"  HTTP/1.1\r\n")
_FIELD_BYTES = len(b": \r\n")

_TOO_LARGE = Problem(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    _CODE,
    f"the request line and the headers together are longer than {MAX_HEAD_BYTES} bytes",
)
_TOO_MANY = Problem(
    HTTPStatus.TOO_MANY_REQUESTS,
    _BUSY_CODE,
    "too many connections are open (setting max_connections)",
    ((b"retry-after", b"1"),),
)
_MALFORMED = Problem(HTTPStatus.BAD_REQUEST, _CODE, "this is no valid HTTP request")


class _HeadTooLargeError(Exception):
    """Makes the parser stop."""


class BoundedHeads(HttpToolsProtocol):
    """Answers 431 and closes when a head, or trailers, exceed 64 KiB.

    Counted is what came since the last piece of a body or the last complete head. A head that
    begins in the middle of a read can be longer by what that read holds of it.
    """

    _progress_s = 0.0
    _unsent_bytes = 0
    _unsent_since_s = 0.0
    _pending_bytes = 0
    _is_in_body = False
    _is_too_large = False
    _is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with answers sent whole."""
        joined = JoinedWrites(cast("asyncio.Transport", transport), self.loop)
        super().connection_made(cast("asyncio.Transport", joined))
        self._progress_s = self.loop.time()
        known: Connections | None = self.app_state.get(CONNECTIONS)
        if known is not None and not known.add(self):
            self._refuse(_TOO_MANY)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End whatever is going on."""
        known: Connections | None = self.app_state.get(CONNECTIONS)
        if known is not None:
            known.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, unless the connection was refused already."""
        if self._is_refused:
            return  # the caller is still sending; closing under it would take the answer away
        self._progress_s = self.loop.time()
        self._pending_bytes += len(data)
        super().data_received(data)
        if self._pending_bytes > MAX_HEAD_BYTES and not self._is_refused:
            self._refuse(_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Begin the request, if its head is short enough."""
        if self._pending_bytes > MAX_HEAD_BYTES and self._head_bytes() > MAX_HEAD_BYTES:
            self._is_too_large = True
            raise _HeadTooLargeError
        self._pending_bytes = 0
        self._is_in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of the body."""
        self._pending_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request; the next head begins here."""
        self._pending_bytes = 0
        self._is_in_body = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser gave up on."""
        self._refuse(_TOO_LARGE if self._is_too_large else _MALFORMED)

    def has_stalled_since(self, then_s: float) -> bool:
        """Tell whether half a request has come, or half an answer gone, and no more since then.

        Connections between two requests, and those of answers that are being made, wait for us.
        """
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes > 0:
            unsent_bytes += _bytes_in_kernel(self.transport)
        if unsent_bytes != self._unsent_bytes:
            self._unsent_bytes, self._unsent_since_s = unsent_bytes, self.loop.time()
        if unsent_bytes > 0:
            return self._unsent_since_s < then_s
        is_sending = self._is_in_body and not self.flow.read_paused
        if not (is_sending or self._pending_bytes > 0 or self.cycle is None):
            return False
        return self._progress_s < then_s

    def drop(self) -> None:
        """Close the connection without sending what is left."""
        self.transport.abort()

    def _head_bytes(self) -> int:
        fields = sum(len(name) + len(value) + _FIELD_BYTES for name, value in self.headers)
        return len(self.parser.get_method()) + len(self.url) + _LINE_BYTES + fields

    def _refuse(self, problem: Problem) -> None:
        """Answer if it is this request's turn, then read on for a while and close."""
        self._is_refused = True
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and cycle.response_complete:
            cycle = None
        if cycle is not None and (cycle.response_started or not self._is_in_body):
            # An earlier request is still being answered, or this one already.
            self.transport.close()
            return
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        request_id = str(uuid.uuid4())
        record = RequestRecord(request_id, "-", "-", status=problem.status, code=problem.code)
        self.transport.write(_to_bytes(problem, request_id))
        self.flow.resume_reading()
        self.loop.call_later(_LINGER_S, self.transport.close)
        record.write()


def _bytes_in_kernel(transport: asyncio.Transport) -> int:
    """Return what the system holds of an answer; it takes more only when much of that has left."""
    held = array.array("i", [0])
    try:
        fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, held)
    except OSError:  # closed meanwhile
        return 0
    return held[0]


def _to_bytes(problem: Problem, request_id: str) -> bytes:
    body = problem.body(request_id)
    headers = [
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
        b"phalanx-version: " + FEATURE_LEVEL,
        b"x-request-id: " + request_id.encode(),
        *(name + b": " + value for name, value in problem.headers),
    ]
    return STATUS_LINE[problem.status] + b"\r\n".join([*headers, b"", body])
