"""What the metadata of an index segment says, decoded and checked: pure functions of bytes.

Texts and numbers come from untrusted files: what contradicts the format raises
``CorruptFileError``, what is merely unknown ``UnusableSegmentError``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.metric import Metric
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

IVF_FLAT = "IVF_FLAT"
IVF_PQ = "IVF_PQ"

_SUPPORTED_TYPES = (IVF_FLAT, IVF_PQ)
_PQ_BITS = 8
_NUM_CODES = 256
_MAX_DIGITS = 9
_MATRIX_DIMENSIONS = 2
_FLOATS: Mapping[int, np.dtype[np.floating]] = {
    index_pb2.Tensor.FLOAT16: np.dtype("<f2"),
    index_pb2.Tensor.FLOAT32: np.dtype("<f4"),
    index_pb2.Tensor.FLOAT64: np.dtype("<f8"),
}


@dataclass(frozen=True, slots=True)
class Declaration:
    """Type and metric that a segment declares."""

    kind: str
    metric: Metric


@dataclass(frozen=True, slots=True)
class PqParameters:
    """How vectors were quantised.

    ``codebook_buffer`` numbers the global buffer of the codebook tensor; where it is None the
    tensor stood in the metadata itself, as ``inline_codebook``. With ``is_transposed`` the codes of
    a partition lie column after column, else row after row.
    """

    num_sub_vectors: int
    dimension: int
    is_transposed: bool
    codebook_buffer: int | None
    inline_codebook: bytes


def read_declaration(metadata: Mapping[str, str], path: str) -> Declaration:
    """Read ``lance:index`` from the schema metadata of ``index.idx``.

    Raises
    ------
    UnusableSegmentError
        There is no such entry, or the type or metric is not supported.
    CorruptFileError
        The entry is no JSON object of strings.
    """
    text = metadata.get("lance:index")
    if text is None:
        raise UnusableSegmentError("its files declare no vector index")
    declared = _json_object(text, "lance:index", path)
    kind = declared.get("type")
    if kind not in _SUPPORTED_TYPES:
        raise UnusableSegmentError(f"index type {kind} is not supported")
    name = declared.get("distance_type")
    if name not in list(Metric):
        raise UnusableSegmentError(f"metric {name} is not supported by {kind}")
    return Declaration(str(kind), Metric(str(name)))


def read_ivf_buffer(metadata: Mapping[str, str], path: str) -> int:
    """Read the number of the global buffer that holds the IVF message."""
    text = metadata.get("lance:ivf", "")
    if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) < 1:
        raise CorruptFileError(path, f'metadata "lance:ivf" is "{text}", expected a buffer number')
    return int(text)


def read_pq_parameters(metadata: Mapping[str, str], path: str) -> PqParameters:
    """Read ``storage_metadata`` from the schema metadata of ``auxiliary.idx``.

    Raises
    ------
    UnusableSegmentError
        Codes have other than 8 bits, or their width is not given under the name ``nbits``: so did
        0.20, and pylance 14.0.2 does not use such a segment either.
    CorruptFileError
        The entry contradicts the format.

    Notes
    -----
    Vector index page, sections 2.4 and 2.5.
    """
    stored = _storage_object(metadata, path)
    if stored.get("nbits") != _PQ_BITS:
        raise UnusableSegmentError(f"product quantiser of {stored.get('nbits')} bits")
    position = stored.get("codebook_position")
    inline = stored.get("codebook_tensor")
    # Global buffer 0 is the file's own schema, so 0 says that the codebook is elsewhere.
    is_inline = position is None or position == 0
    parameters = PqParameters(
        num_sub_vectors=_positive(stored, "num_sub_vectors", path),
        dimension=_positive(stored, "dimension", path),
        is_transposed=stored.get("transposed") is True,
        codebook_buffer=None if is_inline else _positive(stored, "codebook_position", path),
        inline_codebook=_byte_values(inline, path) if is_inline else b"",
    )
    if parameters.dimension % parameters.num_sub_vectors != 0:
        raise CorruptFileError(
            path,
            f"{parameters.num_sub_vectors} sub-vectors do not divide {parameters.dimension}"
            " dimensions",
        )
    return parameters


def read_centroids(buffer: bytes, path: str) -> NDArray[np.float32]:
    """Decode the centroids in an IVF message; shape ``(P, d)``, C-contiguous, writable."""
    ivf = _ivf_message(buffer, path)
    if not ivf.HasField("centroids_tensor"):
        raise CorruptFileError(path, "the IVF message holds no centroids")
    centroids = _tensor_values(ivf.centroids_tensor, path)
    if centroids.ndim != _MATRIX_DIMENSIONS or centroids.shape[1] == 0:
        raise CorruptFileError(path, f"centroids have shape {centroids.shape}")
    return centroids


def read_partitions(
    buffer: bytes, num_rows: int, path: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Decode first row and number of rows of each partition, shape ``(P,)`` each.

    Raises ``CorruptFileError`` if a partition does not lie inside the ``num_rows`` of the file.
    """
    ivf = _ivf_message(buffer, path)
    if len(ivf.offsets) != len(ivf.lengths):
        raise CorruptFileError(
            path, f"{len(ivf.offsets)} partition offsets but {len(ivf.lengths)} lengths"
        )
    offsets = np.array(ivf.offsets, np.uint64)
    lengths = np.array(ivf.lengths, np.uint64)
    if (offsets > num_rows).any() or (offsets + lengths > num_rows).any():
        raise CorruptFileError(path, f"a partition lies outside the file's {num_rows} rows")
    return offsets.astype(np.int64), lengths.astype(np.int64)


def read_codebook(buffer: bytes, parameters: PqParameters, path: str) -> NDArray[np.float32]:
    """Decode a codebook into shape ``(m, d / m, 256)``, C-contiguous, writable.

    The stored values run over sub-vectors, codes and sub-dimensions; the shape beside them is only
    a container (vector index page, section 4.2).
    """
    try:
        tensor = index_pb2.Tensor.FromString(buffer)
    except DecodeError as error:
        raise CorruptFileError(path, f"the codebook is no tensor: {error}") from error
    values = _tensor_values(tensor, path)
    if values.size != _NUM_CODES * parameters.dimension:
        raise CorruptFileError(
            path,
            f"the codebook has {values.size} values, {parameters.dimension} dimensions need"
            f" {_NUM_CODES * parameters.dimension}",
        )
    by_code = values.reshape(parameters.num_sub_vectors, _NUM_CODES, -1)
    return np.ascontiguousarray(by_code.transpose(0, 2, 1))


def _ivf_message(buffer: bytes, path: str) -> index_pb2.IVF:
    try:
        return index_pb2.IVF.FromString(buffer)
    except DecodeError as error:
        raise CorruptFileError(path, f"the IVF message cannot be read: {error}") from error


def _tensor_values(tensor: index_pb2.Tensor, path: str) -> NDArray[np.float32]:
    stored_type = _FLOATS.get(tensor.data_type)
    if stored_type is None:
        raise UnusableSegmentError(f"tensors of type {tensor.data_type} are not supported")
    shape = tuple(tensor.shape)
    if len(shape) != _MATRIX_DIMENSIONS or prod(shape) * stored_type.itemsize != len(tensor.data):
        raise CorruptFileError(
            path, f"a tensor of shape {shape} and type {stored_type} has {len(tensor.data)} bytes"
        )
    return np.frombuffer(tensor.data, stored_type).reshape(shape).astype(np.float32)


def _storage_object(metadata: Mapping[str, str], path: str) -> Mapping[str, object]:
    """Return the quantiser's object: a JSON object in a string in a JSON array."""
    key = "storage_metadata"
    outer = _json_value(metadata.get(key, ""), key, path)
    if not isinstance(outer, list) or len(outer) != 1 or not isinstance(outer[0], str):
        raise CorruptFileError(path, f'metadata "{key}" is no JSON array of one string')
    return _json_object(outer[0], key, path)


def _json_object(text: str, key: str, path: str) -> Mapping[str, object]:
    value = _json_value(text, key, path)
    if not isinstance(value, dict):
        raise CorruptFileError(path, f'metadata "{key}" is no JSON object')
    return value


def _json_value(text: str, key: str, path: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, f'metadata "{key}" is no JSON: {error}') from error
    return value


def _positive(stored: Mapping[str, object], key: str, path: str) -> int:
    value = stored.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CorruptFileError(path, f'"{key}" is {value!r}, expected a positive number')
    return value


def _byte_values(values: object, path: str) -> bytes:
    """Return the bytes that a JSON array lists one by one."""
    if not isinstance(values, list):
        raise CorruptFileError(path, '"codebook_tensor" is no array')
    try:
        return bytes(values)
    except (ValueError, TypeError) as error:
        raise CorruptFileError(path, f'"codebook_tensor" lists no bytes: {error}') from error
