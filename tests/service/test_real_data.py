"""The service over a dataset that pylance wrote: right answers, and files that are broken."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import orjson
import pyarrow as pa
import pytest

from service.telemetry.json_logging import JsonFormatter
from tests.pylance_dataset import (
    DIMENSION,
    LIVE,
    NUM_INDEXED,
    VECTORS,
    nearest,
    rows,
    write_dataset,
)
from tests.service_client import Contract, ServiceClient, read_arrow, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.interop

QUERY = "/v1/table/t1/query"
VECTOR = VECTORS[123].tolist()
JSON = {"accept": "application/json"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("written") / "t1.lance"
    write_dataset(folder)
    return folder


@pytest.fixture
def root(tmp_path: Path, written: Path) -> Any:
    shutil.copytree(written, tmp_path / "t1.lance")
    return tmp_path


@pytest.fixture
async def client(root: Path, contract: Contract) -> AsyncIterator[Any]:
    async with serving(root, contract=contract) as client:
        await client.wait_until_ready()
        yield client


@pytest.mark.parametrize("body", [{}, {"bypass_vector_index": True}, {"nprobes": 4}], ids=repr)
async def test_the_nearest_rows_come_first_in_json_and_arrow(
    client: ServiceClient, body: Any
) -> None:
    body = {"vector": VECTOR, "k": 5, "refine_factor": 50, "columns": ["id"], **body}
    expected, distances = nearest(VECTOR, 5)
    table = read_arrow(await client.post(QUERY, body))
    found = (await client.post(QUERY, body, headers=JSON)).json()
    if body.get("nprobes") == 4 or "bypass_vector_index" in body:
        assert table["id"].to_pylist() == expected
        np.testing.assert_allclose(table["_distance"], distances, atol=1e-5)
    assert [row["id"] for row in found["rows"]] == table["id"].to_pylist()
    assert found["columns"] == ["id", "_distance"]
    assert found["stats"]["version"] == found["version"] == 4


async def test_a_warm_query_reads_nothing_of_the_index(client: ServiceClient) -> None:
    body = {"vector": VECTOR, "k": 3, "columns": ["id"]}
    await client.post(QUERY, body)
    answer = await client.post(QUERY, body)
    stats = orjson.loads(answer.headers["x-lance-serve-stats"])
    assert stats["plan"] == "ann"
    assert stats["cache_misses"] == 0


@pytest.mark.parametrize(("k", "num_rows"), [(0, 10), (2**63 - 1, len(LIVE)), (2**62, len(LIVE))])
async def test_extreme_k_is_legal(client: ServiceClient, k: int | None, num_rows: int) -> None:
    body = {"vector": VECTOR, "k": k, "columns": ["id"], "maximum_nprobes": 0}
    assert read_arrow(await client.post(QUERY, body)).num_rows == num_rows
    plain = read_arrow(await client.post(QUERY, {"k": k, "columns": ["id"]}))
    assert plain.num_rows == (0 if k == 0 else len(LIVE))


@pytest.mark.parametrize("offset", [0, 3, len(LIVE) - 1, len(LIVE), 2**63 - 1, 2**64 - 1])
async def test_offsets_beyond_the_end_give_no_rows(client: ServiceClient, offset: int) -> None:
    page = {"k": 2, "offset": offset, "columns": ["id"]}
    for body in ({"vector": VECTOR, "bypass_vector_index": True}, {}):
        table = read_arrow(await client.post(QUERY, page | body))
        assert table.num_rows == max(0, min(2, len(LIVE) - offset))
        assert "id" in table.schema.names


@pytest.mark.parametrize(
    "columns",
    [
        ["_rowid"],
        ["_rowaddr"],
        ["_rowoffset"],
        ["id", "_rowid"],
        [],
        ["_distance"],
        ["_distance", "id"],
    ],
    ids=repr,
)
async def test_system_columns_may_be_named(client: ServiceClient, columns: list[str]) -> None:
    body = {"vector": VECTOR, "k": 2, "columns": columns}
    expected = columns if "_distance" in columns else [*columns, "_distance"]
    assert read_arrow(await client.post(QUERY, body)).schema.names == expected
    rows = (await client.post(QUERY, body, headers=JSON)).json()
    assert rows["columns"] == expected
    assert rows["num_rows"] == 2


@pytest.mark.parametrize("columns", [["_rowid"], ["id", "_rowaddr"], ["_rowoffset", "id"], []])
async def test_plain_queries_may_name_system_columns(
    client: ServiceClient, columns: list[str]
) -> None:
    body = {"k": 2, "columns": columns}
    table = read_arrow(await client.post(QUERY, body))
    assert table.schema.names == columns
    assert (await client.post(QUERY, body, headers=JSON)).json()["num_rows"] == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"vector": VECTOR, "columns": ["nope"]}, 12),
        ({"columns": ["nope"]}, 12),
        ({"vector": VECTOR, "vector_column": "nope"}, 12),
        ({"vector": VECTOR, "vector_column": "id"}, 13),
        ({"vector": VECTOR[:5]}, 13),
        ({"vector": VECTOR[:5], "vector_column": "vec"}, 13),
        ({"vector": [0.0] * DIMENSION, "distance_type": "cosine"}, 13),
    ],
    ids=[
        "column",
        "plain column",
        "vector column",
        "no vector",
        "dimension",
        "dimension of vec",
        "zero",
    ],
)
async def test_requests_that_do_not_fit_the_schema(
    client: ServiceClient, body: Any, code: int
) -> None:
    answer = await client.post(QUERY, body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    for action, wrapped in [("analyze_plan", body), ("explain_plan", {"query": body})]:
        again = await client.post(f"/v1/table/t1/{action}", wrapped)
        assert (again.status_code, again.json()["code"]) == (400, code), action


async def test_an_unknown_column_is_told_with_those_that_exist(client: ServiceClient) -> None:
    answer = await client.post(QUERY, {"columns": ["prise"]})
    assert "prise" in answer.json()["error"]
    assert "id, kind, price, vec" in answer.json()["error"]


async def test_versions_can_be_pinned(client: ServiceClient) -> None:
    for version, num_rows in [(1, NUM_INDEXED), (3, len(VECTORS)), (None, len(LIVE))]:
        count = await client.post("/v1/table/t1/count_rows", {"version": version})
        assert count.json() == num_rows
        assert count.headers["x-lancedb-version"] == str(version or 4)
        body = {"vector": VECTORS[49].tolist(), "k": 1, "version": version, "columns": ["id"]}
        found = read_arrow(await client.post(QUERY, body))["id"].to_pylist()
        assert (found == [49]) == (version is not None)
    answer = await client.post(QUERY, {"version": 99})
    assert (answer.status_code, answer.json()["code"]) == (404, 11)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"x-lancedb-min-version": "5"}, {}),
        ({"x-lancedb-min-read-version": "5"}, {}),
        ({"x-lancedb-min-timestamp": "2999-11-27T21:07:32.057876360+00:00"}, {}),
        ({"x-lancedb-min-timestamp": "2999-11-27T21:07:32.057876360Z"}, {}),
        ({"x-lancedb-min-timestamp": "yesterday"}, {}),
        ({"x-lancedb-min-version": "x"}, {}),
        ({}, {"max_staleness_ms": 0}),
    ],
    ids=repr,
)
async def test_demands_for_fresh_data_are_met(
    client: ServiceClient, root: Path, headers: Any, body: Any
) -> None:
    for _ in range(2):
        await client.post(QUERY, {"vector": VECTOR})
    lance.write_dataset(rows(0, 1), str(root / "t1.lance"), mode="append")
    stale = await client.post(QUERY, {"vector": VECTOR})
    assert stale.headers["x-lancedb-version"] == "4"
    for query in ({"vector": VECTOR}, {"k": 1}):
        fresh = await client.post(QUERY, query | body, headers=headers)
        assert fresh.headers["x-lancedb-version"] == "5"


async def test_a_demand_that_cannot_be_met_never_fails(client: ServiceClient) -> None:
    headers = {"x-lancedb-min-version": "99"}
    answer = await client.post(QUERY, {"vector": VECTOR}, headers=headers)
    assert answer.headers["x-lancedb-version"] == "4"


async def test_an_interval_of_zero_looks_every_time(root: Path, contract: Contract) -> None:
    async with serving(root, contract=contract, read_consistency_interval=0) as client:
        await client.wait_until_ready()
        for version in (4, 5, 6):
            answer = await client.post(QUERY, {"vector": VECTOR})
            assert answer.headers["x-lancedb-version"] == str(version)
            lance.write_dataset(rows(0, 1), str(root / "t1.lance"), mode="append")


async def test_a_dataset_made_anew_at_the_same_place_shows_its_own_rows(
    client: ServiceClient, root: Path
) -> None:
    body = {"vector": VECTOR, "k": 1, "columns": ["id"], "max_staleness_ms": 0}
    assert read_arrow(await client.post(QUERY, body))["id"].to_pylist() == [123]
    shutil.rmtree(root / "t1.lance")
    gone = await client.post(QUERY, body)
    assert (gone.status_code, gone.json()["code"]) == (404, 4)
    other = rows(0, NUM_INDEXED).set_column(
        0, "id", pa.array(range(5000, 5000 + NUM_INDEXED), pa.int64())
    )
    for _ in range(4):
        lance.write_dataset(other, str(root / "t1.lance"), mode="overwrite")
    assert read_arrow(await client.post(QUERY, body))["id"].to_pylist() == [5123]


async def test_a_table_behind_a_link_out_of_the_root_is_refused(
    client: ServiceClient, root: Path, written: Path
) -> None:
    (root / "linked.lance").symlink_to(written)
    for action in ("describe", "query"):
        answer = await client.post(f"/v1/table/linked/{action}")
        assert (answer.status_code, answer.json()["code"]) == (403, 15)


@pytest.mark.parametrize(
    "pattern",
    [
        "data/*.lance",
        "_indices/*/index.idx",
        "_indices/*/auxiliary.idx",
        "_deletions/*",
        "_versions/*",
    ],
)
@pytest.mark.parametrize("damage", ["truncate", "empty", "garbage"])
async def test_a_broken_file_gives_500_and_the_server_lives_on(
    client: ServiceClient,
    root: Path,
    written: Path,
    caplog: pytest.LogCaptureFixture,
    pattern: str,
    damage: str,
) -> None:
    caplog.set_level(logging.INFO, "service.request")
    shutil.copytree(written, root / "good.lance")
    files = sorted((root / "t1.lance").glob(pattern))
    assert files != []
    for file in files:
        content = file.read_bytes()
        file.write_bytes(
            {"truncate": content[: len(content) // 2], "empty": b"",
             "garbage": b"\xff" * len(content)}[damage]
        )  # fmt: skip
    body = {"vector": VECTOR, "k": 5, "nprobes": 4, "refine_factor": 5}
    for request_id in ("first", "second"):
        answer = await client.post(QUERY, body, headers={"x-request-id": request_id})
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (500, 18)
        assert f"under request id {request_id}" in problem["error"]
        assert ("bypass_vector_index" in problem["error"]) == ("_indices" in pattern)
        assert str(root) not in answer.text
    formatter = JsonFormatter()
    lines = [json.loads(formatter.format(record)) for record in caplog.records]
    (line,) = [line for line in lines if line.get("request_id") == "second"]
    assert line["error_type"] == "CorruptFileError"
    assert line["level"] == "ERROR"
    good = await client.post("/v1/table/good/query", body)
    assert read_arrow(good)["id"].to_pylist()[0] == 123
    exact = await client.post(QUERY, {**body, "bypass_vector_index": True})
    assert exact.status_code == (200 if "_indices" in pattern else 500)
    if "_indices" in pattern:
        assert read_arrow(exact)["id"].to_pylist() == nearest(VECTOR, 5)[0]


async def test_a_missing_index_is_told_and_can_be_done_without(
    client: ServiceClient, root: Path
) -> None:
    for file in (root / "t1.lance").glob("_indices/*/*"):
        file.unlink()
    body = {"vector": VECTOR, "k": 5}
    answer = await client.post(QUERY, body, headers={"x-request-id": "mine"})
    assert (answer.status_code, answer.json()["code"]) == (500, 18)
    assert answer.json()["error"] == (
        "a file of an index of this table is damaged or missing; the server's log names it under"
        " request id mine; queries with bypass_vector_index are answered without the index"
    )
    exact = await client.post(QUERY, {**body, "bypass_vector_index": True})
    assert read_arrow(exact)["id"].to_pylist() == nearest(VECTOR, 5)[0]


async def test_no_client_goes_back_in_time_while_rows_are_appended(
    client: ServiceClient, root: Path
) -> None:
    async def read_on() -> list[int]:
        seen: list[int] = []
        for _ in range(30):
            headers = {"x-lancedb-min-read-version": str(seen[-1])} if seen != [] else {}
            body = {"vector": VECTOR, "k": 1, "columns": ["id"], "max_staleness_ms": 1}
            answer = await client.post(QUERY, body, headers=headers)
            assert answer.status_code == 200, answer.text
            assert read_arrow(answer)["id"].to_pylist() == [123]
            seen.append(int(answer.headers["x-lancedb-version"]))
        return seen

    def append() -> None:
        for _ in range(5):
            lance.write_dataset(
                rows(NUM_INDEXED, len(VECTORS)), str(root / "t1.lance"), mode="append"
            )

    appending = asyncio.create_task(asyncio.to_thread(append))
    for seen in await asyncio.gather(*[read_on() for _ in range(4)]):
        assert seen == sorted(seen)
    await appending


async def test_after_compaction_and_cleanup_queries_go_on_with_the_new_version(
    client: ServiceClient, root: Path
) -> None:
    before = (await client.post("/v1/table/t1/describe")).json()["version"]
    dataset = lance.dataset(root / "t1.lance")
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    for path in ("t1.lance/data", "t1.lance/_deletions"):
        assert (root / path).is_dir()
    bodies = [{"k": 3}, {"vector": VECTOR}, {"vector": VECTOR, "bypass_vector_index": True}]
    for body in bodies:
        pinned = await client.post(QUERY, {**body, "version": before})
        assert (pinned.status_code, pinned.json()["code"]) == (404, 11)
        answer = await client.post(QUERY, body)
        assert answer.status_code == 200
        assert int(answer.headers["x-lancedb-version"]) > before


@pytest.mark.parametrize("is_warm", [False, True])
async def test_a_dataset_made_anew_in_its_place_answers_at_once(
    client: ServiceClient, root: Path, is_warm: Any
) -> None:
    bodies = [{"k": 3}, {"vector": VECTOR}]
    for body in bodies if is_warm else [{"k": 0}]:
        assert (await client.post(QUERY, body)).status_code == 200
    shutil.rmtree(root / "t1.lance")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[:50].ravel()), DIMENSION)
    lance.write_dataset(pa.table({"id": range(50), "vec": vectors}), root / "t1.lance")
    for body in bodies:
        answer = await client.post(QUERY, body, headers=JSON)
        assert answer.status_code == 200
        assert answer.json()["version"] == 1


@pytest.mark.parametrize("number", [2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30])
async def test_huge_numbers_are_answered_or_refused(client: ServiceClient, number: int) -> None:
    vector = orjson.dumps(VECTOR)
    for name in ("k", "offset", "nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor"):
        for body in (b'{"%b": %d}', b'{"vector": %b, "%%b": %%d}' % vector):
            answer = await client.post(QUERY, body % (name.encode(), number))
            assert answer.status_code in {200, 400}, (name, answer.text)
            if name == "offset":
                assert read_arrow(answer).num_rows == 0
