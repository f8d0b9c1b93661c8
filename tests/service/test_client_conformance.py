"""Every read of both client families, in both path forms, by the unmodified clients.

What is searched and how good it is, is tested beside this; here it is that each call of the
clients' reading side is understood, and that its answer is what the client makes of it.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import lance
import lance_namespace
import lancedb
import pyarrow as pa
import pytest
from lance_namespace import (
    AnalyzeTableQueryPlanRequest,
    CountTableRowsRequest,
    DescribeNamespaceRequest,
    DescribeTableIndexStatsRequest,
    DescribeTableRequest,
    GetTableStatsRequest,
    GetTableTagVersionRequest,
    ListTableBranchesRequest,
    ListTableIndicesRequest,
    ListTablesRequest,
    ListTableTagsRequest,
    ListTableVersionsRequest,
    QueryTableRequest,
)
from lance_namespace.errors import (
    InvalidInputError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableIndexNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from lancedb import query as lancedb_query
from lancedb.query import Occur

from tests.client_dataset import (
    ANIMALS,
    BRANCH,
    BRANCH_ROWS,
    INDICES,
    rows,
    text_of,
    write_client_dataset,
)
from tests.live_server import live_server
from tests.pylance_dataset import LIVE, NUM_INDEXED, VECTORS, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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

QUERY = VECTORS[123] + 0.01
NEWEST = 6
NEWTS = {row for row in LIVE.tolist() if ANIMALS[row % 5] == "newt"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clients")
    write_client_dataset(root / "t1.lance")
    write_client_dataset(root / "a" / "b" / "t2.lance")
    return root


@pytest.fixture(scope="module")
def url(root: Path) -> Iterator[Any]:
    with live_server(root) as url:
        yield url


def connect(url: str, **options: Any) -> Any:
    return lancedb.connect(
        "db://mydb", api_key="k", region="us-east-1", host_override=url, **options
    )


@pytest.fixture
def table(url: str) -> Any:
    return connect(url).open_table("t1")


def ids(found: Any) -> Any:
    return found.to_arrow()["id"].to_pylist()


class TestLanceDB:
    def test_tags(self, table: Any) -> None:
        assert {name: tag["version"] for name, tag in table.tags.list().items()} == {
            "first": 1,
            "other": 2,
        }
        assert table.tags.get_version("first") == 1
        with pytest.raises(ValueError, match="not found"):
            table.tags.get_version("nope")
        table.checkout("first")
        assert table.count_rows() == NUM_INDEXED
        table.checkout_latest()
        assert (table.count_rows(), table.version) == (len(LIVE), NEWEST)

    def test_branches(self, url: str, table: Any) -> None:
        (name,) = table.branches.list()
        assert name == BRANCH
        branch = table.branches.checkout(BRANCH)
        assert branch.current_branch() == BRANCH
        assert branch.count_rows() == NUM_INDEXED + BRANCH_ROWS
        assert branch.count_rows("id < 10") == 2 * BRANCH_ROWS
        found = branch.search(VECTORS[3]).limit(2).to_arrow()
        assert found["id"].to_pylist() == [3, 3]
        assert [each["version"] for each in branch.list_versions()] == [1, 2]
        assert branch.stats()["num_rows"] == NUM_INDEXED + BRANCH_ROWS
        assert list(branch.list_indices()) == []
        assert branch.search(VECTORS[3]).limit(2).explain_plan() != ""
        opened = connect(url).open_table("t1", branch=BRANCH)
        assert opened.count_rows() == NUM_INDEXED + BRANCH_ROWS
        with pytest.raises(Exception, match="nope"):
            table.branches.checkout("nope")

    def test_versions_and_statistics(self, table: Any) -> None:
        assert [each["version"] for each in table.list_versions()] == list(range(1, NEWEST + 1))
        figures = table.stats()
        assert (figures["num_rows"], figures["num_indices"]) == (len(LIVE), len(INDICES))
        assert figures["fragment_stats"]["num_fragments"] == 3

    def test_indices(self, table: Any) -> None:
        assert {each.name: each.index_type for each in table.list_indices()} == INDICES
        for name in INDICES:
            figures = table.index_stats(name)
            assert figures.num_indexed_rows + figures.num_unindexed_rows == len(LIVE)
            table.prewarm_index(name)
        assert table.index_stats("nope") is None
        with pytest.raises(RuntimeError, match="nope"):
            table.prewarm_index("nope")

    def test_columns_are_read_ahead(self, table: Any) -> None:
        table.prewarm_data(["vec", "text"])
        table.prewarm_data()
        with pytest.raises(Exception, match="nope"):
            table.prewarm_data(["nope"])

    def test_listings_in_pages(self, url: str) -> None:
        db = connect(url)
        assert db.list_tables(limit=1).tables == ["t1"]
        assert db.list_tables(namespace_path=["a", "b"]).tables == ["t2"]
        assert list(db.list_namespaces().namespaces) == ["a"]
        assert list(db.list_namespaces(namespace_path=["a"]).namespaces) == ["b"]
        opened = db.open_table("t2", namespace_path=["a", "b"])
        assert opened.count_rows() == len(LIVE)

    def test_a_prefix_of_the_database_is_a_folder(self, url: str) -> None:
        db = lancedb.connect("db://mydb/a/b", api_key="k", region="x", host_override=url)
        assert db.list_tables().tables == ["t2"]
        assert db.open_table("t2").count_rows() == len(LIVE)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("newt", NEWTS),
            (MatchQuery("newt", "text"), NEWTS),
            (PhraseQuery("swims north", "text"), {row for row in LIVE.tolist() if row % 2}),
            (PhraseQuery("north swims", "text"), set()),
            (
                BooleanQuery(
                    [
                        (Occur.MUST, MatchQuery("newt", "text")),
                        (Occur.MUST_NOT, MatchQuery("north", "text")),
                    ]
                ),
                {row for row in NEWTS if row % 2 == 0},
            ),
            (MultiMatchQuery("newt", ["text"]), NEWTS),
            (BoostQuery(MatchQuery("newt", "text"), MatchQuery("north", "text")), NEWTS),
        ],
        ids=["words", "match", "phrase", "other order", "boolean", "multi match", "boost"],
    )
    def test_texts(self, table: Any, text: Any, expected: Any) -> None:
        kind = {"query_type": "fts"} if isinstance(text, str) else {}
        found = table.search(text, **kind).limit(5000).to_arrow()
        assert set(found["id"].to_pylist()) == expected
        scores = found["_score"].to_pylist()
        assert scores == sorted(scores, reverse=True)

    def test_vectors_and_texts_together(self, table: Any) -> None:
        search = table.search(query_type="hybrid", fts_columns="text").vector(QUERY).text("newt")
        found = search.limit(5).to_arrow()
        assert found.num_rows == 5
        assert "_relevance_score" in found.schema.names

    def test_plans(self, table: Any) -> None:
        for search in (
            table.search(QUERY).limit(2),
            table.search("newt", query_type="fts").limit(2),
        ):
            assert len(search.explain_plan(verbose=True)) > 0
            assert "elapsed_ms" in search.analyze_plan()

    async def test_all_of_it_asynchronously(self, url: str) -> None:
        db = await lancedb.connect_async(
            "db://mydb", api_key="k", region="us-east-1", host_override=url
        )
        assert (await db.list_tables()).tables == ["t1"]
        table = await db.open_table("t1")
        versions, indices, figures, tags, branches = await asyncio.gather(
            table.list_versions(),
            table.list_indices(),
            table.stats(),
            table.tags.list(),
            table.branches.list(),
        )
        assert (len(versions), figures["num_rows"]) == (NEWEST, len(LIVE))
        assert {each.name: each.index_type for each in indices} == INDICES
        assert (set(tags), set(branches)) == ({"first", "other"}, {BRANCH})
        await table.prewarm_index("vec_idx")
        await table.prewarm_data(["vec"])
        found = await (await table.search(QUERY)).bypass_vector_index().limit(5).to_arrow()
        assert found["id"].to_pylist() == nearest(QUERY, 5)[0]
        text = await table.query().nearest_to_text("newt").limit(5000).to_arrow()
        assert set(text["id"].to_pylist()) == NEWTS
        both = await table.query().nearest_to(QUERY).nearest_to_text("newt").limit(5).to_arrow()
        assert both.num_rows == 5
        batches = await table.query().where("id < 10").to_batches()
        assert sum([batch.num_rows async for batch in batches]) == 10
        await table.checkout("first")
        assert await table.count_rows() == NUM_INDEXED
        await table.checkout_latest()
        assert await table.version() == NEWEST
        branch = await table.branches.checkout(BRANCH)
        assert await branch.count_rows() == NUM_INDEXED + BRANCH_ROWS


class TestNamespace:
    @pytest.fixture
    def namespace(self, url: str) -> Any:
        return lance_namespace.connect("rest", {"uri": url, "header.x-api-key": "k"})

    def test_tags(self, namespace: Any) -> None:
        listed = namespace.list_table_tags(ListTableTagsRequest(id=["t1"]))
        assert {name: tag.version for name, tag in listed.tags.items()} == {"first": 1, "other": 2}
        tag = GetTableTagVersionRequest(id=["t1"], tag="other")
        assert namespace.get_table_tag_version(tag).version == 2
        with pytest.raises(TableTagNotFoundError):
            namespace.get_table_tag_version(GetTableTagVersionRequest(id=["t1"], tag="nope"))

    def test_branches(self, namespace: Any) -> None:
        listed = namespace.list_table_branches(ListTableBranchesRequest(id=["t1"]))
        assert {name: each.parent_version for name, each in listed.branches.items()} == {BRANCH: 1}
        count = CountTableRowsRequest(id=["t1"], branch=BRANCH)
        assert namespace.count_table_rows(count).count == NUM_INDEXED + BRANCH_ROWS
        with pytest.raises(TableBranchNotFoundError):
            namespace.count_table_rows(CountTableRowsRequest(id=["t1"], branch="nope"))

    def test_statistics(self, namespace: Any) -> None:
        figures = namespace.get_table_stats(GetTableStatsRequest(id=["t1"]))
        assert (figures.num_rows, figures.num_indices) == (len(LIVE), len(INDICES))
        assert figures.fragment_stats.lengths.max == 300

    def test_versions_in_pages(self, namespace: Any) -> None:
        seen: list[int] = []
        token = None
        while True:
            page = namespace.list_table_versions(
                ListTableVersionsRequest(id=["t1"], limit=4, page_token=token, descending=True)
            )
            seen += [each.version for each in page.versions]
            token = page.page_token
            if not token:
                break
        assert seen == list(range(NEWEST, 0, -1))

    def test_indices(self, namespace: Any) -> None:
        first = namespace.list_table_indices(ListTableIndicesRequest(id=["t1"], limit=2))
        assert [each.index_name for each in first.indexes] == ["id_idx", "text_idx"]
        rest = namespace.list_table_indices(
            ListTableIndicesRequest(id=["t1"], limit=2, page_token=first.page_token)
        )
        assert [each.index_name for each in rest.indexes] == ["vec_idx"]
        figures = namespace.describe_table_index_stats(
            DescribeTableIndexStatsRequest(id=["t1"], index_name="vec_idx")
        )
        assert (figures.index_type, figures.num_indexed_rows) == ("IVF_PQ", 588)
        with pytest.raises(TableIndexNotFoundError):
            namespace.describe_table_index_stats(
                DescribeTableIndexStatsRequest(id=["t1"], index_name="nope")
            )

    def test_all_tables_of_all_namespaces(self, namespace: Any) -> None:
        assert namespace.list_all_tables(ListTablesRequest()).tables == ["a$b$t2", "t1"]
        page = namespace.list_all_tables(ListTablesRequest(limit=1))
        assert (page.tables, page.page_token) == (["a$b$t2"], "a$b$t2")

    def test_descriptions(self, namespace: Any) -> None:
        described = namespace.describe_table(DescribeTableRequest(id=["t1"], version=1))
        assert described.version == 1
        with pytest.raises(TableVersionNotFoundError):
            namespace.describe_table(DescribeTableRequest(id=["t1"], version=99))
        assert namespace.describe_namespace(DescribeNamespaceRequest(id=["a"])) is not None

    @pytest.mark.parametrize(
        "text",
        [
            {"string_query": {"query": "newt", "columns": ["text"]}},
            {"structured_query": {"query": {"match": {"terms": "newt", "column": "text"}}}},
        ],
        ids=["string", "structured"],
    )
    def test_texts(self, namespace: Any, text: Any) -> None:
        request = QueryTableRequest.model_validate(
            {"id": ["t1"], "k": 5000, "vector": {}, "full_text_query": text}
        )
        found = pa.ipc.open_file(namespace.query_table(request).data).read_all()
        assert set(found["id"].to_pylist()) == NEWTS

    def test_runs_and_reports(self, namespace: Any) -> None:
        request = AnalyzeTableQueryPlanRequest.model_validate(
            {"id": ["t1"], "k": 3, "vector": {"single_vector": QUERY.tolist()}}
        )
        assert "elapsed_ms" in namespace.analyze_table_query_plan(request)

    def test_mistakes(self, namespace: Any) -> None:
        mistakes: list[tuple[dict[str, Any], type[Exception]]] = [
            ({"columns": {"column_names": ["nope"]}}, TableColumnNotFoundError),
            ({"filter": "id >"}, InvalidInputError),
            ({"version": 99}, TableVersionNotFoundError),
        ]
        for members, error in mistakes:
            request = QueryTableRequest.model_validate(
                {"id": ["t1"], "k": 3, "vector": {"single_vector": QUERY.tolist()}, **members}
            )
            with pytest.raises(error):
                namespace.query_table(request)


def test_staleness_is_what_the_caller_allows(tmp_path: Path) -> None:
    path = tmp_path / "t1.lance"
    lance.write_dataset(rows(0, 10), path)
    with live_server(tmp_path, load_kernels=lambda: None, read_consistency_interval=3600) as url:
        strong = connect(url, read_consistency_interval=timedelta(0)).open_table("t1")
        bounded = connect(url, read_consistency_interval=timedelta(hours=1)).open_table("t1")
        careless = connect(url).open_table("t1")
        lance.write_dataset(rows(0, 3), path, mode="append")
        assert careless.count_rows() == bounded.count_rows() == 10
        assert strong.count_rows() == 13
        assert careless.count_rows() == 13, "it is held now"
        lance.write_dataset(rows(0, 3), path, mode="append")
        assert careless.count_rows() == 13
        careless.checkout_latest()
        assert careless.count_rows() == 16
        lance.write_dataset(rows(0, 3), path, mode="append")
        count = f"{url}/v1/table/t1/count_rows"
        assert httpx.post(count, json={"max_staleness_ms": 10**7}).json() == 16
        assert httpx.post(count, headers={"x-lancedb-min-version": "3"}).json() == 16
        answer = httpx.post(count, headers={"x-lancedb-min-version": "4"})
        assert (answer.json(), answer.headers["x-lancedb-version"]) == (19, "4")
        lance.write_dataset(rows(0, 3), path, mode="append")
        assert httpx.post(count, json={"max_staleness_ms": 0}).json() == 22


def test_the_texts_are_what_the_clients_look_for() -> None:
    assert text_of(3) == "the newt number 3 swims north tonight"
