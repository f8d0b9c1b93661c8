"""What a cleanup keeps, and removes, for what it is told about streams and jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.io.store import ObjectMeta
from lance_core.operations.append import append_rows, create_dataset
from lance_core.operations.cleanup import clean_up
from lance_core.operations.cleanup_plan import (
    CleanupOptions,
    Writers,
    oldest_watermark,
    select_files,
)
from lance_core.table.commit import commit
from lance_core.table.transaction import MapUpdate, Transaction, UpdateConfig
from lance_core.table.versions import list_manifests

if TYPE_CHECKING:
    from lance_core.table.snapshot import Snapshot

NOW = datetime(2026, 11, 28, tzinfo=UTC)
AT_ONCE = CleanupOptions(older_than=timedelta(0))


def appended(store: MemoryStore, num_versions: int) -> Snapshot:
    snapshot = create_dataset(RangeScheduler(store), pa.table({"id": [0]}))
    for number in range(1, num_versions):
        snapshot = append_rows(snapshot, pa.table({"id": [number]}))
    return snapshot


def configured(snapshot: Snapshot, **entries: str | None) -> Snapshot:
    config = MapUpdate({f"pipeline.stream.{key}": value for key, value in entries.items()})
    return commit(snapshot.scheduler, Transaction(snapshot.version, UpdateConfig(config)))


def removed(options: CleanupOptions, writers: Writers, **hours_old: float) -> set[str]:
    objects = [
        ObjectMeta(f"data/{name}.lance", 1, None, NOW - timedelta(hours=hours))
        for name, hours in hours_old.items()
    ]
    found = select_files(objects, {"data/needed"}, {"data/old"}, options, writers, NOW)
    return {each.path.removeprefix("data/").removesuffix(".lance") for each in found}


def test_versions_back_to_the_oldest_watermark_stay_until_the_stream_is_over() -> None:
    store = MemoryStore()
    snapshot = configured(
        appended(store, 6), **{"a.epoch": "64", "a.version": "5", "b.x.version": "3"}
    )
    assert clean_up(snapshot, store, None, AT_ONCE).versions == (1, 2)
    snapshot = configured(snapshot, **{"b.x.version": None})
    report = clean_up(snapshot, store, None, CleanupOptions(versions=[3, 4, 5]))
    assert report.versions == (3, 4)


def test_a_watermark_that_is_no_version_stops_the_cleanup() -> None:
    store = MemoryStore()
    snapshot = configured(appended(store, 3), **{"a.version": "soon"})
    with pytest.raises(InvalidRequestError, match=r"a[.]version is 'soon'"):
        clean_up(snapshot, store, None, AT_ONCE)
    assert len(list_manifests(store)) == 4
    assert oldest_watermark({"pipeline.stream.a.epoch": "1", "other.version": "x"}) is None


def test_versions_that_a_job_may_go_on_from_stay() -> None:
    store = MemoryStore()
    snapshot = appended(store, 5)
    writers = Writers(oldest_version=4)
    assert clean_up(snapshot, store, None, AT_ONCE, writers=writers).versions == (1, 2, 3)


def test_orphans_go_after_an_hour_and_pending_files_never() -> None:
    writers = Writers(
        pending=frozenset(("data/pending", "data/old")),
        orphans=frozenset(("data/left", "data/new")),
    )
    ages = {"needed": 999.0, "old": 0.5, "pending": 999, "left": 1.1, "new": 0.9, "other": 167}
    assert removed(AT_ONCE, writers, **ages) == {"left"}
    assert removed(AT_ONCE, Writers(), **ages) == {"old", "pending"}
    assert removed(AT_ONCE, writers, other=169) == {"other"}


def test_nothing_unverified_goes_at_once_while_somebody_may_be_writing() -> None:
    options = CleanupOptions(delete_unverified=True)
    assert removed(options, Writers(), new=0.1, needed=1) == {"new"}
    assert removed(options, Writers(are_at_work=True), new=0.1, old=0.1, left=200) == {
        "old",
        "left",
    }
