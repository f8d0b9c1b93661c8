"""Inverted indices that older releases built, searched by us and by pylance 14.0.2."""

from __future__ import annotations

import lance
import lance.query as lance_query
import numpy as np
import pytest

from lance_core import open_dataset
from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from lance_core.query.text_request import TextQuery

pytestmark = pytest.mark.interop

RELEASES = ["0.20.0", "1.0.4", "10.0.0"]


def texts_of(path):
    table = lance.dataset(path).to_table(columns=["id", "text"])
    return dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("operator", ["or", "and"])
@pytest.mark.parametrize("name", ["scalar", "plain"])
def test_matches_score_as_with_pylance(old_dataset, release, operator, name):
    path = str(old_dataset(release, name))
    words = sorted({word for text in texts_of(path).values() for word in (text or "").split()})
    text = " ".join(words[::7][:3])
    theirs = lance.dataset(path).to_table(
        full_text_query=lance_query.MatchQuery(
            text, "text", operator=lance_query.FullTextOperator[operator.upper()]
        ),
        columns=["id", "_score"],
    )
    ours = open_dataset(path).search_text(MatchQuery(text, "text", operator=operator), None)
    assert theirs.num_rows > 0
    assert sorted(ours["id"].to_pylist()) == sorted(theirs["id"].to_pylist())
    expected = np.sort(theirs["_score"].to_numpy())[::-1]
    np.testing.assert_allclose(ours["_score"].to_numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("release", RELEASES)
def test_the_index_is_searched_and_only_appended_rows_are_read(old_dataset, release):
    dataset = open_dataset(str(old_dataset(release, "scalar")))
    (source,) = dataset.explain_plan(TextQuery(MatchQuery("x", "text"))).root.inputs[0].inputs
    assert [each.name for each in source.inputs] == ["TextIndexSearch", "FlatTextSearch"]


def test_phrases_are_found_where_positions_are_though_pylance_does_not(old_dataset):
    path = str(old_dataset("0.20.0", "scalar"))
    texts = texts_of(path)
    phrase = " ".join(next(text for text in texts.values() if text).split()[:2])
    expected = [key for key, text in texts.items() if f" {phrase} " in f" {text} "]
    found = open_dataset(path).search_text(PhraseQuery(phrase, "text"), None)
    assert sorted(found["id"].to_pylist()) == sorted(expected)


@pytest.mark.parametrize("release", ["1.0.4", "10.0.0"])
def test_phrases_are_refused_where_no_positions_are(old_dataset, release):
    with pytest.raises(InvalidRequestError, match="with_position=True"):
        open_dataset(str(old_dataset(release, "scalar"))).search_text(PhraseQuery("a b", "text"))
