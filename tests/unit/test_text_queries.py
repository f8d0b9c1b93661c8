"""Trees of text queries: what they take, and what they say about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import (
    MOST_DEPTH,
    MOST_NODES,
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
    TextNode,
    leaves_of,
    text_query,
)

FOX = MatchQuery("fox")


def test_a_text_wholly_in_double_quotes_is_a_phrase() -> None:
    assert text_query(' "red fox" ') == PhraseQuery("red fox")


@pytest.mark.parametrize("text", ["red fox", '"red" fox', '"', "", '"red" or "fox'])
def test_any_other_text_is_a_match(text: str) -> None:
    assert text_query(text) == MatchQuery(text)


def test_operators_may_be_spelt_in_any_case() -> None:
    assert MatchQuery("fox", operator="And").operator == "and"  # type: ignore[arg-type]
    assert CombinedFieldsQuery("fox", ("a",), operator="OR").operator == "or"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "values", "complaint"),
    [
        (MatchQuery, {"text": 1}, "text of a match query"),
        (MatchQuery, {"text": "\ud800"}, "surrogate"),
        (MatchQuery, {"text": "a", "column": 1}, "column of a match query"),
        (MatchQuery, {"text": "a", "boost": -1.0}, "boost of a match query is -1.0"),
        (MatchQuery, {"text": "a", "boost": float("nan")}, "finite"),
        (
            MatchQuery,
            {"text": "a", "boost": 1e39},
            r"is 1e\+39; give a finite",
        ),
        (MatchQuery, {"text": "a", "boost": 10**400}, "finite"),
        (BoostQuery, {"positive": FOX, "negative": FOX, "negative_boost": 1e39}, "finite"),
        (BoostQuery, {"positive": FOX, "negative": FOX, "negative_boost": -0.5}, "not be negative"),
        (MatchQuery, {"text": "a", "boost": "2"}, "finite"),
        (MatchQuery, {"text": "a", "fuzziness": -1}, "fuzziness"),
        (MatchQuery, {"text": "a", "max_expansions": -1}, "max_expansions"),
        (MatchQuery, {"text": "a", "prefix_length": 1.5}, "prefix_length"),
        (MatchQuery, {"text": "a", "operator": "xor"}, "use one of: or, and"),
        (MatchQuery, {"text": "a", "operator": None}, "use one of: or, and"),
        (PhraseQuery, {"text": None}, "text of a phrase query"),
        (PhraseQuery, {"text": "a", "slop": True}, "slop"),
        (BooleanQuery, {}, "must or should"),
        (BooleanQuery, {"must_not": (FOX,)}, "must or should"),
        (BooleanQuery, {"must": FOX}, "must of a boolean query"),
        (BooleanQuery, {"must": ("fox",)}, "str is no text query"),
        (BoostQuery, {"positive": FOX, "negative": "fox"}, "negative of a boost query"),
        (BoostQuery, {"positive": FOX, "negative": FOX, "negative_boost": float("inf")}, "finite"),
        (MultiMatchQuery, {"matches": ()}, "one or more"),
        (MultiMatchQuery, {"matches": (PhraseQuery("a"),)}, "match queries"),
        (CombinedFieldsQuery, {"text": "a", "columns": ()}, "one or more names"),
        (CombinedFieldsQuery, {"text": "a", "columns": "ab"}, "one or more names"),
        (CombinedFieldsQuery, {"text": "a", "columns": ("b", "b")}, "named twice"),
        (CombinedFieldsQuery, {"text": "a", "columns": ("b",), "boosts": (1, 2)}, "one for each"),
        (CombinedFieldsQuery, {"text": "a", "columns": ("b",), "boosts": (0.5,)}, "1 to 1048576"),
    ],
)
def test_what_is_no_query_is_named(kind: type, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        kind(**values)


def test_lists_become_tuples_and_leaves_are_told_from_left_to_right() -> None:
    phrase = PhraseQuery("a b")
    tree = BooleanQuery(
        must=[BoostQuery(FOX, phrase)],  # type: ignore[arg-type]
        should=(MultiMatchQuery((MatchQuery("a", "b"),)),),
        must_not=(CombinedFieldsQuery("c", ("d",)),),
    )
    assert isinstance(tree.must, tuple)
    assert [leaf.text for leaf in leaves_of(tree)] == ["fox", "a b", "a", "c"]


def test_trees_are_neither_very_deep_nor_very_large() -> None:
    node: TextNode = FOX
    for _ in range(MOST_DEPTH - 1):
        node = BooleanQuery(must=(node,))
    with pytest.raises(InvalidRequestError, match="nested"):
        BooleanQuery(must=(node,))
    BooleanQuery(should=(FOX,) * (MOST_NODES - 1))
    with pytest.raises(InvalidRequestError, match="1025 queries"):
        BooleanQuery(should=(FOX,) * MOST_NODES)
