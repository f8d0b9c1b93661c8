"""Scalar-quantised vectors: one byte per dimension, between two bounds."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.quantizer import PayloadColumn
from lance_core.kernels.ivf_sq import search_sq

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.index.vector.quantizer import SearchOptions, StorageSource
    from lance_core.kernels.topk import TopRows

_COLUMN = "__sq_code"


@dataclass(frozen=True, slots=True)
class ScalarQuantizer:
    """Codes of ``dimension`` bytes; ``start`` has code 0 and ``end`` 255 in every dimension.

    The number of bits in the metadata is not looked at: codes have 8 whatever was asked for (vector
    index page, section 4.3).
    """

    dimension: int
    metric: Metric
    start: float
    end: float

    @property
    def columns(self) -> tuple[PayloadColumn, ...]:
        """The codes."""
        return (PayloadColumn(_COLUMN, (pa.uint8(),), self.dimension),)

    @property
    def num_arrays(self) -> int:
        """The codes."""
        return 1

    @property
    def raw_row_bytes(self) -> int | None:
        """Codes are used where they lie in a mapped file if they lie there row by row."""
        return self.dimension

    @property
    def drops_rows(self) -> bool:
        """Dead rows are masked."""
        return False

    @property
    def nbytes(self) -> int:
        """Nothing worth counting."""
        return 0

    def lay_out(
        self, columns: Sequence[NDArray[np.generic]], is_kept: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.generic], ...]:
        """Return the codes, shape ``(n, d)``, uint8."""
        del is_kept
        return (np.array(columns[0], np.uint8, order="C"),)

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
        is_dot = self.metric == Metric.DOT
        search_sq(held.rows, query, (self.start, self.end), words, top, is_dot=is_dot)


def open_sq(source: StorageSource) -> ScalarQuantizer:
    """Read the bounds of a scalar quantiser; errors as `read_bounds`."""
    start, end = read_bounds(source.parameters, source.path)
    return ScalarQuantizer(source.dimension, source.metric, start, end)


def read_bounds(stored: Mapping[str, object], path: str) -> tuple[float, float]:
    """Return the bounds that the object of a scalar quantiser holds.

    Raises
    ------
    CorruptFileError
        There are none, or they are no finite numbers.
    """
    bounds = stored.get("bounds")
    named = bounds if isinstance(bounds, dict) else {}
    start, end = _finite(named.get("start")), _finite(named.get("end"))
    if start is None or end is None:
        raise CorruptFileError(path, f'"bounds" is {bounds!r}, expected two numbers')
    return start, end


def _finite(value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if isfinite(value) else None
