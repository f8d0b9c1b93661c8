from __future__ import annotations

import numpy as np
import pytest

from lance_core.query.probes import ProbeBounds, initial_probes

OPEN = ProbeBounds(None, None)


def distances(count=200, step=0.01):
    return (1 + step * np.arange(count)).astype(np.float32)


def test_equal_bounds_are_taken_as_they_are():
    assert initial_probes(distances(), "l2", 10, ProbeBounds(7, 7)) == 7


def test_more_probes_than_partitions_means_all():
    assert initial_probes(distances(5), "l2", 10, ProbeBounds(20, 20)) == 5


def test_partitions_within_the_margin_of_the_nearest_are_probed():
    # margin .265 of distance 1: centroids up to 1.265, which lie 0.02 apart
    assert initial_probes(distances(step=0.02), "l2", 10, OPEN) == 14


def test_the_floor_holds_when_the_nearest_centroid_stands_alone():
    assert initial_probes(distances(step=10), "l2", 10, OPEN) == 6


def test_the_cap_holds_when_all_centroids_are_alike():
    assert initial_probes(distances(step=0), "l2", 10, OPEN) == 24


def test_few_partitions_are_all_probed():
    assert initial_probes(distances(4), "cosine", 10, OPEN) == 4


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [(ProbeBounds(9, None), 9), (ProbeBounds(None, 3), 3), (ProbeBounds(2, 4), 4)],
)
def test_bounds_limit_the_automatic_number(bounds, expected):
    assert initial_probes(distances(step=10), "l2", 10, bounds) == expected


def test_a_huge_k_goes_by_distance_alone():
    assert initial_probes(distances(step=1.0), "l2", 200_000, OPEN) == 81


def test_a_segment_without_partitions_is_not_probed():
    assert initial_probes(distances(0), "l2", 10, OPEN) == 0


def test_the_margin_of_dot_is_taken_from_the_similarity():
    # margin .055 of |1 - (-9)|: centroids up to -8.45; floor 144
    dot = (-9 + 0.001 * np.arange(1000)).astype(np.float32)
    assert initial_probes(dot, "dot", 10, OPEN) == 432


@pytest.mark.parametrize(("k", "expected"), [(1, 1), (2, 7), (10, 7), (11, 81), (1000, 81)])
def test_hamming_goes_by_a_multiple_of_the_nearest_distance(k, expected):
    whole = np.arange(1, 201, dtype=np.float32)
    assert initial_probes(whole, "hamming", k, OPEN) == expected


def test_hamming_probes_at_least_one_partition():
    assert initial_probes(distances(), "hamming", 1, OPEN) == 1


@pytest.mark.parametrize(
    ("metric", "edge", "expected"),
    [("l2", np.inf, 6), ("dot", -np.inf, 199), ("dot", -3e38, 144), ("l2", 3e38, 24)],
)
def test_distances_beyond_float32_are_no_warning(metric, edge, expected):
    far = np.full(200, edge, np.float32)
    far[1:] = abs(far[0]) if metric == "dot" else far[0]
    assert initial_probes(far, metric, 10, OPEN) == expected
