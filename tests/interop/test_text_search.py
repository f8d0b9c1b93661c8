"""Scores of match and phrase queries over one index, bit by bit those of pylance."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.index.text.queries import MatchQuery, PhraseQuery
from tests.opened_texts import OPERATORS, OpenedTexts, random_phrase, random_words, sorted_scores
from tests.text_indices import texts, write_indexed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS = 2500
FORMS: dict[str, dict[str, Any]] = {
    "format 1": {"format_version": "1"},
    "blocks of 128": {},
    "blocks of 256": {"block_size": 256},
    "n-grams": {"base_tokenizer": "ngram"},
    "code": {"base_tokenizer": "code", "split_identifiers": True},
}
EACH_FORM = pytest.mark.parametrize(
    ("form", "num_segments"),
    [
        ("format 1", 1),
        ("blocks of 128", 1),
        ("blocks of 128", 3),
        ("blocks of 256", 3),
        ("n-grams", 2),
        ("code", 2),
    ],
)

Open = Callable[[str, int], OpenedTexts]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Return a function to datasets with an index of a form and of so many segments."""

    @cache
    def make(form: str, num_segments: int) -> OpenedTexts:
        path: Path = tmp_path_factory.mktemp("texts") / "d.lance"
        write_indexed(path, texts(NUM_ROWS), with_position=True, **FORMS[form])
        for segment in range(1, num_segments):
            more = pa.table({"t": pa.array(texts(700, seed=segment + 1), pa.string())})
            dataset = lance.write_dataset(more, str(path), mode="append")
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
        return OpenedTexts(path)

    return make


def random_k(rng: np.random.Generator) -> int | None:
    return [1, 3, 10, 100, 5000, None][int(rng.integers(6))]


@EACH_FORM
def test_matches_have_the_scores_of_pylance(opened: Open, form: str, num_segments: int) -> None:
    both = opened(form, num_segments)
    assert len(both.segments) == num_segments
    rng = np.random.default_rng(11)
    for _ in range(30):
        query = MatchQuery(
            random_words(both, rng, 6),
            operator=OPERATORS[int(rng.integers(2))],
            boost=float(rng.choice([1.0, 0.3, 2.0])),
        )
        k = random_k(rng)
        assert np.array_equal(both.ours(query, k).scores, sorted_scores(both, query, k)), query


@EACH_FORM
def test_phrases_have_the_scores_of_pylance(opened: Open, form: str, num_segments: int) -> None:
    both = opened(form, num_segments)
    rng = np.random.default_rng(12)
    for _ in range(30):
        query = PhraseQuery(random_phrase(both, rng), slop=int(rng.choice([0, 0, 1, 2, 5])))
        k = random_k(rng)
        assert np.array_equal(both.ours(query, k).scores, sorted_scores(both, query, k)), query


@pytest.mark.parametrize("num_segments", [1, 3])
def test_tokens_near_those_of_the_query_score_as_in_pylance(
    opened: Open, num_segments: int
) -> None:
    both = opened("blocks of 128", num_segments)
    rng = np.random.default_rng(13)
    for _ in range(40):
        query = MatchQuery(
            random_words(both, rng, 3),
            operator=OPERATORS[int(rng.integers(2))],
            fuzziness=int(rng.integers(3)),
            max_expansions=int(rng.choice([2, 10, 50])),
            prefix_length=int(rng.choice([0, 0, 1, 3])),
        )
        k = random_k(rng)
        assert np.array_equal(both.ours(query, k).scores, sorted_scores(both, query, k)), query
