"""Graphs of partitions: what every one of them must hold, and what they are built over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.index.vector.build import graph as graph_module
from lance_core.index.vector.build.graph import GraphBuilder, PartitionGraph
from lance_core.index.vector.build.graph_copies import find_copies
from lance_core.index.vector.build.graph_rows import table_of_pairs
from lance_core.index.vector.build.model import (
    FlatCoding,
    GraphParameters,
    PqCoding,
    RabitCoding,
    SqCoding,
    VectorModel,
)
from lance_core.index.vector.hnsw_graph import GraphHeader, decode_graph
from lance_core.index.vector.metric import Metric
from tests.grafted_graphs import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import Coding

DIMENSION = 12
SMALL = GraphParameters(max_connections=4, ef_construction=12)
BOUNDS = SqCoding(-1.5, 2.5)
FLOATS = (Metric.L2, Metric.COSINE, Metric.DOT)


def codebook(num_bits: int) -> NDArray[np.float32]:
    generator = np.random.default_rng(2)
    return generator.standard_normal((4, 1 << num_bits, DIMENSION // 4), np.float32)


CASES: list[tuple[str, Coding, Metric]] = [
    *(("FLAT", FlatCoding(), metric) for metric in (*FLOATS, Metric.HAMMING)),
    *(("SQ", BOUNDS, metric) for metric in FLOATS),
    *(("PQ", PqCoding(8, codebook(8)), metric) for metric in FLOATS),
    *(("PQ 4 bit", PqCoding(4, codebook(4)), metric) for metric in FLOATS),
]
IDS = [f"{name} {metric}" for name, _, metric in CASES]


def model(
    coding: Coding, metric: Metric = Metric.L2, graph: GraphParameters | None = SMALL
) -> VectorModel:
    centroids = np.zeros((1, DIMENSION), np.float32)
    return VectorModel(metric, pa.float32(), centroids, coding, graph)


def draw(coding: Coding, metric: Metric, num_rows: int, seed: int = 0) -> NDArray[np.generic]:
    """Return coded rows."""
    generator = np.random.default_rng(seed)
    if isinstance(coding, PqCoding):
        return generator.integers(0, 256, (num_rows, 4 * coding.num_bits // 8), np.uint8)
    if isinstance(coding, SqCoding) or metric == Metric.HAMMING:
        return generator.integers(0, 256, (num_rows, DIMENSION), np.uint8)
    vectors = generator.standard_normal((num_rows, DIMENSION), np.float32)
    if metric == Metric.COSINE:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def decoded(coding: Coding, metric: Metric, codes: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the vectors that codes stand for; bits with hamming."""
    if metric == Metric.HAMMING:
        return np.unpackbits(codes.view(np.uint8), axis=1).astype(np.float64)
    if isinstance(coding, SqCoding):
        return coding.start + codes.astype(np.float64) * (coding.end - coding.start) / 255
    if isinstance(coding, PqCoding):
        whole = codes.view(np.uint8)
        if coding.num_bits == 4:
            whole = np.stack([whole & 15, whole >> 4], axis=2).reshape(len(codes), -1)
        parts = [coding.codebook[j, whole[:, j]] for j in range(4)]
        return np.concatenate(parts, axis=1).astype(np.float64)
    return codes.astype(np.float64)


def expected_distances(
    coding: Coding, metric: Metric, vectors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distances of all pairs, as the storage knows them."""
    is_product = metric == Metric.DOT or (metric == Metric.COSINE and coding == FlatCoding())
    if is_product:
        return 1 - vectors @ vectors.T
    gaps: NDArray[np.float64] = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    return gaps


def lists(graph: PartitionGraph) -> list[list[int]]:
    neighbours: list[list[int]] = graph.rows["__neighbors"].to_pylist()
    return neighbours


def reached(neighbours: list[list[int]], start: int) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        new = set(neighbours[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def assert_sound(graph: PartitionGraph, num_nodes: int, parameters: GraphParameters) -> None:
    """Check what holds for every graph."""
    rows, offsets = graph.rows, graph.level_offsets
    assert graph.entry_point is not None
    header = GraphHeader(graph.entry_point, offsets)
    decode_graph(rows["__vector_id"], rows["__neighbors"], header, num_nodes, "x")
    assert len(offsets) == parameters.max_level + 1
    assert offsets[-1] == len(rows)
    neighbours = lists(graph)
    nodes = rows["__vector_id"].to_pylist()
    for level in range(parameters.max_level):
        of_level = nodes[offsets[level] : offsets[level + 1]]
        assert of_level == sorted(set(of_level))
        assert (graph.entry_point in of_level) == (len(of_level) > 0)
        most = parameters.max_connections * (2 if level == 0 else 1)
        for row, node in enumerate(of_level, offsets[level]):
            assert len(set(neighbours[row])) == len(neighbours[row]) <= most
            assert node not in neighbours[row]
            assert set(neighbours[row]) <= set(of_level)
    assert len(reached(neighbours[:num_nodes], graph.entry_point)) == num_nodes


@pytest.mark.parametrize("num_rows", [1, 2, 9, 500])
@pytest.mark.parametrize(("name", "coding", "metric"), CASES, ids=IDS)
def test_graphs_are_sound_and_know_distances(
    name: str, coding: Coding, metric: Metric, num_rows: int
) -> None:
    codes = draw(coding, metric, num_rows)
    graph = GraphBuilder(model(coding, metric)).build(codes)
    assert_sound(graph, num_rows, SMALL)
    expected = expected_distances(coding, metric, decoded(coding, metric, codes))
    nodes = graph.rows["__vector_id"].to_numpy()
    lengths = graph.rows["__neighbors"].value_lengths().to_numpy()
    links = graph.rows["__neighbors"].flatten().to_numpy()
    np.testing.assert_allclose(
        graph.rows["_distance"].flatten().to_numpy(),
        expected[np.repeat(nodes, lengths), links],
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_vectors_of_other_floats_are_linked_as_those_of_float32(
    dtype: type[np.floating[Any]],
) -> None:
    vectors = draw(FlatCoding(), Metric.L2, 300).astype(np.float16)
    builder = GraphBuilder(model(FlatCoding()))
    expected = builder.build(vectors.astype(np.float32))
    assert builder.build(vectors.astype(dtype)).rows.equals(expected.rows)


def test_vectors_beyond_float32_are_reached_too() -> None:
    vectors = draw(FlatCoding(), Metric.L2, 300).astype(np.float64)
    vectors[::7] *= 1e300
    assert_sound(GraphBuilder(model(FlatCoding())).build(vectors), 300, SMALL)


@pytest.mark.parametrize("max_level", [1, 2, 7])
def test_no_node_is_above_the_highest_level(max_level: int) -> None:
    parameters = GraphParameters(4, 12, max_level)
    codes = draw(BOUNDS, Metric.L2, 1_000)
    graph = GraphBuilder(model(BOUNDS, graph=parameters)).build(codes)
    assert_sound(graph, 1_000, parameters)
    num_levels = len(set(graph.level_offsets)) - 1
    assert num_levels == max_level or 4 <= num_levels < max_level


def test_an_empty_partition_has_no_graph() -> None:
    builder = GraphBuilder(model(BOUNDS))
    graph = builder.build(np.zeros((0, DIMENSION), np.uint8))
    assert (len(graph.rows), graph.entry_point, set(graph.level_offsets)) == (0, None, {0})
    assert listed(builder.metadata([graph])) == [""]


def test_metadata_says_where_levels_lie_and_how_graphs_were_built() -> None:
    builder = GraphBuilder(model(BOUNDS))
    graph = builder.build(draw(BOUNDS, Metric.L2, 50))
    (text,) = listed(builder.metadata([graph]))
    assert json.loads(text) == {
        "entry_point": graph.entry_point,
        "params": {"max_level": 7, "m": 4, "ef_construction": 12, "prefetch_distance": 2},
        "level_offsets": list(graph.level_offsets),
    }


@pytest.mark.parametrize("num_others", [0, 40])
def test_every_one_of_many_equal_rows_is_reached(num_others: int) -> None:
    equal = np.full((10_000, DIMENSION), 7, np.uint8)
    codes = np.concatenate([equal, draw(BOUNDS, Metric.L2, num_others).astype(np.uint8)])
    graph = GraphBuilder(model(BOUNDS)).build(codes)
    assert_sound(graph, len(codes), SMALL)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 12])
def test_copies_hang_from_the_first_row_that_they_equal(width: int) -> None:
    rows = np.random.default_rng(6).integers(0, 3, (400, width), np.uint8)
    copies = find_copies(rows)
    firsts: dict[bytes, int] = {}
    for row, values in enumerate(rows):
        firsts.setdefault(values.tobytes(), row)
    found = dict(zip(copies.rows.tolist(), copies.originals.tolist(), strict=True))
    wanted = {row: firsts[values.tobytes()] for row, values in enumerate(rows)}
    assert found == {row: first for row, first in wanted.items() if row != first}
    graph = GraphBuilder(model(BOUNDS)).build(rows)
    assert_sound(graph, 400, SMALL)


def test_groups_far_from_each_other_are_reached() -> None:
    generator = np.random.default_rng(4)
    centres = 1e4 * np.eye(DIMENSION, dtype=np.float32)
    vectors = np.repeat(centres, 80, axis=0)
    vectors += generator.standard_normal(vectors.shape, np.float32)
    graph = GraphBuilder(model(FlatCoding())).build(vectors)
    assert_sound(graph, len(vectors), SMALL)


def test_with_dot_the_longest_rows_keep_links_to_what_is_nearest_to_them() -> None:
    generator = np.random.default_rng(7)
    vectors = generator.standard_normal((4_000, DIMENSION), np.float32)
    vectors *= generator.lognormal(0, 0.5, (len(vectors), 1)).astype(np.float32)
    graph = GraphBuilder(model(FlatCoding(), Metric.DOT, GraphParameters())).build(vectors)
    longest = np.argsort(-np.linalg.norm(vectors, axis=1))[:20]
    products = vectors[longest] @ vectors.T
    products[np.arange(len(longest)), longest] = -np.inf
    links = lists(graph)
    kept = [int(best) in links[row] for row, best in zip(longest, products.argmax(1), strict=True)]
    assert np.mean(kept) >= 0.9


@pytest.fixture
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "_MANY_ROWS", 400)
    monkeypatch.setattr(graph_module, "_SERIAL_ROWS", 100)


@pytest.mark.parametrize(("name", "coding", "metric"), CASES, ids=IDS)
def test_two_threads_build_what_one_does(
    name: str, coding: Coding, metric: Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = draw(coding, metric, 900)
    builder = GraphBuilder(model(coding, metric))
    alone = builder.build(codes)
    monkeypatch.setattr(graph_module, "_MANY_ROWS", 400)
    monkeypatch.setattr(graph_module, "_SERIAL_ROWS", 100)
    together = builder.build(codes)
    assert together.rows.equals(alone.rows)
    assert together.level_offsets == alone.level_offsets
    assert together.entry_point == alone.entry_point


@pytest.mark.usefixtures("_two_threads")
def test_partitions_of_all_sizes_come_back_in_their_order() -> None:
    builder = GraphBuilder(model(BOUNDS))
    sizes = [30, 0, 500, 1, 60, 450, 2]
    partitions = [draw(BOUNDS, Metric.L2, size, seed=size) for size in sizes]
    for graph, codes in zip(builder.build_all(partitions, 500 * 360), partitions, strict=True):
        assert graph.rows.equals(builder.build(codes).rows)


def test_codes_of_rabitq_have_no_graphs() -> None:
    with pytest.raises(UnsupportedFeatureError, match="take FLAT, PQ or SQ"):
        GraphBuilder(model(RabitCoding(1, bytes(8))))


def test_a_partition_with_too_many_links_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "_MOST_LINKS", 1_000)
    with pytest.raises(InvalidRequestError, match="more partitions"):
        GraphBuilder(model(BOUNDS)).build(draw(BOUNDS, Metric.L2, 500))


@pytest.mark.parametrize("metric", FLOATS)
def test_tables_of_pairs_hold_what_two_codes_add(metric: Metric) -> None:
    values = codebook(4)
    products = np.einsum("mad,mbd->mab", values, values)
    gaps = ((values[:, :, None] - values[:, None]) ** 2).sum(axis=3)
    expected = -products if metric == Metric.DOT else gaps
    np.testing.assert_allclose(table_of_pairs(values, metric), expected, atol=1e-5)
