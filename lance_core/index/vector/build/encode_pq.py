"""Product quantisation: the nearest code of every sub-vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lance_core.index.vector.build.assign import share_rows
from lance_core.index.vector.build.encode import CodedColumn, parts_of
from lance_core.index.vector.metric import Metric
from lance_core.kernels.memory import address_of
from lance_core.kernels.pq_encode import encode_sub_vectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import PqCoding, VectorModel
    from lance_core.index.vector.build.usable import UsableVectors

PQ_COLUMN = "__pq_code"

_HALF_BITS = 4


class ProductEncoder:
    """Codes residuals to the partition's centroid; with dot, vectors.

    Parameters
    ----------
    model
        The model.
    coding
        Its coding.

    Notes
    -----
    Vector index page, sections 3 and 4.2.
    """

    def __init__(self, model: VectorModel, coding: PqCoding) -> None:
        is_raw = model.metric == Metric.DOT
        taken = model.centroids[:0] if is_raw else model.centroids
        self._centroids = np.ascontiguousarray(taken, dtype=np.float32)
        self._codebook = np.ascontiguousarray(coding.codebook.transpose(0, 2, 1))
        self._is_packed = coding.num_bits == _HALF_BITS

    @property
    def columns(self) -> tuple[CodedColumn, ...]:
        """The codes."""
        width = len(self._codebook) >> self._is_packed
        return (CodedColumn(PQ_COLUMN, np.dtype(np.uint8), width),)

    def encode(
        self, vectors: UsableVectors, partitions: NDArray[np.uint32]
    ) -> Mapping[str, NDArray[Any]]:
        """Return the codes; of 4 bits two in a byte, the first in its low half."""
        numbers = vectors.numbers
        codes = np.empty((len(numbers), len(self._codebook)), np.uint8)

        def encode(start: int, end: int) -> None:
            encode_sub_vectors(
                address_of(numbers[start:end]),
                partitions[start:end],
                self._centroids,
                self._codebook,
                codes[start:end],
            )

        share_rows(len(numbers), encode)
        if not self._is_packed:
            return {PQ_COLUMN: codes}
        return {PQ_COLUMN: codes[:, ::2] | np.left_shift(codes[:, 1::2], _HALF_BITS)}

    def lay_out(
        self, columns: Mapping[str, NDArray[Any]], lengths: Sequence[int]
    ) -> Mapping[str, NDArray[Any]]:
        """Return the codes of each partition column after column."""
        codes = columns[PQ_COLUMN]
        laid_out = np.empty(codes.shape, np.uint8)
        for part in parts_of(lengths):
            laid_out[part].reshape(codes.shape[1], -1)[:] = codes[part].T
        return {PQ_COLUMN: laid_out}
