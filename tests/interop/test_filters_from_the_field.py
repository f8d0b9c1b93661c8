"""Filters over indexed tables in cases that users of such systems have hit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.query.request import ScanQuery, VectorQuery

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

KINDS = ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"]


def write(folder: Path, table: pa.Table, **options: Any) -> lance.LanceDataset:
    return lance.write_dataset(table, str(folder), **options)


def ids(folder: Path, text: str) -> list[int]:
    """Return the rows that pass, by index and by scan alike."""
    dataset = lance_core.open_dataset(str(folder))
    found = dataset.scan(["id"], filter=text).read_all()["id"].to_pylist()
    scanned = dataset.scan(["id"], filter=text, use_index=False).read_all()["id"].to_pylist()
    assert found == scanned
    assert dataset.count_rows(text) == len(found)
    return sorted(found)


def plan(folder: Path, text: str) -> str:
    return lance_core.open_dataset(str(folder)).explain(ScanQuery(filter=text))


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_an_index_does_not_take_unknown_for_false(tmp_path, kind):
    table = pa.table({"id": [0, 1, 2], "value": [True, False, None]})
    write(tmp_path / "t", table).create_scalar_index("value", kind)
    assert ids(tmp_path / "t", "NOT value") == [1]
    assert ids(tmp_path / "t", "value IS NOT TRUE") == [1, 2]
    assert "IndexLookup" in plan(tmp_path / "t", "NOT value")


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_values_that_were_changed_in_place_are_found_by_the_new_ones(tmp_path, kind, stable):
    table = pa.table({"id": range(40), "x": [i % 4 for i in range(40)], "y": [0] * 40})
    dataset = write(tmp_path / "t", table, max_rows_per_file=10, enable_stable_row_ids=stable)
    dataset.create_scalar_index("x", kind)
    merge = dataset.merge_insert("id").when_matched_update_all()
    merge.execute(pa.table({"id": [5, 9, 33], "x": [77, 77, 77]}))
    assert ids(tmp_path / "t", "x = 77") == [5, 9, 33]
    assert ids(tmp_path / "t", "x = 1") == [1, 13, 17, 21, 25, 29, 37]


@pytest.mark.parametrize("kind", ["BITMAP", "BTREE"])
def test_rows_that_kept_their_ids_are_found_by_new_values_only(tmp_path, kind):
    table = pa.table({"id": range(50), "cat": ["A"] * 50})
    dataset = write(tmp_path / "t", table, enable_stable_row_ids=True)
    dataset.create_scalar_index("cat", kind)
    dataset.update({"cat": "'B'"}, where="id < 25")
    for _ in range(2):
        assert ids(tmp_path / "t", "cat = 'A'") == list(range(25, 50))
        assert ids(tmp_path / "t", "cat = 'B'") == list(range(25))
        lance.dataset(str(tmp_path / "t")).optimize.optimize_indices()


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_zones_of_fragments_that_are_gone_lead_nowhere(tmp_path, kind, stable):
    table = pa.table({"id": range(60), "x": [i // 3 for i in range(60)]})
    dataset = write(tmp_path / "t", table, max_rows_per_file=10, enable_stable_row_ids=stable)
    dataset.create_scalar_index("x", kind)
    dataset.insert(pa.table({"id": range(60, 70), "x": [3] * 10}))
    dataset.delete("id % 5 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=1_000)
    for _ in range(2):
        assert ids(tmp_path / "t", "x = 3") == [9, 11, *(i for i in range(60, 70) if i % 5)]
        assert ids(tmp_path / "t", "x IN (0, 19)") == [1, 2, 57, 58, 59]
        lance.dataset(str(tmp_path / "t")).optimize.optimize_indices()


def test_an_index_on_a_part_of_a_part_is_asked(tmp_path):
    table = pa.table({"id": range(30), "m": [{"a": {"b": i % 7}} for i in range(30)]})
    write(tmp_path / "t", table).create_scalar_index("m.a.b", "BTREE")
    assert ids(tmp_path / "t", "m.a.b = 3") == [3, 10, 17, 24]
    assert "IndexLookup: test=m.a.b = 3" in plan(tmp_path / "t", "m.a.b = 3")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_column_are_null_there(tmp_path, kind):
    table = pa.table({"id": range(10), "b": [1] * 10})
    dataset = write(tmp_path / "t", table)
    dataset.create_scalar_index("b", kind)
    dataset.insert(pa.table({"id": [10, 11]}))
    assert ids(tmp_path / "t", "b IS NULL") == [10, 11]
    assert ids(tmp_path / "t", "NOT (b = 1)") == []
    assert ids(tmp_path / "t", "b IS NOT NULL") == list(range(10))


@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_rows_answer_filters(tmp_path, kind):
    empty = pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.int64())})
    dataset = write(tmp_path / "empty", empty)
    dataset.create_scalar_index("x", kind, train=False)
    gone = write(tmp_path / "gone", pa.table({"id": [1, 2], "x": [1, 2]}))
    gone.create_scalar_index("x", kind)
    gone.delete("true")
    for folder in (tmp_path / "empty", tmp_path / "gone"):
        for text in ("x = 1", "x IS NULL", "NOT (x > 5)"):
            assert ids(folder, text) == []


def test_many_tests_of_one_column_are_one_question(tmp_path):
    table = pa.table({"id": range(3_000), "x": range(3_000)})
    write(tmp_path / "t", table).create_scalar_index("x", "BTREE")
    text = " OR ".join(f"x = {i}" for i in range(0, 3_000, 2))
    assert ids(tmp_path / "t", text) == list(range(0, 3_000, 2))
    assert plan(tmp_path / "t", text).count("IndexLookup") == 1
    assert ids(tmp_path / "t", f"NOT ({text})") == list(range(1, 3_000, 2))


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_rows_that_pylance_loses_by_two_ways_to_compact_are_scanned(tmp_path, kind):
    table = pa.table({"id": range(60), "x": [i % 5 for i in range(60)]})
    dataset = write(tmp_path / "t", table, max_rows_per_file=10)
    dataset.create_scalar_index("x", kind)
    dataset.delete("id % 7 = 3")
    dataset.optimize.compact_files(target_rows_per_fragment=60, defer_index_remap=True)
    assert "FilterScan" not in plan(tmp_path / "t", "x = 2")
    dataset.delete("id % 7 = 4")
    dataset.optimize.compact_files(target_rows_per_fragment=60)
    expected = [i for i in range(60) if i % 5 == 2 and i % 7 not in {3, 4}]
    if kind == "BTREE":
        assert dataset.to_table(filter="x = 2").num_rows == 0
    assert ids(tmp_path / "t", "x = 2") == expected
    assert "FilterScan" in plan(tmp_path / "t", "x = 2")


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ"])
def test_vectors_are_lost_by_no_two_ways_to_compact(tmp_path, kind):
    vectors = np.random.default_rng(4).standard_normal((600, 16)).astype(np.float32)
    vec = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 16)
    dataset = write(tmp_path / "t", pa.table({"id": range(600), "vec": vec}), max_rows_per_file=100)
    sizes: dict[str, Any] = {"num_sub_vectors": 8} if kind == "IVF_PQ" else {}
    dataset.create_index("vec", kind, num_partitions=2, **sizes)
    dataset.delete("id % 7 = 3")
    dataset.optimize.compact_files(target_rows_per_fragment=600, defer_index_remap=True)
    dataset.delete("id % 7 = 4")
    dataset.optimize.compact_files(target_rows_per_fragment=600)
    ours = lance_core.open_dataset(str(tmp_path / "t"))
    found = ours.run(VectorQuery(vectors[:1], 600, columns=("id",), min_probes=2))
    assert found.stats.plan == "ann"
    assert found.stats.rows_scanned_flat == 0
    expected = [i for i in range(600) if i % 7 not in {3, 4}]
    assert sorted(found.table["id"].to_pylist()) == expected


def test_an_index_beside_a_deferred_compaction_is_believed(tmp_path):
    table = pa.table({"id": range(60), "x": [i % 5 for i in range(60)]})
    dataset = write(tmp_path / "t", table, max_rows_per_file=10)
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete("id % 7 = 3 AND id < 30")
    dataset.optimize.compact_files(target_rows_per_fragment=30, defer_index_remap=True)
    assert "FilterScan" not in plan(tmp_path / "t", "x = 2")
    assert len(ids(tmp_path / "t", "x = 2")) == len(dataset.to_table(filter="x = 2"))
