"""Text queries, as pylance answers them too."""

from __future__ import annotations

from typing import Any

import lance
import lance.query as lance_query
import numpy as np
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.index.text.queries import (
    BooleanQuery,
    CombinedFieldsQuery,
    MatchQuery,
    PhraseQuery,
)
from lance_core.query.text_request import TextQuery
from tests.text_indices import PLAIN

pytestmark = pytest.mark.interop

WORDS = np.array([f"w{number}" for number in range(120)])
WEIGHTS = (1 / np.arange(1, 121)) / (1 / np.arange(1, 121)).sum()


def some_texts(num, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, 25), p=WEIGHTS)) for _ in range(num)]


def scores_of(table):
    return table["_score"].to_numpy()


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("texts") / "indexed.lance")
    table = pa.table({"id": range(1200), "t": some_texts(1200, 1)})
    dataset = lance.write_dataset(table, path, max_rows_per_file=500)
    dataset.create_scalar_index("t", "INVERTED", with_position=True, **PLAIN)
    dataset.delete("id % 11 = 5")
    return path


@pytest.mark.parametrize("text", ["w3", "w2 w40 w7", "w3 w3 w90", "nothing"])
@pytest.mark.parametrize("filter_text", [None, "id % 3 = 1"])
def test_the_best_rows_of_a_match_score_as_with_pylance(indexed, text, filter_text):
    theirs = lance.dataset(indexed).to_table(
        full_text_query=lance_query.MatchQuery(text, "t"),
        columns=["id", "_score"],
        filter=filter_text,
        prefilter=True,
        limit=20,
    )
    ours = open_dataset(indexed).search_text(MatchQuery(text, "t"), 20, filter=filter_text)
    np.testing.assert_array_equal(scores_of(ours), scores_of(theirs))


def test_a_phrase_finds_the_rows_that_pylance_finds(indexed):
    theirs = lance.dataset(indexed).to_table(
        full_text_query=lance_query.PhraseQuery("w1 w2", "t", slop=1), columns=["id", "_score"]
    )
    ours = open_dataset(indexed).search_text(PhraseQuery("w1 w2", "t", slop=1), None)
    assert theirs.num_rows > 0
    assert sorted(ours["id"].to_pylist()) == sorted(theirs["id"].to_pylist())
    np.testing.assert_array_equal(scores_of(ours), np.sort(scores_of(theirs))[::-1])


@pytest.fixture(scope="module")
def appended(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("texts") / "appended.lance")
    texts = some_texts(900, 2)
    table = pa.table({"id": range(900), "t": texts, "u": [each.upper() for each in texts]})
    dataset = lance.write_dataset(table[:600], path, max_rows_per_file=500)
    dataset.create_scalar_index("t", "INVERTED", with_position=True, **PLAIN)
    lance.write_dataset(table[600:], path, mode="append")
    return path


@pytest.mark.parametrize("column", ["t", "u"])
@pytest.mark.parametrize("filter_text", [None, "id > 550"])
@pytest.mark.parametrize("fast_search", [False, True])
def test_rows_without_index_are_scored_as_by_pylance(appended, column, filter_text, fast_search):
    text = "w2 w9 W3 W30"
    theirs = lance.dataset(appended).to_table(
        full_text_query=lance_query.MatchQuery(text, column),
        columns=["id", "_score"],
        filter=filter_text,
        prefilter=True,
        fast_search=fast_search,
    )
    ours = open_dataset(appended).search_text(
        MatchQuery(text, column), None, filter=filter_text, fast_search=fast_search
    )
    assert sorted(ours["id"].to_pylist()) == sorted(theirs["id"].to_pylist())
    np.testing.assert_array_equal(scores_of(ours), np.sort(scores_of(theirs))[::-1])


@pytest.fixture(scope="module")
def two_columns(tmp_path_factory):
    """Two columns with blocks of different sizes, deleted rows, and rows without index."""
    path = str(tmp_path_factory.mktemp("texts") / "two.lance")
    texts, others = some_texts(700, 3), some_texts(700, 4)
    others[5] = texts[7] = None
    table = pa.table({"id": range(700), "t": texts, "u": others})
    dataset = lance.write_dataset(table[:500], path, max_rows_per_file=300)
    dataset.create_scalar_index("t", "INVERTED", with_position=True, **PLAIN)
    dataset.create_scalar_index("u", "INVERTED", with_position=True, block_size=256, **PLAIN)
    dataset.delete("id % 13 = 2")
    lance.write_dataset(table[500:], path, mode="append")
    return path


@pytest.mark.parametrize("operator", ["or", "and"])
@pytest.mark.parametrize("filter_text", [None, "id > 350 and id % 2 = 0"])
@pytest.mark.parametrize("boosts", [(1.0, 1.0), (2.0, 3.5)])
def test_columns_taken_as_one_score_as_by_pylance(two_columns, operator, filter_text, boosts):
    text = "w4 w1 w4"
    theirs = lance.dataset(two_columns).to_table(
        full_text_query=lance_query.CombinedFieldsQuery(
            text,
            ["t", "u"],
            boosts=list(boosts),
            operator=lance_query.FullTextOperator[operator.upper()],
        ),
        columns=["id", "_score"],
        filter=filter_text,
        prefilter=True,
    )
    query = CombinedFieldsQuery(text, ("t", "u"), boosts, operator)
    ours = open_dataset(two_columns).search_text(query, None, filter=filter_text)
    assert theirs.num_rows > 0
    assert sorted(ours["id"].to_pylist()) == sorted(theirs["id"].to_pylist())
    np.testing.assert_allclose(scores_of(ours), np.sort(scores_of(theirs))[::-1], rtol=1e-6)


def test_words_without_a_column_are_looked_for_in_all_that_have_an_index(two_columns):
    theirs = lance.dataset(two_columns).to_table(
        full_text_query="w9 w20", columns=["id", "_score"], limit=30
    )
    ours = open_dataset(two_columns).search_text("w9 w20", 30)
    np.testing.assert_array_equal(scores_of(ours), scores_of(theirs))


def test_a_filter_over_the_rows_found_leaves_out_those_that_do_not_pass(two_columns):
    dataset = open_dataset(two_columns)
    best = dataset.search_text("w3", 50)
    kept = dataset.search_text("w3", 50, filter="id % 2 = 0 and _score > 0.5", prefilter=False)
    expected = [row["id"] for row in best.to_pylist() if row["id"] % 2 == 0 and row["_score"] > 0.5]
    assert 0 < len(expected) < 50
    assert kept["id"].to_pylist() == expected


def test_what_was_done_for_each_part_of_a_query_is_told(two_columns):
    query = BooleanQuery(must=(MatchQuery("w3", "t"),), should=(MatchQuery("w1", "u"),))
    dataset = open_dataset(two_columns)
    report: Any = dataset.analyze_plan(TextQuery(query, None, columns=("id",))).to_dict()
    ranking = report["plan"]["inputs"][0]
    parts = ranking["inputs"][0]["inputs"]
    texts = some_texts(700, 3)[:500]
    with_word = sum("w3" in text.split() for row, text in enumerate(texts) if row != 7)
    assert parts[0]["measured"]["postings"] == with_word
    assert [part["measured"]["partitions"] for part in parts] == [1, 1]
    assert [each["node"] for each in parts[0]["inputs"]] == ["TextIndexSearch", "FlatTextSearch"]
    assert ranking["measured"]["rows"] == report["plan"]["measured"]["rows"]
    assert report["stats"]["plan"] == "text"
    assert report["stats"]["rows_scanned_flat"] == 400


def test_what_judging_rows_took_is_told(two_columns):
    request = TextQuery(MatchQuery("w3", "t"), filter="id > 350")
    report: Any = open_dataset(two_columns).analyze_plan(request).to_dict()
    leaf = report["plan"]["inputs"][0]["inputs"][0]
    (prefilter,) = leaf["inputs"][0]["inputs"]
    assert prefilter["node"] == "Prefilter"
    assert prefilter["measured"]["rows"] == prefilter["settings"]["rows"] > 0
