"""Text queries of any shape come back from their JSON, and no JSON leads to any other error."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
    TextNode,
)
from service.api.fusion_bodies import parse_fusion
from service.api.models.text_queries import FusionBody
from service.api.text_queries import parse_text

words = st.text(max_size=8).filter(lambda text: text.isprintable())
columns = st.sampled_from(["text", "title", "a.b"])
counts = st.integers(0, 9)
boosts = st.floats(0, 100, width=32)
operators = st.sampled_from(["or", "and"])

matches = st.builds(
    MatchQuery,
    words,
    st.none() | columns,
    boosts,
    counts,
    st.integers(1, 99),
    operators,
    counts,
)
phrases = st.builds(PhraseQuery, words, st.none() | columns, counts)
combined = st.builds(
    CombinedFieldsQuery,
    words,
    st.just(("text", "title")),
    st.none() | st.tuples(st.floats(1, 99, width=32), st.floats(1, 99, width=32)),
    operators,
)
multi = st.builds(MultiMatchQuery, st.lists(matches, min_size=1, max_size=3).map(tuple))
leaves: st.SearchStrategy[TextNode] = matches | phrases | combined | multi


def parents(nodes: st.SearchStrategy[TextNode]) -> st.SearchStrategy[TextNode]:
    listed = st.lists(nodes, max_size=3).map(tuple)
    some = st.lists(nodes, min_size=1, max_size=2).map(tuple)
    return (
        st.builds(BooleanQuery, some, listed, listed)
        | st.builds(BooleanQuery, listed, some, listed)
        | st.builds(BoostQuery, nodes, nodes, boosts)
    )


trees = st.recursive(leaves, parents, max_leaves=12)


def match_body(node: MatchQuery) -> dict[str, Any]:
    return {
        "terms": node.text,
        "column": node.column,
        "boost": node.boost,
        "fuzziness": node.fuzziness,
        "max_expansions": node.max_expansions,
        "operator": node.operator.capitalize(),
        "prefix_length": node.prefix_length,
    }


def as_json(node: TextNode) -> dict[str, Any]:
    """Write a query as LanceDB's clients do."""
    match node:
        case MatchQuery():
            return {"match": match_body(node)}
        case PhraseQuery():
            return {"phrase": {"terms": node.text, "column": node.column, "slop": node.slop}}
        case MultiMatchQuery():
            return {"multi_match": {"match_queries": [match_body(each) for each in node.matches]}}
        case CombinedFieldsQuery():
            boost = None if node.boosts is None else list(node.boosts)
            named = {"query": node.text, "columns": list(node.columns), "boost": boost}
            return {"combined_fields": {**named, "operator": node.operator}}
        case BoostQuery():
            parts = {"positive": as_json(node.positive), "negative": as_json(node.negative)}
            return {"boost": {**parts, "negative_boost": node.negative_boost}}
        case BooleanQuery():
            return {
                "boolean": {
                    name: [as_json(each) for each in getattr(node, name)]
                    for name in ("must", "should", "must_not")
                }
            }


@given(trees, st.booleans())
def test_a_tree_is_read_as_it_was_written(tree: TextNode, is_wrapped: bool) -> None:
    body: Any = {"query": as_json(tree)}
    if is_wrapped:
        body = {"structured_query": body, "string_query": None}
    assert parse_text(orjson.loads(orjson.dumps(body))) == tree


NAMES = [
    "query", "match", "phrase", "boost", "multi_match", "combined_fields", "boolean", "must",
    "should", "must_not", "terms", "column", "columns", "match_queries", "positive", "negative",
    "string_query", "structured_query", "operator", "fuzziness", "slop", "kind", "k", "weights",
]  # fmt: skip
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | words,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(anything)
def test_any_json_is_a_query_or_a_mistake_with_its_place(given_: Any) -> None:
    try:
        query = parse_text(given_)
    except InvalidRequestError as error:
        assert str(error).startswith("full_text_query")  # noqa: PT017 - or no error
    except UnsupportedFeatureError as error:
        assert "document_granularity" in str(error)  # noqa: PT017 - same
    else:
        assert (query is None) == (given_ is None)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "kind": st.sampled_from(["rrf", "weighted", None]),
            "k": st.integers(1, 100),
            "weights": st.lists(st.floats(-1, 9), max_size=3),
            "vector": st.floats(-1, 9),
            "text": st.floats(-1, 9),
        },
    )
)
def test_any_fusion_is_one_or_a_mistake(members: dict[str, Any]) -> None:
    try:
        fusion = parse_fusion(FusionBody.model_validate(members))
    except InvalidRequestError as error:
        assert "fusion" in str(error)  # noqa: PT017 - or no error
    else:
        has_weights = bool(members.keys() & {"weights", "vector", "text"})
        assert (type(fusion).__name__ == "WeightedFusion") == has_weights


@pytest.mark.parametrize("count", [1, 3])
def test_words_in_columns_are_matches_of_each(count: int) -> None:
    names = ["text", "title", "a.b"][:count]
    found = parse_text({"query": "red fox", "columns": names})
    parts = found.matches if isinstance(found, MultiMatchQuery) else (found,)
    assert [part.column for part in parts if isinstance(part, MatchQuery)] == names
