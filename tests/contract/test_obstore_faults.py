"""How the faults of a remote store appear, seen against an S3 endpoint that answers as told."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from lance_core.errors import (
    CorruptFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
    UnsupportedFeatureError,
)
from lance_core.io.obstore_store import ObStore

if TYPE_CHECKING:
    from collections.abc import Iterator

OBJECT = b"0123456789"


class Endpoint(ThreadingHTTPServer):
    """Serves ``OBJECT`` under every key, or ``status`` without content; notes the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status = 200
        self.requests: list[tuple[str, str, str | None]] = []

    def store(self, **options: str) -> ObStore:
        return ObStore(
            "s3://bucket/sets",
            {
                "endpoint": f"http://127.0.0.1:{self.server_port}",
                "region": "us-east-1",
                "access_key_id": "id",
                "secret_access_key": "secret",
                "allow_http": "true",
                "client_max_retries": "0",
                **options,
            },
        )


class Answer(BaseHTTPRequestHandler):
    server: Endpoint
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.server.requests.append((self.command, self.path, wanted))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.status != 200:
            self._answer(self.server.status, b"", {})
        elif wanted is None:
            self._answer(200, OBJECT, {})
        else:
            self._answer_range(*map(int, wanted.removeprefix("bytes=").split("-")))

    do_HEAD = do_PUT = do_GET  # noqa: N815 - names that http.server looks for

    def _answer_range(self, first: int, last: int) -> None:
        if first >= len(OBJECT):
            self._answer(416, b"", {})
            return
        body = OBJECT[first : last + 1]
        place = f"bytes {first}-{first + len(body) - 1}/{len(OBJECT)}"
        self._answer(206, body, {"Content-Range": place})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Fri, 27 Nov 2026 12:00:00 GMT")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def running() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with running() as server:
        yield server


def test_a_range_is_one_request_for_just_these_bytes(endpoint: Endpoint) -> None:
    assert bytes(endpoint.store().get_range("t.lance/a", 2, 5)) == b"234"
    assert endpoint.requests == [("GET", "/bucket/sets/t.lance/a", "bytes=2-4")]


def test_an_empty_range_is_no_request(endpoint: Endpoint) -> None:
    assert bytes(endpoint.store().get_range("a", 3, 3)) == b""
    assert endpoint.requests == []


@pytest.mark.parametrize(("start", "end"), [(5, 11), (10, 12), (50, 60)])
def test_a_range_beyond_the_end_is_corruption_and_tells_the_size(
    endpoint: Endpoint, start: int, end: int
) -> None:
    with pytest.raises(CorruptFileError, match="the file has 10"):
        endpoint.store().get_range("a", start, end)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, ObjectNotFoundError),
        (401, StoreError),
        (403, StoreError),
        (408, StoreUnavailableError),
        (429, StoreThrottledError),
        (500, StoreUnavailableError),
        (502, StoreUnavailableError),
        (503, StoreThrottledError),
        (504, StoreUnavailableError),
    ],
)
def test_a_status_becomes_the_error_that_says_what_to_do(
    endpoint: Endpoint, status: int, expected: type[StoreError]
) -> None:
    endpoint.status = status
    with pytest.raises(StoreError, match=r"s3://bucket/sets.*/t\.lance/a") as caught:
        endpoint.store().get_range("t.lance/a", 0, 4)
    assert type(caught.value) is expected


@pytest.mark.parametrize("status", [409, 412])
def test_a_lost_conditional_put_says_that_the_object_exists(
    endpoint: Endpoint, status: int
) -> None:
    endpoint.status = status
    with pytest.raises(ObjectExistsError):
        endpoint.store().put_if_absent("a", b"x")


def test_a_store_told_not_to_put_conditionally_refuses_to(endpoint: Endpoint) -> None:
    store = endpoint.store(aws_conditional_put="disabled")
    with pytest.raises(UnsupportedFeatureError, match="external manifest store"):
        store.put_if_absent("a", b"x")
    assert endpoint.requests == []


def test_a_passing_fault_is_tried_again_as_often_as_asked(endpoint: Endpoint) -> None:
    endpoint.status = 503
    with pytest.raises(StoreThrottledError):
        endpoint.store(client_max_retries="1").get_range("a", 0, 4)
    assert len(endpoint.requests) == 2


def test_a_refused_upload_says_what_to_do(endpoint: Endpoint) -> None:
    endpoint.status = 403
    with endpoint.store().open_sink("t.lance/a") as sink:
        sink.write(b"x")
        with pytest.raises(StoreError, match=r"t\.lance/a"):
            sink.finish()


def test_a_store_that_nobody_serves_is_unavailable() -> None:
    with running() as server:
        store = server.store()
    with pytest.raises(StoreUnavailableError):
        store.get_range("a", 0, 4)


def test_messages_are_one_line_without_secrets(endpoint: Endpoint) -> None:
    endpoint.status = 403
    with pytest.raises(StoreError) as caught:
        endpoint.store().head("a")
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
