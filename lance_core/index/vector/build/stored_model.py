"""The model of a segment, read back from what its files say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.file.reader import LanceFileReader
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.build.model import (
    Coding,
    FlatCoding,
    GraphParameters,
    PqCoding,
    RabitCoding,
    SqCoding,
    VectorModel,
)
from lance_core.index.vector.build.parameters import QUANTISERS
from lance_core.index.vector.header import (
    global_buffer,
    positive_number,
    read_centroids,
    read_declaration,
    read_ivf_buffer,
    storage_object,
)
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.pq import read_codebook, read_pq_parameters
from lance_core.index.vector.rabit_parameters import read_rabit_parameters, read_rotation_matrix
from lance_core.index.vector.segment import MODEL_FILE
from lance_core.index.vector.sq import read_bounds
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from lance_core.index.vector.segment import VectorSegment

GRAPHS_KEY = "lance:hnsw"

_VALUE_TYPES = {
    index_pb2.Tensor.FLOAT16: pa.float16(),
    index_pb2.Tensor.FLOAT32: pa.float32(),
    index_pb2.Tensor.FLOAT64: pa.float64(),
    index_pb2.Tensor.UINT8: pa.uint8(),
}


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model is read from.

    Parameters
    ----------
    metadata
        Schema metadata of ``index.idx``.
    ivf
        Its IVF message.
    storage
        The quantiser's object of ``auxiliary.idx``.
    buffer
        Returns a global buffer of ``auxiliary.idx``.
    path
        For errors.
    """

    metadata: Mapping[str, str]
    ivf: bytes
    storage: Mapping[str, object]
    buffer: Callable[[int], bytes]
    path: str


def stored_model(segment: VectorSegment) -> VectorModel:
    """Return the model of a segment, as far as float32 can hold it; reads ``index.idx`` again.

    Raises
    ------
    UnusableSegmentError
        Codes as this release does not write them: those of RaBitQ up to release 7.1.
    CorruptFileError
        A file contradicts the format.
    """
    place = segment.folder.below(MODEL_FILE)
    index = LanceFileReader.open(place.scheduler, place.path)
    storage = segment.storage.reader
    return read_model(
        ModelSource(
            index.schema.metadata,
            read_ivf_buffer(index),
            storage_object(storage.schema.metadata, storage.path),
            lambda number: global_buffer(storage, number),
            place.path,
        )
    )


def read_model(source: ModelSource) -> VectorModel:
    """Return the model that metadata describes; errors as `stored_model`."""
    declared = read_declaration(source.metadata, source.path)
    if declared.kind not in QUANTISERS:
        raise UnusableSegmentError(f"index type {declared.kind} is not supported")
    is_bytes = declared.metric == Metric.HAMMING
    centroids = read_centroids(source.ivf, source.path, are_bytes=is_bytes)
    if len(centroids) == 0:
        raise CorruptFileError(source.path, "there are no centroids")
    message = index_pb2.IVF.FromString(source.ivf)
    return VectorModel(
        metric=declared.metric,
        value_type=_VALUE_TYPES[message.centroids_tensor.data_type],
        centroids=centroids.astype(np.uint8) if is_bytes else centroids,
        coding=_read_coding(source, QUANTISERS[declared.kind], centroids.shape[1]),
        graph=_read_graph(source) if "HNSW" in declared.kind else None,
        loss=message.loss if message.HasField("loss") else None,
    )


def _read_coding(source: ModelSource, quantiser: str, dimension: int) -> Coding:
    match quantiser:
        case "PQ":
            return _read_pq(source, dimension)
        case "SQ":
            return SqCoding(*read_bounds(source.storage, source.path))
        case "RQ":
            return _read_rabit(source, dimension)
        case _:
            return FlatCoding()


def _read_pq(source: ModelSource, dimension: int) -> PqCoding:
    parameters = read_pq_parameters(source.storage, source.path)
    if parameters.dimension != dimension:
        raise CorruptFileError(
            source.path, f"codes of {parameters.dimension} dimensions, centroids of {dimension}"
        )
    buffer = parameters.inline_codebook
    if parameters.codebook_buffer is not None:
        buffer = source.buffer(parameters.codebook_buffer)
    codebook = read_codebook(buffer, parameters, source.path)
    by_code: NDArray[Any] = np.ascontiguousarray(codebook.transpose(0, 2, 1))
    return PqCoding(parameters.num_bits, by_code)


def _read_rabit(source: ModelSource, dimension: int) -> RabitCoding:
    parameters = read_rabit_parameters(source.storage, dimension, source.path)
    if parameters.is_residual:
        raise UnusableSegmentError("RaBitQ codes as releases up to 7.1 wrote")
    if parameters.matrix_buffer is None:
        return RabitCoding(parameters.num_bits, parameters.rotation_signs or b"")
    buffer = source.buffer(parameters.matrix_buffer)
    return RabitCoding(parameters.num_bits, read_rotation_matrix(buffer, dimension, source.path))


def _read_graph(source: ModelSource) -> GraphParameters:
    """Return how graphs were built, the usual way where all partitions are empty."""
    try:
        texts = json.loads(source.metadata.get(GRAPHS_KEY, ""))
        header: dict[str, object] = next((json.loads(each) for each in texts if each != ""), {})
        stored = header.get("params", {})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(source.path, f'metadata "{GRAPHS_KEY}": {error}') from error
    if not isinstance(stored, dict):
        raise CorruptFileError(source.path, f'"params" of "{GRAPHS_KEY}" is no JSON object')
    if len(stored) == 0:
        return GraphParameters()
    keys = ("m", "ef_construction", "max_level")
    return GraphParameters(*(positive_number(stored, key, source.path) for key in keys))
