"""The two files of a segment: coded rows by partition, and the model with its graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_core.index.vector.build.budget import Trimmer
from lance_core.index.vector.build.encode import parts_of
from lance_core.index.vector.build.graph import GRAPH_SCHEMA
from lance_core.index.vector.build.model_form import (
    as_json,
    centroid_message,
    coding_tensor,
    declaration,
    storage_object,
)
from lance_core.index.vector.segment import MODEL_FILE, STORAGE_FILE
from lance_core.index.vector.storage import ROW_ID_COLUMN
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.file.writer import LanceFileWriter
    from lance_core.index.segment_files import SegmentFiles
    from lance_core.index.vector.build.budget import Budget
    from lance_core.index.vector.build.encode import CodedColumn, Encoder
    from lance_core.index.vector.build.graph import GraphBuilder
    from lance_core.index.vector.build.model import VectorModel
    from lance_core.index.vector.build.partition_rows import PartitionGroup

_NO_GRAPHS = pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)])
_TENSOR_BUFFER = 2
_GRAPH_ROWS = 1 << 12
"""Rows of a graph that are written at once: what waits for a page is copied with all that comes."""


def write_files(
    model: VectorModel,
    encoder: Encoder,
    groups: Iterable[PartitionGroup],
    builder: GraphBuilder | None,
    budget: Budget,
    out: SegmentFiles,
) -> None:
    """Write ``auxiliary.idx`` and ``index.idx``.

    Parameters
    ----------
    model
        The model.
    encoder
        That of the model.
    groups
        All partitions in their order.
    builder
        Builds their graphs; None = the model has none.
    budget
        What graphs may take.
    out
        Where to.

    Raises
    ------
    UnsupportedFeatureError, LimitExceededError
        There can be no such graphs.

    Notes
    -----
    Vector index page, sections 2, 4 and 9.
    """
    schema = _NO_GRAPHS if builder is None else GRAPH_SCHEMA
    with (
        out.create(
            STORAGE_FILE, _storage_schema(encoder.columns), page_bytes=budget.page_bytes
        ) as storage,
        out.create(MODEL_FILE, schema, page_bytes=budget.page_bytes) as index,
    ):
        lengths: list[int] = []
        stored = _store(groups, encoder, storage, lengths)
        if builder is None:
            for _ in stored:
                pass  # each was written when it was asked for
            graph_lengths = [0] * len(lengths)
            index.add_schema_metadata("lance:flat", as_json([""] * len(lengths)))
        else:
            graph_lengths = _write_graphs(builder, stored, budget, index)
        _finish_storage(model, lengths, storage)
        _finish_index(model, graph_lengths, index)


def _store(
    groups: Iterable[PartitionGroup],
    encoder: Encoder,
    storage: LanceFileWriter,
    lengths: list[int],
) -> Iterator[NDArray[Any]]:
    """Write partitions; yield the codes of each, row after row, and note how many they are."""
    schema = _storage_schema(encoder.columns)
    names = [each.name for each in encoder.columns]
    trimmer = Trimmer()
    for group in groups:
        own_lengths = group.lengths.tolist()
        laid_out = encoder.lay_out(group.columns, own_lengths)
        arrays = [pa.array(group.row_ids), *(_arrow(laid_out[name]) for name in names)]
        storage.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        trimmer.count(group.row_ids.nbytes + sum(each.nbytes for each in group.columns.values()))
        del laid_out, arrays  # or they would wait as long as graphs are built
        for length, part in zip(own_lengths, parts_of(own_lengths), strict=True):
            lengths.append(length)
            yield group.columns[names[0]][part]


def _write_graphs(
    builder: GraphBuilder,
    partitions: Iterator[NDArray[Any]],
    budget: Budget,
    index: LanceFileWriter,
) -> list[int]:
    """Write the graphs of partitions; return how many rows each has."""
    lengths, headers = [], []
    trimmer = Trimmer()
    no_rows = pa.RecordBatch.from_pylist([], GRAPH_SCHEMA)
    for graph in builder.build_all(partitions, budget.graph_bytes):
        for start in range(0, graph.rows.num_rows, _GRAPH_ROWS):
            index.write_batch(graph.rows.slice(start, _GRAPH_ROWS))
        trimmer.count(graph.rows.nbytes)
        lengths.append(graph.rows.num_rows)
        headers.append(replace(graph, rows=no_rows))
    index.add_schema_metadata("lance:hnsw", builder.metadata(headers))
    return lengths


def _finish_storage(model: VectorModel, lengths: Sequence[int], storage: LanceFileWriter) -> None:
    position = storage.add_global_buffer(_ivf(lengths).SerializeToString())
    tensor = coding_tensor(model)
    tensor_position = 0
    if tensor is not None:
        tensor_position = storage.add_global_buffer(tensor.SerializeToString())
    storage.add_schema_metadata("distance_type", str(model.metric))
    storage.add_schema_metadata("lance:ivf", str(position))
    storage.add_schema_metadata(
        "storage_metadata", as_json([storage_object(model, tensor_position)])
    )


def _finish_index(model: VectorModel, lengths: Sequence[int], index: LanceFileWriter) -> None:
    message = centroid_message(model)
    message.MergeFrom(_ivf(lengths))
    position = index.add_global_buffer(message.SerializeToString())
    index.add_schema_metadata("lance:ivf", str(position))
    index.add_schema_metadata("lance:index", declaration(model))


def _ivf(lengths: Sequence[int]) -> index_pb2.IVF:
    """Return where partitions lie, one after the other; at 0 where none has rows."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return index_pb2.IVF(offsets=(ends - lengths).tolist(), lengths=lengths)


def _storage_schema(columns: Sequence[CodedColumn]) -> pa.Schema:
    fields = [pa.field(ROW_ID_COLUMN, pa.uint64())]
    for each in columns:
        value = pa.from_numpy_dtype(each.dtype)
        kind = value if each.width is None else pa.list_(value, each.width)
        fields.append(pa.field(each.name, kind, nullable=each.is_nullable))
    return pa.schema(fields)


def _arrow(values: NDArray[Any]) -> pa.Array:
    flat = pa.array(values.reshape(-1))
    one_dimension = 1
    if values.ndim == one_dimension:
        return flat
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
