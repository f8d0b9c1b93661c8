"""Compaction, cleanup and verification on a store that waits, without a file on disk."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from lance_core.errors import CommitConflictError, CorruptFileError
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.operations.append import append_rows, create_dataset
from lance_core.operations.cleanup import clean_up
from lance_core.operations.cleanup_plan import CleanupOptions, FileKind
from lance_core.operations.compact import compact
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions
from lance_core.operations.verify import verify
from lance_core.query.session import Session
from lance_core.table.base_paths import refuse_base
from lance_core.table.snapshot import Snapshot, open_snapshot
from tests.opened_table import OpenedTable

NOW = timedelta(0)


def rows(first: int, last: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, last), pa.int64())})


@pytest.fixture
def session() -> Session:
    return Session(cache_bytes=16 << 20)


def appended(store: MemoryStore, num_versions: int = 4) -> Snapshot:
    snapshot = create_dataset(RangeScheduler(store), rows(0, 10))
    for first in range(10, 10 * num_versions, 10):
        snapshot = append_rows(snapshot, rows(first, first + 10))
    return snapshot


def ids_of(session: Session, snapshot: Snapshot) -> list[int]:
    ids: list[int] = OpenedTable(snapshot, session.files).scan()["id"].to_pylist()
    return ids


def test_a_dataset_is_compacted_cleaned_and_sound(session: Session) -> None:
    store = MemoryStore()
    snapshot = compact(session.files, appended(store), CompactionOptions(20))
    assert [fragment.physical_rows for fragment in snapshot.fragments] == [20, 20]
    assert ids_of(session, snapshot) == list(range(40))
    report = clean_up(snapshot, store, None, CleanupOptions(older_than=NOW))
    assert report.versions == (1, 2, 3, 4, 5)
    assert report.num_files(FileKind.DATA) == 4
    assert ids_of(session, open_snapshot(snapshot.scheduler)) == list(range(40))
    assert list(verify(session.files, snapshot.scheduler, store, refuse_base)) == []


class RacingStore(MemoryStore):
    """Somebody compacts the dataset and appends to it each time that something is committed."""

    num_races = 0

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        if self.num_races > 0:
            left, self.num_races = self.num_races - 1, 0
            self.race()
            self.num_races = left

    def race(self) -> None:
        newest = open_snapshot(RangeScheduler(self))
        files = Session(cache_bytes=1 << 20).files
        compacted = compact(files, newest, CompactionOptions(), IndexTreatment.DEFER)
        append_rows(compacted, rows(1000, 1001))


def test_a_compaction_is_planned_anew_when_another_came_first(session: Session) -> None:
    store = RacingStore()
    snapshot = appended(store)
    store.num_races = 2
    snapshot = compact(session.files, snapshot, CompactionOptions(), IndexTreatment.DROP_COVERAGE)
    assert ids_of(session, open_snapshot(snapshot.scheduler)) == [*range(40), 1000, 1000]
    named = {f"data/{file.path}" for each in snapshot.fragments for file in each.data_files}
    clean_up(snapshot, store, None, CleanupOptions(older_than=NOW))
    assert {meta.path for meta in store.list_tree("data")} == named


def test_a_compaction_that_always_loses_gives_up_and_leaves_no_file(session: Session) -> None:
    store = RacingStore()
    snapshot = appended(store)
    store.num_races = 1000
    with pytest.raises(CommitConflictError):
        compact(session.files, snapshot, CompactionOptions(), IndexTreatment.DROP_COVERAGE)
    store.num_races = 0
    newest = open_snapshot(snapshot.scheduler)
    referenced = {
        f"data/{file.path}"
        for version in range(1, newest.version + 1)
        for each in open_snapshot(snapshot.scheduler, version).fragments
        for file in each.data_files
    }
    assert {meta.path for meta in store.list_tree("data")} == referenced


def test_a_file_that_vanished_is_named(session: Session) -> None:
    store = MemoryStore()
    snapshot = appended(store, 2)
    path = f"data/{snapshot.fragments[1].data_files[0].path}"
    store.delete(path)
    (finding,) = verify(session.files, snapshot.scheduler, store, refuse_base)
    assert str(finding) == f"{path}: named by the manifest but missing"
    with pytest.raises(CorruptFileError, match="missing"):
        compact(session.files, snapshot, CompactionOptions())
    assert len(list(store.list_tree("data"))) == 1
