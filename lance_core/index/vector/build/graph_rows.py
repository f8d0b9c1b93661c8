"""What the rows of a graph are, and what distances between two of them need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_core.errors import UnsupportedFeatureError
from lance_core.index.vector.build.model import FlatCoding, PqCoding, SqCoding, VectorModel
from lance_core.index.vector.metric import Metric
from lance_core.kernels import hnsw_scoring
from lance_core.kernels.graph_rows import GraphRows
from lance_core.kernels.memory import address_of
from lance_core.kernels.sq_distance import LARGEST_CODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_TABLE = np.zeros((1, 1, 1), np.float32)
_PACKED_BITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class RowSpace:
    """How the coded rows of a model are compared, whatever their partition.

    Parameters
    ----------
    storage
        What rows are: a number of `lance_core.kernels.hnsw_scoring`.
    metric
        The metric of the storage.
    are_packed
        Whether two codes share a byte.
    start, step
        The numbers that scalar codes stand for are ``start + step * code``.
    table
        Shape ``(m, K, K)``: what two codes of a sub-vector add to a distance.

    Notes
    -----
    Vector index page, sections 4.1 to 4.3. Residuals of one partition differ as their vectors do,
    so product codes need no centroid.
    """

    storage: int
    metric: Metric
    are_packed: bool = False
    start: float = 0.0
    step: float = 0.0
    table: NDArray[np.float32] = field(default_factory=lambda: _NO_TABLE)

    def prepare(self, codes: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the rows of a partition as kernels take them: no copy where they are so."""
        wanted = np.float32 if self.storage == hnsw_scoring.VECTORS else np.uint8
        with np.errstate(over="ignore"):  # float64 has more range
            rows: NDArray[np.generic] = np.ascontiguousarray(codes, dtype=wanted)
        return unpack_nibbles(rows.view(np.uint8)) if self.are_packed else rows

    def bind(self, rows: NDArray[np.generic]) -> GraphRows:
        """Describe prepared rows of shape ``(n, width)`` to kernels; both must be kept alive."""
        return GraphRows(
            storage=self.storage,
            metric=self.metric.code,
            rows=address_of(rows),
            row_bytes=rows.shape[1] * rows.itemsize,
            width=rows.shape[1],
            table=address_of(self.table),
            num_codes=self.table.shape[1],
            start=np.float32(self.start),
            step=np.float32(self.step),
            offset=np.float32(self.metric == Metric.DOT),
        )


def row_space(model: VectorModel) -> RowSpace:
    """Return how the rows of a model are compared.

    Raises
    ------
    UnsupportedFeatureError
        There are no graphs over such codes.
    """
    metric, coding = model.metric, model.coding
    if isinstance(coding, FlatCoding):
        is_bytes = metric == Metric.HAMMING
        return RowSpace(hnsw_scoring.BYTES if is_bytes else hnsw_scoring.VECTORS, metric)
    if isinstance(coding, SqCoding):
        is_dot = metric == Metric.DOT
        with np.errstate(over="ignore"):  # infinite then, as it is for queries
            step = float(np.float32(coding.end - coding.start) / np.float32(LARGEST_CODE))
        return RowSpace(
            hnsw_scoring.SCALAR_CODES_DOT if is_dot else hnsw_scoring.SCALAR_CODES,
            metric,
            start=coding.start,
            step=step,
        )
    if isinstance(coding, PqCoding):
        table = table_of_pairs(coding.codebook, metric)
        are_packed = coding.num_bits == _PACKED_BITS
        return RowSpace(hnsw_scoring.PRODUCT_CODES, metric, are_packed, table=table)
    raise UnsupportedFeatureError(f"graphs over {type(coding).__name__}: take FLAT, PQ or SQ")


def table_of_pairs(codebook: NDArray[np.float32], metric: Metric) -> NDArray[np.float32]:
    """Return what any two codes add to a distance, shape ``(m, K, K)``.

    Parameters
    ----------
    codebook
        Shape ``(m, K, d / m)``.
    metric
        Inner products with a minus for dot, squared l2 for others; infinite beyond float32.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        pairs = _pairs(codebook, metric)
        for number in np.flatnonzero(~np.isfinite(pairs).all(axis=(1, 2))):
            # Parts beyond float32 may cancel out: what two codes make of them needs a wider type.
            pairs[number] = _pairs(codebook[number : number + 1].astype(np.float64), metric)[0]
    return pairs


def _pairs(codebook: NDArray[Any], metric: Metric) -> NDArray[Any]:
    products: NDArray[Any] = codebook @ codebook.transpose(0, 2, 1)
    if metric == Metric.DOT:
        products *= -1
        return products
    squares = np.einsum("mkd,mkd->mk", codebook, codebook)
    products *= -2
    products += squares[:, :, None]
    products += squares[:, None, :]
    np.maximum(products, 0, out=products)
    return products


def unpack_nibbles(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return pairs of 4-bit codes as one byte each, low half first: ``(n, w)`` to ``(n, 2 w)``."""
    codes = np.empty((len(packed), 2 * packed.shape[1]), np.uint8)
    np.bitwise_and(packed, 15, out=codes[:, ::2])
    np.right_shift(packed, 4, out=codes[:, 1::2])
    return codes
