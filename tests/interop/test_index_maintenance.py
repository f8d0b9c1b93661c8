"""Scalar indices over time: new fragments, both writers, conflicts, crashes and drops."""

from __future__ import annotations

import pickle
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import (
    CommitConflictError,
    IndexNotFoundError,
    InvalidRequestError,
    StoreUnavailableError,
)
from lance_core.operations.build_segment import build_segment
from lance_core.operations.commit_segments import commit_segments
from lance_core.operations.new_index import NewIndex
from tests.committed import opened
from tests.failing_store import fail_at
from tests.scalar_tables import INDICES, TESTS, rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lance_core.proto import table_pb2

pytestmark = pytest.mark.interop

NUM_ROWS, NUM_MORE = 600, 200
ROW_KINDS = {"BTREE", "BITMAP", "LABEL_LIST", "NGRAM"}
SESSION = lance_core.Session()


def write(folder: Path, *, stable: bool = False) -> None:
    lance.write_dataset(
        rows(0, NUM_ROWS), str(folder), max_rows_per_file=200, enable_stable_row_ids=stable
    )


def table(folder: Path) -> lance_core.Dataset:
    return lance_core.open_dataset(folder)


def check_answers(folder: Path, tests: Sequence[str] = TESTS) -> None:
    theirs, ours = lance.dataset(str(folder)), table(folder)
    for test in tests:
        expected = theirs.to_table(filter=test, use_scalar_index=False, columns=["id"])["id"]
        found = theirs.to_table(filter=test, columns=["id"])["id"].to_pylist()
        assert sorted(found) == sorted(expected.to_pylist()), test
        assert sorted(ours.scan(["id"], filter=test).read_all()["id"].to_pylist()) == sorted(found)


def coverage(folder: Path, name: str) -> list[list[int]]:
    segments = [each for each in table(folder).snapshot.indices if each.name == name]
    return [sorted(each.fragment_bitmap or ()) for each in segments]


def build(folder: Path, fragments: list[int] | None, name: str = "i") -> table_pb2.IndexMetadata:
    index = NewIndex(name, "id", "BTREE", {"zone_size": 50})
    return build_segment(SESSION.files, opened(folder), index, fragments)


def folders(root: Path) -> int:
    """Return the number of segments that have files."""
    return len({each.parent for each in root.glob("_indices/*/*")})


@pytest.fixture(scope="module")
def unindexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unindexed")
    write(folder)
    return folder


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_one_writer_goes_on_where_the_other_began(tmp_path: Path, first: str, stable: bool) -> None:
    write(tmp_path, stable=stable)
    used = [each for each in INDICES if "." not in each[0]]  # which pylance fails to index further
    for number, (column, kind, parameters) in enumerate(used):
        if first == "ours":
            table(tmp_path).create_index(column, kind, f"{column}_{number}", **parameters)
        else:
            theirs: Any = lance.dataset(str(tmp_path))
            config = lance.indices.IndexConfig(kind.lower(), parameters) if parameters else kind
            theirs.create_scalar_index(column, config, name=f"{column}_{number}")
    dataset = lance.dataset(str(tmp_path))
    dataset.insert(rows(1000, 1000 + NUM_MORE))
    dataset.delete("id % 5 = 2")
    if first == "ours":
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    else:
        table(tmp_path).optimize_indices(num_segments_to_merge=0)
    assert coverage(tmp_path, "id_0") == [[0, 1, 2], [3]]
    check_answers(tmp_path, TESTS[::2])
    if not stable:
        theirs = lance.dataset(str(tmp_path))
        theirs.optimize.compact_files(target_rows_per_fragment=5000, defer_index_remap=True)
        check_answers(tmp_path, TESTS[::3])
    table(tmp_path).optimize_indices(num_segments_to_merge=10)
    assert len(coverage(tmp_path, "id_0")) == 1
    assert list(table(tmp_path).verify()) == []
    check_answers(tmp_path, TESTS[1::3])


def test_optimizing_covers_what_is_new_and_does_nothing_where_nothing_is(tmp_path: Path) -> None:
    write(tmp_path)
    dataset = table(tmp_path).create_index("id", "BTREE", "i", zone_size=77)
    assert dataset.optimize_indices().version == dataset.version
    for start in (1000, 2000, 3000):
        dataset = dataset.append(rows(start, start + 10)).optimize_indices(num_segments_to_merge=0)
    assert coverage(tmp_path, "i") == [[0, 1, 2], [3], [4], [5]]
    dataset = dataset.append(rows(4000, 4010)).optimize_indices(["i"], num_segments_to_merge=2)
    assert coverage(tmp_path, "i") == [[0, 1, 2], [3], [4, 5, 6]]
    dataset = dataset.optimize_indices(num_segments_to_merge=3)
    assert coverage(tmp_path, "i") == [list(range(7))]
    (segment,) = dataset.snapshot.indices
    lookup = lance.file.LanceFileReader(
        str(tmp_path / "_indices" / segment.uuid / "page_lookup.lance")
    )
    assert lookup.metadata().schema.metadata[b"batch_size"] == b"77"
    check_answers(tmp_path, ["id < 400", "id >= 2005"])
    with pytest.raises(IndexNotFoundError, match="nope"):
        dataset.optimize_indices(["nope"])


def test_a_new_segment_replaces_an_empty_one(tmp_path: Path) -> None:
    write(tmp_path)
    lance.dataset(str(tmp_path)).create_scalar_index("id", "BTREE", name="i", train=False)
    assert coverage(tmp_path, "i") == [[]]
    table(tmp_path).optimize_indices()
    assert coverage(tmp_path, "i") == [[0, 1, 2]]
    check_answers(tmp_path, ["id < 400"])


def test_segments_built_apart_are_committed_as_one_index(tmp_path: Path) -> None:
    write(tmp_path)
    built = [pickle.loads(pickle.dumps(build(tmp_path, [n]))) for n in range(3)]  # noqa: S301
    assert table(tmp_path).version == 1
    commit_segments(opened(tmp_path), "i", built[:2])
    check_answers(tmp_path, ["id < 400", "id = 77"])
    commit_segments(opened(tmp_path), "i", [build(tmp_path, [2])])
    assert coverage(tmp_path, "i") == [[0], [1], [2]]
    commit_segments(opened(tmp_path), "i", [build(tmp_path, [1, 2])])
    assert coverage(tmp_path, "i") == [[0], [1, 2]]
    check_answers(tmp_path, ["id < 400", "id = 77"])


def test_segments_built_at_one_version_may_be_committed_one_after_another(tmp_path: Path) -> None:
    write(tmp_path)
    built = [build(tmp_path, [number]) for number in range(3)]
    commit_segments(opened(tmp_path), "i", built[:1])
    seen = opened(tmp_path)
    lance.dataset(str(tmp_path)).insert(rows(1000, 1050))
    lance.dataset(str(tmp_path)).delete("id % 5 = 2")
    commit_segments(opened(tmp_path), "i", built[1:2])
    with pytest.raises(CommitConflictError):  # it does not show the segment that came since
        commit_segments(seen, "i", built[2:])
    commit_segments(opened(tmp_path), "i", built[2:])
    assert coverage(tmp_path, "i") == [[0], [1], [2]]
    check_answers(tmp_path, ["id < 400", "id = 77", "id > 1020"])


def test_segments_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    one, both = build(tmp_path, [1]), build(tmp_path, [1, 2])
    with pytest.raises(InvalidRequestError, match="several segments cover"):
        commit_segments(opened(tmp_path), "i", [one, both])
    with pytest.raises(InvalidRequestError, match="at least one"):
        commit_segments(opened(tmp_path), "i", [])
    with pytest.raises(InvalidRequestError, match="one index"):
        commit_segments(opened(tmp_path), "j", [one])
    commit_segments(opened(tmp_path), "i", [both])
    with pytest.raises(InvalidRequestError, match=r"covers fragments \[2\] too"):
        commit_segments(opened(tmp_path), "i", [build(tmp_path, [1])])
    other = NewIndex("i", "id", "BITMAP")
    foreign = build_segment(SESSION.files, opened(tmp_path), other, [0])
    with pytest.raises(InvalidRequestError, match="of another kind, and covers"):
        commit_segments(opened(tmp_path), "i", [foreign])
    for fragments in ([0], None):  # as creating an index refuses it
        other = NewIndex("i", "small", "BTREE")
        foreign = build_segment(SESSION.files, opened(tmp_path), other, fragments)
        with pytest.raises(InvalidRequestError, match="on another column"):
            commit_segments(opened(tmp_path), "i", [foreign])
    with pytest.raises(InvalidRequestError, match=r"no fragments \[9\]"):
        build(tmp_path, [9])


def test_a_segment_of_moved_rows_conflicts_and_one_of_changed_values_gives_up_fragments(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    stale = build(tmp_path, None)
    dataset = lance.dataset(str(tmp_path))
    fragment = dataset.get_fragment(1)
    assert fragment is not None
    changed = fragment.to_table(columns=["id", "small"], with_row_id=True)
    update = pa.table({"_rowid": changed["_rowid"], "id": pa.array(np.arange(9000, 9200))})
    updated, fields = fragment.update_columns(update, left_on="_rowid", right_on="_rowid")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(str(tmp_path), operation, read_version=dataset.version)
    commit_segments(opened(tmp_path), "i", [stale])
    assert coverage(tmp_path, "i") == [[0, 2]]
    check_answers(tmp_path, ["id < 400", "id > 9100", "id = 250"])
    stale = build(tmp_path, None, "j")
    lance.dataset(str(tmp_path)).delete("id % 3 = 1")
    lance.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=5000)
    with pytest.raises(CommitConflictError, match="build the segments anew"):
        commit_segments(opened(tmp_path), "j", [stale])


def test_a_segment_built_before_a_deferred_compaction_follows_it(tmp_path: Path) -> None:
    write(tmp_path)
    table(tmp_path).create_index("small", "BITMAP")  # for which pylance defers
    early = build(tmp_path, None)
    lance.dataset(str(tmp_path)).delete("id % 3 = 1")
    compacting = lance.dataset(str(tmp_path)).optimize
    compacting.compact_files(target_rows_per_fragment=5000, defer_index_remap=True)
    commit_segments(opened(tmp_path), "i", [early])
    check_answers(tmp_path, ["id < 400", "id = 76", "NOT (id < 400)"])
    explained = lance.dataset(str(tmp_path)).scanner(filter="id < 400").explain_plan()
    assert "ScalarIndexQuery" in explained


def test_creating_an_index_while_rows_are_moved_builds_it_anew(tmp_path: Path) -> None:
    write(tmp_path)
    before = table(tmp_path)
    lance.dataset(str(tmp_path)).delete("id % 3 = 1")
    lance.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=5000)
    seen: list[tuple[int, int]] = []
    after = before.create_index("id", "BTREE", progress=lambda *n: seen.append(n))
    assert seen[0] == (0, 600)
    assert seen[-1] == (400, 400)
    assert folders(tmp_path) == 1
    assert after.version == lance.dataset(str(tmp_path)).version
    check_answers(tmp_path, ["id < 400"])


def test_an_index_is_replaced_only_where_that_was_meant(tmp_path: Path) -> None:
    write(tmp_path)
    dataset = table(tmp_path).create_index("small", "BTREE")
    dataset = dataset.create_index("small", "bitmap")
    assert [each.type_name for each in dataset.snapshot.indices] == ["BitmapIndexDetails"]
    with pytest.raises(InvalidRequestError, match="already"):
        dataset.create_index("small", "BTREE", replace=False)
    with pytest.raises(InvalidRequestError, match="another column"):
        dataset.create_index("id", "BTREE", "small_idx")
    dropped = dataset.drop_index("small_idx")
    assert dropped.snapshot.indices == ()
    with pytest.raises(IndexNotFoundError, match="small_idx"):
        dropped.drop_index("small_idx")
    with pytest.raises(InvalidRequestError, match="trim_reuse_index"):
        dropped.drop_index("__lance_frag_reuse")
    assert lance.dataset(str(tmp_path)).describe_indices() == []


@pytest.mark.parametrize(
    ("column", "kind", "parameters", "message"),
    [
        ("id", "TREE", {}, "none of BTREE"),
        ("id", "VECTOR", {}, "none of BTREE"),
        ("tags", "BTREE", {}, "takes columns of numbers"),
        ("id", "LABEL_LIST", {}, "takes columns of lists"),
        ("id", "NGRAM", {}, "takes columns of texts"),
        ("ok", "BLOOMFILTER", {}, "takes columns of whole numbers"),
        ("id", "BTREE", {"rows_per_zone": 5}, "known: zone_size"),
        ("id", "BITMAP", {"zone_size": 5}, "known: none"),
        ("id", "ZONEMAP", {"rows_per_zone": 0}, "rows_per_zone"),
        ("id", "BLOOMFILTER", {"probability": 1.0}, "between 0 and 1"),
        ("_rowid", "BTREE", {}, "stored nowhere"),
        ("nope", "BTREE", {}, "nope"),
    ],
)
def test_what_no_index_can_be_is_refused(
    unindexed: Path, column: str, kind: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        table(unindexed).create_index(column, kind, **parameters)
    assert folders(unindexed) == 0


def test_names_that_serve_the_table_itself_are_refused(unindexed: Path) -> None:
    with pytest.raises(InvalidRequestError, match="is no name"):
        table(unindexed).create_index("id", "BTREE", "__lance_x")


@pytest.mark.parametrize("kind", sorted(ROW_KINDS))
def test_with_little_memory_the_same_index_is_built_by_way_of_a_disk(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "t")
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    column = {"BTREE": "name", "BITMAP": "small", "LABEL_LIST": "tags", "NGRAM": "text"}[kind]
    most = 0

    def look(done: int, total: int) -> None:
        nonlocal most
        most = max(most, len(list(spill.rglob("run-*"))))

    table(tmp_path / "t").create_index(column, kind, memory_bytes=9000, progress=look)
    assert most > 1
    assert list(spill.iterdir()) == []
    check_answers(tmp_path / "t", [test for test in TESTS if column in test])


@pytest.mark.parametrize(
    ("kind", "at"), [*(("BTREE", at) for at in range(4)), *(("BLOOMFILTER", at) for at in range(3))]
)
def test_a_crash_leaves_folders_that_no_version_names_and_a_cleanup_removes_them(
    tmp_path: Path, kind: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    dataset = table(tmp_path)
    store = dataset.snapshot.scheduler.store
    monkeypatch.setattr(type(store), "delete", _nothing)  # as if the process had died
    fail_at(monkeypatch, type(store), at)
    with pytest.raises(StoreUnavailableError):
        dataset.create_index("id", kind)
    monkeypatch.undo()
    assert table(tmp_path).snapshot.indices == ()
    assert list(table(tmp_path).verify()) == []
    table(tmp_path).cleanup(older_than=timedelta(0), delete_unverified=True)
    assert list(tmp_path.glob("_indices/*")) == []
    table(tmp_path).create_index("id", kind)
    check_answers(tmp_path, ["id = 77", "id IS NULL"])


def _nothing(*_: object) -> None:
    """Do nothing."""


def test_rows_that_all_have_a_trigram_are_found(tmp_path: Path) -> None:
    texts = pa.array(["abc"] * 70_000 + ["abcd"])
    lance.write_dataset(pa.table({"text": texts, "id": np.arange(70_001)}), str(tmp_path))
    table(tmp_path).create_index("text", "NGRAM")
    check_answers(tmp_path, ["contains(text, 'bcd')", "contains(text, 'abc')"])
