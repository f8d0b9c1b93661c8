"""Which centroid is nearest to each row of a block: matrix products, in the thread that asks.

OpenBLAS spreads large products over threads of its own, which would multiply with ours and which
spin while they wait. Products of at most 64 x 64 x 64 stay in the calling thread, and numpy does a
grid of them in one call: as fast as one large product on one core (OpenBLAS 0.3.31, AVX-512).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS, _CENTROIDS, _COORDINATES = 32, 64, 128
"""A product of one tile: multiplied 64 ** 3, the largest that OpenBLAS does in one thread."""
_MOST_ROWS = 256
_SCORES_AT_ONCE = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class TiledCentroids:
    """Centroids as `BlockScores` multiplies with them.

    Parameters
    ----------
    tiles
        Shape ``(1, tiles, coordinates, centroids)`` for each run of coordinates.
    penalties
        Shape ``(tiles * centroids,)``: what is taken off a product to make a score, infinite for
        what fills the last tile.
    centre
        Shape ``(d,)``: subtracted from vectors and centroids, so that products do not cancel.
    scale
        A power of two that both are multiplied with then, so that squares stay in float32.
    """

    tiles: tuple[NDArray[np.float32], ...]
    penalties: NDArray[np.float32]
    centre: NDArray[np.float32]
    scale: np.float32

    @property
    def dimension(self) -> int:
        """Coordinates of a vector."""
        return len(self.centre)


def tile_centroids(centroids: NDArray[np.float32], *, is_dot: bool) -> TiledCentroids:
    """Lay out centroids of shape ``(P, d)`` for products.

    Scores are ``x.c - |c|^2 / 2``, which is largest where the squared distance is smallest; for dot
    they are ``x.c``.
    """
    num_centroids, dimension = centroids.shape
    exact = centroids.astype(np.float64)
    centre = np.zeros(dimension) if is_dot else exact.mean(axis=0)
    exact -= centre.astype(np.float32)
    scale = np.float32(2.0 ** -np.frexp(np.abs(exact).max())[1].clip(-100, 100))
    width = min(_CENTROIDS, 1 << (num_centroids - 1).bit_length())
    num_tiles = -(-num_centroids // width)
    filled = np.zeros((num_tiles * width, dimension), np.float32)
    filled[:num_centroids] = exact * scale
    penalties = np.full(len(filled), np.inf, np.float32)
    lengths = np.einsum("pd,pd->p", filled[:num_centroids], filled[:num_centroids])
    penalties[:num_centroids] = 0 if is_dot else lengths / 2
    tiles = tuple(
        np.ascontiguousarray(part.reshape(num_tiles, width, -1).transpose(0, 2, 1))[np.newaxis]
        for part in (filled[:, start:end] for start, end in _runs(dimension))
    )
    return TiledCentroids(tiles, penalties, centre.astype(np.float32), scale)


class BlockScores:
    """Finds the nearest centroids of blocks of rows, one after the other; for one thread.

    Parameters
    ----------
    centroids
        What to search.
    """

    def __init__(self, centroids: TiledCentroids) -> None:
        self._centroids = centroids
        num_tiles, width = centroids.tiles[0].shape[1], centroids.tiles[0].shape[3]
        most = min(_MOST_ROWS, _SCORES_AT_ONCE // (num_tiles * width))
        num_blocks = max(1, most // _ROWS)
        self.rows_at_once = num_blocks * _ROWS
        self._moved = np.zeros((self.rows_at_once, centroids.dimension), np.float32)
        self._blocks = tuple(
            self._moved[:, start:end].reshape(num_blocks, 1, _ROWS, end - start)
            for start, end in _runs(centroids.dimension)
        )
        self._scores, self._in_tiles = _score_tiles(num_blocks, num_tiles, width)
        self._more, self._more_in_tiles = _score_tiles(num_blocks, num_tiles, width)

    def nearest(self, vectors: NDArray[np.float32]) -> NDArray[np.intp]:
        """Return the number of the nearest centroid of each row, of several the first.

        Parameters
        ----------
        vectors
            Shape ``(n, d)``, ``n`` at most ``rows_at_once``.
        """
        known = self._centroids
        moved = self._moved[: len(vectors)]
        with np.errstate(over="ignore", invalid="ignore"):  # far outside all: any is as near
            np.subtract(vectors, known.centre, out=moved)
            np.multiply(moved, known.scale, out=moved)
            np.matmul(self._blocks[0], known.tiles[0], out=self._in_tiles)
            for block, tiles in zip(self._blocks[1:], known.tiles[1:], strict=True):
                np.matmul(block, tiles, out=self._more_in_tiles)
                np.add(self._scores, self._more, out=self._scores)
            np.subtract(self._scores, known.penalties, out=self._scores)
        nearest: NDArray[np.intp] = self._scores[: len(vectors)].argmax(axis=1)
        return nearest


def _score_tiles(
    num_blocks: int, num_tiles: int, width: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return a matrix of rows by centroids, and the tiles of it that products are written to."""
    scores = np.empty((num_blocks * _ROWS, num_tiles * width), np.float32)
    tiles = scores.reshape(num_blocks, _ROWS, num_tiles, width).transpose(0, 2, 1, 3)
    return scores, tiles


def _runs(dimension: int) -> list[tuple[int, int]]:
    return [
        (start, min(start + _COORDINATES, dimension)) for start in range(0, dimension, _COORDINATES)
    ]
