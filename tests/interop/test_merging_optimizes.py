"""Scalar indices that are brought up to date: new fragments are read, the others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.operations.new_index import NewIndex
from tests.index_contents import index_contents
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS = 300
INDICES = {
    "id": "BTREE",
    "word": "BITMAP",
    "labels": "LABEL_LIST",
    "text": "NGRAM",
    "zoned": "ZONEMAP",
    "named": "ZONEMAP",
    "probed": "BLOOMFILTER",
}
OF_ZONES = [column for column, kind in INDICES.items() if kind in ("ZONEMAP", "BLOOMFILTER")]
CONDITIONS = {
    "id": "id >= 250 AND id < 520",
    "word": "word IN ('w3', 'w5') OR word IS NULL",
    "labels": "array_has_any(labels, ['l1', 'l4'])",
    "text": "contains(text, 'row 4')",
    "zoned": "zoned < 5 OR zoned > 590 OR zoned IS NULL",
    "named": "named IN ('n7', 'n590')",
    "probed": "probed IN (4, 555) OR probed IS NULL",
}


def rows(first: int) -> pa.Table:
    ids = range(first, first + NUM_ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "word": [None if n % 11 == 0 else f"w{n % 7}" for n in ids],
            "labels": [[f"l{n % 5}", f"l{n % 3}"] for n in ids],
            "text": [f"the row {n}" for n in ids],
            "zoned": pa.array([None if n % 50 == 0 else n for n in ids], pa.float64()),
            "named": [f"n{n}" for n in ids],
            "probed": pa.array([None if n % 60 == 0 else n for n in ids], pa.int32()),
        }
    )


def grown(root: Path, by: str) -> lance_core.Dataset:
    """Two indexed fragments with deletions, and one that no index covers."""
    lance.write_dataset(rows(0), str(root), max_rows_per_file=NUM_ROWS // 2)
    for column, kind in INDICES.items():
        if by == "us":
            lance_core.open_dataset(root).create_index(column, kind)
        else:
            theirs: Any = lance.dataset(str(root))
            theirs.create_scalar_index(column, kind)
    dataset = lance_core.open_dataset(root).append(rows(NUM_ROWS))
    return dataset.delete("id % 10 = 3")


@pytest.mark.parametrize("by", ["us", "pylance"])
def test_what_files_hold_is_merged_with_new_fragments(tmp_path: Path, by: str) -> None:
    dataset = grown(tmp_path / "merged", by)
    hidden = [
        tmp_path / "merged" / "data" / file.path
        for fragment in dataset.snapshot.fragments[:2]
        for file in fragment.data_files
    ]
    for each in hidden:  # whoever reads them fails
        each.rename(each.with_suffix(".hidden"))
    after = dataset.optimize_indices()
    with pytest.raises(CorruptFileError):
        dataset.optimize_indices(retrain=True)
    for each in hidden:
        each.with_suffix(".hidden").rename(each)
    assert verified(tmp_path / "merged") == []
    all_fragments = {each.id for each in after.snapshot.fragments}
    for segment in after.snapshot.indices:
        assert set(segment.fragment_bitmap or ()) == all_fragments
        assert segment.dataset_version == dataset.version
    theirs = lance.dataset(str(tmp_path / "merged"))
    for column, condition in CONDITIONS.items():
        expected = theirs.scanner(["id"], filter=condition, use_scalar_index=False).to_table()
        assert len(expected) > 0
        assert theirs.to_table(["id"], filter=condition)["id"].sort() == expected["id"].sort()
        found = lance_core.open_dataset(tmp_path / "merged").scan(["id"], filter=condition)
        assert found.read_all()["id"].to_pylist() == expected["id"].to_pylist(), column


def check_same_files(merged: Path, anew: Path, columns: Sequence[str]) -> None:
    for column in columns:
        found, expected = (index_contents(each, f"{column}_idx") for each in (merged, anew))
        assert found.keys() == expected.keys()
        for file, (table, metadata, buffers) in expected.items():
            assert found[file][0].equals(table)
            assert found[file][1:] == (metadata, buffers)


def test_merged_files_hold_what_those_of_all_rows_do(tmp_path: Path) -> None:
    merged, anew = tmp_path / "merged", tmp_path / "anew"
    grown(merged, "us").optimize_indices()
    grown(anew, "us").optimize_indices(retrain=True)
    check_same_files(merged, anew, [each for each in INDICES if each not in OF_ZONES])


def test_merged_zones_are_those_of_all_rows_in_the_order_of_fragments(tmp_path: Path) -> None:
    for name in ("merged", "anew"):
        dataset = lance_core.write_dataset(tmp_path / name, rows(0), max_rows_per_file=100)
        for column in OF_ZONES:
            segments = [
                dataset.build_segment(NewIndex(f"{column}_idx", column, INDICES[column]), own)
                for own in ([2], [0, 1])
            ]
            if name == "merged":
                segments = [dataset.merge_segments(segments)]
            dataset = dataset.commit_segments(f"{column}_idx", segments)
        if name == "anew":
            dataset.optimize_indices(retrain=True)
    check_same_files(tmp_path / "merged", tmp_path / "anew", OF_ZONES)


@pytest.mark.parametrize(
    ("column", "first", "second"),
    [
        ("zoned", {"rows_per_zone": 50}, {"rows_per_zone": 80}),
        ("probed", {"number_of_items": 50}, {"number_of_items": 80}),
        ("probed", {"probability": 0.01}, {"probability": 0.02}),
    ],
)
def test_zones_that_differ_in_size_are_cut_anew(
    tmp_path: Path, column: str, first: dict[str, object], second: dict[str, object]
) -> None:
    dataset = lance_core.write_dataset(tmp_path, rows(0), max_rows_per_file=150)
    segments = [
        dataset.build_segment(NewIndex("i", column, INDICES[column], parameters), [place])
        for place, parameters in enumerate((first, second))
    ]
    with pytest.raises(InvalidRequestError, match="differ in size"):
        dataset.merge_segments(segments)
    after = dataset.commit_segments("i", segments).optimize_indices(num_segments_to_merge=2)
    assert len(after.segments_of("i")) == 1
    assert verified(tmp_path) == []
    condition = CONDITIONS[column]
    expected = dataset.scan(["id"], filter=condition).read_all()
    assert after.scan(["id"], filter=condition).read_all() == expected


def test_a_damaged_index_is_built_anew(tmp_path: Path) -> None:
    dataset = grown(tmp_path, "us")
    (segment,) = [each for each in dataset.snapshot.indices if each.name == "id_idx"]
    for each in (tmp_path / "_indices" / segment.uuid).iterdir():
        each.write_bytes(each.read_bytes()[:100])
    after = lance_core.open_dataset(tmp_path).optimize_indices()
    assert all(segment.uuid in each.where for each in verified(tmp_path))  # older versions have it
    assert after.count_rows(filter=CONDITIONS["id"]) == 270 - 27
    assert len(list((tmp_path / "_indices").iterdir())) == 2 * len(INDICES)


def check_conditions(root: Path) -> None:
    """Compare answers by all indices, ours and pylance's, with a scan."""
    ours, theirs = lance_core.open_dataset(root), lance.dataset(str(root))
    for column, condition in CONDITIONS.items():
        expected = theirs.scanner(["id"], filter=condition, use_scalar_index=False).to_table()
        assert len(expected) > 0
        assert theirs.to_table(["id"], filter=condition)["id"].sort() == expected["id"].sort()
        found = ours.scan(["id"], filter=condition).read_all()
        assert found["id"].sort() == expected["id"].sort(), column


def changed(root: Path, how: str, by: str) -> None:
    """Commit something; pylance then says that indices cover the fragments rows were moved to."""
    if how == "append":
        if by == "us":
            lance_core.open_dataset(root).append(rows(NUM_ROWS))
        else:
            lance.write_dataset(rows(NUM_ROWS), str(root), mode="append")
    elif by == "us":
        lance_core.open_dataset(root).delete("id % 10 = 4")
        lance_core.open_dataset(root).append(rows(NUM_ROWS))
    else:
        lance.dataset(str(root)).update({"zoned": "555.0", "probed": "555"}, where="id % 10 = 4")


@pytest.mark.parametrize("steps", [[0, 2], [1], [5]], ids=str)
@pytest.mark.parametrize("how", ["append", "change"])
@pytest.mark.parametrize("by", ["us", "pylance"])
def test_indices_that_follow_a_compaction_are_extended_with_all_their_rows(
    tmp_path: Path, by: str, how: str, steps: list[int]
) -> None:
    lance.write_dataset(rows(0), str(tmp_path), max_rows_per_file=NUM_ROWS // 3)
    for column, kind in INDICES.items():
        lance_core.open_dataset(tmp_path).create_index(column, kind)
    lance_core.open_dataset(tmp_path).compact(indices="defer")
    changed(tmp_path, how, by)
    check_conditions(tmp_path)
    for number in steps:
        lance_core.open_dataset(tmp_path).optimize_indices(num_segments_to_merge=number)
        check_conditions(tmp_path)
    assert verified(tmp_path) == []


def test_fragments_of_which_an_index_has_no_zones_are_scanned(tmp_path: Path) -> None:
    """As pylance's commit says that they are covered, and the compaction was forgotten."""
    lance.write_dataset(rows(0), str(tmp_path), max_rows_per_file=NUM_ROWS // 3)
    for column in OF_ZONES:
        lance_core.open_dataset(tmp_path).create_index(column, INDICES[column])
    lance_core.open_dataset(tmp_path).compact(indices="defer")
    changed(tmp_path, "append", "pylance")
    lance.dataset(str(tmp_path)).drop_index("__lance_frag_reuse")
    dataset = lance_core.open_dataset(tmp_path)
    for column in OF_ZONES:
        expected = dataset.scan(["id"], filter=CONDITIONS[column], use_index=False).read_all()
        assert dataset.scan(["id"], filter=CONDITIONS[column]).read_all() == expected
