"""Text and hybrid queries over HTTP: answers, plans, mistakes; all fit openapi.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import orjson
import pyarrow as pa
import pytest

from lance_core import open_dataset
from tests.pylance_dataset import write_dataset
from tests.service_client import Contract, ServiceClient, read_arrow, serving
from tests.text_dataset import DIMENSION, VECTORS, write_text_dataset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.interop

QUERY, EXPLAIN, ANALYZE = (
    f"/v1/table/t1/{action}" for action in ("query", "explain_plan", "analyze_plan")
)
JSON = {"accept": "application/json"}
VECTOR = VECTORS[7].tolist()
WORDS = {"query": "river newt", "columns": ["text"]}
TEXT: dict[str, Any] = {"full_text_query": WORDS, "k": 4, "columns": ["id"]}
HYBRID: dict[str, Any] = {**TEXT, "vector": VECTOR}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("texts")
    write_text_dataset(root / "t1.lance")
    write_dataset(root / "no_texts.lance")
    return root


@pytest.fixture
async def texts(root: Path, contract: Contract) -> AsyncIterator[Any]:
    async with serving(root, contract=contract) as client:
        await client.wait_until_ready()
        yield client


@pytest.mark.parametrize("body", [TEXT, HYBRID], ids=["text", "hybrid"])
async def test_answers_in_arrow_and_json_are_the_same(texts: ServiceClient, body: Any) -> None:
    as_json = (await texts.post(QUERY, body, headers=JSON)).json()
    for form in ("arrow", "arrow_stream", "arrow&compression=zstd"):
        answer = await texts.post(f"{QUERY}?format={form}", body)
        table = read_arrow(answer)
        assert table.schema.names == as_json["columns"]
        as_floats = [
            {
                name: value if name == "id" or value is None else pytest.approx(value)
                for name, value in row.items()
            }
            for row in table.to_pylist()
        ]
        assert as_json["rows"] == as_floats
        stats = orjson.loads(answer.headers["x-lance-serve-stats"])
        assert stats["plan"] == as_json["stats"]["plan"]
    assert as_json["num_rows"] == 4


async def test_a_repeated_query_has_the_same_answer(texts: ServiceClient) -> None:
    for body in (TEXT, HYBRID, {**TEXT, "fast_search": True}):
        answers = [(await texts.post(QUERY, body)).content for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]


async def test_the_library_gives_the_same_answers(texts: ServiceClient, root: Path) -> None:
    dataset = open_dataset(root / "t1.lance")
    found = read_arrow(await texts.post(QUERY, {**TEXT, "full_text_query": "river", "k": 30}))
    assert found == dataset.search_text("river", 30, columns=["id"])
    both = read_arrow(await texts.post(QUERY, {**HYBRID, "full_text_query": "river", "k": 30}))
    assert both == dataset.search_hybrid(VECTORS[7], "river", 30, columns=["id"])


async def test_places_and_scores_of_rows_that_one_query_missed_are_null(
    texts: ServiceClient,
) -> None:
    body = {**HYBRID, "full_text_query": {"query": "platypus", "columns": ["text"]}}
    answer = (await texts.post(QUERY, {**body, "with_row_id": True}, headers=JSON)).json()
    assert answer["columns"] == ["id", "_distance", "_score", "_relevance_score", "_rowid"]
    assert {row["_score"] for row in answer["rows"]} == {None}
    assert answer["rows"][0]["_relevance_score"] == pytest.approx(1 / 61)


async def test_weights_change_the_order(texts: ServiceClient) -> None:
    orders = []
    for weights in ([1, 0], [0, 1]):
        body = {**HYBRID, "fusion": {"weights": weights}}
        rows = (await texts.post(QUERY, body, headers=JSON)).json()["rows"]
        orders.append([row["id"] for row in rows])
    assert orders[0] != orders[1]
    assert orders[0][0] == 7
    fitting = (await texts.post(QUERY, TEXT, headers=JSON)).json()["rows"]
    assert orders[1][0] == fitting[0]["id"]


async def test_a_filter_with_parameters_counts_for_all_parts(texts: ServiceClient) -> None:
    for body in (TEXT, HYBRID):
        limited = {**body, "filter": "id BETWEEN $low AND 250", "params": {"low": 200}}
        rows = (await texts.post(QUERY, limited, headers=JSON)).json()["rows"]
        assert all(200 <= row["id"] <= 250 for row in rows)
        assert len(rows) == 4


@pytest.mark.parametrize("body", [TEXT, HYBRID], ids=["text", "hybrid"])
async def test_plans_are_told_before_and_after_a_run(texts: ServiceClient, body: Any) -> None:
    for asked in (body, {"query": body}):
        text = (await texts.post(EXPLAIN, asked)).json()
        assert "text_idx" in text
        assert ("vec_idx" in text) == ("vector" in body)
        plan = (await texts.post(f"{ANALYZE}?format=json", asked)).json()
        assert plan["stats"]["plan"] == ("hybrid" if "vector" in body else "text")
        assert plan["plan"]["measured"]["rows"] == 4


@pytest.mark.parametrize(
    ("members", "code", "said"),
    [
        ({"full_text_query": {"query": "a", "columns": ["nope"]}}, 12, "nope"),
        ({"full_text_query": {"query": "a", "columns": ["price"]}}, 13, "price"),
        ({"full_text_query": {"query": {"match": {}}}}, 13, "match.terms: Field required"),
        ({"full_text_query": {}}, 13, "full_text_query: give one of"),
        ({"columns": ["nope"]}, 12, "nope"),
        ({"filter": "id >"}, 13, "filter"),
        ({"order_by": [{"column_name": "id"}]}, 13, "order_by"),
        ({"fusion": {}}, 13, "fusion: needs a vector"),
        ({"vector": [1.0, 2.0]}, 13, "2 dimensions"),
        ({"vector": [VECTOR, VECTOR]}, 13, "2 query vectors are given"),
        ({"k": 2_000_000}, 13, "max_k"),
    ],
    ids=repr,
)
async def test_mistakes_give_400_and_say_where(
    texts: ServiceClient, members: dict[str, Any], code: int, said: str
) -> None:
    body = {**TEXT, **members}
    for path, asked in [(QUERY, body), (EXPLAIN, {"query": body}), (ANALYZE, body)]:
        answer = await texts.post(path, asked, bad=True)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert said in answer.json()["error"]


async def test_a_phrase_needs_positions(texts: ServiceClient) -> None:
    body = {"full_text_query": {"query": '"otter heron"', "columns": ["title"]}}
    answer = await texts.post(QUERY, body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert "positions" in answer.json()["error"]


async def test_plans_of_all_kinds_of_text_queries_fit_the_document(texts: ServiceClient) -> None:
    leaves = {
        "match": {"terms": "otter", "column": "text", "fuzziness": 1, "boost": 2},
        "phrase": {"terms": "otter heron", "column": "text", "slop": 1},
        "combined_fields": {"query": "river", "columns": ["text", "title"], "boost": [1, 2]},
        "multi_match": {"query": "river", "columns": ["text", "title"]},
    }
    nodes: list[dict[str, Any]] = [{name: body} for name, body in leaves.items()]
    boost = {"boost": {"positive": nodes[0], "negative": nodes[3]}}
    tree = {"boolean": {"should": nodes, "must": [boost], "must_not": [nodes[1]]}}
    body = {"full_text_query": {"query": tree}, "k": 3, "filter": "id < 300", "vector": VECTOR}
    answer = await texts.post(f"{ANALYZE}?format=json", {**body, "prefilter": False})
    assert answer.status_code == 200, answer.text
    shown = str(answer.json()["plan"])
    assert all(
        f"'node': '{name}'" in shown
        for name in ("Fuse", "Boolean", "Boost", "BestOf", "Match", "Phrase", "CombinedFields")
    )


async def test_words_for_a_table_without_text_index_tell_to_build_one(texts: ServiceClient) -> None:
    answer = await texts.post("/v1/table/no_texts/query", {"full_text_query": "a"})
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert "INVERTED" in answer.json()["error"]


async def test_queries_for_words_tell_why_a_row_is_missing(texts: ServiceClient) -> None:
    body = {**TEXT, "k": 1, "with_row_id": True}
    (first,) = (await texts.post(QUERY, body, headers=JSON)).json()["rows"]
    told = [
        (await texts.post("/v1/table/t1/why_not", {**TEXT, "k": 1, "row": {"row_id": row}})).json()
        for row in (first["_rowid"], 49, 2**63)
    ]
    assert [each["reason"] for each in told] == ["present", "deleted", "unknown"]
    assert told[0]["detail"] == {"rank": 1, "score": pytest.approx(first["_score"])}


async def test_queries_of_both_kinds_tell_no_reasons(texts: ServiceClient) -> None:
    answer = await texts.post("/v1/table/t1/why_not", {**HYBRID, "row": {"row_id": 3}})
    assert answer.status_code == 400
    assert "and not both" in answer.json()["error"]


async def test_a_version_may_be_pinned(texts: ServiceClient, root: Path) -> None:
    first = lance.dataset(str(root / "t1.lance"), version=1)
    assert first.count_rows() == 400
    body = {**TEXT, "version": 1, "k": 1000}  # before there was an index
    rows = (await texts.post(QUERY, body, headers=JSON)).json()["rows"]
    texts_then = first.to_table(columns=["id", "text"]).to_pylist()
    expected = {
        row["id"] for row in texts_then if {"river", "newt"} & set((row["text"] or "").split())
    }
    assert {row["id"] for row in rows} == expected


async def test_vectors_of_the_namespace_form_may_stand_beside_words(texts: ServiceClient) -> None:
    body = {**HYBRID, "vector": {"single_vector": VECTOR}}
    assert (await texts.post(QUERY, body)).content == (await texts.post(QUERY, HYBRID)).content
    assert len(VECTOR) == DIMENSION
    none = {**TEXT, "vector": {"single_vector": None}}
    assert pa.types.is_float32(read_arrow(await texts.post(QUERY, none)).schema.field(1).type)
