"""Texts that no index covers: scores are those of pylance, bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.index.text.flat_scorer import FlatScorer
from lance_core.index.text.parameters import TextParameters
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from lance_core.index.text.text_hits import merged
from tests.opened_texts import OPERATORS, OpenedTexts, random_phrase, random_words, sorted_scores
from tests.text_indices import texts, write_indexed

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

NUM_INDEXED, NUM_MORE, AT_ONCE = 900, 500, 170
UNCOVERED_PARAMETERS = TextParameters(
    max_token_length=None,
    lower_case=False,
    stem=False,
    remove_stop_words=False,
    ascii_folding=False,
)
"""How pylance makes tokens of a column without index."""


FORMS: dict[str, dict[str, Any]] = {
    "blocks of 128": {},
    "blocks of 256": {"block_size": 256},
    "n-grams": {"base_tokenizer": "ngram"},
    "code": {"base_tokenizer": "code", "split_identifiers": True},
}


@pytest.fixture(scope="module", params=FORMS)
def partly(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> OpenedTexts:
    """Return a dataset of which an index covers the first rows."""
    path: Path = tmp_path_factory.mktemp("texts") / "d.lance"
    write_indexed(path, texts(NUM_INDEXED), with_position=True, **FORMS[request.param])
    more = pa.table({"t": pa.array(texts(NUM_MORE, seed=5), pa.string())})
    lance.write_dataset(more, str(path), mode="append")
    return OpenedTexts(path)


def _added(scorer: FlatScorer, rows: pa.Table) -> FlatScorer:
    for batch in rows.to_batches(max_chunksize=AT_ONCE):
        scorer.add(batch.column("t"), batch.column("_rowid").to_numpy())
    return scorer


def _rows(both: OpenedTexts, num_covered: int) -> pa.Table:
    return both.theirs.to_table(columns=["t"], with_row_id=True).slice(num_covered)


def _all_scores(both: OpenedTexts, query: MatchQuery | PhraseQuery) -> NDArray[np.float32]:
    scorer = _added(FlatScorer(both.parameters, query), _rows(both, NUM_INDEXED))
    of_more = scorer.hits([partition for partition, _ in both.parts], None)
    return merged([both.ours(query, None), of_more], None).scores


def test_matches_beside_an_index_count_all_rows(partly: OpenedTexts) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        query = MatchQuery(
            random_words(partly, rng, 5),
            operator=OPERATORS[int(rng.integers(2))],
            boost=float(rng.choice([1.0, 1.5])),
        )
        assert np.allclose(_all_scores(partly, query), sorted_scores(partly, query, None), 1e-6, 0)


def test_phrases_beside_an_index_are_found_by_trying_all_ways(partly: OpenedTexts) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        query = PhraseQuery(random_phrase(partly, rng), slop=int(rng.integers(4)))
        assert np.allclose(_all_scores(partly, query), sorted_scores(partly, query, None), 1e-6, 0)


def test_columns_without_index_are_their_own_statistics(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array(texts(600), pa.string())})
    both = OpenedTexts.without_index(lance.write_dataset(table, str(tmp_path / "d.lance")))
    rng = np.random.default_rng(5)
    for _ in range(40):
        query = MatchQuery(random_words(both, rng, 4), operator=OPERATORS[int(rng.integers(2))])
        scorer = _added(FlatScorer(UNCOVERED_PARAMETERS, query), _rows(both, 0))
        k = int(rng.integers(1, 30))
        assert np.array_equal(scorer.hits([], k).scores, sorted_scores(both, query, k)), query


def test_a_list_is_one_text_and_one_without_tokens_is_none() -> None:
    scorer = FlatScorer(UNCOVERED_PARAMETERS, PhraseQuery("fox blue"))
    lists = pa.array([["red fox", "blue dog"], ["blue", "fox"], [], None])
    scorer.add(lists, np.arange(4, dtype=np.uint64))
    strings = pa.array(["fox blue fox blue", None], pa.string_view())
    scorer.add(strings, np.array([7, 8], np.uint64))
    assert sorted(scorer.hits([], None).row_ids.tolist()) == [0, 7]
    assert scorer.hits([], 1).row_ids.tolist() == [7]


def test_a_query_without_tokens_finds_nothing() -> None:
    scorer = FlatScorer(TextParameters(), MatchQuery("the"))
    scorer.add(pa.array(["the fox"]), np.zeros(1, np.uint64))
    assert len(scorer.hits([], None).scores) == 0
