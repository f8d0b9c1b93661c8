"""What requests for texts refuse, and what they are told apart by."""

from __future__ import annotations

import pytest

from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import MatchQuery, text_query
from lance_core.query.request import NamedExpression
from lance_core.query.text_request import TextQuery

WORDS = text_query("red fox")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("query", "red fox"),
        ("k", 0),
        ("k", 1.5),
        ("columns", ["id"]),
        ("filter", 7),
        ("params", [1]),
        ("offset", -1),
        ("prefilter", None),
        ("with_row_id", "yes"),
        ("fast_search", 1),
        ("use_index", 0),
    ],
)
def test_what_is_no_part_of_a_request_is_refused_by_name(name, value):
    with pytest.raises(InvalidRequestError, match=name):
        TextQuery(**{"query": WORDS, name: value})


def test_requests_of_other_words_have_the_same_parameters():
    other = MatchQuery("blue", column="text", boost=2.0)
    assert TextQuery(WORDS, 5).parameters == TextQuery(other, 5).parameters


def test_parameters_tell_values_of_other_types_apart():
    one, true = (TextQuery(WORDS, filter="id = $x", params={"x": x}) for x in (1, True))
    assert one.parameters != true.parameters


def test_the_texts_of_a_request_are_its_filter_and_its_expressions():
    request = TextQuery(WORDS, columns=("id", NamedExpression("twice", "id * 2")), filter="id > 3")
    assert request.texts == "id > 3 id * 2"
