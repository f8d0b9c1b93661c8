"""What the query route costs beside the search itself and the least that HTTP costs.

The same queries are asked over HTTP, in a process without HTTP, and of an application that answers
any body at once; CPU time is compared, so waiting does not count.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cases import headline_case, rabit_case
from benchmarks.load import build_requests, run_load
from benchmarks.over_http import measure_server
from benchmarks.report import Row
from benchmarks.servers import start_floor, start_ours
from benchmarks.workers import start_worker

if TYPE_CHECKING:
    from benchmarks.cases import Case
    from benchmarks.datasets import BenchmarkSet
    from benchmarks.servers import Server
    from benchmarks.workers import Worker

ROUTE_BAR_MS = 0.3
FIGURE = "CPU, and of search and bare HTTP; ratio: the rest to 0.3 ms"
ROUNDS = 5
"""Of all queries: CPU time is counted in ticks of 10 ms."""


def measure_route(bench: BenchmarkSet, num_blocks: int) -> list[Row]:
    """Return the CPU of a query over HTTP less that of its search and of bare HTTP, in ms."""
    rows: list[Row] = []
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cases = headline_case(bench.size), rabit_case(bench.size)
        paths = [bench.dataset(case.dataset) for case in cases]
        ours = stack.enter_context(start_ours(bench.root, logs / "ours.log"))
        floor = stack.enter_context(start_floor(logs / "floor.log"))
        worker = stack.enter_context(start_worker("ours"))
        for case, path in zip(cases, paths, strict=True):
            worker.open(path)
            search_ms = _search_cpu_ms(worker, bench, case, num_blocks)
            for answer in ("arrow", "json"):
                label = f"route, HTTP {answer}, {case.label}"
                print(label, flush=True)
                requests = build_requests(bench.queries, case, answer) * ROUNDS
                whole, bare = (_cpu_ms(each, requests, num_blocks) for each in (ours, floor))
                least = search_ms + bare
                rows.append(Row(label, FIGURE, whole, least, (whole - least) / ROUTE_BAR_MS, 1.0))
    return rows


def _search_cpu_ms(worker: Worker, bench: BenchmarkSet, case: Case, num_blocks: int) -> float:
    worker.measure(bench.queries, case)
    blocks = [worker.measure(bench.queries, case) for _ in range(num_blocks * ROUNDS)]
    return sum(block.cpu_ms for block in blocks) / (len(blocks) * len(bench.queries))


def _cpu_ms(server: Server, requests: list[bytes], num_blocks: int) -> float:
    run_load(server.port, requests, 1)
    blocks = [measure_server(server, 1, requests) for _ in range(num_blocks)]
    return sum(block.cpu_ms for block in blocks) / (len(blocks) * len(requests))
