from __future__ import annotations

from typing import Any

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
        ({"upper_bound": True}, "upper_bound is True; give a number"),
        ({"upper_bound": np.True_}, "upper_bound is np.True_; give a number"),
        ({"upper_bound": "1"}, "upper_bound is '1'; give a number"),
        ({"lower_bound": 10**400}, "lower_bound is 1000+; give a number"),
        ({"use_index": "no"}, "use_index is 'no'; it must be True or False"),
        ({"use_index": 0}, "use_index is 0; it must be True or False"),
        ({"prefilter": None}, "prefilter is None; it must be True or False"),
        ({"fast_search": 1}, "fast_search is 1"),
        ({"with_row_id": "yes"}, "with_row_id is 'yes'"),
        ({"batched": None}, "batched is None"),
        ({"offset": None}, "offset is None; it must be a whole number"),
        ({"offset": True}, "offset is True; it must be a whole number"),
        ({"k": 1.0}, "k is 1.0; it must be a whole number"),
        ({"ef": "9"}, "ef is '9'; it must be a whole number"),
        ({"max_probes": False}, "maximum_nprobes is False"),
        ({"refine_factor": 2.5}, "refine_factor is 2.5"),
        ({"metric": 2}, 'unknown metric "2"'),
        ({"approx_mode": "FASTEST"}, "use one of: normal, fast, accurate"),
    ],
)
def test_a_parameter_that_cannot_work_is_refused_with_what_is_allowed(given, said):
    with pytest.raises(InvalidRequestError, match=said):
        VectorQuery(vectors=vectors(1, 2), **given)


@pytest.mark.parametrize("row_ids", [(), (None,), (True,), (-1,), (2**64,), [1], 3])
def test_row_ids_are_whole_numbers_of_64_bits(row_ids):
    with pytest.raises(InvalidRequestError, match="row_id"):
        VectorQuery(vectors=None, row_ids=row_ids)


@pytest.mark.parametrize("given", [[[1.0, 2.0]], np.ones((1, 2)), np.ones((1, 2), np.int32), 3])
def test_query_vectors_are_an_array_of_float32(given):
    with pytest.raises(InvalidRequestError, match="give an array of float32"):
        VectorQuery(vectors=given)


@pytest.mark.parametrize("metric", ["L2", "l2", "Cosine", "DOT", "hamming"])
def test_metrics_are_named_in_any_case(metric):
    assert VectorQuery(vectors=vectors(1), metric=metric).metric == metric.lower()
    with pytest.raises(InvalidRequestError, match="no direction"):
        VectorQuery(vectors=vectors(0, 0), metric="COSINE")


def test_numbers_and_flags_of_numpy_are_as_good():
    given: dict[str, Any] = {
        "k": np.int64(3),
        "upper_bound": np.float32(2),
        "lower_bound": np.int8(1),
        "prefilter": np.False_,
    }
    query = VectorQuery(vectors=vectors(1), **given)
    assert (query.k, query.upper_bound, query.lower_bound, query.prefilter) == (3, 2, 1, False)


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
    with pytest.raises(InvalidRequestError, match="with_row_id is 1"):
        ScanQuery(with_row_id=1)  # type: ignore[arg-type]  # that is the point


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
