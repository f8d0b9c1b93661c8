"""Comparing two rankings of the same rows, ties aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa
    from numpy.typing import NDArray


def scale_of(distances: NDArray[np.float32], query: NDArray[np.float32], metric: str) -> float:
    """Return what an error of a distance is measured against (vector index page, section 12)."""
    floor = max(1.0, float(np.linalg.norm(query)) * 4) if metric == "dot" else 1.0
    return max(floor, float(np.abs(distances).max(initial=0)))


def tied_at(estimates: pa.Table, count: int, *, slack: float) -> list[int]:
    """Return the ids that may be among the first ``count`` of an answer or not, as ties fall.

    Parameters
    ----------
    estimates
        An answer of more rows than ``count``, if there are as many.
    count
        How many go on, to be refined or filtered.
    slack
        Distances this close are equal.
    """
    distances = estimates["_distance"].to_numpy()
    if len(distances) <= count or distances[count] - distances[count - 1] > slack:
        return []
    ids: list[int] = (
        estimates["id"].to_numpy()[np.abs(distances - distances[count - 1]) <= slack].tolist()
    )
    return ids


def assert_same_neighbours(
    ours: pa.Table,
    theirs: pa.Table,
    *,
    scale: float,
    tolerance: float = 1e-5,
    doubtful: Collection[int] = (),
) -> None:
    """Check that two answers agree: distances place by place, ids wherever distances differ.

    Rows whose distances lie within the tolerance of each other may change places, and at the last
    place one may stand for the other. ``doubtful`` rows may be in one answer and not in the other.
    """
    if len(doubtful) > 0:
        ours, theirs = (
            each.filter(np.isin(each["id"].to_numpy(), list(doubtful), invert=True))
            for each in (ours, theirs)
        )
        common = min(ours.num_rows, theirs.num_rows)
        ours, theirs = ours.slice(0, common), theirs.slice(0, common)
    assert ours.num_rows == theirs.num_rows, (ours.num_rows, theirs.num_rows)
    if ours.num_rows == 0:
        return
    slack = tolerance * scale
    distances, expected = ours["_distance"].to_numpy(), theirs["_distance"].to_numpy()
    np.testing.assert_allclose(distances, expected, rtol=0, atol=slack)
    ids, expected_ids = ours["id"].to_numpy(), theirs["id"].to_numpy()
    assert len(set(ids.tolist())) == len(ids)
    only_here = np.isin(ids, expected_ids, invert=True)
    # A row that the other answer lacks must tie with its last one.
    assert (np.abs(distances[only_here] - expected[-1]) <= slack).all(), (ids, expected_ids)
    place = {row: at for at, row in enumerate(expected_ids.tolist())}
    for at, row in enumerate(ids.tolist()):
        if row in place:
            assert abs(float(expected[place[row]]) - float(distances[at])) <= 2 * slack


def exact_distances(
    vectors: NDArray[np.float32], query: NDArray[np.float32], metric: str
) -> NDArray[np.float64]:
    """Return all distances by numpy in float64; NaN where there is none."""
    wide, asked = vectors.astype(np.float64), query.astype(np.float64)
    distances: NDArray[np.float64]
    if metric == "l2":
        distances = ((wide - asked) ** 2).sum(axis=1)
        return distances
    products = wide @ asked
    if metric == "dot":
        distances = 1 - products
        return distances
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = 1 - products / (np.linalg.norm(wide, axis=1) * np.linalg.norm(asked))
    return distances
