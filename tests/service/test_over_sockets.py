"""What only a real connection shows: refusals of large bodies, broken streams, lost callers."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from lance_core.errors import CancelledByClientError, StoreUnavailableError
from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.live_server import live_server
from tests.raw_connections import connect, read_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lance_core.query.deadline import Deadline

QUERY = "/v1/table/t1/query"
HUGE = 100_000_000
VECTOR = {"vector": [1, 2, 3, 4]}


@pytest.fixture
def store() -> Any:
    return FakeStore(t1=FakeDataset(make_table()))


@pytest.fixture
def dataset(store: FakeStore) -> Any:
    return store.datasets["t1.lance"][1]


@pytest.fixture
def url(tmp_path: Path, store: FakeStore) -> Iterator[Any]:
    with live_server(tmp_path, open_dataset=store, load_kernels=lambda: None) as url:
        yield url


def test_a_huge_body_is_refused_before_it_is_sent(url: str) -> None:
    with connect(url) as connection:
        head = f"POST {QUERY} HTTP/1.1\r\nhost: x\r\ncontent-length: {HUGE}\r\n\r\n"
        connection.sendall(head.encode())
        started = time.monotonic()
        answer = connection.recv(65536)
        assert time.monotonic() - started < 0.5
        connection.shutdown(socket.SHUT_WR)
        assert read_to_end(connection) == b""
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close\r\n" in answer
    body = orjson.loads(answer.partition(b"\r\n\r\n")[2])
    assert body["code"] == 13
    assert "67108864" in body["error"]


@pytest.mark.parametrize("is_chunked", [False, True], ids=["announced", "chunked"])
def test_a_client_that_sends_its_huge_body_first_sees_the_413(url: str, is_chunked: Any) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    body = iter([b" " * 1_000_000] * 100) if is_chunked else b" " * HUGE
    started = time.monotonic()
    connection.request("POST", QUERY, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 413
    assert orjson.loads(answer.read())["code"] == 13
    assert time.monotonic() - started < 5
    connection.close()
    assert httpx.post(url + QUERY, json=VECTOR).status_code == 200


def test_a_client_that_waits_for_permission_sends_nothing(url: str) -> None:
    with connect(url) as connection:
        head = (
            f"POST {QUERY} HTTP/1.1\r\nhost: x\r\ncontent-length: {HUGE}\r\n"
            "expect: 100-continue\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_other_requests_go_on_while_a_huge_body_arrives(url: str) -> None:
    with connect(url) as connection:
        head = f"POST {QUERY} HTTP/1.1\r\nhost: x\r\ncontent-length: {HUGE}\r\n\r\n"
        connection.sendall(head.encode() + b" " * 1_000_000)
        assert httpx.post(url + QUERY, json=VECTOR).status_code == 200


def receive_into(received: bytearray, answer: httpx.Response) -> None:
    for piece in answer.iter_raw():
        received += piece


@pytest.mark.parametrize("form", ["arrow", "arrow_stream", "json"])
def test_a_fault_in_mid_stream_leaves_the_answer_visibly_incomplete(
    url: str, store: FakeStore, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_late(number: int) -> None:
        if number == 20:
            raise StoreUnavailableError("the store went away")

    big = FakeDataset(make_table(100_000), batch_rows=4096, on_batch=fail_late)
    store.datasets["big.lance"] = {1: big}
    received = bytearray()
    path = f"{url}/v1/table/big/query?format={form}"
    with httpx.stream("POST", path, json={"k": 2**63 - 1}) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            receive_into(received, answer)
    assert len(received) > 1_000_000
    assert not received.endswith(b"ARROW1")
    assert not received.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")
    assert not received.endswith(b"}}")
    fields: dict[str, Any] = next(
        vars(record)["fields"]
        for record in caplog.records
        if record.name == "service.request" and record.levelname == "ERROR"
    )
    assert fields["table"] == "big"
    assert fields["error_type"] == "StoreUnavailableError"
    assert httpx.post(url + QUERY, json=VECTOR).status_code == 200


def test_work_stops_soon_after_the_caller_left(url: str, dataset: FakeDataset) -> None:
    running, has_stopped = threading.Event(), threading.Event()
    stopped: list[float] = []

    def search_for_ever(deadline: Deadline) -> None:
        running.set()
        try:
            while True:
                time.sleep(0.01)
                deadline.check("searching")
        except CancelledByClientError:
            stopped.append(time.monotonic())
            has_stopped.set()
            raise

    dataset.on_run = search_for_ever
    body = orjson.dumps(VECTOR)
    with connect(url) as connection:
        head = f"POST {QUERY} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert running.wait(5)
        time.sleep(0.1)
    left = time.monotonic()
    assert has_stopped.wait(5)
    assert stopped[0] - left < 0.2


def test_reading_stops_when_the_caller_leaves_a_stream(url: str, store: FakeStore) -> None:
    read: list[int] = []
    big = FakeDataset(make_table(1_000_000), batch_rows=4096, on_batch=read.append)
    store.datasets["big.lance"] = {1: big}
    path = f"{url}/v1/table/big/query"
    with httpx.stream("POST", path, json={"k": 2**63 - 1}) as answer:
        next(answer.iter_raw(1000))
    time.sleep(0.2)
    seen = len(read)
    time.sleep(0.2)
    assert len(read) == seen < 245


def test_a_slow_reader_does_not_make_the_answer_pile_up(url: str, store: FakeStore) -> None:
    read: list[int] = []
    big = FakeDataset(make_table(1_000_000), batch_rows=4096, on_batch=read.append)
    store.datasets["big.lance"] = {1: big}
    with connect(url) as connection:
        body = orjson.dumps({"k": 2**63 - 1})
        head = f"POST /v1/table/big/query HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
        connection.sendall(head.encode() + b"connection: close\r\n\r\n" + body)
        time.sleep(0.5)
        assert len(read) < 245
        answer = read_to_end(connection)
    assert answer.endswith(b"0\r\n\r\n")
    assert len(read) == 245


def test_a_connection_is_kept_for_the_next_request(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    connection.connect()
    first_socket = connection.sock
    for path, status in [(QUERY, 200), ("/v1/table/nope/query", 404), (QUERY, 200)]:
        connection.request("POST", path, orjson.dumps(VECTOR))
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    assert connection.sock is first_socket
    connection.close()


@pytest.mark.parametrize("path", ["/health", "/ready", "/v1/table/?delimiter=."])
def test_head_gets_the_head_of_what_get_gets(url: str, path: str) -> None:
    with httpx.Client(base_url=url) as client:
        whole, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(whole.content))
        assert client.get(path).content == whole.content  # nothing was left on the connection


def test_head_is_allowed_where_get_is(url: str) -> None:
    answer = httpx.put(url + "/health")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert httpx.head(url + QUERY).status_code == 405
