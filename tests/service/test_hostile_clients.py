"""Clients that are slow, broken or many: others are served meanwhile, and memory is bounded."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import orjson
import pyarrow as pa
import pytest

from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.live_server import live_server
from tests.metric_values import value
from tests.raw_connections import PATIENCE_S, connect, read_to_end
from tests.serve_process import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERY = "/v1/table/t1/query"
BODY = orjson.dumps({"vector": [1, 2, 3, 4], "k": 3})
STALL_S = 0.4


@pytest.fixture(scope="module")
def store() -> Any:
    big = FakeDataset(make_table(400_000), batch_rows=4096)
    return FakeStore(t1=FakeDataset(make_table()), big=big)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, store: FakeStore) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("root")
    with live_server(
        root, open_dataset=store, load_kernels=lambda: None, stall_timeout_s=STALL_S
    ) as url:
        yield url


def head(length: int, path: str = QUERY) -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n".encode()


def assert_served(url: str) -> None:
    answer = httpx.post(f"{url}{QUERY}?format=json", content=BODY)
    assert answer.json()["num_rows"] == 3


@contextmanager
def others_served(url: str) -> Iterator[None]:
    """Check all the time that others are served."""
    is_done, failures = threading.Event(), []

    def ask() -> None:
        with httpx.Client(timeout=PATIENCE_S) as client:
            while not is_done.is_set():
                answer = client.post(f"{url}{QUERY}?format=json", content=BODY)
                if answer.status_code != 200:
                    failures.append(answer.text)
                time.sleep(0.01)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
    assert failures == []


def arrow_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    table = make_table()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


BROKEN = {
    "half JSON": BODY[:-5],
    "no JSON": b"vector=1",
    "a list": b"[1, 2]",
    "a number": b"7",
    "NaN": b'{"vector": [NaN, 1, 2, 3]}',
    "UTF-16": BODY.decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + BODY,
    "no UTF-8": b'{"filter": "\xff\xfe"}',
    "half a surrogate": b'{"vector": [1,2,3,4], "filter": "\\ud800"}',
    "NUL": b'{"vector": [1,2,3,4]\x00}',
    "deep lists": b'{"vector": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "huge numbers": b'{"vector": [1e400, 1, 2, 3]}',
    "long digits": b'{"vector": [1,2,3,4], "k": ' + b"9" * 5000 + b"}",
    "packed": gzip.compress(BODY),
    "Arrow": arrow_bytes(),
    "half of Arrow": arrow_bytes()[:100],
    "parentheses": orjson.dumps({"vector": [1, 2, 3, 4], "filter": "(" * 5000 + "1" + ")" * 5000}),
    "words of a text": b'{"full_text_query": {"query": {"boolean": {"must": [{"match": 7}]}}}}',
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(
    "content_type", ["application/json", "application/vnd.apache.arrow.stream"]
)
def test_a_broken_body_is_the_callers_fault(url: str, kind: str, content_type: str) -> None:
    headers = {"content-type": content_type, "content-encoding": "gzip"}
    for path in (QUERY, "/v1/table/t1/count_rows", "/v1/table/t1/explain_plan"):
        answer = httpx.post(url + path, content=BROKEN[kind], headers=headers)
        # the fake table judges no filters and computes no columns
        assert answer.status_code in {200, 400, 406}, answer.text
        if answer.status_code != 200:
            assert answer.json()["code"] in {0, 12, 13}
            assert len(answer.content) < 5000
    assert_served(url)


STALLED = {
    "nothing": b"",
    "half a line": b"GET /hea",
    "half a head": b"GET /health HTTP/1.1\r\nhost: x\r\n",
    "half a body": head(100) + b'{"vector": [',
    "half a chunk": b"POST /v1/table/t1/query HTTP/1.1\r\nhost: x\r\n"
    b"transfer-encoding: chunked\r\n\r\n50\r\n{",
}
SECOND = b"GET /he"


def test_connections_that_stall_are_closed_while_others_are_served(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = value(httpx.get(f"{url}/metrics").text, CLOSED, reason="stalled")
    with others_served(url), ExitStack() as stack:
        connections = []
        for sent in STALLED.values():
            connection = stack.enter_context(connect(url))
            connection.sendall(sent)
            connections.append(connection)
        connection = stack.enter_context(connect(url))
        connection.sendall(head(len(BODY)) + BODY)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(SECOND)
        connections.append(connection)
        started = time.monotonic()
        for connection in connections:
            read_to_end(connection)
        assert time.monotonic() - started < PATIENCE_S / 2
    after = value(httpx.get(f"{url}/metrics").text, CLOSED, reason="stalled")
    assert after - before == len(STALLED) + 1
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


CLOSED = "lance_serve_connections_closed_total"


def test_a_body_that_keeps_coming_is_waited_for(url: str) -> None:
    with connect(url) as connection:
        connection.sendall(head(len(BODY)))
        for at in range(len(BODY)):
            connection.sendall(BODY[at : at + 1])
            time.sleep(STALL_S / 15)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_connection_between_two_requests_may_be_quiet(url: str) -> None:
    with connect(url) as connection:
        for _ in range(2):
            connection.sendall(head(len(BODY)) + BODY)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            time.sleep(3 * STALL_S)


def test_an_answer_that_takes_long_to_make_is_waited_for(url: str, store: FakeStore) -> None:
    slow = FakeDataset(make_table(), on_run=lambda deadline: time.sleep(3 * STALL_S))
    store.datasets["slow.lance"] = {1: slow}
    with connect(url) as connection:
        connection.sendall(head(len(BODY), "/v1/table/slow/query") + BODY)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_reader_that_stops_is_let_go_and_one_that_is_slow_is_not(url: str) -> None:
    everything = orjson.dumps({"k": 2**63 - 1})
    with others_served(url), connect(url) as stopped, connect(url) as slow:
        for connection in (stopped, slow):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.sendall(head(len(everything), "/v1/table/big/query") + everything)
        received, ended = 0, b""
        for _ in range(40):  # four times as long as a reader may stop
            piece = slow.recv(200_000)
            received += len(piece)
            time.sleep(STALL_S / 10)
        while (piece := slow.recv(1 << 20)) != b"":
            ended = piece[-16:]
            if ended.endswith(b"0\r\n\r\n"):
                break
        assert ended.endswith(b"0\r\n\r\n")
        assert not read_to_end(stopped).endswith(b"0\r\n\r\n")


def test_a_half_closed_connection_counts_as_one_that_was_left(url: str) -> None:
    for sent in (head(len(BODY)) + BODY, head(100) + BODY, b"GET /hea", b""):
        with connect(url) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            started = time.monotonic()
            read_to_end(connection)
            assert time.monotonic() - started < PATIENCE_S / 2
    assert_served(url)


def test_one_connection_too_many_is_told_so(tmp_path: Path, store: FakeStore) -> None:
    with (
        live_server(
            tmp_path, open_dataset=store, load_kernels=lambda: None, max_connections=4
        ) as url,
        ExitStack() as stack,
    ):
        for _ in range(4):
            connection = stack.enter_context(connect(url))
            connection.sendall(head(len(BODY)) + BODY)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        answer = read_to_end(stack.enter_context(connect(url)))
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert b"(setting max_connections)" in answer
        assert b"retry-after: 1" in answer
        stack.close()
        for _ in range(200):
            if read_status(url) == 200:
                break
            time.sleep(0.01)
        assert_served(url)


def read_status(url: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except (http.client.HTTPException, OSError):
        return 0
    finally:
        connection.close()


def resident_bytes(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * 4096


@pytest.mark.slow
def test_ten_thousand_idle_connections_cost_little_and_others_are_served(tmp_path: Path) -> None:
    with serve(tmp_path) as (process, port):  # ready, so that nothing else takes memory
        url = f"http://127.0.0.1:{port}"
        request = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
        with ExitStack() as stack:
            before = resident_bytes(process.pid)
            for number in range(10_000):
                connection = stack.enter_context(connect(url))
                if number % 2 == 0:
                    connection.sendall(request)
            answer = httpx.get(f"{url}/metrics", timeout=30)
            assert value(answer.text, "lance_serve_connections_open") >= 10_000
            held = resident_bytes(process.pid) - before
            assert httpx.get(f"{url}/v1/table", timeout=5).status_code == 200
        assert held < 250 << 20  # 10 KB each were seen
        assert httpx.get(f"{url}/v1/table", timeout=30).status_code == 200
