"""The loop that publishes a version: faults, lost races, and what it refuses."""

from __future__ import annotations

import struct

import pytest

from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    ObjectExistsError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import table_pb2
from lance_core.table.commit import commit
from lance_core.table.flags import Feature
from lance_core.table.naming import NamingScheme, manifest_path
from lance_core.table.snapshot import Snapshot, open_snapshot
from lance_core.table.transaction import (
    Append,
    Clone,
    DataReplacement,
    Delete,
    MapUpdate,
    Operation,
    Overwrite,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Transaction,
    UpdateBases,
    UpdateConfig,
)
from tests.manifest_bytes import dataset_of, fragment_message, int_field, manifest_file

FIELDS = (int_field(0, "id"),)
APPEND = Append((fragment_message(),))


class Unsteady(MemoryStore):
    """A store that fails at some of the manifests put to it, before or after it took them."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[tuple[StoreError, bool]] = []

    def put_if_absent(self, path: str, data: bytes) -> None:
        fault, takes = self.faults.pop(0) if self.faults else (None, True)
        if takes:
            super().put_if_absent(path, data)
        if fault is not None:
            raise fault


def created(store: MemoryStore | None = None) -> Snapshot:
    scheduler = RangeScheduler(MemoryStore() if store is None else store)
    return commit(scheduler, Transaction(0, Overwrite((fragment_message(),), FIELDS)))


def applied(snapshot: Snapshot, operation: Operation) -> Snapshot:
    return commit(snapshot.scheduler, Transaction(snapshot.version, operation))


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("fault", [StoreUnavailableError("x"), StoreThrottledError("x")])
def test_a_passing_fault_commits_once_whether_or_not_the_store_took_it(
    fault: StoreError, takes: bool
) -> None:
    store = Unsteady()
    snapshot = created(store)
    store.faults = [(fault, takes)]
    made = applied(snapshot, APPEND)
    assert (made.version, len(made.fragments)) == (2, 2)
    assert open_snapshot(snapshot.scheduler).version == 2


def test_a_fault_that_stays_is_raised() -> None:
    store = Unsteady()
    snapshot = created(store)
    store.faults = [(StoreUnavailableError("down"), False)] * 3
    with pytest.raises(StoreUnavailableError, match="down"):
        commit(snapshot.scheduler, Transaction(1, APPEND), max_attempts=3)
    assert open_snapshot(snapshot.scheduler).version == 1


def test_who_is_slower_every_time_gives_up() -> None:
    store = Unsteady()
    snapshot = created(store)
    store.faults = [(ObjectExistsError("taken"), False)] * 3
    with pytest.raises(CommitConflictError, match="others were faster 3 times") as caught:
        commit(snapshot.scheduler, Transaction(1, APPEND), max_attempts=3)
    assert caught.value.is_retryable


def without_transaction(snapshot: Snapshot) -> bytes:
    """Return the next version as a writer leaves it that says nothing of what it did."""
    message = table_pb2.Manifest()
    message.CopyFrom(snapshot.manifest.message)
    message.version += 1
    for name in ("transaction_section", "transaction_file", "index_section"):
        message.ClearField(name)
    data = message.SerializeToString()
    return struct.pack("<I", len(data)) + data + struct.pack("<qHH4s", 0, 0, 2, b"LANC")


def test_a_version_without_transaction_conflicts_for_good() -> None:
    snapshot = created()
    store = snapshot.scheduler.store
    store.put(manifest_path(2, NamingScheme.V2), without_transaction(snapshot))
    with pytest.raises(CommitConflictError, match="Append after UnknownOperation") as caught:
        applied(snapshot, APPEND)
    assert not caught.value.is_retryable


def test_a_version_that_is_not_there_yet_was_not_read() -> None:
    snapshot = created()
    with pytest.raises(InvalidRequestError, match="the newest is 1"):
        commit(snapshot.scheduler, Transaction(7, APPEND))


def test_only_an_overwrite_makes_a_dataset() -> None:
    scheduler = RangeScheduler(MemoryStore())
    with pytest.raises(InvalidRequestError, match="Append needs a dataset"):
        commit(scheduler, Transaction(0, APPEND))


def test_a_dataset_may_begin_without_rows() -> None:
    scheduler = RangeScheduler(MemoryStore())
    snapshot = commit(scheduler, Transaction(0, Overwrite((), FIELDS)))
    assert not snapshot.manifest.message.HasField("max_fragment_id")
    assert [fragment.id for fragment in applied(snapshot, APPEND).fragments] == [0]


@pytest.mark.parametrize("bit", [10, 14, 20])
def test_features_that_only_writers_need_stop_only_writers(bit: int) -> None:
    message = created().manifest.message
    message.writer_feature_flags = 1 << 20 if bit == 20 else 0
    if bit != 20:
        message.writer_feature_flags = message.reader_feature_flags = 1 << bit
    scheduler = dataset_of(manifest_file(message))
    if bit == 20:
        assert open_snapshot(scheduler).version == 1
    with pytest.raises(UnsupportedFeatureError):
        commit(scheduler, Transaction(1, APPEND))


def test_a_dataset_without_transaction_files_gets_none() -> None:
    message = created().manifest.message
    message.writer_feature_flags = int(Feature.NO_TRANSACTION_FILES)
    scheduler = dataset_of(manifest_file(message))
    made = commit(scheduler, Transaction(1, APPEND)).manifest
    assert made.message.transaction_file == ""
    assert made.message.writer_feature_flags == Feature.NO_TRANSACTION_FILES
    assert list(scheduler.store.list_tree("_transactions")) == []


def test_flags_follow_what_a_version_contains() -> None:
    snapshot = created()
    deleted = fragment_message()
    deleted.deletion_file.num_deleted_rows = 1
    snapshot = applied(snapshot, Delete((deleted,), ()))
    base = table_pb2.BasePath(id=0, path="/a", is_dataset_root=True)
    snapshot = applied(snapshot, UpdateBases((base,)))
    snapshot = applied(snapshot, UpdateConfig(config=MapUpdate({"a": "b"})))
    flags = snapshot.manifest.flags
    both = Feature.DELETION_FILES | Feature.BASE_PATHS
    assert (flags.reader, flags.writer) == (both, both | Feature.TABLE_CONFIG)
    snapshot = applied(snapshot, Delete((), (0,)))
    assert snapshot.manifest.flags.reader == Feature.BASE_PATHS


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Delete((fragment_message(9),), ()), "no fragment 9"),
        (Delete((), (9,)), "no fragment 9"),
        (DataReplacement((Replacement(9, table_pb2.DataFile(path="x")),)), "no fragment 9"),
        (Rewrite((RewriteGroup((fragment_message(9),), ()),)), "no fragment 9"),
        (ReserveFragments(0), "0 fragments"),
        (UpdateConfig(field_metadata={5: MapUpdate({})}), "no field 5"),
        (Clone(True, None, 1, "", None), "Clone"),
    ],
)
def test_what_does_not_fit_the_dataset_is_refused(operation: Operation, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        applied(created(), operation)


def test_files_of_another_version_are_refused() -> None:
    fragment = fragment_message()
    fragment.files[0].path = "new.lance"
    fragment.files[0].file_minor_version = 0
    with pytest.raises(InvalidRequestError, match=r"new.lance .* 2\.0, .* 2\.2"):
        applied(created(), Append((fragment,)))


def test_a_version_that_is_gone_is_not_restored() -> None:
    with pytest.raises(VersionNotFoundError):
        applied(created(), Restore(7))


def test_a_reservation_moves_the_ids_of_later_fragments() -> None:
    snapshot = applied(created(), ReserveFragments(3))
    assert snapshot.manifest.message.max_fragment_id == 3
    assert [fragment.id for fragment in applied(snapshot, APPEND).fragments] == [0, 4]


def test_what_this_release_does_not_know_reaches_the_next_version() -> None:
    message = created().manifest.message
    message.MergeFromString(bytes.fromhex("a20603616263"))  # field 100: "abc"
    entry = table_pb2.IndexMetadata(name="ix", uuid=table_pb2.UUID(uuid=bytes(16)))
    entry.MergeFromString(bytes.fromhex("a20603616263"))
    scheduler = dataset_of(manifest_file(message, indices=[entry]))
    made = commit(scheduler, Transaction(1, APPEND)).manifest
    assert bytes.fromhex("a20603616263") in made.message.SerializeToString()
    assert made.index_section.indices[0].SerializeToString() == entry.SerializeToString()
