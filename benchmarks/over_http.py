"""The two servers compared over keep-alive connections, Arrow and JSON answers."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cases import flat_case, headline_case, rabit_case
from benchmarks.filter_sets import UNIFORM_BELOW, prefiltered
from benchmarks.load import build_requests, run_load
from benchmarks.report import throughput_row, timing_rows
from benchmarks.scalar import FIRST_USE_BAR, PREFILTER_BARS, PREFILTER_QUERIES
from benchmarks.servers import Server, start_ours, start_peer
from benchmarks.summary import interleave

if TYPE_CHECKING:
    from benchmarks.datasets import BenchmarkSet
    from benchmarks.report import Row
    from benchmarks.workers import Block

CONNECTIONS = (1, 2, 8)
BLOCK_QUERIES = 300
PREFILTERED = "filters$ivf_pq_btree"
FIRST_USES = 30
"""Queries of a block whose filters nobody has asked before."""
P50_BARS = {"pq_refine": {1: 0.3}, "rq": {1: 0.45}}  # by case and number of connections
THROUGHPUT_BARS = {"pq_refine": {1: 4.0, 8: 4.0}, "rq": {1: 2.5, 8: 2.5}}


def measure_http(bench: BenchmarkSet, num_blocks: int) -> list[Row]:
    """Return latency, server CPU and throughput of every case for both servers."""
    headline, rabit = headline_case(bench.size), rabit_case(bench.size)
    cases = (
        (headline, "arrow"),
        (headline, "json"),
        (rabit, "arrow"),
        (rabit, "json"),
        (flat_case(bench.size), "arrow"),
    )
    for case, _ in cases:
        bench.dataset(case.dataset)
    prefiltered(bench)
    rows: list[Row] = []
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(start_ours(bench.root, logs / "ours.log"))
        peer = stack.enter_context(start_peer(bench.root, logs / "peer.log"))
        for case, answer in cases:
            requests = build_requests(bench.queries, case, answer)
            label = f"HTTP {answer}, {case.label}"
            rows += _measure_case(label, case.name, requests, (ours, peer), num_blocks)
        for percent, bar in PREFILTER_BARS.items():
            rows += _measure_prefilter(bench, percent, bar, (ours, peer), num_blocks)
    return rows


def _measure_prefilter(
    bench: BenchmarkSet,
    percent: float,
    bar: float,
    servers: tuple[Server, Server],
    num_blocks: int,
) -> list[Row]:
    """Measure a prefilter through a BTREE, asked again and again and asked for the first time."""
    case = replace(headline_case(bench.size), dataset=PREFILTERED)
    limit = int(UNIFORM_BELOW * percent / 100)
    queries = bench.queries[:PREFILTER_QUERIES]
    same = build_requests(queries, case, "arrow", [f"u < {limit}"] * len(queries))
    ours, peer = (partial(measure_server, server, 1) for server in servers)
    rows: list[Row] = []
    label = f"HTTP arrow, prefilter {percent:g} %"
    for server in servers:
        run_load(server.port, same, 1)
    print(label, flush=True)
    blocks = interleave(ours, peer, [same] * num_blocks)
    rows += timing_rows(f"{label}, repeated", *blocks, p50_bar=bar)
    others = [
        build_requests(
            queries[:FIRST_USES],
            case,
            "arrow",
            [f"u < {limit + 1 + block * FIRST_USES + n}" for n in range(FIRST_USES)],
        )
        for block in range(num_blocks)
    ]
    blocks = interleave(ours, peer, others)
    rows += timing_rows(f"{label}, first use", *blocks, p50_bar=FIRST_USE_BAR)
    return rows


def _measure_case(
    label: str,
    case_name: str,
    requests: list[bytes],
    servers: tuple[Server, Server],
    num_blocks: int,
) -> list[Row]:
    for server in servers:
        run_load(server.port, requests, 2)  # fills both caches
    rows: list[Row] = []
    for num_connections in CONNECTIONS:
        name = f"{label}, {num_connections} conn"
        print(name, flush=True)
        ours, peer = (partial(measure_server, server, num_connections) for server in servers)
        blocks = interleave(ours, peer, _parts(requests, num_blocks))
        p50_bar = P50_BARS.get(case_name, {}).get(num_connections)
        rate_bar = THROUGHPUT_BARS.get(case_name, {}).get(num_connections)
        rows += timing_rows(name, *blocks, p50_bar=p50_bar)
        rows.append(throughput_row(name, *blocks, rate_bar))
    return rows


def measure_server(server: Server, num_connections: int, requests: list[bytes]) -> Block:
    """Time requests, and what the server spends on them."""
    cpu_before = server.cpu_ms()
    block = run_load(server.port, requests, num_connections)
    return replace(block, cpu_ms=server.cpu_ms() - cpu_before)


def _parts(requests: list[bytes], num_blocks: int) -> list[list[bytes]]:
    firsts = [number * BLOCK_QUERIES % len(requests) for number in range(num_blocks)]
    return [(requests * 2)[first : first + BLOCK_QUERIES] for first in firsts]
