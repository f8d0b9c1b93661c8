"""Ours against the servers that people have today: pylance's own, and Chroma's."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import numpy as np

from benchmarks.cases import Case, K, headline_case, rabit_case
from benchmarks.chroma_server import Collection, start_chroma
from benchmarks.datasets import PLAIN
from benchmarks.filter_sets import UNIFORM_BELOW, prefiltered
from benchmarks.load import build_request, run_load
from benchmarks.over_http import BLOCK_QUERIES, PREFILTERED, measure_server
from benchmarks.report import Row, throughput_row, timing_rows
from benchmarks.servers import start_adapter, start_ours
from benchmarks.summary import interleave, recall
from benchmarks.workers import start_worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.datasets import BenchmarkSet
    from benchmarks.servers import Server
    from benchmarks.workers import Block

CONNECTIONS = (1, 8)
CHROMA_P50_BAR = 1.0
CHROMA_THROUGHPUT_BAR = 1.4
LEAST_RECALL = 0.96
"""Of both sides, when Chroma is the peer; its graph has it with its own defaults."""
FILTERED_PERCENTS = (50, 5)
FEW_QUERIES = 40
"""Of a block, where a server takes tenths of a second for each."""


def measure_adapter(bench: BenchmarkSet, num_blocks: int) -> list[Row]:
    """Return figures of the cases of bars 1 and 2 against pylance's own REST server."""
    rows: list[Row] = []
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cases = (headline_case(bench.size), rabit_case(bench.size))
        for case in cases:
            bench.dataset(case.dataset)
        ours = stack.enter_context(start_ours(bench.root, logs / "ours.log"))
        peer = stack.enter_context(start_adapter(bench.root, logs / "adapter.log"))
        for case in cases:
            requests = [_namespace_request(case, query) for query in bench.queries]
            label = f"HTTP arrow, {case.label}, RestAdapter as peer"
            rows += _measure(label, (requests, requests), (ours, peer), num_blocks, BLOCK_QUERIES)
    return rows


def _namespace_request(case: Case, query: NDArray[np.float32]) -> bytes:
    """Return a request in the form of the Namespace protocol, which both servers speak."""
    members = {
        "vector": {"single_vector": query},
        "k": K,
        "columns": {"column_names": ["id"]},
        "nprobes": case.num_probes,
        "refine_factor": case.refine_factor,
        "prefilter": True,
    }
    return build_request(case.dataset, members, "arrow")


def measure_chroma(bench: BenchmarkSet, num_blocks: int) -> list[Row]:
    """Return figures of bar 9: plain queries at equal recall, and filtered ones."""
    case = Case("pq_refine", PREFILTERED, bench.size.num_probes, refine_factor=10)
    prefiltered(bench)
    rows: list[Row] = []
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(start_ours(bench.root, logs / "ours.log"))
        peer = stack.enter_context(start_chroma(bench.root / "chroma", logs / "chroma.log"))
        collection = _filled(bench, peer)
        rows.append(_recalls(bench, case, collection))
        requests = (
            [_our_request(case, query) for query in bench.queries],
            [collection.request(query, K) for query in bench.queries],
        )
        label = f"HTTP JSON, {case.label}, Chroma as peer"
        rows += _with_bars(_measure(label, requests, (ours, peer), num_blocks, BLOCK_QUERIES))
        for percent in FILTERED_PERCENTS:
            limit = UNIFORM_BELOW * percent // 100
            few = bench.queries[:FEW_QUERIES]
            requests = (
                [_our_request(case, query, f"u < {limit}") for query in few],
                [collection.request(query, K, {"u": {"$lt": limit}}) for query in few],
            )
            label = f"HTTP JSON, prefilter {percent} %, Chroma as peer"
            rows += _measure(label, requests, (ours, peer), num_blocks, FEW_QUERIES)
    return rows


def _our_request(case: Case, query: NDArray[np.float32], text: str | None = None) -> bytes:
    members = {
        "vector": query,
        "k": K,
        "columns": ["id"],
        "nprobes": case.num_probes,
        "refine_factor": case.refine_factor,
    }
    if text is not None:
        members["filter"] = text
    return build_request(case.dataset, members, "json")


def _filled(bench: BenchmarkSet, server: Server) -> Collection:
    """Return a collection with the rows of the set; it is filled once, which takes minutes."""
    collection = Collection(server, "bench")
    if collection.count() != bench.size.num_rows:
        print("filling Chroma", flush=True)
        table = lance.dataset(str(bench.root / PLAIN)).to_table(columns=["vector", "u"])
        vectors = table["vector"].combine_chunks().flatten().to_numpy()
        collection.add(vectors.reshape(-1, bench.size.dimension), table["u"].to_numpy())
    return collection


def _recalls(bench: BenchmarkSet, case: Case, collection: Collection) -> Row:
    with start_worker("ours") as worker:
        worker.open(bench.root / f"{case.dataset.replace('$', '/')}.lance")
        ours = recall(worker.find(bench.queries, case), bench.neighbours)
    found = np.array([collection.find(query, K) for query in bench.queries])
    peer = recall(found, bench.neighbours)
    name = f"{case.label}, Chroma as peer"
    return Row(name, f"recall@{K}", ours, peer, ours, LEAST_RECALL, "at least")


def _measure(
    label: str,
    requests: tuple[list[bytes], list[bytes]],
    servers: tuple[Server, Server],
    num_blocks: int,
    block: int,
) -> list[Row]:
    """Measure both servers in turn, each with its own spelling of the same queries."""
    for server, own in zip(servers, requests, strict=True):
        run_load(server.port, own, 2)  # fills caches
    rows: list[Row] = []
    for num_connections in CONNECTIONS:
        name = f"{label}, {num_connections} conn"
        print(name, flush=True)
        ours, peer = (
            partial(_measure_part, server, own, num_connections)
            for server, own in zip(servers, requests, strict=True)
        )
        blocks = interleave(ours, peer, _parts(len(requests[0]), num_blocks, block))
        rows += timing_rows(name, *blocks)
        rows.append(throughput_row(name, *blocks, None))
    return rows


def _measure_part(
    server: Server, requests: list[bytes], num_connections: int, places: Sequence[int]
) -> Block:
    return measure_server(server, num_connections, [requests[place] for place in places])


def _parts(num_requests: int, num_blocks: int, block: int) -> list[list[int]]:
    return [
        [(number * block + place) % num_requests for place in range(block)]
        for number in range(num_blocks)
    ]


def _with_bars(rows: list[Row]) -> list[Row]:
    """Add bar 9: not slower with one connection, and 1.4 times the throughput with eight."""
    return [_with_bar(row) for row in rows]


def _with_bar(row: Row) -> Row:
    if row.figure == "p50" and row.case.endswith(" 1 conn"):
        return replace(row, bar=CHROMA_P50_BAR)
    if row.figure == "queries per s" and row.case.endswith(" 8 conn"):
        return replace(row, bar=CHROMA_THROUGHPUT_BAR)
    return row
