"""Request lines and headers: bounded, and refused in the form of every other error."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson
import pytest

from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.live_server import live_server

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB = 1 << 10
GET = b"GET /health HTTP/1.1\r\nhost: x\r\n"
POST = b"POST /v1/table/t1/query HTTP/1.1\r\nhost: x\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    store = FakeStore(t1=FakeDataset(make_table()))
    root = tmp_path_factory.mktemp("root")
    with live_server(root, open_dataset=store, load_kernels=lambda: None) as url:
        yield url


def exchange(url: str, *pieces: bytes, is_all: Any = True) -> Any:
    """Send, and return status, headers and body of all there is until the server closes."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port or 80), timeout=10) as connection:
        for piece in pieces:
            connection.sendall(piece)
        if is_all:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while (piece := connection.recv(65536)) != b"":
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    return int(line.split()[1]), dict(field.split(": ", 1) for field in fields), body


def assert_refused(answer: Any, status: Any) -> None:
    got, headers, body = answer
    problem = orjson.loads(body)
    assert (got, problem["status"], problem["code"]) == (status, status, 13)
    assert headers["content-type"] == "application/json"
    assert headers["connection"] == "close"
    assert headers["x-request-id"] == problem["instance"]
    assert headers["phalanx-version"] == "0.3.0"


@pytest.mark.parametrize(
    "pieces",
    [
        [GET + b"a: " + b"x" * 65 * KIB + b"\r\n\r\n"],
        [GET + b"a: b\r\n" * 12 * KIB + b"\r\n"],
        [b"GET /" + b"x" * 65 * KIB + b" HTTP/1.1\r\nhost: x\r\n\r\n"],
        [b"GET /" + b"x" * 64 * KIB + b" HTTP/1.1\r\nhost: x\r\n\r\n"],
        [b"GET /health?" + b"x" * 65 * KIB + b" HTTP/1.1\r\n\r\n"],
        [GET, *[b"a: " + b"x" * 10 * KIB + b"\r\n"] * 7, b"\r\n"],
        [GET + b"a: ", *[b"x" * 1024 * KIB] * 50],
        [b"GET /", *[b"x" * 1024 * KIB] * 50],
        [CHUNKED + b"2\r\n{}\r\n0\r\n", *[b"t: " + b"x" * 10 * KIB + b"\r\n"] * 40, b"\r\n"],
        [CHUNKED + b"2;", *[b"x" * 64 * KIB] * 9],
    ],
    ids=[
        "one header",
        "many headers",
        "path",
        "path of 64 KiB",
        "query string",
        "in pieces",
        "endless header",
        "endless path",
        "trailers",
        "chunk extension",
    ],
)
def test_a_head_beyond_the_limit_gives_431_and_the_connection_ends(url: str, pieces: Any) -> None:
    answer = exchange(url, *pieces)
    assert_refused(answer, 431)
    assert "65536" in orjson.loads(answer[2])["error"]


@pytest.mark.parametrize(
    "request_bytes",
    [b"nonsense\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\na b: c\r\n\r\n"],
)
def test_what_is_no_http_gives_400(url: str, request_bytes: bytes) -> None:
    assert_refused(exchange(url, request_bytes), 400)


def test_a_head_just_below_the_limit_is_read(url: str) -> None:
    filler = b"x" * (64 * KIB - len(GET) - len(b"connection: close\r\na: \r\n\r\n"))
    status, _, _ = exchange(url, GET + b"connection: close\r\na: " + filler + b"\r\n\r\n")
    assert status == 200


def test_bodies_and_many_requests_on_a_connection_do_not_count(url: str) -> None:
    padding = b" " * 300 * KIB
    body = b'{"k": 1}' + padding
    whole = POST + b"content-length: %d\r\n\r\n" % len(body) + body
    in_chunks = CHUNKED + (b"1\r\n \r\n" * 60 * KIB) + b"2\r\n{}\r\n0\r\n\r\n"
    small = (GET + b"a: " + b"x" * 100 + b"\r\n\r\n") * 2000
    last = GET + b"connection: close\r\n\r\n"
    for requests in (whole, in_chunks, small):
        status, _, rest = exchange(url, requests + last, is_all=False)
        assert status == 200
        assert rest.endswith(b'{"status":"ok"}')
        assert b"HTTP/1.1 4" not in rest


def test_a_long_head_behind_a_request_takes_no_answer_from_it(url: str) -> None:
    status, _, rest = exchange(url, GET + b"\r\n", b"GET /" + b"x" * 1024 * KIB)
    assert status == 200
    assert rest.startswith(b'{"status":"ok"}')
