"""Filters on both sides: through scalar indices, by scanning, and before a vector search.

Every query of the first two kinds has a filter of its own, so that no side has its answer ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import lance
import numpy as np

from benchmarks.cases import K, headline_case
from benchmarks.filter_engines import start_filter_worker
from benchmarks.filter_sets import (
    NUM_CATEGORIES,
    UNIFORM_BELOW,
    indexed,
    prefiltered,
    scanned,
)
from benchmarks.report import Row, timing_rows
from benchmarks.summary import interleave, recall
from benchmarks.synthetic import exact_neighbours

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.datasets import BenchmarkSet
    from benchmarks.filter_engines import Action, FilterWorker

SCAN_BARS = {"numeric": 1 / 0.7, "string": 1 / 0.5}
"""Times of ours by the peer's: at least 0.7 and 0.5 of its speed."""
PREFILTER_BARS = {50.0: 0.12, 5.0: 0.2, 0.5: 0.2}
FIRST_USE_BAR = 0.5
EXACT_BELOW_PERCENT = 0.5
RECALL_BAR = 0.99
RECALL_QUERIES = 200
PREFILTER_QUERIES = 100


@dataclass(frozen=True, slots=True)
class FilterCase:
    """Filters of one kind, which are measured in blocks of ``block_queries``.

    ``draw`` makes one of them; ``dataset`` finds what they are asked of; ``bar`` is of the p50.
    """

    name: str
    dataset: Callable[[BenchmarkSet], Path]
    action: Action
    draw: Callable[[np.random.Generator], str]
    bar: float
    block_queries: int


def _some_of_u(count: int, generator: np.random.Generator) -> str:
    numbers = generator.choice(UNIFORM_BELOW, count, replace=False)
    return f"u IN ({', '.join(map(str, numbers.tolist()))})"


def _range_of_u(share: float, generator: np.random.Generator) -> str:
    width = int(share * UNIFORM_BELOW)
    start = int(generator.integers(UNIFORM_BELOW - width))
    return f"u >= {start} AND u < {start + width}"


def _number(template: str, limit: int, generator: np.random.Generator) -> str:
    return template.format(int(generator.integers(limit)))


CASES = (
    FilterCase(
        "BTREE, u = n", indexed, "rows", partial(_number, "u = {}", UNIFORM_BELOW), 1.0, 100
    ),
    FilterCase("BTREE, 0.1 % of the rows", indexed, "rows", partial(_range_of_u, 0.001), 1.0, 50),
    FilterCase(
        "BITMAP, 0.1 % of the rows",
        indexed,
        "rows",
        partial(_number, "category = 'category {}'", NUM_CATEGORIES),
        1.0,
        50,
    ),
    FilterCase("BTREE, IN 10,000 values", indexed, "rows", partial(_some_of_u, 10_000), 1.0, 10),
    FilterCase("BTREE, IN 100,000 values", indexed, "rows", partial(_some_of_u, 100_000), 1.5, 2),
    FilterCase("BTREE, count 10 %", indexed, "count", partial(_range_of_u, 0.1), 1.0, 20),
    FilterCase(
        "BITMAP, count 0.1 %",
        indexed,
        "count",
        partial(_number, "category = 'category {}'", NUM_CATEGORIES),
        1.0,
        50,
    ),
    FilterCase(
        "scan, price < x (1 %)",
        scanned,
        "rows",
        partial(_number, "price < 0.01{:04}", 1_000),
        SCAN_BARS["numeric"],
        10,
    ),
    FilterCase(
        "scan, label = text",
        scanned,
        "rows",
        partial(_number, "label = 'amber birch cedar {}'", UNIFORM_BELOW),
        SCAN_BARS["string"],
        10,
    ),
    FilterCase(
        "scan, label LIKE '%text%'",
        scanned,
        "rows",
        partial(_number, "label LIKE '%jade {}%'", 100),
        SCAN_BARS["string"],
        5,
    ),
)


def measure_scalar(bench: BenchmarkSet, num_blocks: int) -> list[Row]:
    """Return latency and CPU of every case for both sides, and recall under prefilters."""
    rows: list[Row] = []
    with start_filter_worker("ours") as ours, start_filter_worker("pylance") as peer:
        for case in CASES:
            print(f"filters, {case.name}", flush=True)
            rows += _measure_case(bench, case, ours, peer, num_blocks)
        for percent, bar in PREFILTER_BARS.items():
            print(f"filters, prefilter {percent} %", flush=True)
            rows += _measure_prefilter(bench, percent, bar, ours, peer, num_blocks)
    return rows


def _measure_case(
    bench: BenchmarkSet, case: FilterCase, ours: FilterWorker, peer: FilterWorker, num_blocks: int
) -> list[Row]:
    generator = np.random.default_rng(len(case.name))
    warm_up, *parts = (
        [case.draw(generator) for _ in range(case.block_queries)] for _ in range(num_blocks + 1)
    )
    numbers = []
    for worker in (ours, peer):
        worker.open(case.dataset(bench))
        numbers.append(worker.numbers(case.action, warm_up))
    if numbers[0] != numbers[1]:
        raise SystemExit(f"{case.name}: the sides find different numbers of rows")
    blocks = interleave(
        lambda part: ours.measure(case.action, part),
        lambda part: peer.measure(case.action, part),
        parts,
    )
    return timing_rows(f"filter, {case.name}", *blocks, p50_bar=case.bar)


def _measure_prefilter(
    bench: BenchmarkSet,
    percent: float,
    bar: float,
    ours: FilterWorker,
    peer: FilterWorker,
    num_blocks: int,
) -> list[Row]:
    case = headline_case(bench.size)
    limit = int(UNIFORM_BELOW * percent / 100)
    label = f"prefilter {percent:g} %, {case.label}"
    same = [f"u < {limit}"] * PREFILTER_QUERIES
    queries = bench.queries[:RECALL_QUERIES]
    truth = _nearest_that_pass(bench, queries, limit)
    recalls = []
    for worker in (ours, peer):
        worker.open(prefiltered(bench))
        found = worker.find(queries, same[:1] * len(queries), case, K)
        recalls.append(recall(found, truth))
    chosen = np.random.default_rng(limit).integers(len(bench.queries), size=PREFILTER_QUERIES)
    vectors = bench.queries[chosen]
    repeated = interleave(
        lambda texts: ours.search(vectors, texts, case, K),
        lambda texts: peer.search(vectors, texts, case, K),
        [same] * num_blocks,
    )
    firsts = interleave(
        lambda texts: ours.search(vectors[: len(texts)], texts, case, K),
        lambda texts: peer.search(vectors[: len(texts)], texts, case, K),
        [[f"u < {limit + 1 + 20 * block + n}" for n in range(20)] for block in range(num_blocks)],
    )
    recall_bar = RECALL_BAR if percent <= EXACT_BELOW_PERCENT else None
    return [
        *timing_rows(f"{label}, repeated", *repeated, p50_bar=bar),
        *timing_rows(f"{label}, first use", *firsts, p50_bar=FIRST_USE_BAR),
        Row(label, f"recall@{K}", recalls[0], recalls[1], recalls[0], recall_bar, "at least"),
    ]


def _nearest_that_pass(
    bench: BenchmarkSet, queries: NDArray[np.float32], limit: int
) -> NDArray[np.int64]:
    """Return the ids of the exact neighbours among the rows whose ``u`` is below a limit."""
    dataset = lance.dataset(str(prefiltered(bench)))
    passing = dataset.to_table(
        columns=["id", "vector"], filter=f"u < {limit}", use_scalar_index=False
    )
    vectors = passing["vector"].combine_chunks().flatten().to_numpy().reshape(len(passing), -1)
    ids: NDArray[np.int64] = passing["id"].to_numpy()
    return ids[exact_neighbours(vectors, queries, K)]
