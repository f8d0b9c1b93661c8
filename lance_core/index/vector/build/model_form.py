"""A model in the words of the format: what the files of its segments, and manifests, say of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_core.index.segment_files import IndexDetails
from lance_core.index.vector.build.model import (
    FlatCoding,
    PqCoding,
    RabitCoding,
    SqCoding,
    VectorModel,
)
from lance_core.index.vector.metric import Metric
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DETAILS = "/lance.index.pb.VectorIndexDetails"
_VERSION, _VERSION_OF_RABIT = 1, 2
_SCALAR_BITS = 8
_METRICS = {
    Metric.L2: index_pb2.VectorMetricType.L2,
    Metric.COSINE: index_pb2.VectorMetricType.Cosine,
    Metric.DOT: index_pb2.VectorMetricType.Dot,
    Metric.HAMMING: index_pb2.VectorMetricType.Hamming,
}
_TENSOR_TYPES = {
    np.dtype(np.float16): index_pb2.Tensor.FLOAT16,
    np.dtype(np.float32): index_pb2.Tensor.FLOAT32,
    np.dtype(np.float64): index_pb2.Tensor.FLOAT64,
    np.dtype(np.uint8): index_pb2.Tensor.UINT8,
}
_NAMES = {FlatCoding: "FLAT", PqCoding: "PQ", SqCoding: "SQ", RabitCoding: "RQ"}


def index_type_of(model: VectorModel) -> str:
    """Return the type of index that a model is of, such as ``IVF_HNSW_SQ``."""
    graph = "" if model.graph is None else "HNSW_"
    return f"IVF_{graph}{_NAMES[type(model.coding)]}"


def declaration(model: VectorModel) -> str:
    """Return ``lance:index``."""
    return as_json({"type": index_type_of(model), "distance_type": str(model.metric)})


def centroid_message(model: VectorModel) -> index_pb2.IVF:
    """Return the IVF message with the centroids, in the type of the column, and the loss."""
    return index_pb2.IVF(
        centroids_tensor=_tensor(model.centroids, numpy_type(model)), loss=model.loss
    )


def storage_object(model: VectorModel, tensor_position: int) -> str:
    """Return the quantiser's object as JSON, with the global buffer that `coding_tensor` is in."""
    match model.coding:
        case PqCoding(num_bits, codebook):
            return as_json(
                {
                    "codebook_position": tensor_position,
                    "nbits": num_bits,
                    "num_sub_vectors": len(codebook),
                    "dimension": model.dimension,
                    "codebook_tensor": [],
                    "transposed": True,
                }
            )
        case SqCoding(start, end):
            bounds = {"start": start, "end": end}
            return as_json({"dim": model.dimension, "num_bits": _SCALAR_BITS, "bounds": bounds})
        case RabitCoding(num_bits, rotation):
            is_fast = isinstance(rotation, bytes)
            return as_json(
                {
                    "rotate_mat_position": None if is_fast else tensor_position,
                    "fast_rotation_signs": list(rotation) if is_fast else None,
                    "rotation_type": "fast" if is_fast else "matrix",
                    "code_dim": model.dimension,
                    "num_bits": num_bits,
                    "packed": True,
                    "query_estimator": "raw_query",
                }
            )
        case _:
            return as_json({"dim": model.dimension})


def coding_tensor(model: VectorModel) -> index_pb2.Tensor | None:
    """Return the array that codes depend on, None where there is none.

    Notes
    -----
    Vector index page, section 4.2: the shape of a codebook is only a container.
    pylance 14.0.2 reads a rotation matrix in the type of the column, and fails on another one.
    """
    match model.coding:
        case PqCoding(num_bits, codebook):
            values = codebook.reshape(1 << num_bits, model.dimension)
            return _tensor(values, numpy_type(model))
        case RabitCoding(_, rotation) if not isinstance(rotation, bytes):
            return _tensor(rotation, numpy_type(model))
        case _:
            return None


def index_details(model: VectorModel) -> IndexDetails:
    """Return what the manifest says of segments of a model.

    Notes
    -----
    Vector index page, sections 1 and 1.1.
    """
    message = index_pb2.VectorIndexDetails(metric_type=_METRICS[model.metric])
    if model.graph is not None:
        message.hnsw_index_config.max_connections = model.graph.max_connections
        message.hnsw_index_config.construction_ef = model.graph.ef_construction
        message.hnsw_index_config.max_level = model.graph.max_level
    version = _VERSION
    match model.coding:
        case PqCoding(num_bits, codebook):
            message.pq.num_bits, message.pq.num_sub_vectors = num_bits, len(codebook)
        case SqCoding():
            message.sq.num_bits = _SCALAR_BITS
        case RabitCoding(num_bits, rotation):
            message.rq.num_bits = num_bits
            is_fast = isinstance(rotation, bytes)
            rotations = index_pb2.RqCompression
            message.rq.rotation_type = rotations.FAST if is_fast else rotations.MATRIX
            version = _VERSION_OF_RABIT
        case _:
            message.flat.SetInParent()
    return IndexDetails(_DETAILS, message.SerializeToString(), version)


def numpy_type(model: VectorModel) -> np.dtype[Any]:
    """Return the type of the coordinates in the column."""
    found: np.dtype[Any] = np.dtype(model.value_type.to_pandas_dtype())
    return found


def as_json(value: object) -> str:
    """Return JSON without spaces, as pylance writes it."""
    return json.dumps(value, separators=(",", ":"))


def _tensor(values: NDArray[Any], dtype: np.dtype[Any]) -> index_pb2.Tensor:
    stored = values.astype(dtype.newbyteorder("<"))
    return index_pb2.Tensor(
        data_type=_TENSOR_TYPES[dtype], shape=stored.shape, data=stored.tobytes()
    )
