"""A light closed-loop HTTP load generator: keep-alive connections in one process of its own.

It plays the part of wrk, which not every machine has: an epoll loop over raw sockets that sends
requests built beforehand and looks at nothing of an answer but its status and length. Its cost
per request, about 20 microseconds of CPU, is the same for both servers.
"""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import orjson

from benchmarks.cases import K
from benchmarks.workers import Block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

    from benchmarks.cases import Case

CONTEXT = multiprocessing.get_context("spawn")
HEAD_END = b"\r\n\r\n"
LENGTH = b"\r\ncontent-length:"
ACCEPT = {"json": "application/json", "arrow": "application/vnd.apache.arrow.file"}


def build_requests(
    queries: NDArray[np.float32], case: Case, answer: str, filters: Sequence[str] = ()
) -> list[bytes]:
    """Return one complete HTTP request per query; ``answer`` is ``json`` or ``arrow``.

    With ``filters`` there is one for each query.
    """
    requests = []
    for number, query in enumerate(queries):
        members = {
            "vector": query,
            "k": K,
            "columns": ["id"],
            "nprobes": case.num_probes,
            "refine_factor": case.refine_factor,
        }
        if filters:
            members["filter"] = filters[number]
        requests.append(build_request(case.dataset, members, answer))
    return requests


def build_request(dataset: str, members: Mapping[str, object], answer: str) -> bytes:
    """Return the complete HTTP request of one query."""
    body = orjson.dumps(members, option=orjson.OPT_SERIALIZE_NUMPY)
    head = (
        f"POST /v1/table/{dataset}/query HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: application/json\r\naccept: {ACCEPT[answer]}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def run_load(port: int, requests: list[bytes], num_connections: int) -> Block:
    """Send all requests over ``num_connections`` connections from a fresh process; time each."""
    near, far = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_generate, args=(far, port, requests, num_connections))
    process.start()
    far.close()
    latencies_ms, wall_ms = near.recv()
    process.join()
    return Block(latencies_ms, 0.0, wall_ms)


@dataclass(slots=True)
class _Exchange:
    """One connection and the answer it waits for."""

    connection: socket.socket
    started: float = 0.0
    received: bytearray = field(default_factory=bytearray)

    def send(self, request: bytes) -> None:
        self.received.clear()
        self.started = time.perf_counter()
        self.connection.sendall(request)

    def is_complete(self) -> bool:
        """Read what has arrived; True once the whole answer is here."""
        part = self.connection.recv(1 << 18)
        if not part:
            raise SystemExit("the server closed a connection")
        self.received += part
        head_end = self.received.find(HEAD_END)
        if head_end < 0:
            return False
        head = bytes(self.received[:head_end]).lower()
        if not head.startswith(b"http/1.1 200 "):
            raise SystemExit(f"not an answer to measure: {bytes(self.received[:2000])!r}")
        length = int(head[head.index(LENGTH) + len(LENGTH) :].split(b"\r\n", 1)[0])
        return len(self.received) >= head_end + len(HEAD_END) + length


def _generate(results: Connection, port: int, requests: list[bytes], num_connections: int) -> None:
    waiting = deque(requests)
    latencies: list[float] = []
    selector = selectors.DefaultSelector()
    for _ in range(num_connections):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(connection, selectors.EVENT_READ, _Exchange(connection))
    started = time.perf_counter()
    for key in selector.get_map().values():
        key.data.send(waiting.popleft())
    while len(latencies) < len(requests):
        for key, _ in selector.select():
            exchange: _Exchange = key.data
            if exchange.is_complete():
                latencies.append((time.perf_counter() - exchange.started) * 1e3)
                if waiting:
                    exchange.send(waiting.popleft())
    wall_ms = (time.perf_counter() - started) * 1e3
    results.send((np.array(latencies), wall_ms))
    results.close()
