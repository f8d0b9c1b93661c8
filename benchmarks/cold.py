"""The first query of a process on a dataset that it had not opened before.

Two situations, each in fresh processes that alternate between the sides: a process that has done
nothing but load its code, which is bar 8, and a process that has answered a query on another
dataset, as a server usually has. The page cache is warm in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.cases import headline_case
from benchmarks.datasets import SIZES, open_set
from benchmarks.report import Row
from benchmarks.workers import start_worker

if TYPE_CHECKING:
    from benchmarks.datasets import BenchmarkSet
    from benchmarks.workers import ColdStart

PROCESSES_PER_SIDE = 9
COLD_BAR = 0.5


def measure_cold(bench: BenchmarkSet) -> list[Row]:
    """Return open + first query for both sides, and the bytes that they read for it."""
    rows = []
    for has_served, label, bar in (
        (False, "cold, fresh process", COLD_BAR),
        (True, "cold, process has served another dataset", None),
    ):
        print(label, flush=True)
        starts: dict[str, list[ColdStart]] = {"ours": [], "pylance": []}
        for number in range(PROCESSES_PER_SIDE):
            for engine_name, side in starts.items():
                side.append(_start_cold(bench, engine_name, number, has_served=has_served))
        ours, peer = starts["ours"], starts["pylance"]
        for figure, name, figure_bar in (
            ("latency_ms", "open + first query", bar),
            ("cpu_ms", "CPU", None),
            ("bytes_read", "bytes read", None),
        ):
            a, b = (float(np.median([getattr(s, figure) for s in side])) for side in (ours, peer))
            rows.append(Row(label, name, a, b, a / b, figure_bar))
    return rows


def _start_cold(
    bench: BenchmarkSet, engine_name: str, number: int, *, has_served: bool
) -> ColdStart:
    case = headline_case(bench.size)
    with start_worker(engine_name) as worker:
        if has_served:
            other = open_set(SIZES["20k"])
            worker.open(other.dataset("ivf_pq"))
            worker.find(other.queries[:1], headline_case(other.size))
        return worker.cold(bench.dataset(case.dataset), bench.queries[number], case)
