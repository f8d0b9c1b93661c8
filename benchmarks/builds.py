"""Vector indices built by both sides over the same rows: time, CPU, memory, and how good they are.

Each index is built once in a fresh process, since a build takes up to minutes. Our search asks both
indices the same queries, so that only what was built makes a difference.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from benchmarks.cases import Case, K
from benchmarks.datasets import PLAIN
from benchmarks.file_workers import peak_memory
from benchmarks.report import Row
from benchmarks.summary import recall
from benchmarks.workers import call, start_process, start_worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.datasets import BenchmarkSet, Size

KINDS = ("IVF_FLAT", "IVF_SQ", "IVF_RQ", "IVF_PQ", "IVF_HNSW_SQ")
SIDES = ("ours", "pylance")
TIME_BAR = 1.5
BUDGET_BYTES = 256 << 20
"""What our builds are told to take at most, as they are by default."""
RECALL_BAR = 0.01
"""How much lower our recall may be."""


@dataclass(frozen=True, slots=True)
class Built:
    """What a build took: seconds, those of all its threads, and memory above that before it."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def measure_builds(bench: BenchmarkSet) -> list[Row]:
    """Return what builds of every kind took on both sides, and the recall of what they built."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=bench.root) as folder:
        for kind in KINDS:
            print(f"build, {kind}", flush=True)
            rows += _measure_kind(bench, Path(folder), kind)
    return rows


def _measure_kind(bench: BenchmarkSet, folder: Path, kind: str) -> list[Row]:
    paths = {side: folder / f"{side}-{kind}" for side in SIDES}
    built: dict[str, Built] = {}
    for side, path in paths.items():
        shutil.copytree(bench.root / PLAIN, path, copy_function=os.link)
        with start_process(partial(_calls, side)) as connection:
            built[side] = cast("Built", call(connection, "build", path, kind, bench.size))
    label = f"build of {kind}, {_num_partitions(bench.size, kind)} partitions"
    rows = []
    for name, figure in (("wall s", "wall_s"), ("CPU s", "cpu_s")):
        ours, peer = (getattr(built[side], figure) for side in SIDES)
        rows.append(Row(label, name, ours, peer, ours / peer, TIME_BAR))
    ours, peer = (built[side].peak_mb for side in SIDES)
    rows.append(Row(label, "peak MB; ratio to budget", ours, peer, ours * 1e6 / BUDGET_BYTES, 1.0))
    ours, peer = (_recall(bench, paths[side], kind) for side in SIDES)
    limit = 1 - RECALL_BAR / peer
    rows.append(Row(label, f"recall@{K}", ours, peer, ours / peer, limit, "at least"))
    return rows


def _recall(bench: BenchmarkSet, path: Path, kind: str) -> float:
    size = bench.size
    num_probes = size.graph_probes if "HNSW" in kind else size.num_probes
    case = Case(kind, str(path), num_probes, refine_factor=None)
    with start_worker("ours") as worker:
        worker.open(path)
        return recall(worker.find(bench.queries, case), bench.neighbours)


def _num_partitions(size: Size, kind: str) -> int:
    return size.graph_partitions if "HNSW" in kind else size.num_partitions


def _calls(side: str) -> dict[str, Callable[..., object]]:
    return {"build": partial(_build, _BUILDERS[side]())}


def _build(create: Callable[..., object], path: Path, kind: str, size: Size) -> Built:
    parameters: dict[str, object] = {"metric": "l2", "num_partitions": _num_partitions(size, kind)}
    if kind == "IVF_PQ":
        parameters["num_sub_vectors"] = size.num_sub_vectors
    return watched(partial(create, str(path), kind, parameters))


def watched(build: Callable[[], object]) -> Built:
    """Return what a build took."""
    wall, cpu = time.perf_counter(), time.process_time()
    peak = peak_memory(build)
    return Built(time.perf_counter() - wall, time.process_time() - cpu, peak / 1e6)


def _ours() -> Callable[..., object]:
    core: Any = import_module("lance_core")
    import_module("lance_core.kernels.warm").warm_kernels()

    def create(path: str, kind: str, parameters: dict[str, Any]) -> object:
        dataset = core.open_dataset(path)
        return dataset.create_index("vector", kind, memory_bytes=BUDGET_BYTES, **parameters)

    return create


def _pylance() -> Callable[..., object]:
    lance: Any = import_module("lance")

    def create(path: str, kind: str, parameters: dict[str, Any]) -> object:
        return lance.dataset(path).create_index("vector", kind, **parameters)

    return create


_BUILDERS = {"ours": _ours, "pylance": _pylance}
