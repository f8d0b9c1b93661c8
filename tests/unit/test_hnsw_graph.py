"""Graph rows as ``index.idx`` holds them, decoded and checked."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.hnsw_graph import (
    NO_GRAPH,
    GraphArrays,
    GraphHeader,
    decode_graph,
    read_graph_headers,
)
from tests.graph_twins import random_graph

PATH = "_indices/x/index.idx"
# Three nodes, the last two of them on level 1, the last alone on level 2.
IDS = [0, 1, 2, 1, 2, 2]
LINKS: list[list[int] | None] = [[2, 1], [0], [1, 0], [2], [1], []]
HEADER = GraphHeader(2, (0, 3, 5, 6, 6))


def decode(
    ids: list[int | None] = IDS,  # type: ignore[assignment]
    links: list[list[int] | None] = LINKS,
    header: GraphHeader | None = HEADER,
    num_nodes: int = 3,
) -> GraphArrays:
    columns = pa.array(ids, pa.uint32()), pa.array(links, pa.list_(pa.uint32()))
    return decode_graph(*columns, header, num_nodes, PATH)


def test_levels_become_arrays() -> None:
    graph = decode()
    assert graph.offsets.tolist() == [0, 2, 3, 5]
    assert graph.neighbours.tolist() == [2, 1, 0, 1, 0]
    assert graph.levels.tolist() == [2, 2, 0, 2, 3]
    assert graph.upper_nodes.tolist() == [1, 2, 2]
    assert graph.upper_offsets.tolist() == [0, 1, 2, 2]
    assert graph.upper_neighbours.tolist() == [2, 1]
    assert {array.dtype.name for array in graph} == {"uint32"}


def test_a_slice_of_a_batch_is_decoded_like_a_batch_of_its_own() -> None:
    before, after = [9, 7], [1]
    ids = pa.array([*before, *IDS, *after], pa.uint32())
    links = pa.array([[8], [8, 8], *LINKS, [3]], pa.list_(pa.uint32()))
    graph = decode_graph(ids[2:8], links[2:8], HEADER, 3, PATH)
    for own, expected in zip(graph, decode(), strict=True):
        np.testing.assert_array_equal(own, expected)
        assert own.base is None


def test_shifted_levels_of_old_writers_are_taken_as_they_stand() -> None:
    # Node 0 stands on every level; the offsets count it on level 0 only.
    ids: list[int | None] = [0, 1, 2, 0, 1, 2, 0]
    links: list[list[int] | None] = [[1], [0], [0], [1, 2], [2], [0], []]
    graph = decode(ids, links, GraphHeader(0, (0, 3, 5, 6, 6)))
    assert graph.levels.tolist() == [0, 2, 0, 2, 3]
    assert graph.upper_nodes.tolist() == [0, 1, 2]
    assert graph.upper_neighbours.tolist() == [1, 2, 2, 0]


def test_a_later_row_replaces_an_earlier_one_of_the_same_node() -> None:
    ids: list[int | None] = [0, 1, 2, 2, 1, 2]
    links: list[list[int] | None] = [[1], [0], [0], [0], [2], [1]]
    graph = decode(ids, links, GraphHeader(1, (0, 3, 6)))
    assert graph.upper_nodes.tolist() == [1, 2]
    assert graph.upper_neighbours.tolist() == [2, 1]


def test_a_partition_without_rows_has_no_graph() -> None:
    for header in (None, GraphHeader(0, (0,))):
        assert decode([], [], header, 0) is NO_GRAPH


@pytest.mark.parametrize("num_nodes", [1, 2, 300])
def test_written_graphs_are_read_back(num_nodes: int) -> None:
    plain = random_graph(5, num_nodes)
    header = GraphHeader(plain.entry_point, plain.level_offsets())
    graph = decode_graph(*plain.rows(), header, num_nodes, PATH)
    levels = [dict[int, list[int]]() for _ in plain.levels]
    for node in range(num_nodes):
        start, stop = graph.offsets[node : node + 2]
        levels[0][node] = graph.neighbours[start:stop].tolist()
    for level, first, last in zip(levels[1:], graph.levels[2:], graph.levels[3:], strict=False):
        for place in range(first, last):
            start, stop = graph.upper_offsets[place : place + 2]
            node = int(graph.upper_nodes[place])
            level[node] = graph.upper_neighbours[start:stop].tolist()
    assert levels == list(plain.levels)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"header": None}, "has no graph"),
        ({"header": GraphHeader(3, (0, 3, 5, 6))}, "entry point"),
        ({"header": GraphHeader(2, (0,))}, "levels"),
        ({"header": GraphHeader(2, (1, 3, 5))}, "levels"),
        ({"header": GraphHeader(2, (0, 3, 2))}, "levels"),
        ({"header": GraphHeader(2, (0, 3, 7))}, "levels"),
        ({"header": GraphHeader(1, (0, 2, 6))}, "level 0"),
        ({"num_nodes": 4}, "level 0"),
        ({"header": GraphHeader(0, (0, 3, 6)), "num_nodes": 2}, "a node"),
        ({"ids": [0, 2, 1, 1, 2, 2]}, "level 0"),
        ({"ids": [0, 1, 2, 3, 2, 2]}, "a node"),
        ({"ids": [0, 1, 2, None, 2, 2]}, "null"),
        ({"links": [[2, 1], [0], [1, 3], [2], [1], []]}, "a node"),
        ({"links": [[2, 1], [0], None, [2], [1], []]}, "null"),
        ({"links": [[2, 1], [0], [1, None], [2], [1], []]}, "null"),
        ({"links": [[2, 1], [0], [1, 0], [2, 1, 2, 1], [1], []]}, "more neighbours"),
    ],
)
def test_graphs_that_contradict_themselves_are_refused(
    change: dict[str, object], reason: str
) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        decode(**change)  # type: ignore[arg-type]


def test_rows_behind_the_last_level_are_not_looked_at() -> None:
    assert decode([*IDS, 77], [*LINKS, [99]]).levels.tolist() == decode().levels.tolist()


def test_headers_are_read() -> None:
    texts = ['{"entry_point":3,"params":{},"level_offsets":[0,5]}', "", '{"level_offsets": [0]}']
    headers = read_graph_headers({"lance:hnsw": json.dumps(texts)}, PATH)
    assert headers == [GraphHeader(3, (0, 5)), None, GraphHeader(0, (0,))]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '["["]',
        '["7"]',
        '["{}"]',
        '["{\\"level_offsets\\":[0,-1]}"]',
        '["{\\"level_offsets\\":[0,true]}"]',
        '["{\\"level_offsets\\":[0],\\"entry_point\\":null}"]',
        '["{\\"level_offsets\\":[0,1e9]}"]',
    ],
)
def test_headers_that_are_no_list_of_graphs_are_refused(text: str) -> None:
    with pytest.raises(CorruptFileError):
        read_graph_headers({"lance:hnsw": text}, PATH)


def test_a_file_without_graphs_makes_its_segment_unusable() -> None:
    with pytest.raises(UnusableSegmentError):
        read_graph_headers({}, PATH)
