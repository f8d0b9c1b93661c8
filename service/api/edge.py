"""The outermost layer: what happens to every request, whatever its path.

Request id, dialect, key, body limit, common headers, error answers and the log line. A plain ASGI
class: it costs microseconds where a framework's middleware costs a task per request.
"""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from lance_core.errors import CancelledByClientError
from service.api.body_limit import (
    BoundedBody,
    discard_body,
    require_plain_body,
    require_small_body,
)
from service.api.errors import BodyTooLargeError, UnknownSigningKeyError
from service.api.exchange import Dialect, Exchange, attach
from service.api.problems import CLIENT_CLOSED_REQUEST, to_problem
from service.telemetry.metrics import UNKNOWN_OPERATION
from service.telemetry.request_log import RequestRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from service.api.access import Access
    from service.api.problems import Problem
    from service.telemetry.metrics import Metrics
    from service.telemetry.tracing import Tracing

FEATURE_LEVEL = b"0.3.0"
"""What LanceDB's clients switch features on by: three numbers, else they fail."""

_ID_BYTES = 16
_IDS_AT_ONCE = 256
_TRACE_PARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*")
"""W3C Trace Context, section 3.2."""
_TRACE_ID = slice(3, 35)
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class Edge:
    """Wraps the application; all errors end here."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        metrics: Metrics,
        tracing: Tracing | None,
        max_body_bytes: int,
    ) -> None:
        self._app = app
        self._access = access
        self._metrics = metrics
        self._tracing = tracing
        self._max_body_bytes = max_body_bytes
        self._ids = _random_ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = self._begin(scope)
        if scope["method"] == "HEAD":
            # What GET would answer; the HTTP server leaves the body out.
            scope = {**scope, "method": "GET"}
        record, metrics = exchange.record, self._metrics
        sender = _Sender(send, exchange)
        metrics.num_running += 1
        try:
            if self._tracing is None:
                await self._run(scope, receive, sender, exchange)
            else:
                with self._tracing.request(record, exchange.headers):
                    await self._run(scope, receive, sender, exchange)
        finally:
            metrics.num_running -= 1
            record.finish()
            metrics.observe(record, _operation_of(scope))
            record.write()

    async def _run(
        self, scope: Scope, receive: Receive, sender: _Sender, exchange: Exchange
    ) -> None:
        try:
            await self._recognize(scope, exchange)
            require_small_body(exchange.headers, self._max_body_bytes)
            require_plain_body(exchange.headers)
            body = BoundedBody(receive, self._max_body_bytes)
            await self._app(scope, body.receive, sender.send)
        except CancelledByClientError as error:
            exchange.record.error = error
            exchange.record.status = CLIENT_CLOSED_REQUEST
        except Exception as error:
            exchange.record.error = error
            if sender.has_started:
                # The server closes the connection without an end marker: the answer is visibly
                # incomplete, which is all that can be told after the first byte.
                raise
            await sender.answer(to_problem(error, exchange.request_id))
            if isinstance(error, BodyTooLargeError):
                await discard_body(receive)
            await sender.finish()

    async def _recognize(self, scope: Scope, exchange: Exchange) -> None:
        """Find out who asks, and whether they may ask this at all."""
        path, query = scope["path"], scope["query_string"]
        try:
            caller = self._access.caller_of(path, query, exchange.headers)
        except UnknownSigningKeyError:
            await asyncio.to_thread(self._access.refresh)
            caller = self._access.caller_of(path, query, exchange.headers)
        exchange.caller = caller
        exchange.record.caller = caller.name

    def _begin(self, scope: Scope) -> Exchange:
        """Read what the edge needs, and put the undecoded path without its slash in its place.

        Routes then match raw segments: an encoded slash in a name separates nothing, and both forms
        of a path reach one route without a redirect (an upload could not follow one).
        """
        headers = dict(scope["headers"])
        raw_path: bytes | None = scope.get("raw_path")
        path = quote(scope["path"]) if raw_path is None else raw_path.decode("latin-1")
        dialect = Dialect.NAMESPACE
        if path.endswith("/") and path != "/":
            dialect = Dialect.LANCEDB
            path = path[:-1]
        scope["path"] = path
        given = headers.get(b"x-request-id", b"")
        is_usable = _REQUEST_ID.fullmatch(given) is not None
        request_id = given.decode() if is_usable else next(self._ids)
        record = RequestRecord(request_id, scope["method"], path)
        parent = headers.get(b"traceparent")
        if parent is not None and _TRACE_PARENT.fullmatch(parent) is not None:
            record.trace_id = parent[_TRACE_ID].decode()
        client = scope.get("client")
        record.client = None if client is None else client[0]
        exchange = Exchange(request_id, headers, dialect, record)
        attach(scope, exchange)
        return exchange


class _Sender:
    """Sends the answer, with the headers that every answer carries."""

    def __init__(self, send: Send, exchange: Exchange) -> None:
        self._send = send
        self._exchange = exchange
        self.has_started = False

    async def send(self, message: Message) -> None:
        """Pass a message on; the first one gets the common headers."""
        if message["type"] == "http.response.start":
            self.has_started = True
            self._exchange.record.status = message["status"]
            message["headers"] = [
                *message["headers"],
                (b"phalanx-version", FEATURE_LEVEL),
                (b"x-request-id", self._exchange.request_id.encode()),
            ]
        await self._send(message)

    async def answer(self, problem: Problem) -> None:
        """Send an error answer whole; the connection stays open until ``finish``."""
        self._exchange.record.code = problem.code
        body = problem.body(self._exchange.request_id)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *problem.headers,
        ]
        await self.send(
            {"type": "http.response.start", "status": problem.status, "headers": headers}
        )
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def finish(self) -> None:
        """End the answer."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _operation_of(scope: Scope) -> str:
    """Return the name of the function that answered."""
    endpoint = scope.get("endpoint")
    return UNKNOWN_OPERATION if endpoint is None else getattr(endpoint, "__name__", "")


def _random_ids() -> Iterator[str]:
    """Yield UUIDs of version 4; drawing for many at once saves a system call for each."""
    while True:
        drawn = os.urandom(_IDS_AT_ONCE * _ID_BYTES)
        for start in range(0, len(drawn), _ID_BYTES):
            yield _to_uuid(drawn[start : start + _ID_BYTES].hex())


def _to_uuid(digits: str) -> str:
    """Return 32 random hex digits in the form of a UUID of version 4; the class costs much more."""
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
