"""Scalar indices whose files follow compactions: pylance uses and maintains what we wrote."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

import lance_core
from lance_core.errors import (
    CommitConflictError,
    CorruptFileError,
    IndexNotFoundError,
    InvalidRequestError,
    StoreUnavailableError,
    UnsupportedFeatureError,
)
from lance_core.io.metering import metered
from lance_core.operations.build_segment import build_segment
from lance_core.operations.commit_segments import commit_segments, segments_of
from lance_core.operations.compact_commit import commit_compaction
from lance_core.operations.compact_group import execute_group
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions, plan_compaction
from lance_core.operations.compact_trim import trim_reuse_index
from lance_core.operations.merge_segments import merge_segments
from lance_core.operations.new_index import NewIndex
from lance_core.operations.remap_indices import remap_indices
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from tests.committed import opened
from tests.compacted import compacted
from tests.failing_store import fail_at
from tests.opened_table import open_table
from tests.scalar_tables import TESTS, rows, write_table
from tests.unknown_index import write_unknown_index
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lance_core.table.snapshot import Snapshot

pytestmark = pytest.mark.interop

SESSION = lance_core.Session()
OF_ZONES = {"ZoneMapIndexDetails", "BloomFilterIndexDetails"}
STATES = [("updated", False), ("several segments", True), ("deferred twice", False)]
WHOLE = 1 << 20


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def check_answers(root: Path, tests: Sequence[str] = TESTS) -> None:
    theirs, ours = lance.dataset(str(root)), lance_core.open_dataset(root)
    for test in tests:
        expected = ids(theirs.to_table(filter=test, use_scalar_index=False, columns=["id"]))
        assert ids(theirs.to_table(filter=test, columns=["id"])) == expected, test
        assert ids(ours.scan(["id"], filter=test).read_all()) == expected, test


def coverage(snapshot: Snapshot) -> dict[str, BitMap]:
    """Return the live fragments that each index covers."""
    live = BitMap(snapshot.fragments_by_id)
    found: dict[str, BitMap] = {}
    for each in snapshot.indices:
        if not each.is_system:
            own = live & (each.fragment_bitmap or BitMap())
            found[each.name] = found.get(each.name, BitMap()) | own
    return found


def folders(root: Path) -> set[str]:
    return {each.parent.name for each in root.glob("_indices/*/*")}


@pytest.mark.parametrize(("state", "stable"), STATES)
def test_indices_answer_as_a_scan_does_and_both_go_on_with_them(
    tmp_path: Path, state: str, stable: bool
) -> None:
    write_table(tmp_path, state, stable=stable)
    before = opened(tmp_path)
    snapshot = compacted(tmp_path, "remap", target_rows=2000)
    kinds = {each.name: each.type_name for each in before.indices}
    covered = coverage(snapshot)
    for each in snapshot.indices:
        if each.is_system or kinds[each.name] in OF_ZONES:
            continue
        known = [old for old in before.indices if old.name == each.name]
        assert each.created_at_ms in {old.created_at_ms for old in known}
        assert len(covered[each.name]) > 0, each.name
        # what is named is there, and nothing else
        assert {file.path for file in each.files} == {
            path.name for path in (tmp_path / "_indices" / each.uuid).iterdir()
        }
    check_answers(tmp_path, TESTS[::3])
    assert verified(tmp_path) == []
    dataset = lance.dataset(str(tmp_path))
    dataset.delete("id % 13 = 4")
    dataset.insert(rows(7000, 7100))
    if state != "updated":  # there pylance fails to index more of a part of a struct
        dataset.optimize.optimize_indices()
    dataset = lance.dataset(str(tmp_path))
    dataset.optimize.compact_files(target_rows_per_fragment=5000)
    check_answers(tmp_path, TESTS[1::3])
    compacted(tmp_path, "remap")
    check_answers(tmp_path, TESTS[2::3])


def test_what_pylance_does_is_what_is_done(tmp_path: Path) -> None:
    """The same compaction by both: the same entries, but for names that are drawn."""
    write_table(tmp_path / "a", "several segments", stable=False)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    compacted(tmp_path / "a", "remap", target_rows=2000)
    lance.dataset(str(tmp_path / "b")).optimize.compact_files(
        target_rows_per_fragment=2000, materialize_deletions_threshold=0.0
    )
    ours, theirs = ([entry_of(e) for e in entries(tmp_path / name)] for name in "ab")
    assert ours == theirs


def entries(root: Path) -> Any:
    return opened(root).manifest.index_section.indices


def entry_of(entry: Any) -> dict[str, object]:
    return {
        "name": entry.name,
        "fields": list(entry.fields),
        "version": entry.dataset_version,
        "coverage": list(BitMap.deserialize(entry.fragment_bitmap)),
        "details": entry.index_details.SerializeToString(),
        "index version": entry.index_version,
        "has time": entry.HasField("created_at"),
        "files": sorted(file.path for file in entry.files),
    }


def test_zones_lose_the_coverage_and_gain_it_back(tmp_path: Path) -> None:
    write_table(tmp_path, "deleted", stable=False)
    snapshot = compacted(tmp_path, "remap")
    covered = coverage(snapshot)
    for each in snapshot.indices:
        assert (len(covered[each.name]) == 0) == (each.type_name in OF_ZONES)
    check_answers(tmp_path, [test for test in TESTS if "zoned" in test or "bloomed" in test])
    after = lance_core.open_dataset(tmp_path).optimize_indices().snapshot
    assert all(len(each) == 1 for each in coverage(after).values())
    check_answers(tmp_path, [test for test in TESTS if "zoned" in test or "bloomed" in test])


def test_columns_are_not_read_again(tmp_path: Path) -> None:
    table = pa.table({"id": range(20_000), "text": [str(i) * 500 for i in range(20_000)]})
    lance.write_dataset(table, str(tmp_path), max_rows_per_file=10_000)
    dataset = lance.dataset(str(tmp_path))
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files(defer_index_remap=True)
    with metered() as meter:
        remap_indices(SESSION.files, opened(tmp_path))
    assert meter.bytes_read < 2_000_000
    check_answers(tmp_path, ["id = 17", "id > 19990"])


@pytest.mark.parametrize("state", ["deferred twice", "everything"])
def test_indices_follow_what_was_deferred_and_it_is_forgotten(tmp_path: Path, state: str) -> None:
    write_table(tmp_path, state, stable=False)
    before = opened(tmp_path)
    after = remap_indices(SESSION.files, before)
    assert after.version == before.version + 1
    assert remap_indices(SESSION.files, after) is after
    followed = [each for each in after.indices if each.dataset_version == before.version]
    assert {each.type_name for each in followed} == {
        "BTreeIndexDetails",
        "BitmapIndexDetails",
        "LabelListIndexDetails",
        "NGramIndexDetails",
    }
    check_answers(tmp_path, TESTS[::3])
    assert verified(tmp_path) == []
    dataset = lance_core.open_dataset(tmp_path)
    for each in {each.name for each in after.indices if each.type_name in OF_ZONES}:
        dataset = dataset.drop_index(each)
    dataset = dataset.trim_reuse_index()
    assert REUSE_INDEX_NAME not in {each.name for each in dataset.snapshot.indices}
    check_answers(tmp_path, TESTS[1::3])
    dataset.compact(indices="remap", target_rows_per_fragment=5000, deletions_threshold=0.0)
    check_answers(tmp_path, TESTS[2::3])


def test_only_indices_that_are_named_follow(tmp_path: Path) -> None:
    write_table(tmp_path, "deferred", stable=False)
    dataset = lance_core.open_dataset(tmp_path)
    seen: list[tuple[int, int]] = []
    after = dataset.remap_indices(["id_0", "tags_7"], progress=lambda *n: seen.append(n))
    new = {each.name for each in after.snapshot.indices if each.dataset_version == dataset.version}
    assert new == {"id_0", "tags_7"}
    assert seen == [(0, 2), (1, 2), (2, 2)]
    with pytest.raises(IndexNotFoundError, match="nope"):
        dataset.remap_indices(["nope"])
    with pytest.raises(InvalidRequestError, match=r"zoned_9.*built anew"):
        dataset.remap_indices(["zoned_9"])
    check_answers(tmp_path, TESTS[::4])


def test_an_index_made_meanwhile_is_followed_too(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 600), str(tmp_path), max_rows_per_file=100)
    table = open_table(tmp_path)
    tasks = plan_compaction(table.files, table.snapshot, CompactionOptions(WHOLE))
    results = [execute_group(table.files, table.snapshot, task) for task in tasks]
    lance.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    snapshot = commit_compaction(table.snapshot, results, IndexTreatment.REMAP)
    assert coverage(snapshot) == {"id_idx": BitMap(snapshot.fragments_by_id)}
    assert folders(tmp_path) == {each.uuid for each in snapshot.indices} | {
        each.uuid for each in opened_at(tmp_path, snapshot.version - 1).indices
    }
    check_answers(tmp_path, ["id = 77", "id < 300"])


def opened_at(root: Path, version: int) -> Snapshot:
    return lance_core.open_dataset(root, version).snapshot


def test_files_written_for_a_compaction_that_conflicts_are_removed(tmp_path: Path) -> None:
    dataset: Any = lance.write_dataset(rows(0, 600), str(tmp_path), max_rows_per_file=100)
    dataset.create_scalar_index("id", "BTREE")
    table = open_table(tmp_path)
    (task,) = plan_compaction(table.files, table.snapshot, CompactionOptions(WHOLE))
    result = execute_group(table.files, table.snapshot, task)
    before = folders(tmp_path)
    lance.dataset(str(tmp_path)).delete("id = 5")
    with pytest.raises(CommitConflictError):
        commit_compaction(table.snapshot, [result], IndexTreatment.REMAP)
    assert folders(tmp_path) == before
    assert len(list((tmp_path / "data").iterdir())) == 6


def test_an_index_that_others_replaced_meanwhile_follows_as_it_is_then(tmp_path: Path) -> None:
    dataset: Any = lance.write_dataset(rows(0, 600), str(tmp_path), max_rows_per_file=100)
    dataset.create_scalar_index("id", "BTREE", name="i")
    dataset.create_scalar_index("small", "BITMAP", name="j")
    lance.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True)
    stale = opened(tmp_path)
    theirs: Any = lance.dataset(str(tmp_path))
    theirs.create_scalar_index("id", "BTREE", name="i", replace=True)
    after = remap_indices(SESSION.files, stale)
    assert {each.name: each.dataset_version for each in after.indices} == {
        REUSE_INDEX_NAME: 4,
        "i": stale.version,
        "j": stale.version + 1,
    }
    check_answers(tmp_path, ["id = 77", "small = 3"])


@pytest.mark.parametrize("at", [0, 1, 2, 3, 5, 7])
def test_a_crash_leaves_the_index_as_it_was_or_as_it_is_to_be(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are opened and put: of rows, of the ids reserved, of the index, of the commit."""
    dataset: Any = lance.write_dataset(rows(0, 300), str(tmp_path), max_rows_per_file=100)
    dataset.create_scalar_index("id", "BTREE")
    opened_table = lance_core.open_dataset(tmp_path)
    kind = type(opened_table.snapshot.scheduler.store)
    monkeypatch.setattr(kind, "delete", lambda *_: None)  # as if the process had died
    fail_at(monkeypatch, kind, at)
    with pytest.raises(StoreUnavailableError):
        opened_table.compact(indices="remap")
    monkeypatch.undo()
    assert verified(tmp_path) == []
    check_answers(tmp_path, ["id = 77", "id IS NULL"])
    lance_core.open_dataset(tmp_path).compact(indices="remap")
    lance_core.open_dataset(tmp_path).cleanup(older_than=timedelta(0), delete_unverified=True)
    assert folders(tmp_path) == {each.uuid for each in opened(tmp_path).indices}
    check_answers(tmp_path, ["id = 77", "id IS NULL"])


def test_an_index_of_which_pylance_lost_rows_is_not_trusted_again(tmp_path: Path) -> None:
    """Compacting at once what came out of a deferred compaction, pylance does so with a BTREE."""
    dataset: Any = lance.write_dataset(rows(0, 400), str(tmp_path), max_rows_per_file=50)
    dataset.create_scalar_index("id", "BTREE", name="i")
    optimize = lance.dataset(str(tmp_path)).optimize
    optimize.compact_files(target_rows_per_fragment=100, defer_index_remap=True)
    lance.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=200)
    assert lance.dataset(str(tmp_path)).to_table(filter="id = 77").num_rows == 0  # it is there
    stale = opened(tmp_path)
    with pytest.raises(InvalidRequestError, match="lost rows"):
        merge_segments(SESSION.files, stale, segments_of(stale, "i"))
    trimmed = trim_reuse_index(stale)  # what shows the loss must not go
    assert lance_core.open_dataset(tmp_path).scan(["id"], filter="id = 77").read_all().num_rows == 1
    assert trimmed.version == stale.version
    snapshot = compacted(tmp_path, "remap")
    assert coverage(snapshot) == {"i": BitMap()}
    check_answers(tmp_path, ["id = 77", "id < 300"])
    trimmed = trim_reuse_index(snapshot)
    assert REUSE_INDEX_NAME not in {each.name for each in trimmed.indices}
    check_answers(tmp_path, ["id = 77", "id < 300"])


def test_a_damaged_index_stops_the_compaction_and_leaves_no_file(tmp_path: Path) -> None:
    dataset: Any = lance.write_dataset(rows(0, 300), str(tmp_path), max_rows_per_file=100)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("small", "BITMAP")
    (segment,) = [each for each in opened(tmp_path).indices if each.name == "small_idx"]
    path = tmp_path / "_indices" / segment.uuid / "bitmap_page_lookup.lance"
    path.unlink()
    before = {each for each in tmp_path.rglob("*") if each.is_file()}
    with pytest.raises(CorruptFileError, match="missing"):
        compacted(tmp_path, "remap")
    left = {each for each in tmp_path.rglob("*") if each.is_file()} - before
    assert {each.parent.name for each in left} <= {"_versions", "_transactions"}  # ids reserved
    compacted(tmp_path, "drop_coverage")
    check_answers(tmp_path, ["id = 77"])


def test_an_index_that_we_do_not_write_is_left_to_other_treatments(tmp_path: Path) -> None:
    write_unknown_index(tmp_path, rows(0, 300))
    with pytest.raises(UnsupportedFeatureError, match=r"unknown_idx.*JsonIndexDetails.*defer"):
        compacted(tmp_path, "remap")
    compacted(tmp_path, "drop_coverage")


def build(root: Path, column: str, kind: str, fragments: list[int]) -> Any:
    parameters: Mapping[str, object] = {"zone_size": 50} if kind == "BTREE" else {}
    index = NewIndex("i", column, kind, parameters)
    return build_segment(SESSION.files, opened(root), index, fragments)


MERGED = [("id", "BTREE"), ("name", "BTREE"), ("small", "BITMAP"), ("tags", "LABEL_LIST")]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("column", "kind"), [*MERGED, ("text", "NGRAM")])
def test_segments_become_one_that_both_search(
    tmp_path: Path, column: str, kind: str, stable: bool
) -> None:
    tests = [test for test in TESTS if column in test]
    lance.write_dataset(
        rows(0, 800), str(tmp_path), max_rows_per_file=200, enable_stable_row_ids=stable
    )
    built = [build(tmp_path, column, kind, each) for each in ([0], [1, 2], [3])]
    lance.dataset(str(tmp_path)).delete("id % 7 = 3")
    merged = merge_segments(SESSION.files, opened(tmp_path), built[:2])
    assert merged.dataset_version == 1
    commit_segments(opened(tmp_path), "i", [merged, built[2]])
    check_answers(tmp_path, tests)
    lance.dataset(str(tmp_path)).update({column: column}, where="id < 100")
    if not stable:
        lance.dataset(str(tmp_path)).optimize.compact_files(
            target_rows_per_fragment=5000, defer_index_remap=True
        )
    snapshot = opened(tmp_path)
    merged = merge_segments(SESSION.files, snapshot, segments_of(snapshot, "i"))
    assert merged.dataset_version == snapshot.version
    after = commit_segments(snapshot, "i", [merged])
    assert len(segments_of(after, "i")) == 1
    assert verified(tmp_path) == []
    check_answers(tmp_path, tests)
    theirs = lance.dataset(str(tmp_path))
    theirs.insert(rows(2000, 2050))
    theirs.optimize.optimize_indices()
    check_answers(tmp_path, tests)


def test_segments_that_do_not_fit_together_are_not_merged(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 400), str(tmp_path), max_rows_per_file=200)
    one, both = (build(tmp_path, "id", "BTREE", each) for each in ([0], [0, 1]))
    zones = build(tmp_path, "zoned", "ZONEMAP", [0])
    snapshot = opened(tmp_path)
    for segments, message in (
        ([], "at least one"),
        ([one, both], r"several segments cover fragments \[0\]"),
        ([one, zones], "one index, kind and column"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            merge_segments(SESSION.files, snapshot, segments)
    lance.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=5000)
    with pytest.raises(InvalidRequestError, match="covers a fragment"):
        merge_segments(SESSION.files, opened(tmp_path), [one])
    late = build(tmp_path, "id", "BTREE", [2])
    with pytest.raises(InvalidRequestError, match="open a newer one"):
        merge_segments(SESSION.files, snapshot, [late])
    assert len(folders(tmp_path)) == 4


ZONED = [("zoned_real", "ZONEMAP"), ("zoned_name", "ZONEMAP"), ("small", "BLOOMFILTER")]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("column", "kind"), ZONED)
def test_zones_of_segments_become_one_until_rows_move(
    tmp_path: Path, column: str, kind: str, stable: bool
) -> None:
    tests = [*(test for test in TESTS if column in test), f"{column} IS NULL"]
    lance.write_dataset(
        rows(0, 800), str(tmp_path), max_rows_per_file=200, enable_stable_row_ids=stable
    )
    built = [build(tmp_path, column, kind, each) for each in ([0, 2], [1], [3])]
    lance.dataset(str(tmp_path)).delete("id % 7 = 3 OR id < 200")
    merged = merge_segments(SESSION.files, opened(tmp_path), built[:2])
    commit_segments(opened(tmp_path), "i", [merged, built[2]])
    check_answers(tmp_path, tests)
    theirs = lance.dataset(str(tmp_path))
    theirs.update({column: column}, where="id < 300")
    theirs.insert(rows(2000, 2050))
    theirs.optimize.optimize_indices(num_indices_to_merge=2)
    check_answers(tmp_path, tests)
    if not stable:
        theirs.optimize.compact_files(target_rows_per_fragment=5000, defer_index_remap=True)
        snapshot = opened(tmp_path)
        with pytest.raises(InvalidRequestError, match="stretches of rows"):
            merge_segments(SESSION.files, snapshot, segments_of(snapshot, "i"))
    assert len(lance_core.open_dataset(tmp_path).optimize_indices().segments_of("i")) == 1
    assert verified(tmp_path) == []
    check_answers(tmp_path, tests)


def test_values_changed_in_place_are_not_in_the_merged_segment(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 400), str(tmp_path), max_rows_per_file=200)
    built = [build(tmp_path, "id", "BTREE", [number]) for number in range(2)]
    dataset = lance.dataset(str(tmp_path))
    fragment = dataset.get_fragment(1)
    assert fragment is not None
    row_ids = fragment.to_table(columns=["id"], with_row_id=True)["_rowid"]
    update = pa.table({"_rowid": row_ids, "id": pa.array(np.arange(9000, 9200))})
    updated, fields = fragment.update_columns(update, left_on="_rowid", right_on="_rowid")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(str(tmp_path), operation, read_version=dataset.version)
    merged = merge_segments(SESSION.files, opened(tmp_path), built)
    after = commit_segments(opened(tmp_path), "i", [merged])
    assert coverage(after) == {"i": BitMap([0])}
    check_answers(tmp_path, ["id = 250", "id > 9100", "id < 150"])


def test_a_clone_writes_its_indices_into_its_own_folder(tmp_path: Path) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    dataset: Any = lance.write_dataset(rows(0, 300), str(source), max_rows_per_file=100)
    dataset.create_scalar_index("id", "BTREE")
    lance.dataset(str(source)).shallow_clone(str(clone), 2)
    before = folders(source)
    (segment,) = lance_core.open_dataset(clone).compact(indices="remap").snapshot.indices
    assert segment.base_id is None
    assert folders(source) == before
    assert folders(clone) == {segment.uuid}
    check_answers(clone, ["id = 77", "id < 150"])
