"""Recall of an index, and columns read ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.pylance_dataset import DIMENSION, LIVE, VECTORS, nearest
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.interop

RECALL = "/v1/table/t1/recall"
PREWARM = "/v1/table/t1/page_cache/prewarm/"


async def recall(client: ServiceClient, **body: Any) -> Any:
    answer = await client.post(RECALL, body)
    assert answer.status_code == 200
    return answer.json()


async def test_recall_grows_with_what_is_searched(served: ServiceClient) -> None:
    few = await recall(served, k=10, sample=20, nprobes=1)
    more = await recall(served, k=10, sample=20, nprobes=4, refine_factor=30)
    assert 0 < few["recall"] < more["recall"] <= 1
    assert more["recall"] > 0.97
    assert (more["sample"], more["k"], more["column"], more["version"]) == (20, 10, "vec", 4)
    assert more["p50_ms"] > 0
    assert more["exact_p50_ms"] > 0


async def test_recall_without_an_index_is_whole(served: ServiceClient) -> None:
    assert (await recall(served, version=1, sample=3))["recall"] == 1


async def test_recall_is_the_share_of_true_neighbours(served: ServiceClient) -> None:
    query = "/v1/table/t1/query?format=json"
    plain = {"k": 2**62, "columns": ["id"], "with_row_id": True}
    listed = (await served.post(query, plain)).json()["rows"]
    batch = {"row_ids": [row["_rowid"] for row in listed], "k": 5, "nprobes": 1, "columns": ["id"]}
    found = pa.Table.from_pylist((await served.post(query, batch)).json()["rows"])
    shares = []
    for number, row in enumerate(listed):
        true = set(nearest(VECTORS[row["id"]], 6)[0]) - {row["id"]}
        mine = found.filter(pc.equal(found["query_index"], number))["id"].to_pylist()
        shares.append(len(true & set(mine)) / 5)
    answer = await recall(served, k=5, sample=1000, nprobes=1)
    assert answer["sample"] == len(listed) == len(LIVE)
    assert answer["recall"] == pytest.approx(np.mean(shares))


async def test_fewer_rows_are_asked_for_when_the_time_ends(served: ServiceClient) -> None:
    answer = await served.post(RECALL, {"sample": 1000, "timeout_ms": 1})
    assert answer.status_code in {200, 408}
    if answer.status_code == 200:
        assert answer.json()["sample"] < len(LIVE)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"column": "id"}, 13),
        ({"column": "nope"}, 12),
        ({"k": 0}, 13),
        ({"sample": 1001}, 13),
        ({"nprobes": 0}, 13),
        ({"k": 10**9}, 13),
    ],
    ids=repr,
)
async def test_wrong_questions_about_recall_give_400(
    served: ServiceClient, body: Any, code: int
) -> None:
    answer = await served.post(RECALL, body, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


async def test_recall_where_rows_have_no_vector(tmp_path: Path, contract: Contract) -> None:
    vectors = pa.array([None, None], pa.list_(pa.float32(), DIMENSION))
    lance.write_dataset(pa.table({"id": [1, 2], "vec": vectors}), tmp_path / "none.lance")
    async with serving(tmp_path, contract=contract) as client:
        await client.wait_until_ready()
        found = (await client.post("/v1/table/none/recall")).json()
        assert (found["recall"], found["sample"], found["p50_ms"]) == (None, 0, None)


async def test_columns_are_read_ahead(served: ServiceClient) -> None:
    vectors = (await served.post(PREWARM, {"columns": ["vec"]})).json()
    everything = (await served.post(PREWARM, {"columns": []})).json()
    assert (vectors["columns"], vectors["rows"]) == (["vec"], len(LIVE))
    assert everything["columns"] == ["id", "kind", "price", "vec"]
    assert vectors["bytes_read"] > 0
    assert everything["bytes_read"] > VECTORS.nbytes


async def test_reading_ahead_what_is_not_there_gives_400(served: ServiceClient) -> None:
    answer = await served.post(PREWARM, {"columns": ["nope"]})
    assert (answer.status_code, answer.json()["code"]) == (400, 12)


@pytest.fixture
async def served(served_root: Path, contract: Contract) -> AsyncIterator[Any]:
    async with serving(served_root, contract=contract) as client:
        await client.wait_until_ready()
        yield client
