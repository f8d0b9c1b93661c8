"""The two libraries compared without HTTP, each in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cases import K, in_process_cases
from benchmarks.report import Row, timing_rows
from benchmarks.summary import interleave, recall
from benchmarks.workers import start_worker

if TYPE_CHECKING:
    from benchmarks.cases import Case
    from benchmarks.datasets import BenchmarkSet
    from benchmarks.workers import Worker

P50_BARS = {"flat": 0.5, "exact": 0.2, "appended": 0.1}
CPU_BARS = {"pq_refine": 0.25, "flat": 0.5, "rq_refine": 0.35, "sq_refine": 0.35, "hnsw": 0.35}


def measure_in_process(bench: BenchmarkSet, num_blocks: int) -> list[Row]:
    """Return latency, CPU and recall of every case for both sides."""
    rows: list[Row] = []
    with start_worker("ours") as ours, start_worker("pylance") as peer:
        for case in in_process_cases(bench.size):
            print(f"in process, {case.label}", flush=True)
            rows += _measure_case(bench, case, ours, peer, num_blocks)
    return rows


def _measure_case(
    bench: BenchmarkSet, case: Case, ours: Worker, peer: Worker, num_blocks: int
) -> list[Row]:
    label = f"in process, {case.label}"
    recalls = [_warm_up(worker, bench, case) for worker in (ours, peer)]
    firsts = [number * case.block_queries for number in range(num_blocks)]
    parts = [
        bench.queries.take(range(first, first + case.block_queries), axis=0, mode="wrap")
        for first in firsts
    ]
    blocks = interleave(
        lambda part: ours.measure(part, case), lambda part: peer.measure(part, case), parts
    )
    p50_bar, cpu_bar = P50_BARS.get(case.name), CPU_BARS.get(case.name)
    rows = timing_rows(label, *blocks, p50_bar=p50_bar, cpu_bar=cpu_bar)
    return [*rows, Row(label, f"recall@{K}", recalls[0], recalls[1], recalls[0] / recalls[1])]


def _warm_up(worker: Worker, bench: BenchmarkSet, case: Case) -> float:
    worker.open(bench.dataset(case.dataset))
    found = worker.find(bench.queries[: case.warm_up_queries], case)
    return recall(found, bench.neighbours[: case.warm_up_queries])
