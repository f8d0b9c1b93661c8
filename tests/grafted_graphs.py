"""Indices that pylance built, with graphs of ours over the same codes in their place."""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.index.vector.build.graph import GRAPH_SCHEMA, GraphBuilder
from lance_core.index.vector.build.model import (
    FlatCoding,
    GraphParameters,
    PqCoding,
    SqCoding,
    VectorModel,
)
from lance_core.index.vector.build.stored_rows import stored_rows
from lance_core.index.vector.header import read_ivf_buffer
from lance_core.index.vector.pq import ProductQuantizer
from lance_core.index.vector.segment import VectorSegment
from lance_core.index.vector.sq import ScalarQuantizer
from lance_core.io.mapped_store import MappedStore
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import index_pb2, table_pb2
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import CreateIndex
from tests.committed import apply, opened

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from lance_core.index.vector.build.graph import PartitionGraph


def open_only_segment(path: Path) -> VectorSegment:
    """Open the only segment of a dataset."""
    snapshot = open_snapshot(RangeScheduler(open_store(str(path))))
    (index,) = snapshot.indices
    return VectorSegment.open(snapshot.index_place(index), index.uuid, index.files)


def model_of(segment: VectorSegment, graph: GraphParameters) -> VectorModel:
    """Return the model that pylance's segment was built with."""
    quantizer = segment.quantizer
    coding: FlatCoding | PqCoding | SqCoding = FlatCoding()
    if isinstance(quantizer, ScalarQuantizer):
        coding = SqCoding(quantizer.start, quantizer.end)
    elif isinstance(quantizer, ProductQuantizer):
        codebook = np.ascontiguousarray(quantizer.codebook.transpose(0, 2, 1))
        coding = PqCoding(codebook.shape[1].bit_length() - 1, codebook)
    return VectorModel(segment.metric, pa.float32(), segment.centroids, coding, graph)


def codes_by_partition(segment: VectorSegment) -> list[NDArray[np.generic]]:
    """Return the coded rows of each partition, row by row."""
    pieces = list(stored_rows(segment))
    (name,) = pieces[0].columns
    partitions = np.concatenate([piece.partitions for piece in pieces])
    codes = np.concatenate([piece.columns[name] for piece in pieces])
    return [codes[partitions == p] for p in range(segment.num_partitions)]


def graft(path: Path, graph: GraphParameters) -> list[PartitionGraph]:
    """Replace the only index of a dataset by one with our graphs; return them."""
    segment = open_only_segment(path)
    builder = GraphBuilder(model_of(segment, graph))
    graphs = list(builder.build_all(codes_by_partition(segment), 64 << 20))
    snapshot = opened(path)
    (entry,) = snapshot.manifest.index_section.indices
    folder = path / "_indices" / str(uuid.UUID(bytes=entry.uuid.uuid))
    name = uuid.uuid5(uuid.UUID(bytes=entry.uuid.uuid), "grafted")
    target = path / "_indices" / str(name)
    target.mkdir()
    os.link(folder / "auxiliary.idx", target / "auxiliary.idx")
    _write_graphs(folder / "index.idx", target, graphs, builder.metadata(graphs))
    copy = table_pb2.IndexMetadata.FromString(entry.SerializeToString())
    copy.uuid.uuid = name.bytes
    for file in copy.files:
        file.size_bytes = (target / file.path).stat().st_size
    apply(snapshot, CreateIndex(new_indices=(copy,), removed_indices=(entry,)))
    return graphs


def _write_graphs(old: Path, target: Path, graphs: list[PartitionGraph], metadata: str) -> None:
    reader = LanceFileReader.open_path(old)
    ivf = index_pb2.IVF.FromString(read_ivf_buffer(reader))
    lengths = [len(graph.rows) for graph in graphs]
    ivf.lengths[:] = lengths
    ivf.offsets[:] = [0, *np.cumsum(lengths)[:-1].tolist()]
    with LanceFileWriter(MappedStore(target), "index.idx", GRAPH_SCHEMA) as writer:
        number = writer.add_global_buffer(ivf.SerializeToString())
        writer.add_schema_metadata("lance:ivf", str(number))
        writer.add_schema_metadata("lance:hnsw", metadata)
        writer.add_schema_metadata("lance:index", reader.schema.metadata["lance:index"])
        writer.write_batch(pa.Table.from_batches([graph.rows for graph in graphs]))
        writer.finish()


def listed(metadata: str) -> list[str]:
    """Return the headers of graphs, one per partition."""
    headers = json.loads(metadata)
    assert isinstance(headers, list)
    return headers
