"""The graphs of a segment in a file of ours, found and read partition by partition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError
from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.flat import FlatVectors
from lance_core.index.vector.hnsw import HnswGraph, aligned_copy, open_hnsw
from lance_core.index.vector.hnsw_graph import NO_GRAPH, GraphHeader, decode_graph
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.quantizer import GraphSource
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.kernels.memory import address_of
from lance_core.proto import index_pb2
from tests.graph_twins import random_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.graph_twins import PlainGraph

SIZES = (40, 0, 7)
GRAPHS = [None if size == 0 else random_graph(size, size) for size in SIZES]


def header_text(graph: PlainGraph | None) -> str:
    if graph is None:
        return ""
    offsets = list(graph.level_offsets())
    return json.dumps({"entry_point": graph.entry_point, "level_offsets": offsets})


def graph_rows() -> pa.Table:
    rows = [graph.rows() for graph in GRAPHS if graph is not None]
    ids = pa.concat_arrays([ids for ids, _ in rows])
    links = pa.concat_arrays([links for _, links in rows])
    return pa.table({"__vector_id": ids, "__neighbors": links, "_distance": ids.cast(pa.float32())})


def open_graphs(
    *,
    rows: pa.Table | None = None,
    texts: list[str] | None = None,
    num_places: int = len(SIZES),
    num_centroids: int = len(SIZES),
) -> HnswGraph:
    """Write a file that says so, and open it."""
    table = graph_rows() if rows is None else rows
    lengths = [0 if graph is None else graph.level_offsets()[-1] for graph in GRAPHS]
    offsets = [0, *np.cumsum(lengths)[:-1].tolist()]
    ivf = index_pb2.IVF(offsets=offsets[:num_places], lengths=lengths[:num_places])
    given = [header_text(graph) for graph in GRAPHS] if texts is None else texts
    store = MemoryStore()
    with LanceFileWriter(store, "index.idx", table.schema) as writer:
        writer.add_schema_metadata(
            "lance:ivf", str(writer.add_global_buffer(ivf.SerializeToString()))
        )
        writer.add_schema_metadata("lance:hnsw", json.dumps(given))
        writer.write_batch(table)
        writer.finish()
    reader = LanceFileReader.open(RangeScheduler(store), "index.idx")
    quantizer = FlatVectors(4, Metric.L2, is_ready=True)
    centroids = np.zeros((num_centroids, 4), np.float32)
    return open_hnsw(GraphSource(reader, quantizer, Metric.L2, centroids))


@pytest.mark.parametrize("partitions", [[0], [1], [2, 0], [0, 1, 2], [1, 2], []])
def test_graphs_are_read_in_the_order_asked_for(partitions: list[int]) -> None:
    read = open_graphs().read(partitions, [SIZES[p] for p in partitions])
    assert len(read) == len(partitions)
    for p, arrays in zip(partitions, read, strict=True):
        plain = GRAPHS[p]
        expected = NO_GRAPH
        if plain is not None:
            header = GraphHeader(plain.entry_point, plain.level_offsets())
            expected = decode_graph(*plain.rows(), header, SIZES[p], "x")
        for found, own in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(found, own)


def test_another_number_of_rows_in_the_storage_is_noticed() -> None:
    with pytest.raises(CorruptFileError, match="level 0"):
        open_graphs().read([0], [SIZES[0] + 1])


def test_what_is_held_is_counted() -> None:
    graph = open_graphs()
    assert graph.nbytes > graph.reader.nbytes
    assert graph.num_arrays == len(NO_GRAPH)


@pytest.mark.parametrize(
    "change", [{"texts": ["", ""]}, {"num_places": 2}, {"num_centroids": 4}], ids=str
)
def test_another_number_of_partitions_is_corrupt(change: dict[str, int]) -> None:
    with pytest.raises(CorruptFileError, match="partitions"):
        open_graphs(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["__vector_id", "__neighbors"])
def test_a_column_that_lacks_or_has_another_type_is_not_supported(name: str) -> None:
    rows = graph_rows()
    with pytest.raises(UnusableSegmentError, match=name):
        open_graphs(rows=rows.drop_columns([name]))
    place = rows.schema.get_field_index(name)
    odd = rows.set_column(place, name, pa.array([1.5] * len(rows)))
    with pytest.raises(UnusableSegmentError, match=name):
        open_graphs(rows=odd)


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(60, dtype=np.uint8).reshape(20, 3),
        np.arange(60, dtype=np.float32).reshape(3, 20).T,
        np.zeros((0, 5), np.uint8),
    ],
    ids=["bytes", "columns", "none"],
)
def test_rows_are_copied_to_the_start_of_a_cache_line(rows: NDArray[np.generic]) -> None:
    copied = aligned_copy(rows)
    np.testing.assert_array_equal(copied, rows)
    assert copied.dtype == rows.dtype
    assert copied.flags.c_contiguous
    assert rows.size == 0 or address_of(copied) % 64 == 0
    assert not np.shares_memory(copied, rows)
