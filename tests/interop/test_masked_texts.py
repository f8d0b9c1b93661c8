"""Searches of an index when only some rows may be found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.index.text.flat_scorer import FlatScorer
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from lance_core.index.text.text_hits import DocumentRows
from lance_core.kernels.compile import registered_warmups
from tests.kernel_signatures import num_signatures
from tests.opened_texts import OPERATORS, OpenedTexts, random_phrase, random_words, sorted_scores
from tests.text_indices import texts, write_indexed

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from lance_core.index.text.search import Part

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> OpenedTexts:
    """Return a dataset with an index, of rows whose ids are their places."""
    path: Path = tmp_path_factory.mktemp("texts") / "d.lance"
    write_indexed(path, texts(3000), with_position=True)
    return OpenedTexts(path)


def _live_words(is_live: NDArray[np.bool_]) -> NDArray[np.uint64]:
    padded = np.zeros(-(-len(is_live) // 64) * 64, np.bool_)
    padded[: len(is_live)] = is_live
    return np.packbits(padded, bitorder="little").view(np.uint64)


def _random_query(both: OpenedTexts, rng: np.random.Generator) -> MatchQuery | PhraseQuery:
    if rng.random() < 0.3:
        return PhraseQuery(random_phrase(both, rng), slop=int(rng.integers(3)))
    return MatchQuery(random_words(both, rng, 5), operator=OPERATORS[int(rng.integers(2))])


@pytest.mark.parametrize("share", [0.9, 0.1, 0.01, 0.0])
def test_of_live_rows_the_best_are_found_with_the_scores_of_all(
    both: OpenedTexts, share: float
) -> None:
    rng = np.random.default_rng(21)
    ((partition, rows),) = both.parts
    for _ in range(40):
        query = _random_query(both, rng)
        is_live = rng.random(len(rows.row_ids)) < share
        parts: list[Part] = [(partition, DocumentRows(rows.row_ids, _live_words(is_live)))]
        k = int(rng.integers(1, 40))
        every, found = both.ours(query, None), both.ours(query, k, parts)
        allowed = np.isin(every.row_ids, rows.row_ids[is_live])
        assert found.scores.tolist() == every.scores[allowed][:k].tolist()
        assert found.row_ids.tolist() == every.row_ids[allowed][:k].tolist()
        assert both.ours(query, None, parts).row_ids.tolist() == every.row_ids[allowed].tolist()


def test_fewer_rows_are_the_first_of_more(both: OpenedTexts) -> None:
    rng = np.random.default_rng(22)
    for _ in range(60):
        query = _random_query(both, rng)
        every = both.ours(query, None)
        for k in (0, 1, 7, 64, 20_000):
            found = both.ours(query, k)
            assert found.row_ids.tolist() == every.row_ids[:k].tolist()
            assert found.scores.tolist() == every.scores[:k].tolist()


def test_a_boost_multiplies_scores_and_keeps_rows(both: OpenedTexts) -> None:
    rng = np.random.default_rng(23)
    for _ in range(20):
        text = random_words(both, rng, 3)
        plain = both.ours(MatchQuery(text), 20).scores
        before = np.zeros_like(plain)
        for boost in (0.0, 0.5, 1.0, 3.25):
            found = both.ours(MatchQuery(text, boost=boost), 20).scores
            assert found.tolist() == (plain * np.float32(boost)).tolist()
            assert (found >= before).all()
            before = found


def test_no_boost_finds_rows_with_scores_of_nothing(both: OpenedTexts) -> None:
    query = MatchQuery(both.texts[0], boost=0.0)
    every = both.ours(query, None)
    assert len(every.scores) == len(sorted_scores(both, query, None)) > 0
    assert not every.scores.any()
    assert not np.signbit(both.ours(query, 5).scores).any()


def test_no_fuzziness_is_the_same_as_equal_tokens(both: OpenedTexts) -> None:
    text = both.texts[3]
    plain = both.ours(MatchQuery(text), None)
    for fuzziness in (None, 0):
        found = both.ours(MatchQuery(text, fuzziness=fuzziness, max_expansions=1), None)
        assert np.array_equal(found.row_ids, plain.row_ids)


@pytest.mark.parametrize("text", ["", "   ", "qqqqqqq", "qqqqqqq qqqqqqqq"])
def test_texts_without_known_tokens_find_nothing(both: OpenedTexts, text: str) -> None:
    for query in (MatchQuery(text), MatchQuery(text, operator="and"), PhraseQuery(text)):
        assert len(both.ours(query, 10).row_ids) == 0
        assert len(both.ours(query, None).row_ids) == 0
    unknown_too = MatchQuery(f"{both.texts[0]} qqqqqqq", operator="and")
    assert len(both.ours(unknown_too, 10).row_ids) == 0


def test_very_long_texts_are_refused(both: OpenedTexts) -> None:
    with pytest.raises(InvalidRequestError, match="more than 4096 tokens"):
        both.ours(MatchQuery("a " * 4097), 10)


def test_bits_have_to_be_those_of_the_documents() -> None:
    with pytest.raises(InvalidRequestError, match="2 words"):
        DocumentRows(np.zeros(64, np.uint64), np.zeros(2, np.uint64))


def test_windows_that_cannot_matter_are_not_looked_at(both: OpenedTexts) -> None:
    found = both.ours(MatchQuery(both.texts[0].split()[0]), 1)
    assert 0 < found.num_windows < found.num_all_windows == -(-len(both.parts[0][1].row_ids) // 64)
    assert found.num_postings > 0


def test_no_kernel_is_compiled_for_a_query(both: OpenedTexts) -> None:
    names = ("text_weights", "text_scores", "text_chain", "topk")
    for name in names:
        registered_warmups()[f"lance_core.kernels.{name}"]()
    before = num_signatures()
    part, rows = both.parts[0]
    live = _live_words(np.ones(len(rows.row_ids), np.bool_))
    for k in (10, None):
        both.ours(MatchQuery("baw1 aaw0", operator="and"), k)
        both.ours(PhraseQuery("baw1 aaw0", slop=1), k, [(part, DocumentRows(rows.row_ids, live))])
    for query in (MatchQuery("often"), PhraseQuery("often often")):
        scorer = FlatScorer(both.parameters, query)
        scorer.add(pa.array(["often rare often often"]), np.zeros(1, np.uint64))
        assert len(scorer.hits([part], 1).scores) == 1
    after = num_signatures()
    grown = {name for name in after if after[name] != before[name]}
    assert {name for name in grown if name.split(".")[0] in names} == set()
