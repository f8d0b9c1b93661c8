"""Blocks of partitions for kernel tests, and numpy twins of what the kernels compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.memory import address_of
from lance_core.row_set import full_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def block_table(
    payloads: Sequence[NDArray[np.generic]], ordinals: Sequence[NDArray[np.uint32]]
) -> NDArray[np.int64]:
    """Return the kernels' table of partitions; the arrays must be kept alive."""
    rows = [
        (address_of(payload), address_of(own), len(own))
        for payload, own in zip(payloads, ordinals, strict=True)
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def all_rows(num_rows: int) -> NDArray[np.uint64]:
    """Return a mask that lets every row pass, with room for the sentinel."""
    words = np.zeros(num_rows // 64 + 1, np.uint64)
    full = full_words(num_rows)
    words[: len(full)] = full
    return words


def exact_distances(
    vectors: NDArray[np.float32], query: NDArray[np.float32], metric: str
) -> NDArray[np.float64]:
    """Return the distances in float64, by the definitions of the vector index page."""
    rows, q = vectors.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        result: NDArray[np.float64] = ((rows - q) ** 2).sum(axis=1)
    elif metric == "dot":
        result = 1 - rows @ q
    else:
        norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(q)
        with np.errstate(invalid="ignore", divide="ignore"):
            result = np.maximum(1 - rows @ q / norms, 0)
    return result


def nearest(
    distances: NDArray[np.float32],
    ordinals: NDArray[np.uint32],
    k: int,
    *,
    alive: NDArray[np.bool_] | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> tuple[list[float], list[int]]:
    """Return the nearest ``k`` rows by sorting everything."""
    keep = ~np.isnan(distances)
    if alive is not None:
        keep &= alive[ordinals]
    if lower is not None:
        keep &= distances >= np.float32(lower)
    if upper is not None:
        keep &= distances < np.float32(upper)
    distances, ordinals = distances[keep], ordinals[keep]
    order = np.lexsort((ordinals, distances))[:k]
    return distances[order].tolist(), ordinals[order].tolist()


def pylance_sums(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the row sums of ``left * right``, both ``(n, w)``, in pylance's order of additions.

    The rule stands in `lance_core.kernels.pq_table`.
    """
    width = left.shape[1]
    lanes = 0 if width < 8 else 8 if width <= 16 else 16
    whole = 0 if lanes == 0 else width // lanes * lanes
    products = left * right
    rest = np.zeros(len(left), np.float32)
    for s in range(whole, width):
        rest += products[:, s]
    if lanes == 0:
        return rest
    sums = products[:, :lanes]
    for s in range(lanes, whole, lanes):
        if lanes == 8:  # fused: a float64 holds the product of two float32 without rounding
            exact = left[:, s : s + 8].astype(np.float64) * right[:, s : s + 8]
            sums = (exact + sums).astype(np.float32)
        else:
            sums = sums + products[:, s : s + lanes]
    while lanes == 8 and sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    total = np.zeros(len(left), np.float32)
    for lane in range(sums.shape[1]):
        total += sums[:, lane]
    return total + rest
