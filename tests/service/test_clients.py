"""Real clients, unmodified, against a dataset that pylance wrote."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lance_namespace
import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lance_namespace import (
    CountTableRowsRequest,
    DescribeTableRequest,
    ExplainTableQueryPlanRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    ListTableVersionsRequest,
    NamespaceExistsRequest,
    QueryTableRequest,
    TableExistsRequest,
)
from lance_namespace.errors import (
    InvalidInputError,
    NamespaceNotFoundError,
    TableBranchNotFoundError,
    TableNotFoundError,
)
from lance_namespace_urllib3_client.api.data_api import DataApi
from lance_namespace_urllib3_client.api_client import ApiClient
from lance_namespace_urllib3_client.configuration import Configuration
from lancedb.remote.errors import HttpError

from tests.live_server import live_server
from tests.pylance_dataset import DIMENSION, LIVE, NUM_INDEXED, VECTORS, nearest, write_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.interop

QUERY = VECTORS[123] + 0.01
FRESH = VECTORS[NUM_INDEXED + 3]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("served")
    write_dataset(root / "t1.lance")
    write_dataset(root / "a" / "b" / "t2.lance")
    with live_server(root) as url:
        yield url


@pytest.fixture
def db(url: str) -> Any:
    return lancedb.connect("db://mydb", api_key="anything", region="us-east-1", host_override=url)


@pytest.fixture
def table(db: Any) -> Any:
    return db.open_table("t1")


@pytest.fixture
def namespace(url: str) -> Any:
    return lance_namespace.connect("rest", {"uri": url, "header.x-api-key": "anything"})


def ids(builder: Any) -> Any:
    return builder.to_arrow()["id"].to_pylist()


def query_request(**members: Any) -> QueryTableRequest:
    return QueryTableRequest.model_validate({"id": ["t1"], "k": 3, **members})


class TestLanceDB:
    def test_lists_tables(self, db: Any) -> None:
        assert db.list_tables().tables == ["t1"]
        assert db.list_tables(limit=1).tables == ["t1"]

    @pytest.mark.filterwarnings("ignore:.*table_names.*:DeprecationWarning")
    def test_lists_names_after_a_name_of_its_choice(self, db: Any) -> None:
        for after, names in [("sz", ["t1"]), ("t1", [])]:
            assert list(db.table_names(page_token=after)) == names

    def test_reads_schema_version_and_count(self, table: Any) -> None:
        assert table.schema.names == ["id", "kind", "price", "vec"]
        assert table.schema.field("vec").type == pa.list_(pa.float32(), DIMENSION)
        assert table.schema.field("kind").type == pa.string()
        assert (table.version, table.count_rows()) == (4, len(LIVE))

    def test_searches_exactly(self, table: Any) -> None:
        expected, distances = nearest(QUERY, 10)
        found = table.search(QUERY).bypass_vector_index().limit(10).to_arrow()
        assert found["id"].to_pylist() == expected
        np.testing.assert_allclose(found["_distance"], distances, rtol=1e-5)
        assert found.schema.names == ["id", "kind", "price", "vec", "_distance"]
        assert found.schema.field("_distance").type == pa.float32()

    def test_searches_the_index_with_refine(self, table: Any) -> None:
        expected, _ = nearest(QUERY, 10)
        found = ids(table.search(QUERY).nprobes(4).refine_factor(20).limit(10))
        assert len(set(found) & set(expected)) >= 9

    def test_pages_with_offset(self, table: Any) -> None:
        search = table.search(QUERY).bypass_vector_index()
        assert ids(search.limit(4).offset(3)) == nearest(QUERY, 7)[0][3:]

    def test_selects_columns_in_order_and_row_ids(self, table: Any) -> None:
        found = table.search(QUERY).select(["price", "id"]).with_row_id(True).limit(1).to_arrow()
        assert found.schema.names == ["price", "id", "_distance", "_rowid"]
        assert found.schema.field("_rowid").type == pa.uint64()

    def test_bounds_distances(self, table: Any) -> None:
        expected, distances = nearest(QUERY, 10)
        low, high = float(distances[2]) - 1e-3, float(distances[6]) + 1e-3
        search = table.search(QUERY).bypass_vector_index().distance_range(low, high)
        assert ids(search.limit(50)) == expected[2:7]

    def test_finds_rows_that_no_index_covers_unless_told_not_to(self, table: Any) -> None:
        assert ids(table.search(FRESH).limit(1)) == [NUM_INDEXED + 3]
        assert NUM_INDEXED + 3 not in ids(table.search(FRESH, fast_search=True).limit(5))

    def test_searches_by_another_metric_exactly(self, table: Any) -> None:
        similar = (VECTORS[LIVE] @ QUERY) / np.linalg.norm(VECTORS[LIVE], axis=1)
        expected = LIVE[np.argsort(-similar, kind="stable")[:5]].tolist()
        assert ids(table.search(QUERY).distance_type("cosine").limit(5)) == expected

    def test_searches_a_batch(self, table: Any) -> None:
        found = table.search([QUERY, FRESH]).bypass_vector_index().limit(2).to_arrow()
        assert found["query_index"].to_pylist() == [0, 0, 1, 1]
        assert found.schema.names[0] == "query_index"
        assert not found.schema.field("query_index").nullable
        assert found["id"].to_pylist()[::2] == [nearest(QUERY, 1)[0][0], NUM_INDEXED + 3]

    def test_reads_rows_without_a_vector(self, table: Any) -> None:
        assert table.head(3)["id"].to_pylist() == [0, 1, 2]
        plain = table.search().select(["id"]).limit(60).offset(2).with_row_id(True).to_arrow()
        assert plain["id"].to_pylist() == LIVE[2:62].tolist()
        assert plain.schema.names == ["id", "_rowid"]

    async def test_reads_all_rows(self, url: str) -> None:
        db = await lancedb.connect_async(
            "db://mydb", api_key="anything", region="us-east-1", host_override=url
        )
        everything = await (await db.open_table("t1")).query().to_arrow()
        assert everything["id"].to_pylist() == LIVE.tolist()

    def test_explains_and_analyzes(self, table: Any) -> None:
        search = table.search(QUERY).limit(2)
        assert "IndexSearch" in search.explain_plan(verbose=True)
        assert "elapsed_ms=" in search.analyze_plan()

    def test_lists_versions(self, table: Any) -> None:
        versions = table.list_versions()
        assert [version["version"] for version in versions] == [1, 2, 3, 4]
        assert versions[0]["timestamp"] < versions[3]["timestamp"]

    def test_checks_out_a_version_and_comes_back(self, table: Any) -> None:
        table.checkout(1)
        assert table.count_rows() == NUM_INDEXED
        assert ids(table.search(VECTORS[49]).limit(1)) == [49]
        table.checkout_latest()
        assert table.count_rows() == len(LIVE)

    def test_filters_before_and_after_ranking(self, table: Any) -> None:
        exact = table.search(VECTORS[49]).bypass_vector_index().limit(10)
        assert max(ids(exact.where("id < 100"))) < 100
        assert len(ids(exact.where("id < 100"))) == 10
        nearest_ids = ids(table.search(VECTORS[49]).bypass_vector_index().limit(10))
        below = [each for each in nearest_ids if each < 100]
        assert ids(exact.where("id < 100", prefilter=False)) == below

    def test_reads_rows_that_pass_a_filter(self, table: Any) -> None:
        found = table.search().where("id > 100 AND kind = 'kind 3'").select(["id"]).limit(4)
        assert ids(found) == [103, 108, 113, 118]
        assert ids(found.offset(2)) == [113, 118, 123, 128]
        wide = table.search().where("price BETWEEN 1 AND 2").limit(100).to_arrow()
        assert wide.schema.names == ["id", "kind", "price", "vec"]
        assert wide["id"].to_pylist() == [4, 5, 6, 7, 8]

    def test_computes_columns(self, table: Any) -> None:
        found = table.search().where("id = 6").select({"twice": "price * 2", "id": "id"})
        assert found.to_arrow().to_pylist() == [{"id": 6, "twice": 3.0}]

    def test_counts_rows_that_pass_a_filter(self, table: Any) -> None:
        assert table.count_rows("kind = 'kind 3' AND id < 20") == 4

    def test_takes_rows_by_ids_and_offsets(self, table: Any) -> None:
        assert table.take_row_ids([5, 1]).to_arrow()["id"].to_pylist() == [1, 5]
        by_offset = table.take_offsets([1, 49]).select(["id"]).to_arrow()
        assert by_offset["id"].to_pylist() == [1, 50]

    def test_reports_what_does_not_exist(self, db: Any, table: Any) -> None:
        with pytest.raises(ValueError, match="Table 'nope' was not found"):
            db.open_table("nope")
        with pytest.raises(ValueError, match="99"):
            table.checkout(99)

    @pytest.mark.parametrize(
        ("status", "call"),
        [
            (400, lambda table: table.search(QUERY).select(["nope"]).limit(1).to_arrow()),
            (400, lambda table: table.search([1.0, 2.0]).limit(1).to_arrow()),
            (400, lambda table: table.count_rows("id >")),
            (400, lambda table: table.search(QUERY).where("id >").limit(1).to_arrow()),
            (400, lambda table: table.search(QUERY).select({"x": "id * nope"}).to_arrow()),
            (406, lambda table: table.delete("id = 1")),
        ],
        ids=["column", "dimension", "count filter", "filter", "expression", "delete"],
    )
    def test_shows_refusals_at_once(self, table: Any, status: int, call: Any) -> None:
        with pytest.raises(HttpError) as caught:
            call(table)
        assert caught.value.status_code == status

    def test_lists_indices(self, table: Any) -> None:
        (index,) = table.list_indices()
        assert (index.name, index.index_type, index.columns) == ("vec_idx", "IvfPq", ["vec"])
        stats = table.index_stats("vec_idx")
        assert (stats.index_type, stats.distance_type) == ("IVF_PQ", "l2")
        assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (588, 20)
        assert table.index_stats("no_such") is None

    def test_computes_columns_of_the_rows_found(self, table: Any) -> None:
        found = table.search(QUERY).select({"twice": "id * 2", "id": "id"}).limit(5).to_arrow()
        assert found["twice"].to_pylist() == [2 * each for each in found["id"].to_pylist()]
        assert {*found.schema.names} == {"twice", "id", "_distance"}

    def test_may_give_a_timeout(self, table: Any) -> None:
        found = table.search(QUERY).limit(1).to_arrow(timeout=timedelta(seconds=60))
        assert found.num_rows == 1

    def test_reads_with_strong_consistency(self, url: str) -> None:
        db = lancedb.connect(
            "db://mydb",
            api_key="k",
            region="us-east-1",
            host_override=url,
            read_consistency_interval=timedelta(0),
        )
        assert db.open_table("t1").count_rows() == len(LIVE)


class TestNamespace:
    def test_lists_tables_and_namespaces(self, namespace: Any) -> None:
        assert namespace.list_tables(ListTablesRequest(id=[])).tables == ["t1"]
        assert namespace.list_tables(ListTablesRequest(id=["a", "b"])).tables == ["t2"]
        assert list(namespace.list_namespaces(ListNamespacesRequest(id=[])).namespaces) == ["a"]

    def test_tells_what_exists(self, namespace: Any) -> None:
        namespace.namespace_exists(NamespaceExistsRequest(id=["a"]))
        namespace.table_exists(TableExistsRequest(id=["a", "b", "t2"]))
        with pytest.raises(NamespaceNotFoundError):
            namespace.namespace_exists(NamespaceExistsRequest(id=["x"]))
        with pytest.raises(TableNotFoundError):
            namespace.table_exists(TableExistsRequest(id=["a", "t1"]))

    def test_describes_in_its_own_type_names(self, namespace: Any) -> None:
        described = namespace.describe_table(DescribeTableRequest(id=["a", "b", "t2"]))
        assert (described.table, described.namespace, described.version) == ("t2", ["a", "b"], 4)
        kinds = {field.name: field.type.type for field in described.var_schema.fields}
        assert kinds == {
            "id": "int64", "kind": "utf8", "price": "float64", "vec": "fixed_size_list"
        }  # fmt: skip

    def test_counts(self, namespace: Any) -> None:
        for version, num_rows in [(None, len(LIVE)), (1, NUM_INDEXED)]:
            request = CountTableRowsRequest(id=["t1"], version=version)
            assert namespace.count_table_rows(request).count == num_rows

    @pytest.mark.parametrize(
        ("vector", "num_rows"),
        [
            ({"single_vector": QUERY.tolist()}, 3),
            ({"multi_vector": [QUERY.tolist(), FRESH.tolist()]}, 6),
        ],
        ids=["single", "multi"],
    )
    def test_queries(self, namespace: Any, vector: Any, num_rows: int) -> None:
        request = query_request(
            vector=vector, columns={"column_names": ["id"]}, bypass_vector_index=True
        )
        found = pa.ipc.open_file(namespace.query_table(request).data).read_all()
        assert found["id"].to_pylist()[:3] == nearest(QUERY, 3)[0]
        assert found.num_rows == num_rows

    def test_explains(self, namespace: Any) -> None:
        query = query_request(vector={"single_vector": QUERY.tolist()})
        request = ExplainTableQueryPlanRequest(id=["t1"], query=query)
        assert "IndexSearch" in namespace.explain_table_query_plan(request)

    def test_lists_versions(self, namespace: Any) -> None:
        listed = namespace.list_table_versions(ListTableVersionsRequest(id=["t1"]))
        assert [entry.version for entry in listed.versions] == [1, 2, 3, 4]

    def test_raises_its_errors_by_code(self, namespace: Any) -> None:
        bad = query_request(vector={"single_vector": [1.0]})
        with pytest.raises(InvalidInputError):
            namespace.query_table(bad)
        with pytest.raises(TableBranchNotFoundError):
            namespace.count_table_rows(CountTableRowsRequest(id=["t1"], branch="dev"))

    def test_counts_what_passes_a_predicate(self, namespace: Any) -> None:
        request = CountTableRowsRequest(id=["t1"], predicate="id < 20")
        assert namespace.count_table_rows(request).count == 20


def test_the_generated_client_gets_arrow_bytes_although_it_accepts_json(url: str) -> None:
    with ApiClient(Configuration(host=url)) as client:
        request = query_request(vector={"single_vector": QUERY.tolist()}, nprobes=4)
        body = DataApi(client).query_table("t1", request)
    assert pa.ipc.open_file(bytes(body)).read_all().num_rows == 3
