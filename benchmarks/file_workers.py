"""A process per side that times reading and writing files, and watches its own memory."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from benchmarks.file_engines import FILE_ENGINES
from benchmarks.workers import Block, call, start_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

    from benchmarks.file_columns import FileCase
    from benchmarks.file_engines import FileEngine

SAMPLE_SECONDS = 0.002
RSS_ANON = "RssAnon:"


class FileWorker:
    """The near end of a measuring process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def scan(self, path: Path, repeats: int) -> Block:
        """Time whole scans of a file that is open already."""
        return cast("Block", call(self._connection, "scan", path, repeats))

    def take(self, path: Path, rows: NDArray[np.int64]) -> Block:
        """Time takes of ``rows``, shape ``(repeats, n)``, from a file that is open already."""
        return cast("Block", call(self._connection, "take", path, rows))

    def write(self, path: Path, case: FileCase, repeats: int) -> Block:
        """Time writing the rows of a case from memory."""
        return cast("Block", call(self._connection, "write", path, case, repeats))

    def peak_of_write(self, path: Path, case: FileCase, num_rows: int) -> int:
        """Return the bytes of anonymous memory that writing a stream of rows added at most."""
        return cast("int", call(self._connection, "peak_of_write", path, case, num_rows))

    def peak_of_scan(self, path: Path) -> int:
        """Return the bytes of anonymous memory that a scan added at most."""
        return cast("int", call(self._connection, "peak_of_scan", path))


@contextmanager
def start_file_worker(engine_name: str) -> Iterator[FileWorker]:
    """Run one side in a fresh process; its kernels are loaded when this returns."""
    with start_process(partial(_calls, engine_name)) as connection:
        yield FileWorker(connection)


def _calls(engine_name: str) -> dict[str, Callable[..., object]]:
    engine = FILE_ENGINES[engine_name]()
    engine.prepare()
    return {
        "scan": partial(_scan, engine),
        "take": partial(_take, engine),
        "write": partial(_write, engine),
        "peak_of_write": partial(_peak_of_write, engine),
        "peak_of_scan": partial(_peak_of_scan, engine),
    }


def _timed(actions: list[Callable[[], object]]) -> Block:
    latencies = np.empty(len(actions))
    cpu_started = time.process_time()
    for number, action in enumerate(actions):
        started = time.perf_counter()
        action()
        latencies[number] = (time.perf_counter() - started) * 1e3
    return Block(latencies, (time.process_time() - cpu_started) * 1e3, float(latencies.sum()))


def _scan(engine: FileEngine, path: Path, repeats: int) -> Block:
    engine.open(path)
    engine.scan()
    return _timed([engine.scan] * repeats)


def _take(engine: FileEngine, path: Path, rows: NDArray[np.int64]) -> Block:
    engine.open(path)
    engine.take(rows[0])
    return _timed([partial(engine.take, part) for part in rows])


def _write(engine: FileEngine, path: Path, case: FileCase, repeats: int) -> Block:
    batches = list(case.batches())
    write = partial(engine.write, path, batches[0].schema, batches)
    return _timed([write] * repeats)


def _peak_of_write(engine: FileEngine, path: Path, case: FileCase, num_rows: int) -> int:
    schema = next(case.batches(1)).schema
    return peak_memory(partial(engine.write, path, schema, case.batches(num_rows)))


def _peak_of_scan(engine: FileEngine, path: Path) -> int:
    engine.open(path)
    return peak_memory(engine.scan)


def peak_memory(action: Callable[[], object]) -> int:
    """Return the highest anonymous memory during ``action`` above that before it."""
    before = peak = _anonymous_bytes()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(SAMPLE_SECONDS):
            peak = max(peak, _anonymous_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        action()
    finally:
        done.set()
        watcher.join()
    return max(peak, _anonymous_bytes()) - before


def _anonymous_bytes() -> int:
    status = Path(f"/proc/{os.getpid()}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(RSS_ANON))
    return int(line.split()[1]) * 1024
