"""RaBitQ: signs of rotated residuals, more bits, and factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lance_core.index.vector.build.assign import share_rows
from lance_core.index.vector.build.encode import CodedColumn, parts_of
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.rabit import ERROR_FACTORS
from lance_core.index.vector.rabit_extra import extra_layout
from lance_core.index.vector.rabit_parameters import sign_factors
from lance_core.kernels.memory import address_of
from lance_core.kernels.rq_encode import encode_rows
from lance_core.kernels.rq_rotation import NUM_ROUNDS, rotate
from lance_core.kernels.rq_signs import pack_signs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import RabitCoding, VectorModel
    from lance_core.index.vector.build.usable import UsableVectors

SIGNS_COLUMN = "_rabit_codes"
EXTRA_COLUMN = "__blocked_ex_codes"

_FACTORS = ("__add_factors", "__scale_factors", ERROR_FACTORS)
_EXTRA_FACTORS = ("__add_factors_ex", "__scale_factors_ex")
_BYTE_BITS = 8


class RabitEncoder:
    """Codes the rotated residuals to the partition's centroid.

    Parameters
    ----------
    model
        The model.
    coding
        Its coding.

    Notes
    -----
    Vector index page, section 4.4; bit for bit what pylance 14.0.2 writes, but for the rounding of
    factors.
    """

    def __init__(self, model: VectorModel, coding: RabitCoding) -> None:
        dimension = model.dimension
        self._num_extra_bits = coding.num_bits - 1
        self._layout = extra_layout(self._num_extra_bits, dimension)
        self._is_dot = model.metric == Metric.DOT
        self._rotation = _as_kernels_take_it(coding.rotation, dimension)
        self._centroids = np.ascontiguousarray(model.centroids, dtype=np.float32)
        self._rotated = np.empty_like(self._centroids)
        for centroid, rotated in zip(self._centroids, self._rotated, strict=True):
            rotate(centroid, *self._rotation, rotated)

    @property
    def columns(self) -> tuple[CodedColumn, ...]:
        """Signs, factors and extra codes, as pylance orders them."""
        byte, number = np.dtype(np.uint8), np.dtype(np.float32)
        signs = CodedColumn(SIGNS_COLUMN, byte, self._centroids.shape[1] // _BYTE_BITS)
        factors = [CodedColumn(name, number, None) for name in _FACTORS]
        if self._num_extra_bits == 0:
            return (signs, *factors)
        extra = CodedColumn(EXTRA_COLUMN, byte, self._layout.row_bytes)
        return (
            signs,
            *factors,
            extra,
            *(CodedColumn(each, number, None) for each in _EXTRA_FACTORS),
        )

    def encode(
        self, vectors: UsableVectors, partitions: NDArray[np.uint32]
    ) -> Mapping[str, NDArray[Any]]:
        """Return codes and factors."""
        numbers = vectors.numbers
        num_rows, dimension = numbers.shape
        names = (*_FACTORS, *(_EXTRA_FACTORS if self._num_extra_bits > 0 else ()))
        signs = np.empty((num_rows, dimension // _BYTE_BITS), np.uint8)
        extra = np.zeros((num_rows, self._layout.row_bytes), np.uint8)
        factors = np.empty((len(names), num_rows), np.float32)

        def encode(start: int, end: int) -> None:
            width = dimension if self._num_extra_bits > 0 else 0
            codes = np.empty((end - start, width), np.uint8)
            own_factors = np.empty((len(names), end - start), np.float32)
            encode_rows(
                address_of(numbers[start:end]),
                partitions[start:end],
                self._centroids,
                self._rotated,
                self._rotation,
                self._is_dot,
                self._num_extra_bits,
                signs[start:end],
                codes,
                own_factors,
            )
            factors[:, start:end] = own_factors
            if self._num_extra_bits > 0:
                self._layout.pack(codes, extra[start:end])

        share_rows(num_rows, encode)
        found = {SIGNS_COLUMN: signs, **dict(zip(names, factors, strict=True))}
        return {**found, EXTRA_COLUMN: extra} if self._num_extra_bits > 0 else found

    def lay_out(
        self, columns: Mapping[str, NDArray[Any]], lengths: Sequence[int]
    ) -> Mapping[str, NDArray[Any]]:
        """Return the sign codes packed by 32 rows of a partition, and all else as it is."""
        signs = columns[SIGNS_COLUMN]
        packed = np.empty(signs.shape, np.uint8)
        for part in parts_of(lengths):
            packed[part] = pack_signs(signs[part]).reshape(-1, signs.shape[1])
        return {**columns, SIGNS_COLUMN: packed}


def _as_kernels_take_it(
    rotation: bytes | NDArray[np.float32], dimension: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return signs and matrix, of which one says nothing."""
    if isinstance(rotation, bytes):
        return sign_factors(rotation, dimension), np.empty((0, dimension), np.float32)
    signs = np.ones((NUM_ROUNDS, dimension), np.float32)
    return signs, np.ascontiguousarray(rotation, dtype=np.float32)
