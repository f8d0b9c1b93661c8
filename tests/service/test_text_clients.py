"""Text and hybrid queries of real clients, unmodified, and the same on the files themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import lance_namespace
import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lance_namespace import (
    ExplainTableQueryPlanRequest,
    QueryTableRequest,
)
from lancedb import query as lancedb_query
from lancedb.query import FullTextOperator, Occur
from lancedb.remote.errors import HttpError
from lancedb.rerankers import RRFReranker

from tests.live_server import live_server
from tests.text_dataset import VECTORS, write_text_dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.interop

# Their type stubs know of no defaults.
_QUERIES: Any = lancedb_query
BooleanQuery, BoostQuery, MultiMatchQuery, MatchQuery, PhraseQuery = (
    _QUERIES.BooleanQuery,
    _QUERIES.BoostQuery,
    _QUERIES.MultiMatchQuery,
    _QUERIES.MatchQuery,
    _QUERIES.PhraseQuery,
)

MANY = 1000
QUERY = (VECTORS[123] + 0.01).tolist()
JSON = {"accept": "application/json"}

MANY_WORDS = "heron lynx newt wren river"
"""The best rows for these have scores of their own: the order of equal ones is open."""

RARE = MatchQuery("river", "text")
COMMON = MatchQuery("otter", "text")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("texts")
    write_text_dataset(root / "t1.lance")
    return root


@pytest.fixture(scope="module")
def url(root: Any) -> Iterator[Any]:
    with live_server(root) as url:
        yield url


@pytest.fixture(scope="module")
def table(url: str) -> Any:
    db = lancedb.connect("db://mydb", api_key="anything", region="us-east-1", host_override=url)
    return db.open_table("t1")


@pytest.fixture(scope="module")
def local(root: Any) -> Any:
    return lancedb.connect(str(root)).open_table("t1")


@pytest.fixture
def namespace(url: str) -> Any:
    return lance_namespace.connect("rest", {"uri": url, "header.x-api-key": "anything"})


def scores(found: pa.Table) -> dict[int, float]:
    assert found.schema.field("_score").type == pa.float32()
    ranked = found["_score"].to_pylist()
    assert ranked == sorted(ranked, reverse=True)
    return dict(zip(found["id"].to_pylist(), ranked, strict=True))


def words(text: Any, columns: Any = None) -> Callable[[Any], Any]:
    return lambda table: table.search(text, query_type="fts", fts_columns=columns)


def tree(query: Any) -> Callable[[Any], Any]:
    return lambda table: table.search(query)


SEARCHES: dict[str, Callable[[Any], Any]] = {
    "words": words("river newt", "text"),
    "all columns": words("river newt"),
    "list of columns": words("river", ["title"]),
    "words in quotes": words('"otter heron"', "text"),
    "words as a phrase": lambda table: words("otter heron", "text")(table).phrase_query(),
    "match": tree(COMMON),
    "and": tree(MatchQuery("river newt", "text", operator=FullTextOperator.AND)),
    "boost of a match": tree(MatchQuery("river", "text", boost=2.5)),
    "phrase": tree(PhraseQuery("otter heron", "text")),
    "phrase with slop": tree(PhraseQuery("otter heron", "text", slop=2)),
    "both": tree(RARE & COMMON),
    "either": tree(RARE | MatchQuery("newt", "title")),
    "nested": tree((RARE & COMMON) | PhraseQuery("river river", "text")),
    "must not": tree(
        BooleanQuery([(Occur.MUST, COMMON), (Occur.MUST_NOT, RARE), (Occur.SHOULD, RARE)])
    ),
    "boost": tree(BoostQuery(COMMON, RARE, negative_boost=0.25)),
    "multi match": tree(MultiMatchQuery("river", ["text", "title"])),
    "multi match with boosts": tree(MultiMatchQuery("river", ["text", "title"], boosts=[1.0, 3.0])),
    "no index": tree(MatchQuery("river", "plain")),
    "filter": lambda table: table.search(COMMON).where("price < 20"),
    "nothing": tree(MatchQuery("platypus", "text")),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_all_matches_have_the_scores_that_the_files_give(table: Any, local: Any, name: str) -> None:
    search = SEARCHES[name]
    found, expected = (search(each).limit(MANY).to_arrow() for each in (table, local))
    assert scores(found) == pytest.approx(scores(expected), rel=1e-6)
    assert found.schema.names == expected.schema.names


@pytest.mark.parametrize("name", SEARCHES)
def test_the_best_have_the_scores_that_the_files_give(table: Any, local: Any, name: str) -> None:
    search = SEARCHES[name]
    found, expected = (
        search(each).limit(7).offset(2).select(["id"]).to_arrow() for each in (table, local)
    )
    assert list(scores(found).values()) == pytest.approx(list(scores(expected).values()), rel=1e-6)


def test_words_that_are_near_are_found_where_the_index_knows_them(table: Any, local: Any) -> None:
    fuzzy = MatchQuery("rivers", "text", fuzziness=2, prefix_length=2)
    found = scores(table.search(fuzzy).limit(MANY).to_arrow())
    assert found.keys() >= scores(local.search(fuzzy).limit(MANY).to_arrow()).keys()
    assert len(found) > 10


def test_filters_may_come_after_the_ranking(table: Any) -> None:
    best = scores(table.search(COMMON).limit(20).select(["id"]).to_arrow())
    after = table.search(COMMON).where("id < 200", prefilter=False).limit(20).select(["id"])
    assert scores(after.to_arrow()) == {id_: best[id_] for id_ in best if id_ < 200}


def test_row_ids_and_columns_come_as_asked_for(table: Any) -> None:
    found = table.search(COMMON).select(["price", "id"]).with_row_id(True).limit(2).to_arrow()
    assert found.schema.names == ["price", "id", "_score", "_rowid"]
    computed = table.search(COMMON).select({"twice": "id * 2", "id": "id"}).limit(3).to_arrow()
    assert computed["twice"].to_pylist() == [2 * each for each in computed["id"].to_pylist()]
    assert "_score" in computed.schema.names


def test_only_indexed_rows_are_found_by_a_fast_search(table: Any) -> None:
    fast = table.search("otter", query_type="fts", fts_columns="text", fast_search=True)
    slow = table.search("otter", query_type="fts", fts_columns="text")
    fast_ids, slow_ids = (set(scores(each.limit(MANY).to_arrow())) for each in (fast, slow))
    assert fast_ids == {each for each in slow_ids if each < 400}
    assert fast_ids < slow_ids


def test_phrases_need_positions(table: Any) -> None:
    with pytest.raises(HttpError) as caught:
        table.search(PhraseQuery("otter heron", "title")).limit(3).to_arrow()
    assert caught.value.status_code == 400
    assert "position" in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [MatchQuery("a", "nope"), MatchQuery("a", "price"), BooleanQuery([(Occur.MUST_NOT, RARE)])],
    ids=["no column", "no text", "only must not"],
)
def test_mistakes_are_told_at_once(table: Any, query: Any) -> None:
    with pytest.raises(HttpError) as caught:
        table.search(query).limit(3).to_arrow()
    assert caught.value.status_code == 400


def test_plans_of_text_queries_are_told(table: Any) -> None:
    search = table.search(RARE & COMMON).limit(2)
    assert "text_idx" in search.explain_plan(verbose=True)
    assert "elapsed_ms=" in search.analyze_plan()


def hybrid(table: Any, limit: int, **options: Any) -> Any:
    search = table.search(query_type="hybrid", fts_columns="text", **options)
    return search.vector(QUERY).text(MANY_WORDS).bypass_vector_index().limit(limit)


def relevance(found: pa.Table) -> list[float]:
    scores: list[float] = found["_relevance_score"].to_pylist()
    return scores


class TestHybrid:
    def test_the_best_rows_have_scores_of_their_own(self, table: Any) -> None:
        for filter_ in ("id >= 0", "id >= 200"):
            search = words(MANY_WORDS, "text")(table).where(filter_).limit(40)
            assert len(set(scores(search.to_arrow()).values())) == 40

    def test_the_client_fuses_our_answers_as_those_of_the_files(
        self, table: Any, local: Any
    ) -> None:
        found, expected = (
            hybrid(each, 30).rerank(RRFReranker(return_score="all")).to_arrow()
            for each in (table, local)
        )
        assert relevance(found) == relevance(expected)
        assert set(found["id"].to_pylist()) == set(expected["id"].to_pylist())

    def test_an_empty_branch_leaves_the_other(self, table: Any) -> None:
        search = table.search(query_type="hybrid", fts_columns="text")
        found = search.vector(QUERY).text("platypus").limit(5).to_arrow()
        assert found.num_rows == 5

    def test_filters_count_for_both_branches(self, table: Any, local: Any) -> None:
        found, expected = (
            hybrid(each, 10).where("id >= 200").to_arrow() for each in (table, local)
        )
        assert relevance(found) == relevance(expected)
        assert min(found["id"].to_pylist()) >= 200

    def test_one_request_fuses_as_the_client_does(self, table: Any, url: str) -> None:
        expected = hybrid(table, 12).offset(3).rerank(RRFReranker(return_score="all")).to_arrow()
        found = ask(url, k=12, offset=3, columns=["id"])
        assert [row["_relevance_score"] for row in found] == [
            pytest.approx(each, rel=1e-6) for each in relevance(expected)
        ]
        known = {row["id"]: row for row in expected.to_pylist()}
        for row in found:
            if row["id"] in known:  # equally good ones may be others
                assert row["_distance"] == pytest.approx(known[row["id"]]["_distance"])
                assert row["_score"] == pytest.approx(known[row["id"]]["_score"])

    async def test_the_async_client_fuses_the_same(self, table: Any, url: str) -> None:
        db = await lancedb.connect_async(
            "db://mydb", api_key="anything", region="us-east-1", host_override=url
        )
        query = (await db.open_table("t1")).query().nearest_to(QUERY).bypass_vector_index()
        search = query.nearest_to_text(MANY_WORDS, columns=["text"]).limit(9)
        assert relevance(await search.to_arrow()) == relevance(hybrid(table, 9).to_arrow())


def ask(url: str, **members: Any) -> Any:
    body = {
        "vector": QUERY,
        "bypass_vector_index": True,
        "full_text_query": {"query": MANY_WORDS, "columns": ["text"]},
        **members,
    }
    answer = httpx.post(f"{url}/v1/table/t1/query", json=body, headers=JSON)
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


class TestNamespace:
    @pytest.mark.parametrize(
        "text",
        [
            {"string_query": {"query": "river newt", "columns": ["text"]}},
            {"structured_query": {"query": {"match": {"terms": "river newt", "column": "text"}}}},
            {
                "structured_query": {
                    "query": {
                        "multi_match": {
                            "match_queries": [{"terms": "river newt", "column": "text"}]
                        }
                    }
                }
            },
        ],
        ids=["string", "structured", "multi match"],
    )
    def test_all_forms_find_the_same(self, namespace: Any, local: Any, text: Any) -> None:
        request = QueryTableRequest.model_validate(
            {"id": ["t1"], "k": MANY, "vector": {}, "full_text_query": text}
        )
        found = pa.ipc.open_file(namespace.query_table(request).data).read_all()
        expected = local.search("river newt", query_type="fts", fts_columns="text").limit(MANY)
        assert scores(found) == pytest.approx(scores(expected.to_arrow()), rel=1e-6)

    def test_a_text_query_is_explained(self, namespace: Any) -> None:
        query = QueryTableRequest.model_validate(
            {"k": 3, "vector": {}, "full_text_query": {"string_query": {"query": "river"}}}
        )
        request = ExplainTableQueryPlanRequest(id=["t1"], query=query)
        assert "text_idx" in namespace.explain_table_query_plan(request)


@pytest.mark.parametrize("text", ["river newt", {"query": "river newt", "columns": ["text"]}])
def test_plain_words_are_enough_for_people(url: str, text: Any) -> None:
    body = {"full_text_query": text, "k": 3, "columns": ["id"]}
    answer = httpx.post(f"{url}/v1/table/t1/query?format=json", json=body).json()
    assert answer["columns"] == ["id", "_score"]
    assert np.all(np.diff([row["_score"] for row in answer["rows"]]) <= 0)
    assert (answer["num_rows"], answer["stats"]["plan"]) == (3, "text")
