"""What the metadata of an index segment says, decoded and checked.

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

    from lance_core.file.reader import LanceFileReader

_MAX_DIGITS = 9
_MATRIX_DIMENSIONS = 2
_FLOATS: Mapping[int, np.dtype[np.generic]] = {
    index_pb2.Tensor.FLOAT16: np.dtype("<f2"),
    index_pb2.Tensor.FLOAT32: np.dtype("<f4"),
    index_pb2.Tensor.FLOAT64: np.dtype("<f8"),
}
_BYTES: Mapping[int, np.dtype[np.generic]] = {index_pb2.Tensor.UINT8: np.dtype("u1")}


@dataclass(frozen=True, slots=True)
class Declaration:
    """Type and metric that a segment declares."""

    kind: str
    metric: Metric


def read_declaration(metadata: Mapping[str, str], path: str) -> Declaration:
    """Read ``lance:index`` from the schema metadata of ``index.idx``.

    Raises
    ------
    UnusableSegmentError
        There is no such entry, or the metric is not supported.
    CorruptFileError
        The entry is no JSON object of strings.
    """
    text = metadata.get("lance:index")
    if text is None:
        raise UnusableSegmentError("its files declare no vector index")
    declared = _json_object(text, "lance:index", path)
    kind = declared.get("type")
    name = declared.get("distance_type")
    if name not in list(Metric):
        raise UnusableSegmentError(f"metric {name} is not supported by {kind}")
    return Declaration(str(kind), Metric(str(name)))


def ivf_buffer_number(metadata: Mapping[str, str], path: str) -> int:
    """Return the number of the global buffer that holds the IVF message."""
    text = metadata.get("lance:ivf", "")
    if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) < 1:
        raise CorruptFileError(path, f'metadata "lance:ivf" is "{text}", expected a buffer number')
    return int(text)


def read_ivf_buffer(reader: LanceFileReader) -> bytes:
    """Return the IVF message of a file, not decoded."""
    return global_buffer(reader, ivf_buffer_number(reader.schema.metadata, reader.path))


def global_buffer(reader: LanceFileReader, number: int) -> bytes:
    """Return a global buffer; ``CorruptFileError`` if the file has none of this number."""
    existing = len(reader.metadata.buffers)
    if not 0 <= number < existing:
        raise CorruptFileError(reader.path, f"there is no global buffer {number}, only {existing}")
    return bytes(reader.global_buffer(number))


def read_centroids(buffer: bytes, path: str, *, are_bytes: bool = False) -> NDArray[np.float32]:
    """Decode the centroids in an IVF message; shape ``(P, d)``, C-contiguous, writable.

    Those of a hamming index are bytes, which floats hold exactly.
    """
    ivf = _ivf_message(buffer, path)
    if not ivf.HasField("centroids_tensor"):
        raise CorruptFileError(path, "the IVF message holds no centroids")
    centroids = _matrix(ivf.centroids_tensor, path, _BYTES if are_bytes else _FLOATS)
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


def _ivf_message(buffer: bytes, path: str) -> index_pb2.IVF:
    try:
        return index_pb2.IVF.FromString(buffer)
    except DecodeError as error:
        raise CorruptFileError(path, f"the IVF message cannot be read: {error}") from error


def tensor_values(tensor: index_pb2.Tensor, path: str) -> NDArray[np.float32]:
    """Return the values of a matrix of floats, C-contiguous and writable."""
    return _matrix(tensor, path, _FLOATS)


def _matrix(
    tensor: index_pb2.Tensor, path: str, types: Mapping[int, np.dtype[np.generic]]
) -> NDArray[np.float32]:
    stored_type = types.get(tensor.data_type)
    if stored_type is None:
        raise UnusableSegmentError(f"tensors of type {tensor.data_type} are not supported")
    shape = tuple(tensor.shape)
    if len(shape) != _MATRIX_DIMENSIONS or prod(shape) * stored_type.itemsize != len(tensor.data):
        raise CorruptFileError(
            path, f"a tensor of shape {shape} and type {stored_type} has {len(tensor.data)} bytes"
        )
    with np.errstate(over="ignore"):  # float64 has more range
        return np.frombuffer(tensor.data, stored_type).reshape(shape).astype(np.float32)


def storage_object(metadata: Mapping[str, str], path: str) -> Mapping[str, object]:
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


def positive_number(stored: Mapping[str, object], key: str, path: str) -> int:
    """Return a member of a JSON object that has to be a whole number above 0."""
    value = stored.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CorruptFileError(path, f'"{key}" is {value!r}, expected a positive number')
    return value
