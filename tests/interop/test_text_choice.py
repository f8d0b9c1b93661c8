"""Which inverted index of a column is searched, what is read instead, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.query import FullTextOperator, MatchQuery as TheirMatch, PhraseQuery as TheirPhrase

from lance_core import open_dataset
from lance_core.errors import CorruptFileError, InvalidRequestError, TypeMismatchError
from lance_core.index.text.queries import BooleanQuery, MatchQuery, PhraseQuery
from lance_core.query.text_request import TextQuery
from tests.text_indices import PLAIN

pytestmark = pytest.mark.interop

TEXTS = ["Red fox", "red dog", "blue", None, "red red"]
RED = MatchQuery("red", "t")


@pytest.fixture
def path(tmp_path):
    place = str(tmp_path / "table.lance")
    lance.write_dataset(pa.table({"id": range(5), "t": TEXTS}), place, max_rows_per_file=2)
    return place


def index(path, name="t_idx", **parameters):
    lance.dataset(path).create_scalar_index("t", "INVERTED", name=name, **{**PLAIN, **parameters})


def found(path, query=RED, **options):
    return sorted(open_dataset(path).search_text(query, None, **options)["id"].to_pylist())


def plan(path):
    return open_dataset(path).explain(TextQuery(RED))


def test_without_an_index_words_are_looked_for_as_they_are(path):
    assert found(path) == [1, 4]
    assert "FlatTextSearch: fragments=3, reason=no usable index" in plan(path)
    assert found(path, fast_search=True) == []


def test_an_index_tells_how_words_are_compared_even_if_it_is_not_to_be_searched(path):
    index(path)
    assert found(path) == found(path, use_index=False) == [0, 1, 4]


def test_an_index_of_values_is_skipped_and_says_why(path):
    lance.dataset(path).create_scalar_index("t", "BTREE", name="values")
    assert found(path) == [1, 4]
    assert "of values: a BTREE index finds no words" in plan(path)


def test_of_two_indices_the_first_one_is_searched_and_the_other_told(path):
    index(path, "first")
    index(path, "second", lower_case=False)
    assert found(path) == [0, 1, 4]
    assert "TextIndexSearch: index=first" in plan(path)
    assert "of second: another index on the column covers more" in plan(path)


def test_an_index_that_was_not_filled_yet_tells_how_words_are_compared(path):
    index(path, train=False)
    assert found(path) == [0, 1, 4]
    assert "of t_idx: it covers no fragment of this version" in plan(path)


def test_a_missing_file_is_told_and_no_row_is_left_out_in_silence(path):
    index(path)
    (lists,) = Path(path).glob("_indices/*/part_0_invert.lance")
    lists.unlink()
    with pytest.raises(CorruptFileError, match=r"part_0_invert\.lance"):
        found(path)


def test_columns_of_other_types_are_refused(path):
    with pytest.raises(TypeMismatchError, match='column "id" has type int64'):
        found(path, MatchQuery("red", "id"))


def test_words_without_a_column_need_an_index(path):
    with pytest.raises(InvalidRequestError, match="no column of the table has an inverted index"):
        found(path, "red")


def test_what_is_going_to_be_done_for_a_phrase_without_positions_says_what_the_search_says(path):
    index(path, "first", with_position=False)
    phrase = PhraseQuery("red fox", "t")
    for query in (phrase, PhraseQuery("", "t"), BooleanQuery(must=(RED,), must_not=(phrase,))):
        dataset, request = open_dataset(path), TextQuery(query)
        for ask in (dataset.explain, dataset.analyze_plan, dataset.run):
            with pytest.raises(InvalidRequestError, match="phrases need an index with positions"):
                ask(request)
    by_reading = TextQuery(phrase, use_index=False)
    assert "FlatTextSearch" in open_dataset(path).explain(by_reading)
    assert open_dataset(path).run(by_reading).table["id"].to_pylist() == [0]
    with pytest.raises(Exception, match="position is not found but required for phrase"):
        lance.dataset(path).scanner(full_text_query=TheirPhrase("red fox", "t")).explain_plan()


@pytest.mark.parametrize("fuzziness", [0, 1, None])
@pytest.mark.parametrize("operator", ["or", "and"])
@pytest.mark.parametrize("is_indexed", [True, False])
def test_no_tokens_near_those_of_a_query_may_be_wanted(path, fuzziness, operator, is_indexed):
    if is_indexed:
        index(path)
    theirs = TheirMatch(
        "red fox",
        "t",
        fuzziness=fuzziness,
        max_expansions=0,
        operator=FullTextOperator[operator.upper()],
    )
    expected = lance.dataset(path).to_table(full_text_query=theirs)["id"].to_pylist()
    ours = MatchQuery("red fox", "t", fuzziness=fuzziness, max_expansions=0, operator=operator)
    assert found(path, ours) == sorted(expected)
