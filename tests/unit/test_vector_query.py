from __future__ import annotations

import numpy as np
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.query.request import ScanQuery, VectorQuery


def vectors(*values: float):
    return np.array([values], np.float32)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": -1}, "k is -1"),
        ({"offset": -1}, "offset is -1"),
        ({"refine_factor": 0}, "refine_factor is 0"),
        ({"min_probes": 0}, "minimum_nprobes is 0"),
        ({"min_probes": 5, "max_probes": 3}, "above maximum_nprobes 3"),
        ({"metric": "euclid"}, "l2, cosine, dot"),
        ({"lower_bound": float("nan")}, "lower_bound is nan; give a number"),
    ],
)
def test_a_parameter_that_cannot_work_is_refused_with_what_is_allowed(given, said):
    with pytest.raises(InvalidRequestError, match=said):
        VectorQuery(vectors=vectors(1, 2), **given)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_query_vector_must_be_finite(value):
    with pytest.raises(InvalidRequestError, match="NaN or infinity"):
        VectorQuery(vectors=vectors(1, value))


def test_a_zero_vector_has_no_cosine_distance():
    with pytest.raises(InvalidRequestError, match="no direction"):
        VectorQuery(vectors=vectors(0, 0), metric="cosine")


def test_a_zero_vector_is_fine_for_l2():
    assert VectorQuery(vectors=vectors(0, 0), metric="l2").k == 10


@pytest.mark.parametrize("shape", [(0, 4), (1, 0), (4,)])
def test_no_numbers_are_no_query(shape):
    with pytest.raises(InvalidRequestError, match="shape"):
        VectorQuery(vectors=np.zeros(shape, np.float32))


def test_zero_is_a_bound_like_any_other():
    assert VectorQuery(vectors=vectors(1), lower_bound=0.0).lower_bound == 0.0


def test_a_scan_may_ask_for_no_rows_but_not_for_fewer():
    assert ScanQuery(limit=0).limit == 0
    with pytest.raises(InvalidRequestError, match="limit is -1"):
        ScanQuery(limit=-1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either query vectors or ids of rows"),
        ({"vectors": vectors(1), "row_ids": (1,)}, "either query vectors or ids of rows"),
        ({"row_ids": ()}, "one or more ids"),
        ({"row_ids": [1]}, "one or more ids"),
        ({"row_ids": (-1,)}, "row_id is -1"),
        ({"row_ids": (1.5,)}, "row_id is 1.5"),
        ({"row_ids": (2**64,)}, "at most 64 bits"),
    ],
)
def test_a_query_has_vectors_or_rows_to_search_by(given, said):
    with pytest.raises(InvalidRequestError, match=said):
        VectorQuery(**{"vectors": None, **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ef": 0}, "ef is 0"),
        ({"approx_mode": "quick"}, "normal, fast, accurate"),
        ({"filter": 3}, "filter is 3; give text"),
    ],
)
def test_what_a_search_may_be_told_is_checked(given, said):
    with pytest.raises(InvalidRequestError, match=said):
        VectorQuery(vectors=vectors(1, 2), **given)
