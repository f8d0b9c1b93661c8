"""Exact scans of tables by codes: the same answers, and codes only when and where they pay."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CancelledByClientError
from lance_core.query import coded_vectors
from lance_core.query.deadline import Deadline
from lance_core.query.request import VectorQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.session import Session
from lance_core.scan.vector_codes import encode_vectors
from tests.filtered_tables import FILTERS, STATES, draw, write_table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

WIDTH, NUM_ROWS = 96, 6_000
SCANS_BEFORE = 6
RANGES = {"l2": (1.0, 20.0), "cosine": (0.01, 0.2), "dot": (-60.0, -20.0)}
VECTORS = draw(31, 12)


@pytest.fixture
def coded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded_vectors, "_FEWEST_NUMBERS", 0)
    monkeypatch.setattr(coded_vectors, "_SCANS_BEFORE", 0)


@pytest.fixture
def num_coded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the number of vectors of each fragment that is coded."""
    found: list[int] = []

    def count(runs: Any, *others: Any) -> Any:
        found.append(runs.num_vectors)
        return encode_vectors(runs, *others)

    monkeypatch.setattr(coded_vectors, "encode_vectors", count)
    return found


def asked(seed: int = 0, **given: Any) -> VectorQuery:
    vector = np.random.default_rng(seed).standard_normal((1, WIDTH)).astype(np.float32)
    return VectorQuery(vectors=vector, use_index=False, columns=("id", "_distance"), **given)


def wide_rows(seed: int, first: int, last: int, element: Any = np.float32) -> pa.Table:
    vectors = np.random.default_rng(seed).standard_normal((last - first, WIDTH)).astype(element)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), WIDTH)
    return pa.table({"id": np.arange(first, last), "vec": lists})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lance.write_dataset(wide_rows(1, 0, NUM_ROWS), str(tmp_path / "t"))
    return tmp_path / "t"


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("state", STATES)
def test_codes_change_no_answer(
    tmp_path: Path, coded_at_once: None, num_coded: list[int], state: str, metric: str
) -> None:
    write_table(tmp_path / "t", state, "IVF_PQ", metric)
    coded = lance_core.open_dataset(str(tmp_path / "t"))
    plain = lance_core.open_dataset(str(tmp_path / "t"), session=Session(cache_bytes=0))
    for number, vector in enumerate(VECTORS):
        options: dict[str, Any] = {
            "k": (1, 10, 300)[number % 3],
            "filter": (None, *FILTERS.values())[number % 4],
            "metric": metric,
            "use_index": number % 5 != 0,
            "refine_factor": (None, 4)[number % 2],
            "columns": ("id", "_distance"),
        }
        vectors = VECTORS[:5] if number % 6 == 0 else vector[None]
        for bounds in ((None, None), RANGES[metric]):
            request = VectorQuery(
                vectors=vectors, lower_bound=bounds[0], upper_bound=bounds[1], **options
            )
            assert coded.run(request).table.equals(plain.run(request).table)
    assert len(num_coded) > 0


def test_vectors_are_coded_after_some_scans_and_once(root: Path, num_coded: list[int]) -> None:
    dataset = lance_core.open_dataset(str(root))
    answers = []
    for _ in range(SCANS_BEFORE):
        answers.append(dataset.run(asked()).table)
        assert num_coded == []
    for _ in range(SCANS_BEFORE):
        answers.append(dataset.run(asked()).table)
        assert num_coded == [NUM_ROWS]
    assert all(each.equals(answers[0]) for each in answers)


def test_dot_shares_the_codes_of_l2(root: Path, coded_at_once: None, num_coded: list[int]) -> None:
    dataset = lance_core.open_dataset(str(root))
    for metric in ("dot", "l2", "cosine", "dot"):
        dataset.run(asked(metric=metric))
    assert num_coded == [NUM_ROWS, NUM_ROWS]


def test_vectors_that_were_decoded_are_coded_too(
    tmp_path: Path, coded_at_once: None, num_coded: list[int]
) -> None:
    table = wide_rows(1, 0, 400, np.float16)
    nulls = pa.array([i % 7 == 0 for i in range(400)])
    lists = pa.FixedSizeListArray.from_arrays(
        table["vec"].combine_chunks().values, WIDTH, mask=nulls
    )
    lance.write_dataset(table.set_column(1, "vec", lists), str(tmp_path / "t"))
    coded = lance_core.open_dataset(str(tmp_path / "t")).run(asked(k=400)).table
    plain = lance_core.open_dataset(str(tmp_path / "t"), session=Session(cache_bytes=0))
    assert num_coded == [400]
    assert coded.equals(plain.run(asked(k=400)).table)
    assert coded.num_rows == 342


def test_later_versions_code_only_what_they_add(
    root: Path, coded_at_once: None, num_coded: list[int]
) -> None:
    session = Session()
    lance_core.open_dataset(str(root), session=session).run(asked())
    lance.write_dataset(wide_rows(2, NUM_ROWS, NUM_ROWS + 50), str(root), mode="append")
    lance.dataset(str(root)).delete("id = 3")
    lance_core.open_dataset(str(root), session=session).run(asked())
    assert num_coded == [NUM_ROWS, 50]


def test_a_run_that_may_not_wait_codes_nothing(root: Path, num_coded: list[int]) -> None:
    dataset = lance_core.open_dataset(str(root))
    expected = dataset.run(asked()).table
    for _ in range(SCANS_BEFORE - 1):
        assert dataset.run(asked(), resident_only=True).table.equals(expected)
    with pytest.raises(NotResidentError):
        dataset.run(asked(), resident_only=True)
    assert num_coded == []
    assert dataset.run(asked()).table.equals(expected)
    assert num_coded == [NUM_ROWS]
    assert dataset.run(asked(), resident_only=True).table.equals(expected)


def test_codes_that_left_the_cache_are_not_made_anew_at_once(
    root: Path, num_coded: list[int]
) -> None:
    dataset = lance_core.open_dataset(str(root))
    for _ in range(SCANS_BEFORE + 1):
        dataset.run(asked())
    dataset.session.cache.clear()
    for _ in range(SCANS_BEFORE):
        dataset.run(asked())
    assert len(num_coded) == 1
    dataset.run(asked())
    assert len(num_coded) == 2


def test_a_small_cache_has_no_room_for_codes(
    root: Path, coded_at_once: None, num_coded: list[int]
) -> None:
    dataset = lance_core.open_dataset(str(root), session=Session(cache_bytes=7 * NUM_ROWS * WIDTH))
    dataset.run(asked())
    assert num_coded == []


def test_short_scans_need_no_codes(tmp_path: Path, num_coded: list[int]) -> None:
    lance.write_dataset(wide_rows(1, 0, 500), str(tmp_path / "t"))
    dataset = lance_core.open_dataset(str(tmp_path / "t"))
    for _ in range(2 * SCANS_BEFORE):
        dataset.run(asked())
    assert num_coded == []


def test_codes_of_a_file_that_was_replaced_are_not_used(
    root: Path, tmp_path: Path, coded_at_once: None, num_coded: list[int]
) -> None:
    dataset = lance_core.open_dataset(str(root))
    dataset.run(asked())
    lance.write_dataset(wide_rows(5, 0, NUM_ROWS), str(tmp_path / "other"))
    (old,), (new,) = (list((each / "data").iterdir()) for each in (root, tmp_path / "other"))
    shutil.copy(new, tmp_path / "copy")
    (tmp_path / "copy").replace(old)
    expected = lance_core.open_dataset(str(tmp_path / "other")).run(asked()).table
    for _ in range(3):
        assert dataset.run(asked()).table.equals(expected)


def test_a_deadline_stops_coding_and_later_queries_go_on(root: Path, num_coded: list[int]) -> None:
    dataset = lance_core.open_dataset(str(root))
    answers = [dataset.run(asked()).table for _ in range(SCANS_BEFORE)]
    left = iter([False])
    with pytest.raises(CancelledByClientError, match="coding"):
        dataset.run(asked(), Deadline(is_cancelled=lambda: next(left, True)))
    assert dataset.run(asked()).table.equals(answers[0])
    assert len(num_coded) == 1
