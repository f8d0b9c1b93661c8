"""Filters as large as callers like: what is kept of them, and when they are given up."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import DeadlineExceededError, InvalidRequestError
from lance_core.query.deadline import Deadline
from lance_core.query.request import VectorQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.session import Session
from tests.pylance_dataset import VECTORS, nearest, write_dataset

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

VECTOR = VECTORS[123]
LARGE = f"id IN ({', '.join(map(str, range(20_000)))})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "t.lance"
    write_dataset(path)
    return path


def query(text: str, **options: Any) -> VectorQuery:
    return VectorQuery(vectors=VECTOR[None], k=5, columns=("id",), filter=text, **options)


@pytest.mark.parametrize("number", [20_000, 100_000])
def test_long_lists_are_answered(folder: Path, number: int) -> None:
    dataset = lance_core.open_dataset(str(folder))
    listed = f"id IN ({','.join(map(str, range(number)))})"
    found = dataset.search(VECTOR, 5, columns=["id"], filter=listed, use_index=False)
    assert found["id"].to_pylist() == nearest(VECTOR.tolist(), 5)[0]


@pytest.mark.parametrize("prefilter", [True, False])
def test_filters_beyond_the_limits_are_refused(folder: Path, prefilter: bool) -> None:
    dataset = lance_core.open_dataset(str(folder))
    too_many = query(" OR ".join(["id = 3"] * 5_001), prefilter=prefilter)
    with pytest.raises(InvalidRequestError, match="more than 5000 comparisons"):
        dataset.run(too_many)
    too_long = query(f"kind = '{'x' * (1 << 20)}'", prefilter=prefilter)
    with pytest.raises(InvalidRequestError, match="the limit is 1048576"):
        dataset.run(too_long)


@pytest.mark.parametrize("prefilter", [True, False])
def test_large_filters_are_given_up_when_the_time_is_over(folder: Path, prefilter: bool) -> None:
    dataset = lance_core.open_dataset(str(folder))
    request, passed = query(LARGE, prefilter=prefilter), Deadline.after(-1.0)
    with pytest.raises(DeadlineExceededError, match="reading the filter"):
        dataset.run(request, passed)
    with pytest.raises(DeadlineExceededError, match="reading the filter"):
        dataset.explain_plan(request, passed)
    if prefilter:
        with pytest.raises(DeadlineExceededError, match="filtering rows"):
            dataset.explain_plan(query("id = 1 OR id = 2"), passed)


def test_large_filters_are_left_to_those_who_may_wait(folder: Path) -> None:
    dataset = lance_core.open_dataset(str(folder))
    dataset.run(query(LARGE))
    with pytest.raises(NotResidentError, match="long filter"):
        dataset.run(query(LARGE), resident_only=True)


def test_nothing_of_long_texts_is_kept(folder: Path) -> None:
    dataset = lance_core.open_dataset(str(folder), session=Session(cache_bytes=1 << 24))

    def ask(number: int) -> None:
        dataset.run(query(f"kind = '{number}{'x' * 900_000}' OR id < 20"))

    ask(0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
        for number in range(1, 9):
            ask(number)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
    finally:
        tracemalloc.stop()
    assert held - before < 500_000
