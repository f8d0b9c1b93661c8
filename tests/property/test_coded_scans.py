"""Scans by codes find what scans of the vectors find, whatever the vectors are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.index.vector.metric import Metric
from lance_core.kernels.coded_scan import scan_coded_pages
from lance_core.kernels.exact import scan_pages
from lance_core.kernels.memory import address_of
from lance_core.kernels.topk import TopRows
from lance_core.query.coded_vectors import CodeTable
from lance_core.query.searchable_rows import VectorPages
from lance_core.scan.vector_codes import VectorCodes
from lance_core.scan.vector_column import VectorRuns
from tests.kernel_blocks import all_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

METRICS = [Metric.L2, Metric.COSINE, Metric.DOT]
NUM_ROWS = 5_000
DIMENSIONS = [1, 3, 16, 63, 64, 65, 128, 130, 200]


def normal(generator: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return generator.standard_normal(shape, np.float32)


def clustered(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
    centres = normal(generator, 20, width)
    near = normal(generator, rows, width) * np.float32(0.1)
    return centres[generator.integers(0, 20, rows)] + near


def scaled(factor: float) -> Callable[[np.random.Generator, int, int], NDArray[np.float32]]:
    def vectors(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
        with np.errstate(over="ignore"):
            return clustered(generator, rows, width) * np.float32(factor)

    return vectors


def constant(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
    return np.full((rows, width), generator.standard_normal(), np.float32)


def shifted(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
    found = clustered(generator, rows, width)
    found[:, :: max(1, width // 3)] += np.float32(1e7)
    return found


def repeated(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
    return clustered(generator, 7, width)[generator.integers(0, 7, rows)]


def with_outliers(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
    found = clustered(generator, rows, width)
    found[generator.integers(0, rows, 3)] *= np.float32(1e20)
    return found


def with_odd_numbers(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
    found = clustered(generator, rows, width)
    odd = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0, -0.0], np.float32)
    places = generator.integers(0, rows, 40), generator.integers(0, width, 40)
    found[places] = generator.choice(odd, 40)
    found[generator.integers(0, rows, 5)] = 0
    return found


def of_one_length(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
    found = clustered(generator, rows, width)
    lengths: NDArray[np.float32] = np.linalg.norm(found, axis=1, keepdims=True)
    return found / lengths


def of_few_values(generator: np.random.Generator, rows: int, width: int) -> NDArray[np.float32]:
    return generator.integers(-2, 3, (rows, width)).astype(np.float32)


KINDS: dict[str, Callable[[np.random.Generator, int, int], NDArray[np.float32]]] = {
    "normal": normal,
    "clustered": clustered,
    "huge": scaled(1e18),
    "next to overflow": scaled(1e38),
    "tiny": scaled(1e-19),
    "denormal": scaled(1e-43),
    "constant": constant,
    "shifted": shifted,
    "repeated": repeated,
    "outliers": with_outliers,
    "odd numbers": with_odd_numbers,
    "few values": of_few_values,
    "one length": of_one_length,
}


def coded(vectors: NDArray[np.float32], metric: Metric) -> VectorCodes:
    firsts = np.array([0, 700, 4_900], np.int64)
    runs = VectorRuns(
        addresses=address_of(vectors) + firsts * vectors.shape[1] * 4,
        first_offsets=firsts,
        num_rows=np.diff(firsts, append=len(vectors)),
        num_vectors=len(vectors),
        is_valid=None,
        owners=(vectors,),
        mapped_file=None,
        nbytes=vectors.nbytes,
    )
    coded_for = Metric.L2 if metric == Metric.DOT else metric
    codes = VectorCodes(runs, vectors.shape[1], coded_for.code)
    for _ in range(9):
        codes.advance(lambda: None)
    return codes


def pages_of(vectors: NDArray[np.float32], cuts: list[int], fragments: int) -> VectorPages:
    """Cut vectors into pages, whose fragments all begin with the first of them."""
    offsets = np.array(sorted({0, *(cut % len(vectors) for cut in cuts)}), np.int64)
    return VectorPages(
        addresses=address_of(vectors) + offsets * vectors.shape[1] * 4,
        num_rows=np.diff(offsets, append=len(vectors)),
        first_ordinals=offsets,
        fragments=np.arange(len(offsets)) % fragments,
        first_offsets=offsets,
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", sorted(KINDS))
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from(DIMENSIONS),
    cuts=st.lists(st.integers(0, NUM_ROWS), max_size=3),
    num_queries=st.integers(1, 3),
    k=st.sampled_from([0, 1, 10, 200]),
    bound=st.sampled_from(["none", "kth", "half", "range", "below all"]),
)
def test_a_scan_by_codes_finds_what_a_scan_of_the_vectors_finds(
    kind: str,
    metric: Metric,
    seed: int,
    width: int,
    cuts: list[int],
    num_queries: int,
    k: int,
    bound: str,
) -> None:
    generator = np.random.default_rng(seed)
    vectors = np.ascontiguousarray(KINDS[kind](generator, NUM_ROWS, width))
    queries = vectors[generator.integers(0, len(vectors), num_queries)]
    queries[~np.isfinite(queries)] = 1
    with np.errstate(over="ignore"):
        moved = queries * (1 + np.float32(0.01) * normal(generator, *queries.shape))
    queries = np.where(np.isfinite(moved), moved, queries)
    if metric == Metric.COSINE:
        queries[~(queries != 0).any(axis=1)] = 1
    words = all_rows(len(vectors)) & generator.integers(
        0, 2**64, len(all_rows(len(vectors))), np.uint64
    )
    pages = pages_of(vectors, cuts, fragments=2)
    table = CodeTable([coded(vectors, metric), None])
    found, expected = [], []
    for query in queries:
        lower, upper = bounds_for(bound, pages, query, metric, words, k)
        top = TopRows(k, len(vectors), lower, upper)
        scan(pages, query, metric, words, top)
        expected.append(top)
        found.append(TopRows(k, len(vectors), lower, upper))
    scan_coded_pages(table.of_pages(pages), table.grids, queries, metric.code, words, found)
    for one, other in zip(found, expected, strict=True):
        assert [part.tolist() for part in one.nearest()] == [
            part.tolist() for part in other.nearest()
        ]


@given(
    lengths=st.lists(st.integers(0, 40), max_size=6),
    max_rows=st.integers(1, 90),
    row_bytes=st.sampled_from([1, 24]),
)
def test_pieces_hold_all_rows_once_and_in_order(
    lengths: list[int], max_rows: int, row_bytes: int
) -> None:
    rows, count = np.array(lengths, np.int64), len(lengths)
    firsts = np.cumsum(rows) - rows
    pages = VectorPages(firsts * 1_000, rows, firsts + 7, np.arange(count), firsts % 5)
    expected = [each for place in range(count) for each in rows_of(pages, place, row_bytes)]
    pieces = list(pages.pieces(max_rows, row_bytes))
    assert [int(piece.num_rows.sum()) <= max_rows for piece in pieces] == [True] * len(pieces)
    assert expected == [
        each
        for piece in pieces
        for place in range(len(piece.num_rows))
        for each in rows_of(piece, place, row_bytes)
    ]


def rows_of(pages: VectorPages, place: int, row_bytes: int) -> list[tuple[int, ...]]:
    """Return address, ordinal, fragment and offset of each row of a run."""
    return [
        (
            int(pages.addresses[place]) + row * row_bytes,
            int(pages.first_ordinals[place]) + row,
            int(pages.fragments[place]),
            int(pages.first_offsets[place]) + row,
        )
        for row in range(int(pages.num_rows[place]))
    ]


def bounds_for(
    bound: str,
    pages: VectorPages,
    query: NDArray[np.float32],
    metric: Metric,
    words: NDArray[np.uint64],
    k: int,
) -> tuple[float | None, float | None]:
    """Return bounds that lie among the distances found, by name."""
    if bound == "none":
        return None, None
    if bound == "below all":
        return None, -1.0
    top = TopRows(max(k, 1), NUM_ROWS)
    scan(pages, query, metric, words, top)
    distances, _ = top.nearest()
    if len(distances) == 0:
        return None, 0.0
    place = len(distances) // 2 if bound == "half" else -1
    upper = float(np.nextafter(distances[place], np.float32(np.inf)))
    return (float(distances[0]) if bound == "range" else None), upper


def scan(
    pages: VectorPages,
    query: NDArray[np.float32],
    metric: Metric,
    words: NDArray[np.uint64],
    top: TopRows,
) -> None:
    scan_pages(
        pages.addresses, pages.num_rows, pages.first_ordinals, query.copy(), metric.code, words, top
    )
