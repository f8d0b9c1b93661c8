"""What a process needs beside time: memory of warm indices, and whether threads share the cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.cases import in_process_cases
from benchmarks.report import Row
from benchmarks.workers import start_worker

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.cases import Case
    from benchmarks.datasets import BenchmarkSet
    from benchmarks.workers import Worker

MEMORY_CASES = ("pq", "rq", "sq", "flat", "hnsw")
THREAD_CASES = ("pq_refine", "rq", "sq", "flat", "hnsw")
ROOM_BYTES = 150 << 20
"""What a warm process may hold beside its index."""
SPEED_UP_BAR = 1.7
SPEED_UP_ROUNDS = {"ours": 5, "pylance": 1}


def measure_resources(bench: BenchmarkSet) -> list[Row]:
    """Return anonymous memory above that of a ready process, and the speed-up by two threads."""
    cases = {case.name: case for case in in_process_cases(bench.size)}
    rows = [_memory_row(bench, cases[name]) for name in MEMORY_CASES]
    with start_worker("ours") as ours, start_worker("pylance") as peer:
        for name in THREAD_CASES:
            rows += _thread_rows(bench, cases[name], ours, peer)
    return rows


def _memory_row(bench: BenchmarkSet, case: Case) -> Row:
    print(f"memory, {case.label}", flush=True)
    allowed = _index_bytes(bench.dataset(case.dataset)) + ROOM_BYTES
    ours, peer = (_grown(bench, case, engine_name) for engine_name in ("ours", "pylance"))
    label = f"memory, {case.label}; ratio to index + 150 MB"
    return Row(label, "MB above start", ours / 2**20, peer / 2**20, ours / allowed, 1.0)


def _grown(bench: BenchmarkSet, case: Case, engine_name: str) -> int:
    with start_worker(engine_name) as worker:
        before = worker.memory()
        worker.open(bench.dataset(case.dataset))
        worker.find(bench.queries, case)
        return worker.memory() - before


def _index_bytes(dataset: Path) -> int:
    return sum(path.stat().st_size for path in (dataset / "_indices").rglob("*.idx"))


def _thread_rows(bench: BenchmarkSet, case: Case, ours: Worker, peer: Worker) -> list[Row]:
    print(f"threads, {case.label}", flush=True)
    rows = []
    for worker, side, bar in ((ours, "ours", SPEED_UP_BAR), (peer, "pylance", None)):
        worker.open(bench.dataset(case.dataset))
        worker.find(bench.queries, case)
        rates = np.array(
            [
                [worker.rate(bench.queries, case, num_threads) for num_threads in (2, 1)]
                for _ in range(SPEED_UP_ROUNDS[side])
            ]
        )
        two, one = (float(each) for each in np.median(rates, axis=0))
        speed_up = float(np.median(rates[:, 0] / rates[:, 1]))
        label = f"{side}, {case.label}, 2 threads against 1"
        rows.append(Row(label, "queries per s", two, one, speed_up, bar, "at least"))
    return rows
