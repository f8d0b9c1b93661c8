"""Epochs of a stream come once, whatever is repeated, raced or forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    StoreError,
    VersionNotFoundError,
)
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.commit import commit
from lance_core.table.commits_since import Lineage
from lance_core.table.naming import NamingScheme, manifest_path
from lance_core.table.snapshot import Snapshot, open_snapshot
from lance_core.table.transaction import (
    Append,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Transaction,
    UpdateConfig,
)
from pipeline.stream_commit import (
    EPOCHS_PER_WATERMARK,
    Outcome,
    Stream,
    Watermark,
    commit_epoch,
    watermark_of,
)
from tests.manifest_bytes import fragment_message, int_field

if TYPE_CHECKING:
    from collections.abc import Callable

STREAM = Stream("orders", "/checkpoints/orders")
FIELDS = (int_field(0, "id"),)
ROWS = Append((fragment_message(),))


class Interrupted(MemoryStore):
    """A store that does something before or after it takes the next manifest."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] | None = None
        self.after: Callable[[], None] | None = None

    def put_if_absent(self, path: str, data: bytes) -> None:
        before, self.before = self.before, None
        if before is not None:
            before()
        super().put_if_absent(path, data)
        after, self.after = self.after, None
        if after is not None:
            after()


def created(store: MemoryStore | None = None) -> Snapshot:
    scheduler = RangeScheduler(MemoryStore() if store is None else store)
    return commit(scheduler, Transaction(0, Overwrite((), FIELDS)))


def begun(store: MemoryStore | None = None) -> Snapshot:
    """Return a table that has got epoch 0 of the stream."""
    snapshot = created(store)
    commit_epoch(snapshot, STREAM, 0, ROWS)
    return newest(snapshot)


def newest(snapshot: Snapshot) -> Snapshot:
    return open_snapshot(snapshot.scheduler)


def applied(snapshot: Snapshot, operation: Operation) -> Snapshot:
    return commit(snapshot.scheduler, Transaction(snapshot.version, operation))


def epochs(snapshot: Snapshot, stream: Stream = STREAM) -> list[int]:
    """Return the epochs of a stream that a table has got, in their order."""
    lineage = Lineage(snapshot.scheduler)
    lineage.refresh()
    found = [each.transaction.properties for each in lineage.commits_after(0)]
    return [
        int(each["pipeline.stream.epoch"])
        for each in found
        if each.get("pipeline.stream.query_id") == stream.query_id
    ]


def stop() -> None:
    message = "the driver died"
    raise RuntimeError(message)


def test_an_epoch_says_in_its_own_transaction_which_one_it_is():
    snapshot = created()
    outcome = commit_epoch(snapshot, STREAM, 0, ROWS, num_items=3)
    assert outcome == Outcome(Watermark(0, 3), 3)
    lineage = Lineage(snapshot.scheduler)
    lineage.refresh()
    assert lineage.commits_after(2)[0].transaction.properties == {
        "pipeline.kind": "stream-ingest",
        "pipeline.item_count": "3",
        "pipeline.stream.query_id": "orders",
        "pipeline.stream.epoch": "0",
        "pipeline.stream.checkpoint": "/checkpoints/orders",
    }
    assert len(newest(snapshot).fragments) == 1


def test_the_table_says_where_the_first_epoch_is_to_be_looked_for():
    snapshot = begun()
    assert watermark_of(snapshot.manifest.config, STREAM) == Watermark(-1, 1)


def test_an_epoch_that_is_repeated_is_there_already():
    snapshot = begun()
    commit_epoch(snapshot, STREAM, 1, ROWS)
    repeated = commit_epoch(newest(snapshot), STREAM, 1, ROWS)
    assert repeated.version is None
    assert epochs(snapshot) == [0, 1]
    assert len(newest(snapshot).fragments) == 2


def test_a_driver_that_dies_after_the_effect_of_its_commit_commits_once():
    store = Interrupted()
    snapshot = begun(store)
    store.after = stop
    with pytest.raises(RuntimeError):
        commit_epoch(snapshot, STREAM, 1, ROWS)
    assert commit_epoch(newest(snapshot), STREAM, 1, ROWS).version is None
    assert epochs(snapshot) == [0, 1]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_driver_that_dies_writing_the_first_watermark_begins_anew(moment):
    store = Interrupted()
    snapshot = created(store)
    setattr(store, moment, stop)
    with pytest.raises(RuntimeError):
        commit_epoch(snapshot, STREAM, 0, ROWS)
    assert commit_epoch(newest(snapshot), STREAM, 0, ROWS).version is not None
    assert epochs(snapshot) == [0]


def test_of_two_drivers_only_the_faster_one_commits():
    store = Interrupted()
    snapshot = begun(store)
    store.before = lambda: check_new(commit_epoch(snapshot, STREAM, 1, ROWS))
    assert commit_epoch(snapshot, STREAM, 1, ROWS).version is None
    assert epochs(snapshot) == [0, 1]


def check_new(outcome: Outcome) -> None:
    assert outcome.version is not None


def test_two_drivers_may_begin_at_the_same_time():
    store = Interrupted()
    snapshot = created(store)
    store.before = lambda: check_new(commit_epoch(snapshot, STREAM, 0, ROWS))
    assert commit_epoch(snapshot, STREAM, 0, ROWS).version is None
    assert epochs(snapshot) == [0]


def test_others_may_write_while_an_epoch_is_committed():
    store = Interrupted()
    snapshot = begun(store)
    store.before = lambda: check_new(commit_epoch(snapshot, Stream("others"), 1, ROWS))
    check_new(commit_epoch(snapshot, STREAM, 1, ROWS))
    assert epochs(snapshot) == [0, 1]
    assert epochs(snapshot, Stream("others")) == [1]
    assert len(newest(snapshot).fragments) == 3


def grown(num_epochs: int) -> Snapshot:
    snapshot = created()
    seen = None
    for number in range(num_epochs):
        seen = commit_epoch(snapshot, STREAM, number, ROWS, seen=seen).watermark
    return newest(snapshot)


def test_the_watermark_moves_every_64_epochs():
    snapshot = grown(EPOCHS_PER_WATERMARK - 1)
    assert watermark_of(snapshot.manifest.config, STREAM) == Watermark(-1, 1)
    commit_epoch(snapshot, STREAM, 63, ROWS)
    mark = watermark_of(newest(snapshot).manifest.config, STREAM)
    assert mark == Watermark(63, 66)
    assert newest(snapshot).version == 67
    assert commit_epoch(newest(snapshot), STREAM, 63, ROWS).version is None
    assert commit_epoch(newest(snapshot), STREAM, 64, ROWS).version == 68


def forget(snapshot: Snapshot, version: int) -> None:
    snapshot.scheduler.store.delete(manifest_path(version, NamingScheme.V2))


def test_versions_up_to_the_watermark_may_be_removed():
    snapshot = grown(EPOCHS_PER_WATERMARK)
    for version in range(1, 66):
        forget(snapshot, version)
    assert commit_epoch(snapshot, STREAM, 63, ROWS).version is None
    assert commit_epoch(snapshot, STREAM, 64, ROWS).version == 68


def test_an_epoch_that_nobody_can_look_for_is_refused():
    snapshot = grown(5)
    forget(snapshot, 4)
    with pytest.raises(VersionNotFoundError, match=r"version 4 was removed.*epoch 5.*orders"):
        commit_epoch(snapshot, STREAM, 5, ROWS)
    assert newest(snapshot).version == 7
    entries = {STREAM.key("version"): "7", STREAM.key("epoch"): "4"}
    applied(snapshot, UpdateConfig(config=MapUpdate(entries)))
    assert commit_epoch(snapshot, STREAM, 5, ROWS).version == 9


def test_a_driver_that_has_seen_the_table_looks_no_further_back():
    snapshot = grown(5)
    seen = commit_epoch(snapshot, STREAM, 5, ROWS).watermark
    forget(snapshot, 4)
    check_new(commit_epoch(newest(snapshot), STREAM, 6, ROWS, seen=seen))
    with pytest.raises(VersionNotFoundError):  # what was seen does not tell of epochs before
        commit_epoch(newest(snapshot), STREAM, 5, ROWS, seen=seen)


def test_what_was_seen_of_a_table_is_forgotten_with_it():
    snapshot = grown(5)
    seen = commit_epoch(snapshot, STREAM, 5, ROWS).watermark
    anew = created()
    assert commit_epoch(anew, STREAM, 6, ROWS, seen=seen).version == 3
    assert commit_epoch(anew, STREAM, 6, ROWS, seen=seen).version is None


def test_two_queries_of_one_name_are_told_apart_by_their_checkpoints():
    snapshot = begun()
    with pytest.raises(InvalidRequestError, match="checkpoint at /checkpoints/orders, not at /x"):
        commit_epoch(snapshot, Stream("orders", "/x"), 1, ROWS)
    applied(snapshot, UpdateConfig(config=MapUpdate({STREAM.key("checkpoint"): None})))
    with pytest.raises(InvalidRequestError, match="cannot share a queryId"):
        commit_epoch(snapshot, Stream("orders", "/x"), 1, ROWS)
    check_new(commit_epoch(snapshot, Stream("orders"), 1, ROWS))


def test_an_epoch_without_rows_commits_nothing():
    snapshot = created()
    assert commit_epoch(snapshot, STREAM, 0, Append(())) == Outcome(None)
    assert newest(snapshot).version == 1


def test_a_stream_that_replaces_all_rows_does_so_without_rows_too():
    snapshot = begun()
    for number, fragments in ((1, (fragment_message(),) * 2), (2, ())):
        check_new(commit_epoch(snapshot, STREAM, number, Overwrite(fragments, FIELDS)))
        assert len(newest(snapshot).fragments) == len(fragments)
    assert commit_epoch(snapshot, STREAM, 1, Overwrite(ROWS.fragments, FIELDS)).version is None
    assert len(newest(snapshot).fragments) == 0


def test_a_stream_that_replaces_all_rows_does_so_over_what_others_put_in_their_place():
    store = Interrupted()
    snapshot = begun(store)
    replaced = Overwrite((fragment_message(),) * 3, FIELDS)
    store.before = lambda: check_there(applied(snapshot, Overwrite((), FIELDS)))
    check_new(commit_epoch(snapshot, STREAM, 1, replaced))
    assert len(newest(snapshot).fragments) == 3
    assert epochs(snapshot) == [0, 1]


def check_there(snapshot: Snapshot) -> None:
    assert snapshot.version > 1


def test_rows_are_not_put_on_top_of_others_that_replaced_all():
    snapshot = begun()
    applied(snapshot, Overwrite((), FIELDS))
    with pytest.raises(CommitConflictError):
        commit_epoch(snapshot, STREAM, 1, ROWS)
    check_new(commit_epoch(newest(snapshot), STREAM, 1, ROWS))


def test_rows_go_to_a_table_that_got_a_column_meanwhile():
    snapshot = begun()
    fragments = tuple(snapshot.manifest.message.fragments)
    applied(snapshot, Merge(fragments, (*FIELDS, int_field(1, "price"))))
    check_new(commit_epoch(snapshot, STREAM, 1, ROWS))
    assert newest(snapshot).schema.names == ("id", "price")
    assert len(newest(snapshot).fragments) == 2


def test_rows_of_columns_that_became_others_are_refused():
    snapshot = begun()
    fragments = tuple(snapshot.manifest.message.fragments)
    changed = int_field(0, "id")
    changed.logical_type = "string"
    applied(snapshot, Merge(fragments, (changed,)))
    with pytest.raises(InvalidRequestError, match="'id' was changed"):
        commit_epoch(snapshot, STREAM, 1, ROWS)


def test_a_name_that_no_key_can_hold_is_refused():
    with pytest.raises(InvalidRequestError, match="queryId is 'a b'"):
        Stream("a b")


def test_a_watermark_that_is_no_number_is_refused():
    config = {STREAM.key("epoch"): "one", STREAM.key("version"): "2"}
    with pytest.raises(InvalidRequestError, match="epoch 'one'"):
        watermark_of(config, STREAM)


def test_a_watermark_that_cannot_be_moved_moves_later():
    store = Interrupted()
    snapshot = created(store)
    for number in range(EPOCHS_PER_WATERMARK - 1):
        commit_epoch(snapshot, STREAM, number, ROWS)
    store.after = lambda: check_there(
        applied(newest(snapshot), UpdateConfig(config=MapUpdate({STREAM.key("epoch"): "-1"})))
    )
    check_new(commit_epoch(newest(snapshot), STREAM, 63, ROWS))
    assert watermark_of(newest(snapshot).manifest.config, STREAM) == Watermark(-1, 1)
    check_new(commit_epoch(newest(snapshot), STREAM, 64, ROWS))
    assert watermark_of(newest(snapshot).manifest.config, STREAM) == Watermark(64, 68)


def test_a_store_that_fails_leaves_the_epoch_to_the_next_call():
    store = Interrupted()
    snapshot = begun(store)

    def fail() -> None:
        message = "lost"
        raise StoreError(message)

    store.after = fail
    with pytest.raises(StoreError):
        commit_epoch(snapshot, STREAM, 1, ROWS)
    assert commit_epoch(snapshot, STREAM, 1, ROWS).version is None
    assert epochs(snapshot) == [0, 1]
