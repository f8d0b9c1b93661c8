"""Exact scans of tables by codes: the same answers, and codes only when and where they pay."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CancelledByClientError
from lance_core.io.file_maps import LOOK_AGAIN_MS
from lance_core.query import coded_vectors, flat_search
from lance_core.query.deadline import Deadline
from lance_core.query.request import VectorQuery
from lance_core.query.session import Session
from lance_core.scan.vector_codes import VectorCodes
from tests.filtered_tables import FILTERS, STATES, draw, write_table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

WIDTH, NUM_ROWS = 96, 6_000
SCANS_BEFORE = 6
RANGES = {"l2": (1.0, 20.0), "cosine": (0.01, 0.2), "dot": (-60.0, -20.0)}
VECTORS = draw(31, 12)


@pytest.fixture
def short_scans_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded_vectors, "_FEWEST_NUMBERS", 0)
    monkeypatch.setattr(coded_vectors, "_FEWEST_IN_FRAGMENT", 0)


@pytest.fixture
def coded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the number of vectors of each fragment that is coded."""
    found: list[int] = []

    def make(runs: Any, dimension: int, metric: int) -> VectorCodes:
        found.append(runs.num_vectors)
        return VectorCodes(runs, dimension, metric)

    monkeypatch.setattr(coded_vectors, "VectorCodes", make)
    return found


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect how vectors are scanned."""
    found: list[str] = []

    def watch(name: str, kernel: Any) -> None:
        def scan(*given: Any) -> None:
            found.append(name)
            kernel(*given)

        monkeypatch.setattr(flat_search, name, scan)

    for name in ("scan_pages", "scan_coded_pages"):
        watch(name, getattr(flat_search, name))
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
    tmp_path: Path, short_scans_count: None, scans: list[str], state: str, metric: str
) -> None:
    write_table(tmp_path / "t", state, "IVF_PQ", metric)
    dataset = lance_core.open_dataset(str(tmp_path / "t"), session=Session(few_rows=0))
    plain = lance_core.open_dataset(str(tmp_path / "t"), session=Session(0, few_rows=0))
    for _ in range(SCANS_BEFORE):
        dataset.run(VectorQuery(vectors=VECTORS[:1], metric=metric, use_index=False))
    for number, vector in enumerate(VECTORS):
        options: dict[str, Any] = {
            "k": (1, 10, 300)[number // 2 % 3],
            "filter": (None, FILTERS[500], FILTERS[990])[number % 3],
            "metric": metric,
            "use_index": number % 2 == 0,
            "refine_factor": (None, None, 4, 4)[number % 4],
            "columns": ("id", "_distance"),
        }
        vectors = VECTORS[:5] if number % 6 == 0 else vector[None]
        for bounds in ((None, None), RANGES[metric]):
            request = VectorQuery(
                vectors=vectors, lower_bound=bounds[0], upper_bound=bounds[1], **options
            )
            assert dataset.run(request).table.equals(plain.run(request).table)
    assert scans.count("scan_coded_pages") >= 4


def test_vectors_are_coded_while_they_are_scanned(
    root: Path, coded: list[int], scans: list[str]
) -> None:
    dataset = lance_core.open_dataset(str(root))
    answers = [dataset.run(asked()).table for _ in range(SCANS_BEFORE)]
    assert scans == ["scan_pages"] * SCANS_BEFORE
    answers += [dataset.run(asked(), resident_only=True).table for _ in range(3)]
    assert scans[SCANS_BEFORE:] == ["scan_coded_pages"] * 3
    assert all(each.equals(answers[0]) for each in answers)
    assert coded == [NUM_ROWS]


def test_dot_shares_the_codes_of_l2(root: Path, coded: list[int]) -> None:
    dataset = lance_core.open_dataset(str(root))
    for metric in ("dot", "l2", "cosine", "dot"):
        dataset.run(asked(metric=metric))
    assert coded == [NUM_ROWS, NUM_ROWS]


def test_vectors_that_were_decoded_are_coded_too(
    tmp_path: Path, short_scans_count: None, scans: list[str]
) -> None:
    table = wide_rows(1, 0, 400, np.float16)
    nulls = pa.array([i % 7 == 0 for i in range(400)])
    values = table["vec"].combine_chunks().values
    lists = pa.FixedSizeListArray.from_arrays(values, WIDTH, mask=nulls)
    lance.write_dataset(table.set_column(1, "vec", lists), str(tmp_path / "t"))
    dataset = lance_core.open_dataset(str(tmp_path / "t"))
    answers = [dataset.run(asked(k=400)).table for _ in range(SCANS_BEFORE + 1)]
    assert scans[-1] == "scan_coded_pages"
    assert all(each.equals(answers[0]) for each in answers)
    assert answers[0].num_rows == 342


def test_vectors_that_cannot_be_coded_are_scanned(
    tmp_path: Path, short_scans_count: None, coded: list[int], scans: list[str]
) -> None:
    vectors = np.full((400, WIDTH), 1e-30, np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), WIDTH)
    lance.write_dataset(pa.table({"id": np.arange(400), "vec": lists}), str(tmp_path / "t"))
    dataset = lance_core.open_dataset(str(tmp_path / "t"))
    for _ in range(SCANS_BEFORE + 2):
        dataset.run(asked(metric="cosine"))
    assert coded == [400]
    assert set(scans) == {"scan_pages"}


def test_later_versions_code_only_what_they_add(root: Path, coded: list[int]) -> None:
    session = Session()
    lance_core.open_dataset(str(root), session=session).run(asked())
    lance.write_dataset(wide_rows(2, NUM_ROWS, NUM_ROWS + 50), str(root), mode="append")
    lance.dataset(str(root)).delete("id = 3")
    lance_core.open_dataset(str(root), session=session).run(asked())
    assert coded == [NUM_ROWS, 50]


def test_a_small_cache_has_no_room_for_codes(root: Path, coded: list[int]) -> None:
    dataset = lance_core.open_dataset(str(root), session=Session(cache_bytes=7 * NUM_ROWS * WIDTH))
    dataset.run(asked())
    assert coded == []


def test_short_scans_need_no_codes(tmp_path: Path, coded: list[int]) -> None:
    lance.write_dataset(wide_rows(1, 0, 500), str(tmp_path / "t"))
    lance_core.open_dataset(str(tmp_path / "t")).run(asked())
    assert coded == []


def test_many_small_fragments_are_scanned_without_codes(tmp_path: Path, coded: list[int]) -> None:
    rows = wide_rows(1, 0, NUM_ROWS)
    lance.write_dataset(rows, str(tmp_path / "t"), max_rows_per_file=500)
    lance_core.open_dataset(str(tmp_path / "t")).run(asked())
    assert coded == []


def test_codes_of_a_file_that_was_replaced_are_not_used(
    root: Path, tmp_path: Path, coded: list[int]
) -> None:
    dataset = lance_core.open_dataset(str(root))
    for _ in range(SCANS_BEFORE + 1):
        dataset.run(asked())
    lance.write_dataset(wide_rows(5, 0, NUM_ROWS), str(tmp_path / "other"))
    (old,), (new,) = (list((each / "data").iterdir()) for each in (root, tmp_path / "other"))
    shutil.copy(new, tmp_path / "copy")
    (tmp_path / "copy").replace(old)
    time.sleep(2 * LOOK_AGAIN_MS / 1000)  # until then queries take the file for the old one
    expected = lance_core.open_dataset(str(tmp_path / "other")).run(asked()).table
    for _ in range(SCANS_BEFORE + 2):
        assert dataset.run(asked()).table.equals(expected)


def test_coding_goes_on_after_a_query_whose_caller_left(
    root: Path, coded: list[int], scans: list[str]
) -> None:
    dataset = lance_core.open_dataset(str(root))
    answers = [dataset.run(asked()).table for _ in range(2)]
    left = iter([False])
    with pytest.raises(CancelledByClientError, match="coding"):
        dataset.run(asked(), Deadline(is_cancelled=lambda: next(left, True)))
    answers += [dataset.run(asked()).table for _ in range(SCANS_BEFORE - 1)]
    assert scans[-1] == "scan_coded_pages"
    assert all(each.equals(answers[0]) for each in answers)
    assert coded == [NUM_ROWS]
