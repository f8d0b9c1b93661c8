"""IVF_HNSW: partitions with a graph over their rows, whole vectors or codes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError, UnknownColumnError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.flat import FlatVectors
from lance_core.index.vector.header import read_ivf_buffer, read_partitions
from lance_core.index.vector.hnsw_graph import GRAPH_COLUMNS, decode_graph, read_graph_headers
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.pq import ProductQuantizer
from lance_core.index.vector.sq import ScalarQuantizer
from lance_core.kernels import hnsw_scoring
from lance_core.kernels.hnsw import GraphStorage, search_graphs
from lance_core.kernels.memory import address_of
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.index.vector.hnsw_graph import GraphHeader
    from lance_core.index.vector.quantizer import GraphSource, Quantizer, SearchOptions
    from lance_core.kernels.topk import TopRows

_NODES, _NEIGHBOURS = GRAPH_COLUMNS
_NUM_ARRAYS = 6
_HEADER_BYTES = 200
_CACHE_LINE_BYTES = 64


@dataclass(frozen=True, slots=True, eq=False)
class HnswGraph:
    """The graphs of all partitions.

    Parameters
    ----------
    reader
        ``index.idx``.
    columns
        Its columns of nodes and of their neighbours; the distances beside them are not needed.
    headers
        Per partition where the levels of its graph lie; None for one that is declared empty.
    offsets, lengths
        Shape ``(P,)``: first row and number of rows of each partition in ``index.idx``, all levels.
    storage
        What the rows of a partition are.
    are_columns
        Whether the quantiser lays codes out column after column.

    Notes
    -----
    Vector index page, sections 4.5 and 5. Dead rows stay in the graph and are masked.
    """

    reader: LanceFileReader
    columns: tuple[ColumnTarget, ColumnTarget]
    headers: Sequence[GraphHeader | None]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    storage: GraphStorage
    are_columns: bool

    @property
    def num_arrays(self) -> int:
        """Those of `lance_core.index.vector.hnsw_graph.GraphArrays`."""
        return _NUM_ARRAYS

    @property
    def nbytes(self) -> int:
        """Memory of headers and of what the file says about itself."""
        own = int(self.offsets.nbytes + self.lengths.nbytes) + _HEADER_BYTES * len(self.headers)
        return own + self.reader.nbytes

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self.reader.watch_growth(told)

    def arrange(self, arrays: tuple[NDArray[np.generic], ...]) -> tuple[NDArray[np.generic], ...]:
        """Return what the quantiser laid out, row after row from the start of a cache line.

        Rows are visited one by one, and one that lies across a line more costs that much more.
        """
        (rows,) = arrays
        return (aligned_copy(rows.T if self.are_columns else rows),)

    def read(
        self, partitions: Sequence[int], num_rows: Sequence[int]
    ) -> list[tuple[NDArray[np.generic], ...]]:
        """Read the graphs of partitions in one batch.

        Raises
        ------
        CorruptFileError
            A graph contradicts the format or the number of rows.
        """
        chosen = np.array(partitions, np.int64)
        lengths = self.lengths[chosen].tolist()
        starts = self.offsets[chosen].tolist()
        ranges = [(start, start + n) for start, n in zip(starts, lengths, strict=True) if n > 0]
        nodes, neighbours = self.reader.read(self.columns, ranges)
        path = self.reader.path
        if len(nodes) != sum(lengths) or len(neighbours) != sum(lengths):
            raise CorruptFileError(path, f"{len(nodes)} rows where {sum(lengths)} were asked for")
        ends = accumulate(lengths)
        return [
            decode_graph(
                nodes[end - n : end], neighbours[end - n : end], self.headers[p], rows, path
            )
            for p, n, end, rows in zip(partitions, lengths, ends, num_rows, strict=True)
        ]

    def search(
        self,
        held: HeldPartitions,
        query: NDArray[np.float32],
        words: NDArray[np.uint64],
        top: TopRows,
        options: SearchOptions,
    ) -> None:
        """Offer the nearest rows that walks through the graphs reach."""
        ef = options.k + options.k // 2 if options.ef is None else max(options.ef, options.k)
        search_graphs(
            held.rows,
            held.partitions,
            query,
            self.storage,
            words,
            top,
            ef=ef,
            upper=options.upper,
            is_fast=options.approx_mode == "fast",
        )


def open_hnsw(source: GraphSource) -> HnswGraph:
    """Find the graphs of a segment.

    Raises
    ------
    UnusableSegmentError
        Graphs or columns are missing, or of a form that is not supported.
    CorruptFileError
        The file contradicts the format or the storage.
    """
    reader = source.reader
    offsets, lengths = read_partitions(read_ivf_buffer(reader), reader.num_rows, reader.path)
    headers = read_graph_headers(reader.schema.metadata, reader.path)
    num_partitions = len(source.centroids)
    if len(offsets) != num_partitions or len(headers) != num_partitions:
        raise CorruptFileError(
            reader.path,
            f"{len(headers)} graphs in {len(offsets)} places for {num_partitions} partitions",
        )
    storage = _storage_of(source.quantizer, source.metric, source.centroids)
    columns = (
        _column(reader, _NODES, pa.uint32()),
        _column(reader, _NEIGHBOURS, pa.list_(pa.uint32())),
    )
    are_columns = isinstance(source.quantizer, ProductQuantizer)
    return HnswGraph(reader, columns, headers, offsets, lengths, storage, are_columns)


def aligned_copy(rows: NDArray[np.generic]) -> NDArray[np.generic]:
    """Copy an array of shape ``(n, width)`` to the start of a cache line, C-contiguous."""
    memory = np.empty(rows.nbytes + _CACHE_LINE_BYTES, np.uint8)
    skipped = -address_of(memory) % _CACHE_LINE_BYTES
    copied = memory[skipped : skipped + rows.nbytes].view(rows.dtype).reshape(rows.shape)
    copied[...] = rows
    return copied


def _column(reader: LanceFileReader, name: str, wanted: pa.DataType) -> ColumnTarget:
    try:
        target = reader.target(name)
    except UnknownColumnError as error:
        raise UnusableSegmentError(f'column "{name}" is missing in its files') from error
    found = arrow_type(target.field)
    if found != wanted:
        raise UnusableSegmentError(f'column "{name}" of type {found} is not supported')
    return target


def _storage_of(
    quantizer: Quantizer, metric: Metric, centroids: NDArray[np.float32]
) -> GraphStorage:
    """Say what rows a quantiser leaves to the graph."""
    dimension = int(centroids.shape[1])
    if isinstance(quantizer, FlatVectors):
        is_bytes = metric == Metric.HAMMING
        return GraphStorage(
            rows=hnsw_scoring.BYTES if is_bytes else hnsw_scoring.VECTORS,
            metric=metric.code,
            row_bytes=dimension * metric.vector_type.itemsize,
            width=dimension,
        )
    is_dot = metric == Metric.DOT
    if isinstance(quantizer, ScalarQuantizer):
        return GraphStorage(
            rows=hnsw_scoring.SCALAR_CODES_DOT if is_dot else hnsw_scoring.SCALAR_CODES,
            metric=metric.code,
            row_bytes=dimension,
            width=dimension,
            start=quantizer.start,
            end=quantizer.end,
        )
    if isinstance(quantizer, ProductQuantizer):
        is_packed = quantizer.has_packed_codes
        return GraphStorage(
            rows=hnsw_scoring.PRODUCT_NIBBLES if is_packed else hnsw_scoring.PRODUCT_CODES,
            metric=metric.code,
            row_bytes=quantizer.code_bytes,
            width=quantizer.num_sub_vectors,
            centroids=centroids[:0] if is_dot else centroids,
            codebook=quantizer.codebook,
        )
    raise UnusableSegmentError(f"graphs over {type(quantizer).__name__} are not supported")
