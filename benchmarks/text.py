"""Full-text search on both sides: queries, the bytes of first queries, and building the index."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from benchmarks.builds import BUDGET_BYTES
from benchmarks.report import Row, timing_rows
from benchmarks.summary import interleave
from benchmarks.text_bytes import needed_bytes
from benchmarks.text_engines import TextAsk, start_text_worker
from benchmarks.text_over_http import measure_text_over_http
from benchmarks.text_sets import UNIFORM_BELOW, open_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.datasets import BenchmarkSet
    from benchmarks.text_engines import TextWorker
from benchmarks.text_sets import Texts

COMMON_SHARE = 0.01
"""A word is common if so many of the documents have it, and middling above `RARE_SHARE`."""
RARE_SHARE = 1e-4
FILTER_SHARE = 0.01
NEW_BLOCK_QUERIES = 50
"""Queries of a block where none may have been asked before."""
BLOCK_QUERIES = 200
COLD_QUERIES = 15
COLD_BAR = 1.2
BUILD_BAR = 2.0
SCORE_TOLERANCE = 1e-5

Filter = Literal["no", "one", "own"]


@dataclass(frozen=True, slots=True)
class TextCase:
    """Queries of one kind; ``filter`` tells whether they have one, or each one of its own.

    ``bar`` is of words that were asked for before, and of filters that were not if they change.
    """

    name: str
    kind: Literal["or", "and", "phrase"]
    num_words: int
    bar: float
    filter: Filter = "no"


CASES = (
    TextCase("match, 1 term", "or", 1, 0.7),
    TextCase("match, 2 terms", "or", 2, 0.7),
    TextCase("match, 5 terms", "or", 5, 0.7),
    TextCase("AND, 2 terms", "and", 2, 1.0),
    TextCase("phrase, 2 terms", "phrase", 2, 1.0),
    TextCase("match, 2 terms, one prefilter 1 %", "or", 2, 0.5, "one"),
    TextCase("match, 2 terms, new prefilters 1 %", "or", 2, 0.5, "own"),
)
HTTP_CASES = tuple(case for case in CASES if case.num_words == 2 and case.filter != "own")
COLD_CASES = tuple(case for case in CASES if case.filter == "no")


def measure_text(bench: BenchmarkSet, num_blocks: int) -> list[Row]:
    """Return latency and CPU of every case, bytes of first queries, and what builds took."""
    texts = open_texts(bench)
    rows: list[Row] = []
    with ExitStack() as stack:
        ours, peer = (stack.enter_context(start_text_worker(side)) for side in ("ours", "pylance"))
        for case in CASES:
            print(f"text, {case.name}", flush=True)
            rows += _measure_case(texts, case, ours, peer, num_blocks)
        for case in COLD_CASES:
            print(f"text, bytes of {case.name}", flush=True)
            rows.append(_measure_bytes(texts, case, ours, peer))
    generator = np.random.default_rng(2)
    asks = {case.name: draw_asks(texts, case, BLOCK_QUERIES, generator) for case in HTTP_CASES}
    return rows + measure_text_over_http(texts, asks, num_blocks) + _measure_builds(texts)


def draw_asks(
    texts: Texts, case: TextCase, count: int, generator: np.random.Generator
) -> list[TextAsk]:
    """Return queries: phrases from the texts, other words half common and half middling."""
    if case.kind == "phrase":
        words = texts.pairs[generator.integers(len(texts.pairs), size=count)]
    else:
        words = _draw_words(texts, (count, case.num_words), generator)
    asks = [TextAsk(case.kind, " ".join(texts.words[word] for word in row)) for row in words]
    return _with_filters(case, asks, generator)


def _with_filters(
    case: TextCase, asks: list[TextAsk], generator: np.random.Generator
) -> list[TextAsk]:
    """Return the same queries with the filters of a case, new ones if they have their own."""
    width = int(UNIFORM_BELOW * FILTER_SHARE)
    lowest = generator.integers(UNIFORM_BELOW - width, size=len(asks))
    if case.filter == "no":
        return asks
    if case.filter == "one":
        lowest[:] = 0
    filters = [f"u >= {low} AND u < {low + width}" for low in lowest.tolist()]
    return [replace(ask, filter=each) for ask, each in zip(asks, filters, strict=True)]


def _draw_words(
    texts: Texts, shape: tuple[int, int], generator: np.random.Generator
) -> NDArray[np.int64]:
    shares = texts.document_shares
    common = np.flatnonzero(shares >= COMMON_SHARE)
    middling = np.flatnonzero((shares >= RARE_SHARE) & (shares < COMMON_SHARE))
    is_common = generator.random(shape) < 1 / 2
    return np.where(is_common, generator.choice(common, shape), generator.choice(middling, shape))


def _measure_case(
    texts: Texts, case: TextCase, ours: TextWorker, peer: TextWorker, num_blocks: int
) -> list[Row]:
    """Measure queries whose words were never asked for, then such as were."""
    generator = np.random.default_rng(len(case.name))
    for worker in (ours, peer):
        worker.open(texts.indexed)
    label = f"text, {case.name}"
    new = [draw_asks(texts, case, NEW_BLOCK_QUERIES, generator) for _ in range(num_blocks + 1)]
    _check_scores(case, new.pop(), ours, peer)
    rows = []
    if case.filter == "no":
        rows = timing_rows(f"{label}, new words", *interleave(ours.measure, peer.measure, new))
    asks = draw_asks(texts, case, BLOCK_QUERIES, generator)
    _check_scores(case, asks, ours, peer)
    again = [_with_filters(case, asks, generator) for _ in range(num_blocks)]
    blocks = interleave(ours.measure, peer.measure, again)
    return [*timing_rows(label, *blocks, p50_bar=case.bar), *rows]


def _check_scores(
    case: TextCase, asks: Sequence[TextAsk], ours: TextWorker, peer: TextWorker
) -> None:
    for ask, found, expected in zip(asks, ours.scores(asks), peer.scores(asks), strict=True):
        same = len(found) == len(expected)
        if not same or not np.allclose(found, expected, rtol=SCORE_TOLERANCE, atol=0):
            raise SystemExit(f"{case.name}: the sides find other scores for {ask}")


def _measure_bytes(texts: Texts, case: TextCase, ours: TextWorker, peer: TextWorker) -> Row:
    """Return the medians of both sides; the ratio is of ours to what is needed."""
    asks = draw_asks(texts, case, COLD_QUERIES, np.random.default_rng(1))
    read, theirs = (
        np.array([worker.bytes_read(texts.indexed, ask) for ask in asks]) for worker in (ours, peer)
    )
    needed = np.array([needed_bytes(texts.indexed, ask) for ask in asks])
    return Row(
        f"text, first query, {case.name}; ratio to the needed",
        "kB read",
        float(np.median(read)) / 1e3,
        float(np.median(theirs)) / 1e3,
        float(np.median(read / needed)),
        COLD_BAR,
    )


def _measure_builds(texts: Texts) -> list[Row]:
    print("text, build", flush=True)
    built = {}
    with tempfile.TemporaryDirectory(dir=texts.root) as folder:
        for side in ("ours", "pylance"):
            path = Path(folder) / side
            texts.link_plain(path)
            with start_text_worker(side) as worker:
                built[side] = worker.build(path)
    ours, peer = built["ours"], built["pylance"]
    label = "text, build with positions"
    peak = ours.peak_mb * 1e6 / BUDGET_BYTES
    return [
        Row(label, "wall s", ours.wall_s, peer.wall_s, ours.wall_s / peer.wall_s),
        Row(label, "CPU s", ours.cpu_s, peer.cpu_s, ours.cpu_s / peer.cpu_s, BUILD_BAR),
        Row(label, "peak MB; ratio to budget", ours.peak_mb, peer.peak_mb, peak, 1.0),
    ]
