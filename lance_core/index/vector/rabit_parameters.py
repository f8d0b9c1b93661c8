"""What the metadata of ``auxiliary.idx`` says about RaBitQ codes, decoded and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.header import positive_number, tensor_values
from lance_core.kernels.rq_rotation import NUM_ROUNDS
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_FAST, _MATRIX = "fast", "matrix"
_RAW, _RESIDUAL = "raw_query", "residual_query"
_MOST_BITS = 9
_BYTE_BITS = 8
_MOST_DIMENSIONS = 1 << 16
"""Sums of whole numbers, 16 bits for every four dimensions, fit 32 bits up to here."""


@dataclass(frozen=True, slots=True)
class RabitParameters:
    """How vectors were coded.

    Parameters
    ----------
    num_bits
        Bits per dimension, 1 to 9; one is the sign.
    is_packed
        Whether sign codes are packed by 32 rows, or else lie row by row.
    is_residual
        Whether codes are for products with the query's residual, not with the query.
    rotation_signs
        Bits of the fast rotation, None for a matrix.
    matrix_buffer
        Number of the global buffer that holds the matrix, None for the fast rotation.
    """

    num_bits: int
    is_packed: bool
    is_residual: bool
    rotation_signs: bytes | None
    matrix_buffer: int | None


def read_rabit_parameters(
    stored: Mapping[str, object], dimension: int, path: str
) -> RabitParameters:
    """Read the object of a RaBitQ quantiser for vectors of ``dimension``.

    Raises
    ------
    UnusableSegmentError
        The number of bits, the rotation or the estimator is not known, or codes are of the form
        that releases up to 7.1 wrote for more than one bit, which pylance cannot search either.
    CorruptFileError
        The object contradicts the format.

    Notes
    -----
    Vector index page, sections 2.4, 2.5 and 4.4. Writers up to 7.1 name no estimator, those up to
    2.0 no rotation.
    """
    num_bits = stored.get("num_bits")
    if not isinstance(num_bits, int) or not 1 <= num_bits <= _MOST_BITS:
        raise UnusableSegmentError(f"RaBitQ codes of {num_bits} bits")
    estimator = stored.get("query_estimator", _RESIDUAL)
    if estimator not in (_RAW, _RESIDUAL):
        raise UnusableSegmentError(f"RaBitQ estimator {estimator} is not known")
    if estimator == _RESIDUAL and num_bits > 1:
        raise UnusableSegmentError(f"RaBitQ codes of {num_bits} bits as releases up to 7.1 wrote")
    _check_dimensions(stored, dimension, path)
    rotation = stored.get("rotation_type", _MATRIX)
    if rotation not in (_FAST, _MATRIX):
        raise UnusableSegmentError(f"RaBitQ rotation {rotation} is not known")
    is_fast = rotation == _FAST
    return RabitParameters(
        num_bits,
        stored.get("packed") is True,
        estimator == _RESIDUAL,
        _rotation_signs(stored, dimension, path) if is_fast else None,
        None if is_fast else positive_number(stored, "rotate_mat_position", path),
    )


def _check_dimensions(stored: Mapping[str, object], dimension: int, path: str) -> None:
    coded = stored.get("code_dim", 0)
    if coded not in (0, dimension):
        raise UnusableSegmentError(f"RaBitQ codes of {coded} for vectors of {dimension} dimensions")
    if dimension % _BYTE_BITS != 0:
        raise CorruptFileError(path, f"RaBitQ codes of {dimension} dimensions fill no whole bytes")
    if dimension > _MOST_DIMENSIONS:
        raise UnusableSegmentError(f"RaBitQ codes of {dimension} dimensions are not supported")


def _rotation_signs(stored: Mapping[str, object], dimension: int, path: str) -> bytes:
    listed = stored.get("fast_rotation_signs")
    expected = NUM_ROUNDS * dimension // _BYTE_BITS
    if not isinstance(listed, list) or len(listed) != expected:
        raise CorruptFileError(path, f'"fast_rotation_signs" is no list of {expected} bytes')
    try:
        return bytes(listed)
    except (ValueError, TypeError) as error:
        raise CorruptFileError(path, f'"fast_rotation_signs" lists no bytes: {error}') from error


def sign_factors(rotation_signs: bytes, dimension: int) -> NDArray[np.float32]:
    """Return 1 or -1 per round and coordinate, shape ``(4, d)``; a set bit negates."""
    rounds = np.frombuffer(rotation_signs, np.uint8).reshape(NUM_ROUNDS, -1)
    bits = np.unpackbits(rounds, axis=1, count=dimension, bitorder="little")
    return 1 - 2 * bits.astype(np.float32)


def read_rotation_matrix(buffer: bytes, dimension: int, path: str) -> NDArray[np.float32]:
    """Decode a rotation matrix, shape ``(d, d)``, C-contiguous, writable."""
    try:
        tensor = index_pb2.Tensor.FromString(buffer)
    except DecodeError as error:
        raise CorruptFileError(path, f"the rotation matrix is no tensor: {error}") from error
    matrix = tensor_values(tensor, path)
    if matrix.shape != (dimension, dimension):
        raise CorruptFileError(
            path, f"the rotation matrix has shape {matrix.shape} for {dimension} dimensions"
        )
    return matrix
