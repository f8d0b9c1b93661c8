"""One vector index segment, opened: the small part that every query needs, without any rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import (
    CorruptFileError,
    ObjectNotFoundError,
    UnknownColumnError,
    UnsupportedFeatureError,
)
from lance_core.file.mapped_rows import map_rows
from lance_core.file.reader import LanceFileReader
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.header import (
    IVF_PQ,
    read_centroids,
    read_codebook,
    read_declaration,
    read_ivf_buffer,
    read_partitions,
    read_pq_parameters,
)
from lance_core.kernels.rank import rank_centroids
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.file.mapped_rows import MappedRows
    from lance_core.file.reader import ColumnTarget
    from lance_core.index.vector.header import Declaration, PqParameters
    from lance_core.index.vector.metric import Metric
    from lance_core.io.store import ObjectStore
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexFile

_MODEL_FILE = "index.idx"
_STORAGE_FILE = "auxiliary.idx"
_ROW_ID_COLUMN = "_rowid"
_FLAT_COLUMN = "flat"
_PQ_COLUMN = "__pq_code"
_FLOAT_BYTES = 4
_FLOATS = (pa.float16(), pa.float32(), pa.float64())


@dataclass(frozen=True, slots=True, eq=False)
class PartitionStorage:
    """The file that holds the rows of all partitions, one partition after the other.

    ``row_ids`` and ``payload`` name its two columns: row addresses, and PQ codes or whole vectors.
    """

    reader: LanceFileReader
    row_ids: ColumnTarget
    payload: ColumnTarget
    value_type: pa.DataType


@dataclass(frozen=True, slots=True, eq=False)
class ProductQuantizer:
    """The codebook, shape ``(m, d / m, 256)``, and how codes are laid out in a partition."""

    codebook: NDArray[np.float32]
    is_transposed: bool

    @property
    def num_sub_vectors(self) -> int:
        """Bytes of one row's code."""
        return len(self.codebook)


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
        ``IVF_FLAT`` or ``IVF_PQ``.
    metric
        Metric of the files; the manifest's is not trusted.
    centroids
        Shape ``(P, d)``, float32, C-contiguous.
    offsets, lengths
        Shape ``(P,)``: first row and number of rows of each partition in the storage.
    storage
        Where the rows are.
    pq
        None for IVF_FLAT.
    """

    uuid: str
    folder: Place
    kind: str
    metric: Metric
    centroids: NDArray[np.float32]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    storage: PartitionStorage
    pq: ProductQuantizer | None

    @classmethod
    def open(cls, folder: Place, uuid: str, files: Sequence[IndexFile] = ()) -> VectorSegment:
        """Read the tails of both files, the centroids and the codebook.

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
        Vector index page, sections 1 to 4.2. Extra columns are ignored.
        """
        sizes = {file.path: file.size for file in files}
        try:
            model = _open(folder.below(_MODEL_FILE), sizes.get(_MODEL_FILE))
            declaration = read_declaration(model.schema.metadata, model.path)
            storage = _open(folder.below(_STORAGE_FILE), sizes.get(_STORAGE_FILE))
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
        codebook_bytes = 0 if self.pq is None else self.pq.codebook.nbytes
        return sum(int(a.nbytes) for a in arrays) + codebook_bytes + self.storage.reader.nbytes

    def mapped_vectors(self, store: ObjectStore) -> MappedRows | None:
        """Map the vectors, None where they are not raw aligned float32 in a local file."""
        storage = self.storage
        if self.pq is not None or storage.value_type != pa.float32():
            return None
        column = storage.payload.columns[storage.payload.field.id]
        return map_rows(
            storage.reader,
            column,
            store,
            row_bytes=self.dimension * _FLOAT_BYTES,
            alignment=_FLOAT_BYTES,
        )

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
    centroids = read_centroids(_ivf_buffer(model), model.path)
    offsets, lengths = read_partitions(_ivf_buffer(storage), storage.num_rows, storage.path)
    if len(lengths) != len(centroids):
        raise CorruptFileError(
            storage.path, f"{len(lengths)} partitions, but {len(centroids)} centroids"
        )
    dimension = centroids.shape[1]
    if declaration.kind == IVF_PQ:
        parameters = read_pq_parameters(storage.schema.metadata, storage.path)
        if parameters.dimension != dimension:
            raise CorruptFileError(
                storage.path,
                f"codes of {parameters.dimension} dimensions, centroids of {dimension}",
            )
        columns = _columns(storage, _PQ_COLUMN, parameters.num_sub_vectors, (pa.uint8(),))
        pq = _quantizer(storage, parameters)
    else:
        columns = _columns(storage, _FLAT_COLUMN, dimension, _FLOATS)
        pq = None
    return VectorSegment(
        uuid, folder, declaration.kind, declaration.metric, centroids, offsets, lengths, columns, pq
    )


def _ivf_buffer(reader: LanceFileReader) -> bytes:
    number = read_ivf_buffer(reader.schema.metadata, reader.path)
    return _buffer(reader, number)


def _buffer(reader: LanceFileReader, number: int) -> bytes:
    existing = len(reader.metadata.buffers)
    if not 0 <= number < existing:
        raise CorruptFileError(reader.path, f"there is no global buffer {number}, only {existing}")
    return bytes(reader.global_buffer(number))


def _quantizer(storage: LanceFileReader, parameters: PqParameters) -> ProductQuantizer:
    buffer = (
        parameters.inline_codebook
        if parameters.codebook_buffer is None
        else _buffer(storage, parameters.codebook_buffer)
    )
    codebook = read_codebook(buffer, parameters, storage.path)
    return ProductQuantizer(codebook, parameters.is_transposed)


def _columns(
    storage: LanceFileReader, payload: str, width: int, value_types: Sequence[pa.DataType]
) -> PartitionStorage:
    """Find the two columns and check their types."""
    row_ids, row_id_type = _column(storage, _ROW_ID_COLUMN)
    if row_id_type != pa.uint64():
        raise CorruptFileError(storage.path, f'column "{_ROW_ID_COLUMN}" has type {row_id_type}')
    target, column_type = _column(storage, payload)
    if not pa.types.is_fixed_size_list(column_type) or column_type.list_size != width:
        raise CorruptFileError(
            storage.path, f'column "{payload}" has type {column_type}, expected lists of {width}'
        )
    if column_type.value_type not in value_types:
        raise UnusableSegmentError(f'column "{payload}" of type {column_type} is not supported')
    return PartitionStorage(storage, row_ids, target, column_type.value_type)


def _column(storage: LanceFileReader, name: str) -> tuple[ColumnTarget, pa.DataType]:
    try:
        target = storage.target(name)
    except UnknownColumnError as error:
        raise UnusableSegmentError(f'column "{name}" is missing in its files') from error
    return target, arrow_type(target.field)
