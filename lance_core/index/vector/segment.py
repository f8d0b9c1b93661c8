"""One vector index segment, opened: the small part that every query needs, without any rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import CorruptFileError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.file.reader import LanceFileReader
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.header import (
    read_centroids,
    read_declaration,
    read_ivf_buffer,
    read_partitions,
    storage_object,
)
from lance_core.index.vector.kinds import vector_index_kind
from lance_core.index.vector.legacy import legacy_metric
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.quantizer import GraphSource, StorageSource
from lance_core.index.vector.storage import find_columns
from lance_core.kernels.rank import rank_centroids

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.file.mapped_rows import MappedRows
    from lance_core.index.vector.header import Declaration
    from lance_core.index.vector.quantizer import Graph, Quantizer, Searcher
    from lance_core.index.vector.storage import PartitionStorage
    from lance_core.io.store import ObjectStore
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexFile

MODEL_FILE = "index.idx"
STORAGE_FILE = "auxiliary.idx"


@dataclass(frozen=True, slots=True, eq=False)
class VectorSegment:
    """An index segment as its files describe it.

    Parameters
    ----------
    uuid
        Names the segment.
    folder
        Where its files lie.
    kind
        Type of the index, such as ``IVF_PQ``.
    metric
        Metric of the files; the manifest's is not trusted.
    centroids
        Shape ``(P, d)``, float32, C-contiguous.
    offsets, lengths
        Shape ``(P,)``: first row and number of rows of each partition in the storage.
    storage
        Where the rows are.
    quantizer
        In which form.
    graph
        Links between them, None for an index without.
    """

    uuid: str
    folder: Place
    kind: str
    metric: Metric
    centroids: NDArray[np.float32]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    storage: PartitionStorage
    quantizer: Quantizer
    graph: Graph | None = None

    @classmethod
    def open(cls, folder: Place, uuid: str, files: Sequence[IndexFile] = ()) -> VectorSegment:
        """Read the tails of both files, the centroids and what the quantiser keeps beside rows.

        Parameters
        ----------
        folder
            Where the files lie.
        uuid
            Names the segment.
        files
            The files with their sizes as the manifest lists them; without, sizes are asked for.

        Raises
        ------
        UnusableSegmentError
            The type, metric, element type, container or an encoding is not supported, or a needed
            column is missing: scan the fragments instead.
        CorruptFileError
            A file is missing, or the files contradict the format or each other.

        Notes
        -----
        Vector index page, sections 1 to 4. Extra columns are ignored.
        """
        sizes = {file.path: file.size for file in files}
        try:
            model = _open_model(folder.below(MODEL_FILE), sizes.get(MODEL_FILE))
            declaration = read_declaration(model.schema.metadata, model.path)
            storage = _open(folder.below(STORAGE_FILE), sizes.get(STORAGE_FILE))
            return _assemble(uuid, folder, declaration, model, storage)
        except UnsupportedFeatureError as error:
            raise UnusableSegmentError(str(error)) from error

    @property
    def dimension(self) -> int:
        """Dimension of the vectors."""
        return int(self.centroids.shape[1])

    @property
    def num_partitions(self) -> int:
        """Number of partitions, empty ones included."""
        return len(self.centroids)

    @property
    def num_rows(self) -> int:
        """Rows in the files, dead ones included."""
        return int(self.lengths.sum())

    @property
    def nbytes(self) -> int:
        """Memory that the segment holds without its partitions."""
        arrays = (self.centroids, self.offsets, self.lengths)
        graph_bytes = 0 if self.graph is None else self.graph.nbytes
        return (
            sum(int(a.nbytes) for a in arrays)
            + self.quantizer.nbytes
            + graph_bytes
            + self.storage.reader.nbytes
        )

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self.storage.reader.watch_growth(told)
        if self.graph is not None:
            self.graph.watch_growth(told)

    @property
    def searcher(self) -> Searcher:
        """What finds rows in partitions that are in memory."""
        return self.quantizer if self.graph is None else self.graph

    @property
    def num_arrays(self) -> int:
        """Arrays that a partition in memory has beside its ordinals."""
        return self.quantizer.num_arrays + (0 if self.graph is None else self.graph.num_arrays)

    def mapped_payload(self, store: ObjectStore) -> MappedRows | None:
        """Map what is stored as kernels take it, None where nothing is or the file is remote."""
        row_bytes = self.quantizer.raw_row_bytes
        return None if row_bytes is None else self.storage.map_payload(store, row_bytes)

    def row_range(self, partition: int) -> tuple[int, int]:
        """Return the rows ``[start, end)`` of a partition in the storage."""
        start = int(self.offsets[partition])
        return start, start + int(self.lengths[partition])

    def rank(
        self, query: NDArray[np.float32], wanted: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Order partitions by the distance of the query to their centroids.

        Parameters
        ----------
        query
            Shape ``(d,)``; divided by its norm for cosine.
        wanted
            How many of the nearest to return; None = all.

        Returns
        -------
        tuple
            Partition ids, shape ``(min(P, wanted),)``, nearest first, ties by id; and the distances
            of these, of the same shape, ascending.
        """
        own_query = np.array(query, np.float32)
        return rank_centroids(self.centroids, own_query, self.metric.code, wanted)


def _open_model(place: Place, size: int | None) -> LanceFileReader:
    try:
        return _open(place, size)
    except UnsupportedFeatureError as error:
        raise UnusableSegmentError(str(error), legacy_metric(place, size)) from error


def _open(place: Place, size: int | None) -> LanceFileReader:
    try:
        return LanceFileReader.open(place.scheduler, place.path, size)
    except ObjectNotFoundError as error:
        raise CorruptFileError(place.path, "named by the manifest but missing") from error


def _assemble(
    uuid: str,
    folder: Place,
    declaration: Declaration,
    model: LanceFileReader,
    storage: LanceFileReader,
) -> VectorSegment:
    kind = vector_index_kind(declaration.kind, declaration.metric)
    are_bytes = declaration.metric == Metric.HAMMING
    centroids = read_centroids(read_ivf_buffer(model), model.path, are_bytes=are_bytes)
    offsets, lengths = read_partitions(read_ivf_buffer(storage), storage.num_rows, storage.path)
    if len(lengths) != len(centroids):
        raise CorruptFileError(
            storage.path, f"{len(lengths)} partitions, but {len(centroids)} centroids"
        )
    parameters = storage_object(storage.schema.metadata, storage.path)
    quantizer = kind.open_quantizer(
        StorageSource(storage, parameters, declaration.metric, centroids)
    )
    graph = None
    if kind.open_graph is not None:
        graph = kind.open_graph(GraphSource(model, quantizer, declaration.metric, centroids))
    return VectorSegment(
        uuid,
        folder,
        declaration.kind,
        declaration.metric,
        centroids,
        offsets,
        lengths,
        find_columns(storage, quantizer.columns),
        quantizer,
        graph,
    )
