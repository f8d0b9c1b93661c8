"""Whole vectors: the form of IVF_FLAT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.vector.metric import Metric
from lance_core.index.vector.quantizer import PayloadColumn
from lance_core.kernels.ivf_flat import search_flat
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.index.vector.quantizer import SearchOptions, StorageSource
    from lance_core.kernels.topk import TopRows

_COLUMN = "flat"
_FLOATS = (pa.float32(), pa.float16(), pa.float64())
_BYTES = (pa.uint8(),)


@dataclass(frozen=True, slots=True)
class FlatVectors:
    """Vectors as they are, or of unit length for cosine (vector index page, section 4.1).

    Kernels take float32, for hamming bytes.
    """

    dimension: int
    metric: Metric
    is_ready: bool
    """Whether the values are stored as kernels take them."""

    @property
    def columns(self) -> tuple[PayloadColumn, ...]:
        """The vectors."""
        types = _BYTES if self.metric == Metric.HAMMING else _FLOATS
        return (PayloadColumn(_COLUMN, types, self.dimension),)

    @property
    def num_arrays(self) -> int:
        """The vectors."""
        return 1

    @property
    def raw_row_bytes(self) -> int | None:
        """Bytes of a vector where it is stored as kernels take it."""
        return self.dimension * self.metric.vector_type.itemsize if self.is_ready else None

    @property
    def drops_rows(self) -> bool:
        """Dead rows are masked."""
        return False

    @property
    def nbytes(self) -> int:
        """Nothing is held."""
        return 0

    def lay_out(
        self, columns: Sequence[NDArray[np.generic]], is_kept: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.generic], ...]:
        """Return the vectors, shape ``(n, d)``."""
        del is_kept
        with np.errstate(over="ignore"):  # float64 has more range
            return (np.array(columns[0], self.metric.vector_type, order="C"),)

    def search(
        self,
        held: HeldPartitions,
        query: NDArray[np.float32],
        words: NDArray[np.uint64],
        top: TopRows,
        options: SearchOptions,
    ) -> None:
        """Offer every row."""
        del options
        search_flat(held.rows, query, self.metric.code, words, top)


def open_flat(source: StorageSource) -> FlatVectors:
    """Return the form of a segment that stores whole vectors."""
    field = next((f for f in source.reader.schema.fields if f.name == _COLUMN), None)
    stored = pa.null() if field is None else arrow_type(field)
    wanted = pa.from_numpy_dtype(source.metric.vector_type)
    is_ready = pa.types.is_fixed_size_list(stored) and stored.value_type == wanted
    return FlatVectors(source.dimension, source.metric, is_ready)
