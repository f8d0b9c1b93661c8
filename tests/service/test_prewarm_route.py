"""Loading an index over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pylance_dataset import NUM_INDEXED, VECTORS
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

PREWARM = "/v1/table/t1/index/vec_idx/prewarm"


@pytest.mark.parametrize("path", [PREWARM, f"{PREWARM}/"])
@pytest.mark.parametrize("body", [b"", {}], ids=repr)
async def test_an_index_is_loaded(served: ServiceClient, path: str, body: object) -> None:
    answer = await served.post(path, body)
    assert answer.status_code == 200
    done = answer.json()
    assert (done["index"], done["is_complete"], done["stopped"]) == ("vec_idx", True, None)
    assert (done["rows"], done["skipped"]) == (NUM_INDEXED, [])
    assert done["partitions"] == done["partitions_total"] > 1
    assert answer.headers["x-lancedb-version"] == str(done["version"])
    query = {"vector": VECTORS[3].tolist(), "k": 3, "columns": ["id"], "fast_search": True}
    found = await served.post("/v1/table/t1/query", query, headers={"accept": "application/json"})
    assert found.json()["stats"]["cache_misses"] <= 3  # rows to return


async def test_only_some_partitions_are_loaded(served: ServiceClient) -> None:
    done = (await served.post(PREWARM, {"partitions": [1], "version": 2})).json()
    assert (done["version"], done["partitions"], done["partitions_total"]) == (2, 1, 1)


async def test_a_cache_that_is_too_small_is_told(served_root: Path, contract: Contract) -> None:
    async with serving(served_root, contract=contract, cache_bytes=1000) as served:
        await served.wait_until_ready()
        done = (await served.post(PREWARM)).json()
    assert not done["is_complete"]
    assert "1000 bytes" in done["stopped"]


async def test_an_index_that_is_not_there_is_not_found(served: ServiceClient) -> None:
    answer = await served.post("/v1/table/t1/index/no_such/prewarm")
    assert (answer.status_code, answer.json()["code"]) == (404, 6)
    assert "vec_idx" in answer.json()["error"]


async def test_a_table_that_is_not_there_is_not_found(served: ServiceClient) -> None:
    answer = await served.post("/v1/table/none/index/vec_idx/prewarm")
    assert (answer.status_code, answer.json()["code"]) == (404, 4)


@pytest.mark.parametrize("partitions", [[-1], [99], ["1"], 3])
async def test_a_partition_that_cannot_be_is_refused(
    served: ServiceClient, partitions: object
) -> None:
    answer = await served.post(PREWARM, {"partitions": partitions}, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


async def test_it_takes_no_longer_than_allowed(served: ServiceClient) -> None:
    answer = await served.post(PREWARM, headers={"x-request-timeout-ms": "0"})
    assert (answer.status_code, answer.json()["code"]) == (408, 17)
