"""Text and hybrid queries in request bodies, in all their forms, without a service."""

from __future__ import annotations

from typing import Any

import pytest

from lance_core.errors import (
    InvalidRequestError,
    LimitExceededError,
    TypeMismatchError,
    UnsupportedFeatureError,
)
from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from lance_core.query.fusion import RRF, WeightedFusion
from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.request import NamedExpression, ScanQuery
from lance_core.query.text_request import TextQuery
from service.api.query_bodies import parse_query
from service.api.text_queries import parse_text
from service.limits import QueryLimits

VECTOR = [0.5, 0.25]
FROM_LANCEDB = {
    "match": {
        "column": "text",
        "terms": "puppy",
        "boost": 1.0,
        "fuzziness": 0,
        "max_expansions": 50,
        "operator": "Or",
        "prefix_length": 0,
    }
}


def parsed(**members: Any) -> Any:
    return parse_query(members, limits=QueryLimits(max_k=1000)).request


def match(terms: str, **members: Any) -> dict[str, Any]:
    return {"match": {"terms": terms, **members}}


class TestForms:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("puppy", MatchQuery("puppy")),
            ('"big puppy"', PhraseQuery("big puppy")),
            ({"query": "puppy", "columns": []}, MatchQuery("puppy")),
            ({"query": "puppy", "columns": None}, MatchQuery("puppy")),
            ({"query": "puppy", "columns": ["text"]}, MatchQuery("puppy", "text")),
            ({"query": '"a b"', "columns": ["text"]}, PhraseQuery("a b", "text")),
            (
                {"query": "puppy", "columns": ["text", "title", "text"]},
                MultiMatchQuery((MatchQuery("puppy", "text"), MatchQuery("puppy", "title"))),
            ),
            ({"query": FROM_LANCEDB}, MatchQuery("puppy", "text")),
            ({"string_query": {"query": "puppy"}}, MatchQuery("puppy")),
            ({"string_query": {"query": "a", "columns": ["s"]}}, MatchQuery("a", "s")),
            ({"structured_query": {"query": match("a")}, "string_query": None}, MatchQuery("a")),
        ],
    )
    def test_words_and_trees_are_read_in_both_dialects(self, given: Any, expected: Any) -> None:
        assert parse_text(given) == expected

    def test_null_is_no_text_query(self) -> None:
        assert parse_text(None) is None

    @pytest.mark.parametrize(
        ("node", "expected"),
        [
            (
                match(
                    "a",
                    column="t",
                    boost=2,
                    fuzziness=1,
                    max_expansions=7,
                    operator="AND",
                    prefix_length=2,
                ),
                MatchQuery("a", "t", 2.0, 1, 7, "and", 2),
            ),
            (match("a", fuzziness=None, column=None), MatchQuery("a")),
            (
                {"phrase": {"column": "text", "terms": "hello world", "slop": 1}},
                PhraseQuery("hello world", "text", 1),
            ),
            ({"phrase": {"terms": "hello world"}, "match": None}, PhraseQuery("hello world")),
            (
                {"boost": {"positive": match("a"), "negative": match("b"), "negative_boost": 0.25}},
                BoostQuery(MatchQuery("a"), MatchQuery("b"), 0.25),
            ),
            (
                {"boost": {"positive": match("a"), "negative": match("b")}},
                BoostQuery(MatchQuery("a"), MatchQuery("b"), 0.5),
            ),
            (
                {"multi_match": {"query": "a", "columns": ["x", "y"], "boost": [1.0, 2.0]}},
                MultiMatchQuery((MatchQuery("a", "x"), MatchQuery("a", "y", 2.0))),
            ),
            (
                {"multi_match": {"query": "a", "columns": ["x"], "operator": "And"}},
                MultiMatchQuery((MatchQuery("a", "x", operator="and"),)),
            ),
            (
                {"multi_match": {"match_queries": [{"terms": "a", "column": "x"}, {"terms": "b"}]}},
                MultiMatchQuery((MatchQuery("a", "x"), MatchQuery("b"))),
            ),
            (
                {"combined_fields": {"query": "a", "columns": ["x", "y"], "boost": [1, 3]}},
                CombinedFieldsQuery("a", ("x", "y"), (1, 3)),
            ),
            (
                {"boolean": {"must": [match("a")], "should": [], "must_not": [match("b")]}},
                BooleanQuery(must=(MatchQuery("a"),), must_not=(MatchQuery("b"),)),
            ),
            (
                {"boolean": {"should": [match("a"), {"boolean": {"must": [match("b")]}}]}},
                BooleanQuery(should=(MatchQuery("a"), BooleanQuery(must=(MatchQuery("b"),)))),
            ),
        ],
    )
    def test_all_kinds_of_nodes_are_read(self, node: Any, expected: Any) -> None:
        assert parse_text({"query": node}) == expected
        assert parse_text({"structured_query": {"query": node}}) == expected


class TestMistakes:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (3, "full_text_query: must be words or an object, not numbers"),
            (["a"], "full_text_query: must be words or an object, not arrays"),
            ({}, "full_text_query: give one of query, string_query, structured_query; this has"),
            (
                {"query": "a", "string_query": {"query": "b"}},
                "full_text_query: give one of .*; this has query and string_query",
            ),
            ({"query": 3}, "full_text_query.query: Input should be a valid string, not 3"),
            ({"query": "a", "columns": "t"}, "full_text_query.columns: Input should be a valid"),
            ({"query": "a", "columns": [1]}, r"full_text_query.columns\[0\]: Input should be"),
            ({"query": '"a b"', "columns": ["s", "t"]}, "full_text_query: a phrase is looked for"),
            ({"string_query": "a"}, "full_text_query.string_query: must be an object, not strings"),
            ({"string_query": {}}, "full_text_query.string_query.query: Field required"),
            ({"structured_query": {"query": "a"}}, "full_text_query.structured_query.query: Input"),
            ({"query": {}}, "full_text_query.query: give one of match, phrase, boost, "),
            (
                {"query": {**match("a"), "phrase": {"terms": "b"}}},
                "full_text_query.query: give one of .*; this has match and phrase",
            ),
            ({"query": {"matches": {"terms": "a"}}}, "give one of .*; this has none of them"),
            ({"query": {"match": {}}}, "full_text_query.query.match.terms: Field required"),
            (
                {"query": match("a", boost=-1)},
                "full_text_query.query.match: boost of a match query is -1",
            ),
            ({"query": match("a", operator="xor")}, "full_text_query.query.match: operator is"),
            ({"query": match("a", fuzziness=-1)}, "full_text_query.query.match.fuzziness: Input"),
            (
                {"query": {"boolean": {"must_not": [match("a")]}}},
                "full_text_query.query.boolean: a boolean query needs must or should",
            ),
            (
                {"query": {"boolean": {"must": [match("a"), match(3)]}}},  # type: ignore[arg-type]  # wrong on purpose
                r"full_text_query.query.boolean.must\[1\].match.terms: Input should be",
            ),
            (
                {"query": {"boolean": {"must": [match("a"), match("a", boost=-1)]}}},
                r"full_text_query.query.boolean.must\[1\].match: boost of a match query is -1",
            ),
            (
                {"query": {"multi_match": {"query": "a", "columns": ["x"], "boost": [1, 2]}}},
                "full_text_query.query.multi_match: boost has 2 numbers for 1 columns",
            ),
            ({"query": {"multi_match": {"query": "a"}}}, "a multi_match query needs one or more"),
            ({"query": {"multi_match": {}}}, "multi_match: give one of match_queries, query"),
            (
                {"query": {"boost": {"positive": match("a")}}},
                "full_text_query.query.boost.negative: Field required",
            ),
        ],
    )
    def test_a_mistake_is_told_with_its_place(self, given: Any, said: str) -> None:
        with pytest.raises(InvalidRequestError, match=said):
            parse_text(given)

    @pytest.mark.parametrize("kind", ["match", "phrase"])
    def test_only_rows_are_found_as_a_whole(self, kind: str) -> None:
        body = {"terms": "a", "document_granularity": "row"}
        assert parse_text({"query": {kind: body}}) == parse_text({"query": {kind: {"terms": "a"}}})
        body["document_granularity"] = "list_element"
        with pytest.raises(UnsupportedFeatureError, match=f"{kind}.document_granularity: this"):
            parse_text({"query": {kind: body}})

    def test_a_value_of_the_wrong_kind_is_a_type_mismatch(self) -> None:
        with pytest.raises(TypeMismatchError):
            parse_text(True)

    @pytest.mark.parametrize("depth", [70, 300, 100_000])
    @pytest.mark.parametrize("kind", ["boolean", "boost"])
    def test_a_tree_that_is_too_deep_is_refused(self, kind: str, depth: int) -> None:
        node = match("a")
        for _ in range(depth):
            inner = node
            node = (
                {"boolean": {"must": [inner]}}
                if kind == "boolean"
                else {"boost": {"positive": inner, "negative": match("b")}}
            )
        with pytest.raises(InvalidRequestError, match="nested"):
            parse_text({"query": node})
        while node.keys() & {"boolean", "boost"}:  # else taking it apart would recurse
            (body,) = node.values()
            node = body["must"].pop() if kind == "boolean" else body.pop("positive")

    @pytest.mark.parametrize("count", [1100, 200_000])
    def test_a_tree_of_too_many_queries_is_refused(self, count: int) -> None:
        with pytest.raises(InvalidRequestError, match="queries"):
            parse_text({"query": {"boolean": {"should": [match("a")] * count}}})

    def test_a_long_list_of_columns_is_refused_before_it_is_read(self) -> None:
        with pytest.raises(InvalidRequestError, match="too many parts"):
            parse_text({"query": "a", "columns": ["c"] * 1_000_000})

    def test_a_text_beyond_a_mebibyte_is_refused(self) -> None:
        with pytest.raises(InvalidRequestError, match="1048577 characters"):
            parse_text("a" * (2**20 + 1))

    def test_the_deepest_and_the_largest_tree_are_read(self) -> None:
        node = match("a")
        for _ in range(63):
            node = {"boolean": {"must": [node], "should": [], "must_not": []}}
        assert isinstance(parse_text({"query": node}), BooleanQuery)
        wide = {"boolean": {"should": [FROM_LANCEDB] * 1023}}
        assert isinstance(parse_text({"query": wide}), BooleanQuery)


class TestRequests:
    def test_a_text_alone_makes_a_text_query(self) -> None:
        request = parsed(
            full_text_query={"query": FROM_LANCEDB},
            vector=[],
            k=3,
            offset=2,
            filter="id > $low",
            params={"low": 7},
            prefilter=False,
            columns=["id"],
            with_row_id=True,
            fast_search=True,
            version=None,
        )
        assert request == TextQuery(
            MatchQuery("puppy", "text"),
            k=3,
            columns=("id",),
            filter="id > $low",
            params={"low": 7},
            prefilter=False,
            offset=2,
            with_row_id=True,
            fast_search=True,
        )

    def test_absent_members_are_what_the_page_says(self) -> None:
        assert parsed(full_text_query="puppy") == TextQuery(MatchQuery("puppy"))

    def test_without_index_is_for_the_text_only_where_there_is_no_vector(self) -> None:
        assert not parsed(full_text_query="a", bypass_vector_index=True).use_index
        hybrid = parsed(full_text_query="a", vector=VECTOR, bypass_vector_index=True)
        assert (hybrid.vector.use_index, hybrid.text.use_index) == (False, True)

    @pytest.mark.parametrize(("k", "expected"), [(0, 10), (None, 10), (2**63 - 1, None), (7, 7)])
    def test_k_means_what_it_means_for_vectors(self, k: Any, expected: Any) -> None:
        assert parsed(full_text_query="a", k=k).k == expected

    def test_columns_may_be_computed(self) -> None:
        request = parsed(full_text_query="a", columns={"twice": "price * 2"})
        assert request.columns == (NamedExpression("twice", "price * 2"),)

    def test_no_text_and_no_vector_stay_a_plain_query(self) -> None:
        assert isinstance(parsed(full_text_query=None, vector=[]), ScanQuery)

    def test_a_vector_and_a_text_make_a_hybrid_query_under_one_filter(self) -> None:
        request = parsed(
            vector=VECTOR,
            full_text_query="a",
            k=4,
            offset=3,
            filter="id > 1",
            columns=["id"],
            with_row_id=True,
            nprobes=5,
            prefilter=False,
        )
        assert isinstance(request, HybridQuery)
        assert (request.k, request.offset, request.columns) == (4, 3, ("id",))
        assert (request.with_row_id, request.fusion) == (True, RRF(60))
        assert request.vector.filter == request.text.filter == "id > 1"
        assert not request.vector.prefilter
        assert not request.text.prefilter
        assert request.vector.min_probes == 5
        assert (request.nearest.k, request.nearest.offset) == (7, 0)
        assert (request.matching.k, request.matching.offset) == (7, 0)

    def test_a_row_id_stands_for_the_vector_of_a_hybrid_query(self) -> None:
        request = parsed(row_id=7, full_text_query="a", k=2**63 - 1)
        assert request.vector.row_ids == (7,)
        assert request.k is request.nearest.k is request.matching.k is None

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (None, RRF(60)),
            ({}, RRF(60)),
            ({"kind": "rrf"}, RRF(60)),
            ({"kind": "rrf", "k": 5}, RRF(5)),
            ({"k": 5}, RRF(5)),
            ({"weights": [0.7, 0.3]}, WeightedFusion(0.7, 0.3)),
            ({"kind": "weighted", "vector": 0.7, "text": 0.3}, WeightedFusion(0.7, 0.3)),
            ({"kind": "weighted", "weights": [1, 0]}, WeightedFusion(1, 0)),
        ],
    )
    def test_fusions_are_read_in_all_forms(self, given: Any, expected: Any) -> None:
        assert parsed(vector=VECTOR, full_text_query="a", fusion=given).fusion == expected

    @pytest.mark.parametrize(
        ("fusion", "said"),
        [
            ("rrf", "fusion: Input should be"),
            ({"kind": "best"}, "fusion.kind: Input should be 'rrf' or 'weighted', not \"best\""),
            ({"k": 0}, "fusion.k: Input should be greater than or equal to 1, not 0"),
            ({"weights": [1]}, "fusion.weights: give two numbers"),
            ({"vector": 1}, "fusion.weights: give two numbers"),
            ({"weights": [1, 2], "text": 1}, "fusion: give either weights, or vector and text"),
            ({"weights": [-1, 2]}, "weight vector of the fusion is -1"),
            ({"weights": [0, 0]}, "weights of the fusion are both 0"),
            ({"kind": "weighted"}, "fusion.weights: give two numbers"),
            ({"kind": "weighted", "weights": [1, 2], "k": 3}, "fusion.k: belongs to rrf"),
            ({"kind": "rrf", "weights": [1, 2]}, "fusion: rrf has no weights"),
        ],
        ids=repr,
    )
    def test_fusions_that_make_no_sense_are_refused(self, fusion: Any, said: str) -> None:
        with pytest.raises(InvalidRequestError, match=said):
            parsed(vector=VECTOR, full_text_query="a", fusion=fusion)

    @pytest.mark.parametrize(
        ("members", "said"),
        [
            ({"vector": VECTOR, "fusion": {}}, "fusion: needs full_text_query beside the vector"),
            ({"full_text_query": "a", "fusion": {}}, "fusion: needs a vector or row_id"),
            ({"fusion": {}}, "fusion: needs a vector or row_id"),
            (
                {"full_text_query": "a", "order_by": [{"column_name": "id"}]},
                "order_by: rows that have words are ordered by score",
            ),
            ({"full_text_query": "a", "row_ids": [1, 2]}, "2 row ids are given; a hybrid query"),
        ],
        ids=repr,
    )
    def test_what_does_not_go_together_is_refused(self, members: Any, said: str) -> None:
        with pytest.raises(InvalidRequestError, match=said):
            parsed(**members)

    def test_too_many_rows_are_refused(self) -> None:
        for vector in ([], VECTOR):
            with pytest.raises(LimitExceededError, match="k is 1001, the limit is 1000"):
                parsed(full_text_query="a", vector=vector, k=1001)
