"""Codes of the vectors of one fragment: bytes that an exact scan reads instead of the floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.memory import address_of
from lance_core.kernels.vector_codes import (
    FIRST_PART,
    LARGEST_CODE,
    encode_run,
    find_range,
    largest_miss,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lance_core.scan.vector_column import VectorRuns

# About 5 ms of work on one core.
_PIECE_FLOATS = 1 << 22
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class VectorCodes:
    """What stands for the vectors of a fragment; see `lance_core.kernels.vector_codes`.

    Parameters
    ----------
    first, rest
        Codes of the first dimensions and of the rest, shape ``(physical rows, part of d)`` each; no
        rows if the vectors cannot be coded.
    start, step
        The grid.
    error
        Upper bound of the distance of any vector from its codes.
    longest
        The largest squared length of a vector; infinite if one is not finite.
    mapping
        The mapped file that they were made from, None for decoded vectors.
    """

    first: NDArray[np.uint8]
    rest: NDArray[np.uint8]
    start: float
    step: float
    error: float
    longest: float
    mapping: object

    @property
    def nbytes(self) -> int:
        """Memory of the codes."""
        return int(self.first.nbytes + self.rest.nbytes)


def encode_vectors(
    runs: VectorRuns, dimension: int, metric: int, look_up: Callable[[], object]
) -> VectorCodes:
    """Code all vectors of a fragment.

    Parameters
    ----------
    runs
        Where they lie; vectors of float32.
    metric
        Code of `lance_core.kernels.distance`, l2 or cosine.
    look_up
        Called between pieces of work; may raise to stop.
    """
    mapping = mapping_of(runs)
    bounds = np.array([np.inf, -np.inf])
    for address, _, count in _pieces(runs, dimension):
        look_up()
        find_range(address, count, dimension, metric, bounds)
    if not np.isfinite(bounds).all():
        nothing = np.empty((0, dimension), np.uint8)
        return VectorCodes(nothing, nothing, 0.0, 1.0, 0.0, 0.0, mapping)
    start, span = float(bounds[0]), float(bounds[1] - bounds[0])
    step = span / LARGEST_CODE if span > 0 else 1.0
    num_rows, part = int(runs.num_rows.sum()), min(dimension, FIRST_PART)
    first = np.empty((num_rows, part), np.uint8)
    rest = np.empty((num_rows, dimension - part), np.uint8)
    largest = np.zeros(2, np.float64)
    for address, row, count in _pieces(runs, dimension):
        look_up()
        places = (address_of(first[row:]), address_of(rest[row:]))
        encode_run(address, count, dimension, metric, start, step, *places, largest)
    error = largest_miss(float(np.sqrt(largest[0])), dimension, start, step)
    return VectorCodes(first, rest, start, step, error, float(largest[1]), mapping)


def mapping_of(runs: VectorRuns) -> object:
    """Return the mapped file that vectors lie in, None for decoded ones."""
    return None if runs.mapped_file is None else runs.owners[0]


def _pieces(runs: VectorRuns, dimension: int) -> Iterator[tuple[int, int, int]]:
    """Yield address, row in the fragment and number of some vectors that follow each other."""
    most = max(1, _PIECE_FLOATS // dimension)
    for address, row, count in zip(
        runs.addresses.tolist(), runs.first_offsets.tolist(), runs.num_rows.tolist(), strict=True
    ):
        for skipped in range(0, count, most):
            first = address + skipped * dimension * _FLOAT_BYTES
            yield first, row + skipped, min(most, count - skipped)
