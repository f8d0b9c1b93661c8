"""How large the answer of a batch may get, and when it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.service_client import Contract, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.fake_dataset import FakeDataset, FakeStore
    from tests.service_client import ServiceClient

QUERY = "/v1/table/t1/query"
VECTOR = [1.0, 2.0, 3.0, 4.0]
NO_LIMIT = 2**63 - 1
NUM_ROWS = 20


@pytest.fixture
async def small(tmp_path: Path, contract: Contract, store: FakeStore) -> AsyncIterator[Any]:
    """A service with ``max_k`` 50 over 20 rows."""
    async with serving(
        tmp_path, contract=contract, open_dataset=store, load_kernels=lambda: None, max_k=50
    ) as client:
        await client.wait_until_ready()
        yield client


@pytest.mark.parametrize(
    ("num_vectors", "more", "asked"),
    [
        (3, {"k": NO_LIMIT}, "vectors x k (3 x 20) is 60"),
        (3, {"k": 40}, "vectors x k (3 x 20) is 60"),
        (6, {}, "vectors x k (6 x 10) is 60"),
        (11, {"k": 5}, "vectors x k (11 x 5) is 55"),
        (11, {"k": 2, "offset": 3}, "vectors x (k + offset) (11 x 5) is 55"),
        (3, {"k": 2, "offset": 2**62}, "vectors x (k + offset) (3 x 20) is 60"),
    ],
)
async def test_a_batch_whose_answer_would_be_too_large_is_refused(
    small: ServiceClient, dataset: FakeDataset, num_vectors: int, more: Any, asked: str
) -> None:
    body = {"vector": [VECTOR] * num_vectors, **more}
    for _ in range(2):  # before the table is open, and after
        for action in ("query", "analyze_plan"):
            answer = await small.post(f"/v1/table/t1/{action}", body)
            assert (answer.status_code, answer.json()["code"]) == (400, 13)
            assert answer.json()["error"] == f"{asked}, the limit is 50 (setting max_k)"
    assert dataset.requests == []


@pytest.mark.parametrize(
    ("num_vectors", "more", "num_rows"),
    [(2, {"k": NO_LIMIT}, 40), (2, {"k": 50}, 40), (5, {}, 50), (1, {"k": NO_LIMIT}, 20)],
)
async def test_a_batch_within_the_limit_is_answered(
    small: ServiceClient, num_vectors: int, more: Any, num_rows: int
) -> None:
    body = {"vector": [VECTOR] * num_vectors, **more}
    for _ in range(2):
        answer = await small.post(f"{QUERY}?format=json", body)
        assert answer.json()["num_rows"] == num_rows


async def test_a_single_vector_without_limit_gets_all_rows(small: ServiceClient) -> None:
    for k in (2**62, NO_LIMIT, 2**64 - 1, 2**64, 10**30):
        content = b'{"vector": [1, 2, 3, 4], "k": %d}' % k
        answer = await small.post(f"{QUERY}?format=json", content)
        assert answer.json()["num_rows"] == NUM_ROWS


async def test_a_plain_query_takes_any_limit(small: ServiceClient) -> None:
    answer = await small.post(f"{QUERY}?format=json", b'{"k": %d}' % 10**25)
    assert answer.json()["num_rows"] == NUM_ROWS


async def test_an_answer_that_comes_too_late_is_not_encoded(
    client: ServiceClient, dataset: FakeDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pass_the_deadline(deadline: Any) -> None:
        object.__setattr__(deadline, "at_s", 0.0)

    encoded: list[Any] = []
    monkeypatch.setattr("service.api.query_tasks.answer_result", encoded.append)
    dataset.on_run = pass_the_deadline
    for _ in range(2):
        answer = await client.post(QUERY, {"vector": VECTOR})
        assert (answer.status_code, answer.json()["code"]) == (408, 17)
    assert encoded == []
