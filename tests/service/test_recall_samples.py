"""Recall, measured all the time on some of the queries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import DeadlineExceededError
from lance_core.query.request import ScanQuery, VectorQuery
from service.api.recall_samples import RecallSamples
from tests.metric_values import value
from tests.service_client import Contract, serving, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lance_core.query.deadline import Deadline

QUERY = VectorQuery(np.ones((1, 4), np.float32), k=4, columns=("text",), offset=2)


class Told:
    """Stands for the histogram, and for the dataset that finds three of four."""

    def __init__(self) -> None:
        self.shares: list[float] = []
        self.asked: list[VectorQuery] = []
        self.fails = False

    def observe(self, share: float) -> None:
        self.shares.append(share)

    def run(self, query: VectorQuery, deadline: Deadline) -> Any:
        deadline.check("searching")
        self.asked.append(query)
        if self.fails:
            raise DeadlineExceededError("too late")
        found = [1, 2, 3, 9] if query.use_index else [1, 2, 3, 4]
        return SimpleNamespace(table=pa.table({"_rowid": found}))


@pytest.fixture
def told() -> Any:
    return Told()


@pytest.fixture
def samples(told: Told) -> Iterator[Any]:
    samples = RecallSamples(0.5, told)  # type: ignore[arg-type]  # a stand-in
    samples.start()
    yield samples
    samples.stop()


async def test_a_share_of_the_queries_is_asked_again_exactly(
    samples: RecallSamples, told: Any
) -> None:
    for number in range(6):
        samples.consider(told, QUERY)
        wanted = (number + 1) // 2
        await until(lambda wanted=wanted: len(told.shares) == wanted)  # type: ignore[misc]
    assert told.shares == [0.75] * 3
    assert [(q.use_index, q.offset, q.columns, q.with_row_id) for q in told.asked[:2]] == [
        (True, 0, (), True),
        (False, 0, (), True),
    ]


async def test_a_measurement_that_fails_is_left_out(samples: RecallSamples, told: Any) -> None:
    told.fails = True
    for _ in range(2):
        samples.consider(told, QUERY)
    await until(lambda: len(told.asked) == 1)
    told.fails = False
    for _ in range(2):
        samples.consider(told, QUERY)
    await until(lambda: told.shares == [0.75])


@pytest.mark.parametrize(
    "query",
    [
        ScanQuery(),
        VectorQuery(np.ones((2, 4), np.float32), batched=True),
        VectorQuery(np.ones((1, 4), np.float32), k=None),
        VectorQuery(np.ones((1, 4), np.float32), fast_search=True),
        VectorQuery(np.ones((1, 4), np.float32), filter="id > 1", prefilter=False),
        VectorQuery(np.ones((1, 4), np.float32), k=100_000),
    ],
    ids=["plain", "batch", "all rows", "indexed rows only", "filtered later", "many rows"],
)
def test_queries_whose_recall_means_something_else_are_left_out(told: Any, query: Any) -> None:
    samples = RecallSamples(1.0, told)  # not started: what is taken stays
    samples.consider(told, query)
    samples.consider(told, QUERY)
    assert samples._waiting.get_nowait()[1].k == QUERY.k  # type: ignore[index]  # not None


async def test_recall_of_a_real_index_is_shown(served_root: Path, contract: Contract) -> None:
    async with serving(served_root, contract=contract, recall_sample_rate=1.0) as client:
        await client.wait_until_ready()
        body = {"vector": [0.1] * 16, "k": 3, "nprobes": 1}
        answer = await client.post("/v1/table/t1/query?format=json", body)
        assert answer.json()["stats"]["plan"] == "ann"

        counted = 0.0
        for _ in range(200):
            text = (await client.get("/metrics")).text
            counted = value(text, "lance_serve_recall_ratio_count")
            if counted == 1:
                break
        assert counted == 1
