"""IVF_FLAT through byte codes: the same answers bit for bit, and memory that counts as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lance_core
from lance_core.index.vector import coded_flat
from lance_core.query.session import Session
from tests.vector_matrix import FIRST_ROWS, NUM_PARTITIONS, MatrixTable, TableCase, build_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

RANGES = {"l2": (20.0, 60.0), "cosine": (0.02, 0.3), "dot": (-400.0, -100.0)}
TINY_BUDGET = 1 << 16
"""An eighth of it does not hold the codes."""


@pytest.fixture(scope="module", params=["l2", "cosine", "dot"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MatrixTable:
    case = TableCase("IVF_FLAT", request.param, 3, "deferred", "2.2")
    return build_table(tmp_path_factory.mktemp("coded") / "t.lance", case)


def opened(table: MatrixTable, **given: Any) -> lance_core.Dataset:
    return lance_core.open_dataset(str(table.path), session=Session(few_rows=0, **given))


def searches(table: MatrixTable) -> Iterator[dict[str, Any]]:
    lower, upper = RANGES[table.case.metric]
    bounds: tuple[dict[str, Any], ...] = (
        {},
        {"upper_bound": upper},
        {"lower_bound": lower, "upper_bound": upper},
    )
    for k in (1, 10, 100, FIRST_ROWS):
        for share in (None, 10, 500):
            for bound in bounds:
                text = None if share is None else f"u < {share}"
                yield {"k": k, "filter": text, "nprobes": NUM_PARTITIONS, **bound}


def answer(dataset: lance_core.Dataset, query: NDArray[np.generic], **asked: Any) -> pa.Table:
    return dataset.search(query, columns=["id", "_distance"], **asked)


def test_codes_change_no_answer(table: MatrixTable) -> None:
    through_codes, whole = opened(table), opened(table, cache_bytes=TINY_BUDGET)
    queries = table.draw(3)
    for query in table.draw(20):  # until all partitions are coded
        answer(through_codes, query, nprobes=NUM_PARTITIONS)
    for asked in searches(table):
        for query in queries:
            assert answer(through_codes, query, **asked).equals(answer(whole, query, **asked))


def test_codes_are_made_little_by_little_and_counted(
    table: MatrixTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without_codes:
        without_codes.setattr(coded_flat, "_MOST_NUMBERS", 0)
        plain = opened(table)
        answer(plain, table.draw(1)[0], nprobes=NUM_PARTITIONS)
    dataset = opened(table)
    sizes = [plain.session.cache.stats.used_bytes]
    for query in table.draw(30):
        answer(dataset, query, nprobes=NUM_PARTITIONS)
        sizes.append(dataset.session.cache.stats.used_bytes)
    num_codes = sum(map(len, table.vectors)) * table.draw(1).shape[1]
    steps = np.diff(sizes)
    assert (steps >= 0).all()
    assert np.count_nonzero(steps) > 3
    assert steps[-5:].sum() == 0
    assert num_codes <= sizes[-1] - sizes[0] <= 1.05 * num_codes


def test_a_small_cache_keeps_no_codes(table: MatrixTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded_flat, "PartitionCodes", None)  # would be called
    answer(opened(table, cache_bytes=TINY_BUDGET), table.draw(1)[0])


def test_partitions_that_take_long_to_code_are_scored_whole(
    table: MatrixTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coded_flat, "_MOST_NUMBERS", 10)
    monkeypatch.setattr(coded_flat, "encode_vectors", None)  # would be called
    answer(opened(table), table.draw(1)[0])
