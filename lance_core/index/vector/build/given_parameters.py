"""How vector indices are trained and coded: what callers ask for, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_number
from lance_core.index.vector.build.given_arrays import (
    byte_array,
    codebook_array,
    float_array,
    rotation_matrix,
)
from lance_core.index.vector.build.model import GraphParameters
from lance_core.index.vector.build.parameters import (
    QUANTISERS,
    Quantiser,
    VectorColumn,
    VectorParameters,
    vector_column,
)
from lance_core.index.vector.metric import Metric
from lance_core.kernels.rq_rotation import NUM_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

_COMMON = (
    "metric",
    "num_partitions",
    "target_partition_size",
    "sample_rate",
    "max_iters",
    "ivf_centroids",
)
_OF_QUANTISER = {
    "FLAT": (),
    "PQ": ("num_sub_vectors", "num_bits", "pq_codebook"),
    "SQ": ("num_bits",),
    "RQ": ("num_bits", "rotation_type", "rotation"),
}
_OF_GRAPHS = ("m", "ef_construction", "max_level")
_BITS = {"FLAT": (0,), "PQ": (8, 4), "SQ": (8,), "RQ": (5, 1, 2, 3, 4, 6, 7, 8, 9)}
"""The usual number first."""

_ROWS_OF_PARTITION = {"FLAT": 4096, "PQ": 8192, "SQ": 8192, "RQ": 4096}
_ROWS_OF_GRAPH = 1 << 20
_MOST = 1 << 30
_MOST_CONNECTIONS = 4096
_MOST_LEVELS = 64
_MOST_ROTATED = 1 << 16
_BYTE_BITS = 8


def vector_parameters(
    index_type: str, column_type: pa.DataType, given: Mapping[str, object]
) -> VectorParameters:
    """Check what is asked for and fill in the rest.

    Parameters
    ----------
    index_type
        ``IVF_FLAT``, ``IVF_PQ``, ``IVF_SQ``, ``IVF_RQ``, ``IVF_HNSW_FLAT``, ``IVF_HNSW_PQ`` or
        ``IVF_HNSW_SQ``, in capitals or small letters.
    column_type
        Type of the column.
    given
        By the names that pylance has for them: ``metric``, ``num_partitions``,
        ``target_partition_size``, ``sample_rate``, ``max_iters`` and ``ivf_centroids``; of PQ
        ``num_sub_vectors``, ``num_bits`` and ``pq_codebook``, of RQ ``num_bits``,
        ``rotation_type`` and ``rotation`` (sign bytes or an orthogonal matrix); of graphs ``m``,
        ``ef_construction`` and ``max_level``. Arrays are of numpy, or fixed-size lists or tensors
        of Arrow. None is as good as absent.

    Raises
    ------
    InvalidRequestError
        The type does not take such a column, parameter or value.

    Notes
    -----
    Vector index page, sections 3 and 8.
    """
    name = str(index_type).upper()
    if name not in QUANTISERS:
        raise InvalidRequestError(f"index type {index_type!r} is none of {', '.join(QUANTISERS)}")
    quantiser, has_graph = QUANTISERS[name], "HNSW" in name
    column = vector_column(column_type)
    wanted = _Wanted(name, {key: value for key, value in given.items() if value is not None})
    wanted.refuse_unknown(parameters_of(name))
    metric = _metric(wanted, column, quantiser)
    num_bits = wanted.number("num_bits", _BITS[quantiser][0], 0, _MOST)
    if num_bits not in _BITS[quantiser]:
        known = ", ".join(map(str, sorted(_BITS[quantiser])))
        raise InvalidRequestError(f"codes of an {name} have {known} bits, not {num_bits}")
    num_sub_vectors = _sub_vectors(wanted, column.dimension, num_bits) if quantiser == "PQ" else 1
    if quantiser == "RQ":
        _check_rotated(column.dimension)
    centroids = _centroids(wanted, column)
    target = _ROWS_OF_GRAPH if has_graph else _ROWS_OF_PARTITION[quantiser]
    return VectorParameters(
        index_type=name,
        column=column,
        metric=metric,
        num_partitions=_partitions(wanted, centroids),
        target_partition_size=wanted.number("target_partition_size", target, 1, _MOST),
        num_sub_vectors=num_sub_vectors,
        num_bits=num_bits,
        rotation_type=_rotation_type(wanted),
        graph=_graph(wanted) if has_graph else None,
        sample_rate=wanted.number("sample_rate", 256, 1, _MOST),
        max_iterations=wanted.number("max_iters", 50, 1, _MOST),
        centroids=centroids,
        codebook=_codebook(wanted, column, num_sub_vectors, num_bits),
        rotation=_rotation(wanted, column.dimension),
    )


def parameters_of(index_type: str) -> tuple[str, ...]:
    """Return the names of the parameters that a type of index takes; one of `QUANTISERS`."""
    of_graph = _OF_GRAPHS if "HNSW" in index_type else ()
    return (*_COMMON, *_OF_QUANTISER[QUANTISERS[index_type]], *of_graph)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Parameters given for a type of index."""

    index_type: str
    given: Mapping[str, object]

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        unknown = sorted(set(self.given) - set(known))
        if len(unknown) > 0:
            raise InvalidRequestError(
                f"an {self.index_type} index has no parameter {unknown[0]!r};"
                f" known: {', '.join(known)}"
            )

    def number(self, name: str, usual: int, least: int, most: int) -> int:
        return checked_number(name, self.given.get(name, usual), least, most)


def _metric(wanted: _Wanted, column: VectorColumn, quantiser: Quantiser) -> Metric:
    are_bytes = column.value_type == pa.uint8()
    usual = Metric.HAMMING if are_bytes else Metric.COSINE if column.is_multi else Metric.L2
    spelt = str(wanted.given.get("metric", usual)).lower()
    spelt = "l2" if spelt == "euclidean" else spelt
    if spelt not in list(Metric):
        raise InvalidRequestError(f"metric {spelt!r} is none of {', '.join(Metric)}")
    metric = Metric(spelt)
    if are_bytes != (metric is Metric.HAMMING):
        fit = "hamming" if are_bytes else "l2, cosine or dot"
        raise InvalidRequestError(f"vectors of {column.value_type} are compared by {fit}")
    if are_bytes and quantiser != "FLAT":
        raise InvalidRequestError(
            f"an {wanted.index_type} index takes no vectors of bytes; IVF_FLAT and IVF_HNSW_FLAT do"
        )
    if column.is_multi and metric is not Metric.COSINE:
        raise InvalidRequestError("an index of lists of vectors takes cosine as its metric")
    return metric


def _partitions(wanted: _Wanted, centroids: NDArray[np.generic] | None) -> int | None:
    if "num_partitions" not in wanted.given:
        return None
    number = wanted.number("num_partitions", 1, 1, _MOST)
    if centroids is not None and len(centroids) != number:
        raise InvalidRequestError(
            f"num_partitions is {number}, but ivf_centroids are {len(centroids)}"
        )
    return number


def _sub_vectors(wanted: _Wanted, dimension: int, num_bits: int) -> int:
    usual = next((dimension // each for each in (16, 8) if dimension % each == 0), 1)
    if num_bits * usual % _BYTE_BITS != 0:
        usual *= 2
    number = wanted.number("num_sub_vectors", usual, 1, dimension)
    if dimension % number != 0:
        raise InvalidRequestError(
            f"{number} sub-vectors do not divide {dimension} dimensions; take a divisor"
        )
    if number * num_bits % _BYTE_BITS != 0:
        raise InvalidRequestError(
            f"{number} codes of {num_bits} bits fill no whole bytes; take an even num_sub_vectors"
        )
    return number


def _check_rotated(dimension: int) -> None:
    if dimension % _BYTE_BITS != 0 or dimension > _MOST_ROTATED:
        raise InvalidRequestError(
            f"an IVF_RQ index takes vectors of a multiple of 8 dimensions, at most {_MOST_ROTATED},"
            f" not of {dimension}"
        )


def _graph(wanted: _Wanted) -> GraphParameters:
    usual = GraphParameters()
    connections = wanted.number("m", usual.max_connections, 4, _MOST_CONNECTIONS)
    candidates = wanted.number("ef_construction", usual.ef_construction, connections, _MOST)
    levels = wanted.number("max_level", usual.max_level, 1, _MOST_LEVELS)
    return GraphParameters(connections, candidates, levels)


def _rotation_type(wanted: _Wanted) -> Literal["fast", "matrix"]:
    rotation = wanted.given.get("rotation")
    is_matrix = rotation is not None and not isinstance(rotation, bytes)
    match str(wanted.given.get("rotation_type", "matrix" if is_matrix else "fast")).lower():
        case "fast" if not is_matrix:
            return "fast"
        case "matrix" if is_matrix or rotation is None:
            return "matrix"
    raise InvalidRequestError(
        "rotation_type is fast or matrix; a rotation that is given is made of bytes or a matrix"
    )


def _centroids(
    wanted: _Wanted, column: VectorColumn
) -> NDArray[np.float32] | NDArray[np.uint8] | None:
    centroids = wanted.given.get("ivf_centroids")
    if centroids is None:
        return None
    take = byte_array if column.value_type == pa.uint8() else float_array
    return take("ivf_centroids", centroids, (None, column.dimension))


def _codebook(
    wanted: _Wanted, column: VectorColumn, num_sub_vectors: int, num_bits: int
) -> NDArray[np.float32] | None:
    codebook = wanted.given.get("pq_codebook")
    if codebook is None:
        return None
    if "ivf_centroids" not in wanted.given:
        raise InvalidRequestError("give ivf_centroids too: pq_codebook codes the gaps to them")
    shape = (num_sub_vectors, 1 << num_bits, column.dimension // num_sub_vectors)
    return codebook_array("pq_codebook", codebook, shape)


def _rotation(wanted: _Wanted, dimension: int) -> bytes | NDArray[np.float32] | None:
    rotation = wanted.given.get("rotation")
    if rotation is None:
        return None
    if not isinstance(rotation, bytes):
        return rotation_matrix("rotation", rotation, dimension)
    needed = NUM_ROUNDS * dimension // _BYTE_BITS
    if len(rotation) != needed:
        raise InvalidRequestError(
            f"a fast rotation of {dimension} dimensions has {needed} bytes, not {len(rotation)}"
        )
    return rotation
