"""Mixed load on a server while its table changes: ``python -m tests.soak_http --minutes 30``.

Readers ask as fast as they are answered. A writer appends, deletes, updates indices, compacts and
cleans up. Answers are checked against brute force over the rows of the version that they name.
Exits with 1 when an answer was wrong, a status was neither 200 nor 429, or memory kept growing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

import lance_core
from benchmarks.servers import start_ours

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core import Dataset

DIMENSION = 64
NUM_ROWS = 20_000
STEP = 200
"""Rows that come, and go, in one step of the writer."""
UPKEEP_EVERY = 15
"""Steps of the writer between two turns of upkeep."""
NUM_READERS = 8
CHECK_ONE_OF = 4
"""Checking costs more than asking; so many answers are only looked at for their status."""
K = 10
KEPT_VERSIONS = 400
GROWTH = 1.08
"""How much larger the memory of the last twenty minutes may be at their end than at their start."""
WORDS = ("amber", "birch", "cedar", "delta", "ember", "flint", "grove")


def vector_of(ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the vectors of rows, which follow from their ids; ``(n, DIMENSION)``."""
    places = np.arange(1, DIMENSION + 1, dtype=np.float64)
    mixed = np.sin(ids[:, None] * 0.7368062997 * places) + np.cos(ids[:, None] % 97 * places)
    return mixed.astype(np.float32)


def rows_of(ids: NDArray[np.int64]) -> pa.Table:
    """Return the rows of some ids."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(vector_of(ids).ravel()), DIMENSION)
    words = pa.array([WORDS[each % len(WORDS)] for each in ids.tolist()])
    return pa.table({"id": ids, "u": ids % 1000, "word": words, "vector": vectors})


@dataclass(slots=True)
class History:
    """Which ids each version has; written by the writer, read by readers."""

    lock: threading.Condition = field(default_factory=threading.Condition)
    versions: dict[int, BitMap] = field(default_factory=dict)
    newest: int = 0

    def add(self, dataset: Dataset, ids: BitMap) -> None:
        """Record a version; those between it and the one before have its rows too."""
        with self.lock:
            for version in range(self.newest + 1, dataset.version + 1):
                self.versions[version] = ids.copy()
            self.newest = max(self.newest, dataset.version)
            for old in [each for each in self.versions if each < self.newest - KEPT_VERSIONS]:
                del self.versions[old]
            self.lock.notify_all()

    def ids(self, version: int) -> NDArray[np.int64] | None:
        """Return the ids of a version, None if it is too old to be known."""
        with self.lock:
            self.lock.wait_for(lambda: self.newest >= version, timeout=30)
            found = self.versions.get(version)
        return None if found is None else np.array(found, np.int64)


class Writer:
    """Changes the table until it is told to stop."""

    def __init__(self, path: Path, history: History) -> None:
        ids = np.arange(NUM_ROWS)
        self._history = history
        self._live = BitMap(ids)
        self._next_id = NUM_ROWS
        dataset = lance_core.write_dataset(str(path), rows_of(ids), max_rows_per_file=5_000)
        dataset = dataset.create_index("vector", "IVF_PQ", num_partitions=32, num_sub_vectors=16)
        dataset = dataset.create_index("u", "BTREE")
        self._dataset = dataset.create_index("word", "FTS")
        self.num_steps = 0
        history.add(self._dataset, self._live)

    def step(self) -> None:
        """Append and delete; every now and then look after the table."""
        self.num_steps += 1
        ids = np.arange(self._next_id, self._next_id + STEP)
        self._next_id += STEP
        self._live |= BitMap(ids)
        self._set(self._dataset.append(rows_of(ids)))
        first = int(self._live[(self.num_steps * 7919) % (len(self._live) // 2)])
        gone = BitMap(each for each in range(first, first + 2 * STEP) if each in self._live)
        self._live -= BitMap(list(gone)[:STEP])
        last = max(list(gone)[:STEP], default=first)
        self._set(self._dataset.delete(f"id >= {first} AND id <= {last}"))
        if self.num_steps % UPKEEP_EVERY == 0:
            self._look_after(self.num_steps // UPKEEP_EVERY)

    def _look_after(self, turn: int) -> None:
        indices: Literal["defer", "remap"] = "defer" if turn % 2 == 1 else "remap"
        self._set(self._dataset.compact(indices=indices, target_rows_per_fragment=5_000))
        if turn % 2 == 0:
            self._set(self._dataset.optimize_indices())
            self._set(self._dataset.trim_reuse_index())
        self._dataset.cleanup(older_than=timedelta(seconds=60))

    def _set(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._history.add(dataset, self._live)


@dataclass(slots=True)
class Tally:
    """What readers saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    num_checked: int = 0
    faults: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def read(port: int, seed: int, history: History, tally: Tally, stop: threading.Event) -> None:
    """Ask one query after the other on one connection."""
    generator = np.random.default_rng(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    while not stop.is_set():
        path, body = a_query(generator, history)
        connection.request("POST", f"/v1/table/soak/{path}", json.dumps(body), headers)
        answer = connection.getresponse()
        data = answer.read()
        is_checked = answer.status == 200 and generator.integers(CHECK_ONE_OF) == 0
        fault = None
        if is_checked:
            version = int(answer.headers["x-lancedb-version"])
            ids = history.ids(version)
            fault = None if ids is None else fault_of(path, body, json.loads(data), ids)
        elif answer.status not in {200, 429}:
            fault = f"status {answer.status}: {data[:300]!r}"
        with tally.lock:
            tally.statuses[answer.status] += 1
            tally.num_checked += is_checked
            if fault is not None:
                tally.faults.append(f"{path} {json.dumps(body)[:300]}: {fault}")
                print(tally.faults[-1], flush=True)  # noqa: T201


def a_query(generator: np.random.Generator, history: History) -> tuple[str, dict[str, Any]]:
    """Return a request of any kind."""
    kind = int(generator.integers(6))
    limit = int(generator.integers(1, 1000))
    near = generator.integers(0, history.newest * STEP + NUM_ROWS)
    vector = vector_of(np.array([near]))[0] + generator.normal(0, 0.05, DIMENSION)
    ann = {"vector": vector.tolist(), "k": K, "columns": ["id"], "nprobes": 8}
    match kind:
        case 0:
            return "count_rows", {"predicate": f"u < {limit}"}
        case 1:
            return "query", {"k": 50, "columns": ["id", "u"], "filter": f"u = {limit}"}
        case 2:
            return "query", {**ann, "bypass_vector_index": True}
        case 3:
            return "query", {**ann, "refine_factor": 5, "filter": f"u < {limit}"}
        case 4:
            word = WORDS[limit % len(WORDS)]
            return "query", {"k": K, "columns": ["id"], "full_text_query": {"query": word}}
        case _:
            return "query", {**ann, "refine_factor": 5}


def fault_of(path: str, body: dict[str, Any], answer: Any, ids: NDArray[np.int64]) -> str | None:
    """Return what is wrong with an answer, None if nothing is."""
    limit = int(str(body.get("filter", body.get("predicate", "u < 1000"))).split()[-1])
    if path == "count_rows":
        expected = int((ids % 1000 < limit).sum())
        return None if answer == expected else f"{answer} rows, not {expected}"
    found = np.array([row["id"] for row in answer["rows"]], np.int64)
    if len(np.unique(found)) != len(found) or not np.isin(found, ids).all():
        return f"rows twice, or not of the version: {found.tolist()}"
    if "vector" in body:
        return _fault_of_neighbours(body, answer["rows"], found, ids, limit)
    if "filter" in body:
        expected = min(50, int((ids % 1000 == limit).sum()))
        has_all = len(found) == expected and bool((found % 1000 == limit).all())
        return None if has_all else f"{len(found)} rows, not {expected}"
    words = {WORDS[each % len(WORDS)] for each in found.tolist()}
    is_right = words == {body["full_text_query"]["query"]} and len(found) == K
    return None if is_right else f"{len(found)} rows of {words}"


def _fault_of_neighbours(
    body: dict[str, Any],
    rows: list[dict[str, Any]],
    found: NDArray[np.int64],
    ids: NDArray[np.int64],
    limit: int,
) -> str | None:
    passing = ids[ids % 1000 < limit] if "filter" in body else ids
    query = np.array(body["vector"], np.float32)
    distances = ((vector_of(passing) - query) ** 2).sum(axis=1)
    if not np.isin(found, passing).all() or len(found) != min(K, len(passing)):
        return f"{len(found)} rows, of which some do not pass"
    told = np.array([row["_distance"] for row in rows])
    own = ((vector_of(found) - query) ** 2).sum(axis=1)
    if not np.allclose(told, own, rtol=1e-4, atol=1e-3) or (np.diff(told) < 0).any():
        return f"distances {told.tolist()}, not {own.tolist()}"
    nearest = np.sort(distances)[: len(found)]
    is_exact = "bypass_vector_index" in body
    if is_exact and not np.allclose(told, nearest, rtol=1e-4, atol=1e-3):
        return f"distances {told.tolist()}, nearest are {nearest.tolist()}"
    return None


def resident_bytes(pid: int) -> int:
    """Return the anonymous memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> int:
    """Run, and tell what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    minutes = parser.parse_args().minutes
    history, tally, stop = History(), Tally(), threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Path(folder) / "soak.lance", history)
        with start_ours(Path(folder), Path(folder) / "server.log") as server:
            readers = [
                threading.Thread(target=read, args=(server.port, seed, history, tally, stop))
                for seed in range(NUM_READERS)
            ]
            for reader in readers:
                reader.start()
            memory = _run(writer, server.pid, tally, minutes * 60)
            stop.set()
            for reader in readers:
                reader.join()
    return _verdict(tally, memory, minutes)


def _run(writer: Writer, pid: int, tally: Tally, seconds: float) -> list[tuple[float, int]]:
    """Write until the time is over; return the server's memory by time."""
    started = shown = time.monotonic()
    memory: list[tuple[float, int]] = []
    while time.monotonic() - started < seconds:
        begun = time.monotonic()
        writer.step()
        memory.append((begun - started, resident_bytes(pid)))
        if begun - shown > 60:
            shown = begun
            _show(begun - started, writer, tally, memory[-1][1])
        time.sleep(max(0.0, 1.0 - (time.monotonic() - begun)))
    return memory


def _show(at: float, writer: Writer, tally: Tally, memory: int) -> None:
    asked = sum(tally.statuses.values())
    print(  # noqa: T201
        f"{at / 60:5.1f} min: {asked} asked ({asked / at:.0f}/s), {tally.num_checked} checked,"
        f" {len(tally.faults)} faults, {writer.num_steps} steps, {memory / 1e6:.0f} MB",
        flush=True,
    )


def _verdict(tally: Tally, memory: list[tuple[float, int]], minutes: float) -> int:
    late = [each for at, each in memory if at > max(60.0, (minutes - 20) * 60)]
    early, last = (np.median(part) for part in (late[: len(late) // 4], late[-len(late) // 4 :]))
    growth = float(last / early)
    lines = [
        f"statuses {dict(tally.statuses)}, {tally.num_checked} checked, {len(tally.faults)} faults",
        f"memory {early / 1e6:.0f} -> {last / 1e6:.0f} MB ({growth:.3f}) in the last 20 minutes",
    ]
    print("\n".join(lines))  # noqa: T201
    return 1 if len(tally.faults) > 0 or growth > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
