"""Counts of tokens by row are those of a table of both, and no such table is made."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from lance_core.index.text.combined_fields import Field, ReadTexts, score_fields
from lance_core.index.text.flat_scorer import FlatScorer
from lance_core.index.text.parameters import given_parameters
from lance_core.index.text.queries import MatchQuery
from lance_core.index.text.token_counts import TokenCounts

NUM_TOKENS, NUM_TEXTS = 3_000, 20_000
TABLE_BYTES = 4 * NUM_TOKENS * NUM_TEXTS


def test_counts_are_those_of_a_table() -> None:
    rng = np.random.default_rng(1)
    rows, tokens = rng.integers(0, 50, 400), rng.integers(0, 9, 400)
    table = np.zeros((9, 50), np.int64)
    np.add.at(table, (tokens, rows), 1)
    counts = TokenCounts.of_occurrences(rows, tokens, 10)
    assert counts.document_frequencies.tolist() == [*(table > 0).sum(axis=1).tolist(), 0]
    kept = rng.random(50) < 0.5
    for some, expected in ((counts, table), (counts.of_rows(kept), table[:, kept])):
        for number in range(9):
            own_rows, frequencies = some.of_token(number)
            assert own_rows.tolist() == np.flatnonzero(expected[number]).tolist()
            assert frequencies.tolist() == expected[number][own_rows].tolist()
        assert some.of_token(9)[0].tolist() == []


@pytest.mark.parametrize("combined", [False, True])
def test_thousands_of_words_take_memory_by_what_texts_have_of_them(combined: bool) -> None:
    words = [f"w{number}" for number in range(NUM_TOKENS)]
    texts = pa.array([f"{words[row % NUM_TOKENS]} other words" for row in range(NUM_TEXTS)])
    row_ids = np.arange(NUM_TEXTS, dtype=np.uint64)
    parameters = given_parameters({"stem": False})
    tracemalloc.start()
    if combined:
        read = ReadTexts(parameters, words)
        read.add(texts, row_ids)
        hits = score_fields([Field(1.0, [read])], needs_all=False)
    else:
        scorer = FlatScorer(parameters, MatchQuery(" ".join(words)))
        scorer.add(texts, row_ids)
        hits = scorer.hits([], None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(hits.row_ids) == NUM_TEXTS
    assert peak < TABLE_BYTES / 4
