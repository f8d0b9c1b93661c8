"""Exact search for several queries in one pass finds what a pass for each of them finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.kernels.distance import COSINE, DOT, HAMMING, L2
from lance_core.kernels.exact import scan_pages
from lance_core.kernels.exact_batch import scan_pages_for_all
from lance_core.kernels.memory import address_of
from lance_core.kernels.topk import TopRows
from lance_core.row_set import words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


@pytest.mark.parametrize("metric", [L2, COSINE, DOT, HAMMING])
@given(
    num_rows=st.integers(1, 700),
    num_queries=st.integers(1, 6),
    width=st.sampled_from([1, 3, 8, 16, 40, 128]),
    k=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_a_pass_for_all_queries_equals_one_for_each(
    metric: int, num_rows: int, num_queries: int, width: int, k: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    dtype = np.uint8 if metric == HAMMING else np.float32
    vectors = generator.integers(0, 9, (num_rows, width)).astype(dtype)
    queries = generator.integers(0, 9, (num_queries, width)).astype(np.float32)
    passes = np.flatnonzero(generator.random(num_rows) < 0.8).astype(np.uint32)
    words = words_of(passes, num_rows + 1)
    cut = int(generator.integers(0, num_rows + 1))
    addresses = np.array([address_of(vectors[:cut]), address_of(vectors[cut:])], np.int64)
    lengths = np.array([cut, num_rows - cut], np.int64)
    firsts = np.array([0, cut], np.int64)

    def tops() -> list[TopRows]:
        return [TopRows(k, num_rows, 0.5, 400.0) for _ in queries]

    together, apart = tops(), tops()
    scan_pages_for_all(addresses, lengths, firsts, queries, metric, words, together)
    for query, top in zip(queries, apart, strict=True):
        scan_pages(addresses, lengths, firsts, query.copy(), metric, words, top)
    for ours, expected in zip(together, apart, strict=True):
        for found, wanted in zip(ours.nearest(), expected.nearest(), strict=True):
            _assert_identical(found, wanted)


def _assert_identical(found: NDArray[np.generic], wanted: NDArray[np.generic]) -> None:
    assert found.tobytes() == wanted.tobytes()
