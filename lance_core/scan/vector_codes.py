"""Codes of the vectors of one fragment: bytes that an exact scan reads instead of the floats."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.memory import address_of
from lance_core.kernels.vector_codes import (
    FIRST_PART,
    encode_run,
    find_range,
    finished_grid,
    grid_over,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.typing import NDArray

    from lance_core.kernels.vector_codes import Grid
    from lance_core.scan.vector_column import VectorRuns

    _Work = Generator[int, None, "Grid | None"]

# At most 5 ms of work on one core.
_PIECE_NUMBERS = 1 << 22
_FLOAT_BYTES = 4
# Coding a vector takes as long as scoring five.
_CODING_COST = 5


class VectorCodes:
    """What stands for the vectors of a fragment; see `lance_core.kernels.vector_codes`.

    They are made little by little, so that no query takes much longer than a scan.

    Parameters
    ----------
    runs
        Where the vectors lie, all of float32.
    dimension
        Numbers of a vector.
    metric
        Code of `lance_core.kernels.distance`, l2 or cosine.

    Attributes
    ----------
    first, rest
        Codes of the first dimensions and of the rest, shape ``(physical rows, part of d)`` each.
    grid
        None until they are complete, for ever if the vectors cannot be coded.
    """

    def __init__(self, runs: VectorRuns, dimension: int, metric: int) -> None:
        num_rows, part = int(runs.num_rows.sum()), min(dimension, FIRST_PART)
        self.first: NDArray[np.uint8] = np.empty((num_rows, part), np.uint8)
        self.rest: NDArray[np.uint8] = np.empty((num_rows, dimension - part), np.uint8)
        self.grid: Grid | None = None
        self._mapping = _mapping_of(runs)
        self._work: _Work | None = _make(runs, metric, self.first, self.rest)
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """Memory of the codes."""
        return int(self.first.nbytes + self.rest.nbytes)

    def are_of(self, runs: VectorRuns) -> bool:
        """Tell whether these are the vectors, and not those of a file that was replaced."""
        return self._mapping is _mapping_of(runs)

    def advance(self, look_up: Callable[[], object]) -> None:
        """Go on with making them, for about as long as a scan takes.

        Nothing happens when they are made or when another thread does so.

        Parameters
        ----------
        look_up
            Called between pieces of work; may raise to stop.
        """
        if self._work is None or not self._lock.acquire(blocking=False):
            return
        try:
            numbers_left = self.nbytes
            while numbers_left > 0 and self._work is not None:
                look_up()
                try:
                    numbers_left -= next(self._work)
                except StopIteration as end:
                    self.grid, self._work = end.value, None
        finally:
            self._lock.release()


def _make(
    runs: VectorRuns, metric: int, first: NDArray[np.uint8], rest: NDArray[np.uint8]
) -> _Work:
    """Find the grid and write the codes; yield after each piece how many scored numbers it cost."""
    width = first.shape[1] + rest.shape[1]
    bounds, largest = np.array([np.inf, -np.inf]), np.zeros(2, np.float64)
    for address, _, count in _pieces(runs, width):
        find_range(address, count, width, metric, bounds)
        yield count * width
    if not np.isfinite(bounds).all():
        return None
    start, step = grid_over(bounds)
    for address, row, count in _pieces(runs, width):
        places = (address_of(first[row:]), address_of(rest[row:]))
        encode_run(address, count, width, metric, start, step, *places, largest)
        yield _CODING_COST * count * width
    return finished_grid(start, step, width, largest)


def _mapping_of(runs: VectorRuns) -> object:
    """Return the mapped file that vectors lie in, None for decoded ones."""
    return None if runs.mapped_file is None else runs.owners[0]


def _pieces(runs: VectorRuns, dimension: int) -> Iterator[tuple[int, int, int]]:
    """Yield address, row in the fragment and number of some vectors that follow each other."""
    part = int(runs.num_rows.sum()) // _CODING_COST  # costs as much as scoring all
    most = max(1, min(_PIECE_NUMBERS // dimension, part))
    for address, row, count in zip(
        runs.addresses.tolist(), runs.first_offsets.tolist(), runs.num_rows.tolist(), strict=True
    ):
        for skipped in range(0, count, most):
            first = address + skipped * dimension * _FLOAT_BYTES
            yield first, row + skipped, min(most, count - skipped)
