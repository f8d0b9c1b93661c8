"""One process per side, so that neither shares threads, caches or the allocator with the other."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from benchmarks.cases import K
from benchmarks.engines import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

    from benchmarks.cases import Case
    from benchmarks.engines import Engine

    Calls = Callable[..., object]

CONTEXT = multiprocessing.get_context("spawn")
_RATE_ROUNDS = 2
"""An even number: then each of two threads answers all queries equally often."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """What one run over some queries took: latencies ``(n,)`` and CPU of the process, all in ms."""

    latencies_ms: NDArray[np.float64]
    cpu_ms: float
    wall_ms: float


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The first query of a process on a dataset it had not opened before."""

    latency_ms: float
    cpu_ms: float
    bytes_read: int


class Worker:
    """The near end of a measuring process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def open(self, path: Path) -> None:
        """Open the dataset that later calls search."""
        self._call("open", path)

    def find(self, queries: NDArray[np.float32], case: Case) -> NDArray[np.int64]:
        """Return the ids found for each query, shape ``(m, k)``, -1 where fewer were found."""
        return cast("NDArray[np.int64]", self._call("find", queries, case))

    def measure(self, queries: NDArray[np.float32], case: Case) -> Block:
        """Time every query."""
        return cast("Block", self._call("measure", queries, case))

    def memory(self) -> int:
        """Return the anonymous memory of the process in bytes."""
        return cast("int", self._call("memory"))

    def rate(self, queries: NDArray[np.float32], case: Case, num_threads: int) -> float:
        """Return the queries per second that threads reach together."""
        return cast("float", self._call("rate", queries, case, num_threads))

    def cold(self, path: Path, query: NDArray[np.float32], case: Case) -> ColdStart:
        """Time opening a dataset together with one query on it."""
        return cast("ColdStart", self._call("cold", path, query, case))

    def _call(self, name: str, *arguments: object) -> object:
        return call(self._connection, name, *arguments)


@contextmanager
def start_worker(engine_name: str) -> Iterator[Worker]:
    """Run one side in a fresh process; its kernels are loaded when this returns."""
    with start_process(partial(_calls, engine_name)) as connection:
        yield Worker(connection)


@contextmanager
def start_process(make_calls: Callable[[], Mapping[str, Calls]]) -> Iterator[Connection]:
    """Run a process that answers ``call``; what ``make_calls`` does there is done on return."""
    near, far = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_serve, args=(make_calls, far), daemon=True)
    process.start()
    far.close()
    try:
        near.recv()
        yield near
    finally:
        near.close()
        process.join(timeout=10)
        process.kill()


def call(connection: Connection, name: str, *arguments: object) -> object:
    """Have a process do one of its calls and wait for the result."""
    connection.send((name, arguments))
    return connection.recv()


def _serve(make_calls: Callable[[], Mapping[str, Calls]], connection: Connection) -> None:
    calls = make_calls()
    connection.send(None)
    while True:
        try:
            name, arguments = connection.recv()
        except EOFError:
            return
        connection.send(calls[name](*arguments))


def _calls(engine_name: str) -> dict[str, Calls]:
    engine = ENGINES[engine_name]()
    engine.prepare()
    return {
        "open": engine.open,
        "find": partial(_find, engine),
        "measure": partial(_measure, engine),
        "cold": partial(_cold, engine),
        "memory": _anonymous_memory,
        "rate": partial(_rate, engine),
    }


def _find(engine: Engine, queries: NDArray[np.float32], case: Case) -> NDArray[np.int64]:
    found = np.full((len(queries), K), -1, np.int64)
    for row, query in enumerate(queries):
        ids = engine.search(query, case, K).column("id").to_numpy()
        found[row, : len(ids)] = ids
    return found


def _measure(engine: Engine, queries: NDArray[np.float32], case: Case) -> Block:
    latencies = np.empty(len(queries))
    cpu_started = time.process_time()
    for row, query in enumerate(queries):
        started = time.perf_counter()
        engine.search(query, case, K)
        latencies[row] = (time.perf_counter() - started) * 1e3
    return Block(latencies, (time.process_time() - cpu_started) * 1e3, float(latencies.sum()))


def _rate(engine: Engine, queries: NDArray[np.float32], case: Case, num_threads: int) -> float:
    queries = np.tile(queries, (_RATE_ROUNDS, 1))  # so that all threads answer the same
    with ThreadPoolExecutor(num_threads) as pool:
        shares = np.array_split(queries, num_threads)
        started = time.perf_counter()
        for done in [pool.submit(_measure, engine, share, case) for share in shares]:
            done.result()
        return len(queries) / (time.perf_counter() - started)


def _anonymous_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("RssAnon:")]
    return int(line.split()[1]) << 10


def _cold(engine: Engine, path: Path, query: NDArray[np.float32], case: Case) -> ColdStart:
    cpu_started, started = time.process_time(), time.perf_counter()
    engine.open(path)
    engine.search(query, case, K)
    latency_ms = (time.perf_counter() - started) * 1e3
    cpu_ms = (time.process_time() - cpu_started) * 1e3
    return ColdStart(latency_ms, cpu_ms, engine.cold_bytes(path, query, case, K))
