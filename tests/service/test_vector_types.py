"""Vectors of bytes, of half precision and in lists, asked for over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from tests.multivector_tables import draw_queries, write_lists
from tests.service_client import Contract, ServiceClient, read_arrow, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION = 300, 8
BYTES = np.random.default_rng(5).integers(0, 256, (NUM_ROWS, DIMENSION), np.uint8)


def write_tables(root: Path) -> Any:
    """Write ``bytes``, ``halves`` and ``lists``, the last with an index; returns its vectors."""
    for name, values in (("bytes", BYTES), ("halves", BYTES.astype(np.float16))):
        column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)
        table = pa.table({"id": range(NUM_ROWS), "v": column})
        dataset = lance.write_dataset(table, root / f"{name}.lance")
        metric = "hamming" if name == "bytes" else "l2"
        dataset.create_index("v", "IVF_FLAT", metric=metric, num_partitions=3)
    vectors = write_lists(root / "lists.lance", NUM_ROWS, seed=6)
    lance.dataset(root / "lists.lance").create_index(
        "v", "IVF_FLAT", metric="cosine", num_partitions=3
    )
    return vectors


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("types")
    return root, write_tables(root)


@pytest.fixture
async def client(written: Any, contract: Contract) -> AsyncIterator[Any]:
    async with serving(written[0], contract=contract) as client:
        await client.wait_until_ready()
        yield client


async def ask(client: ServiceClient, name: str, body: dict[str, Any]) -> Any:
    answer = await client.post(f"/v1/table/{name}/query", {"columns": ["id"], **body})
    assert answer.status_code == 200, answer.json()
    return read_arrow(answer)


@pytest.mark.parametrize(
    "body", [{}, {"distance_type": "hamming"}, {"bypass_vector_index": True}, {"refine_factor": 2}]
)
async def test_bytes_are_compared_by_hamming(client: ServiceClient, body: dict[str, Any]) -> None:
    query = BYTES[17]
    expected = np.sort(np.unpackbits(BYTES ^ query, axis=1).sum(axis=1))[:6]
    for _ in range(2):
        found = await ask(client, "bytes", {"vector": query.tolist(), "k": 6, **body})
        assert found["id"][0].as_py() == 17
        assert found["_distance"].to_pylist() == expected.tolist()


async def test_a_batch_of_bytes_is_answered_query_by_query(client: ServiceClient) -> None:
    found = await ask(client, "bytes", {"vector": {"multi_vector": BYTES[3:5].tolist()}, "k": 1})
    assert found.to_pydict() == {"query_index": [0, 1], "id": [3, 4], "_distance": [0.0, 0.0]}


@pytest.mark.parametrize(
    ("name", "body", "told"),
    [
        ("bytes", {"vector": [1.5] * DIMENSION}, "whole numbers from 0 to 255"),
        ("bytes", {"vector": [256] * DIMENSION}, "whole numbers from 0 to 255"),
        ("bytes", {"vector": [1] * DIMENSION, "distance_type": "l2"}, "uint8: use hamming"),
        ("halves", {"vector": [1e5] * DIMENSION}, "numbers up to 65504 in size"),
        ("halves", {"vector": [1] * DIMENSION, "distance_type": "hamming"}, "bits of uint8"),
        ("lists", {"vector": [[1, 2]]}, "vector columns are: v (16)"),
        ("lists", {"vector": [[0] * 16]}, "a zero query vector has no direction"),
    ],
)
async def test_vectors_that_a_column_could_not_hold_are_refused(
    client: ServiceClient, name: str, body: dict[str, Any], told: str
) -> None:
    answer = await client.post(f"/v1/table/{name}/query", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert told in answer.json()["error"]


async def test_several_vectors_are_one_query_where_rows_hold_lists(
    client: ServiceClient, written: Any
) -> None:
    root, vectors = written
    theirs = lance.dataset(root / "lists.lance")
    for query in draw_queries(vectors, 4):
        expected = theirs.to_table(
            columns=["id", "_distance"], nearest={"column": "v", "q": query, "k": 5, "nprobes": 3}
        )
        for form in (query.tolist(), {"multi_vector": query.tolist()}):
            found = await ask(client, "lists", {"vector": form, "k": 5, "nprobes": 3})
            assert found.column_names == ["id", "_distance"]
            assert found["id"].to_pylist() == expected["id"].to_pylist()
            np.testing.assert_allclose(found["_distance"], expected["_distance"], atol=1e-4)
    alone = {"single_vector": vectors[0].tolist()}
    assert (await ask(client, "lists", {"vector": alone, "k": 5})).num_rows == 5


async def test_how_rows_of_lists_are_ranked_is_explained(
    client: ServiceClient, written: Any
) -> None:
    query = {"vector": written[1][:2].tolist(), "k": 5}
    answer = await client.post("/v1/table/lists/explain_plan", {"query": query})
    assert "RankByHits: hits=50, k=5" in answer.json()
