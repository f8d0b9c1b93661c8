from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_core.errors import CorruptFileError, DatasetNotFoundError, VersionNotFoundError
from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import table_pb2
from lance_core.table.naming import NamingScheme, manifest_path
from lance_core.table.snapshot import list_versions, open_snapshot
from tests.manifest_bytes import (
    dataset_of,
    fragment_message,
    manifest_file,
    manifest_message,
    scheduler_of,
)

PATH = manifest_path(1, NamingScheme.V2)
INDEX = table_pb2.IndexMetadata(uuid=table_pb2.UUID(uuid=bytes(16)), name="ix")


def counting(data: bytes) -> tuple[RangeScheduler, CountingStore]:
    store = MemoryStore()
    store.put(PATH, data)
    counted = CountingStore(store)
    return RangeScheduler(counted), counted


def large_message(num_fragments: int) -> table_pb2.Manifest:
    message: table_pb2.Manifest = manifest_message()
    message.fragments.extend(fragment_message(number) for number in range(1, num_fragments))
    return message


def test_the_latest_version_is_opened_by_default() -> None:
    scheduler = dataset_of(*(manifest_file(manifest_message(version)) for version in (1, 2)))
    assert open_snapshot(scheduler).version == 2


def test_an_older_version_is_opened_by_number() -> None:
    scheduler = dataset_of(*(manifest_file(manifest_message(version)) for version in (1, 2)))
    assert open_snapshot(scheduler, 1).version == 1


def test_a_snapshot_has_the_parts_of_its_manifest() -> None:
    snapshot = open_snapshot(dataset_of(manifest_file(manifest_message(), indices=[INDEX])))
    assert snapshot.schema.names == ("id",)
    assert [fragment.id for fragment in snapshot.fragments] == [0]
    assert list(snapshot.fragments_by_id) == [0]
    assert [index.name for index in snapshot.indices] == ["ix"]


def test_an_empty_folder_is_no_dataset() -> None:
    with pytest.raises(DatasetNotFoundError):
        open_snapshot(scheduler_of({}))


def test_an_unknown_version_is_not_found() -> None:
    with pytest.raises(VersionNotFoundError):
        open_snapshot(dataset_of(manifest_file(manifest_message())), 7)


def test_a_manifest_that_states_another_version_than_its_name_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="states version 5, its name 1"):
        open_snapshot(dataset_of(manifest_file(manifest_message(5))))


def test_a_small_manifest_takes_one_read() -> None:
    data = manifest_file(manifest_message(), indices=[INDEX], transaction=b"t" * 500)
    scheduler, counted = counting(data)
    open_snapshot(scheduler)
    assert counted.ranges == [(PATH, 0, len(data))]
    assert counted.num_requests == 2  # a listing and this one


def test_what_lies_before_the_manifest_is_not_read() -> None:
    data = manifest_file(manifest_message(), transaction=b"t" * 500_000)
    scheduler, counted = counting(data)
    open_snapshot(scheduler)
    assert counted.ranges == [(PATH, len(data) - 65536, len(data))]


def test_a_large_manifest_takes_one_more_read_of_what_was_missing() -> None:
    data = manifest_file(large_message(3000))
    scheduler, counted = counting(data)
    assert len(open_snapshot(scheduler).fragments) == 3000
    assert counted.bytes_read == len(data) - 4  # all but the empty transaction's length
    assert len(counted.ranges) == 2


def test_an_index_section_out_of_reach_takes_one_read_of_just_itself() -> None:
    data = manifest_file(manifest_message(), indices=[INDEX], transaction=b"t" * 500_000)
    scheduler, counted = counting(data)
    assert open_snapshot(scheduler).indices[0].name == "ix"
    section = 4 + table_pb2.IndexSection(indices=[INDEX]).ByteSize()
    assert counted.ranges == [(PATH, len(data) - 65536, len(data)), (PATH, 0, section)]


def test_an_index_section_that_straddles_the_first_read_is_put_together() -> None:
    indices = [
        table_pb2.IndexMetadata(uuid=table_pb2.UUID(uuid=bytes(16)), name=f"ix{number}")
        for number in range(4000)
    ]
    scheduler, counted = counting(manifest_file(manifest_message(), indices=indices))
    assert [index.name for index in open_snapshot(scheduler).indices][-1] == "ix3999"
    assert len(counted.ranges) == 2


def test_the_same_version_opened_twice_is_the_same_incarnation() -> None:
    scheduler = dataset_of(manifest_file(manifest_message()))
    assert open_snapshot(scheduler).incarnation == open_snapshot(scheduler).incarnation


def test_a_dataset_made_anew_at_the_same_place_is_another_incarnation() -> None:
    scheduler = dataset_of(manifest_file(manifest_message()))
    before = open_snapshot(scheduler).incarnation
    scheduler.store.put(PATH, manifest_file(manifest_message()))
    assert open_snapshot(scheduler).incarnation != before


def test_versions_are_listed_with_the_time_of_their_commit() -> None:
    message = manifest_message()
    message.timestamp.FromDatetime(datetime(2020, 1, 2, tzinfo=UTC))
    data = manifest_file(message)
    (info,) = list_versions(dataset_of(data))
    assert (info.version, info.timestamp) == (1, datetime(2020, 1, 2, tzinfo=UTC))
    assert (info.manifest_path, info.manifest_size) == (PATH, len(data))


def test_a_version_without_a_time_has_that_of_its_file() -> None:
    scheduler = dataset_of(manifest_file(manifest_message()))
    (info,) = list_versions(scheduler)
    assert info.timestamp == scheduler.store.head(PATH).last_modified


def test_versions_that_need_unsupported_features_are_listed_all_the_same() -> None:
    message = manifest_message()
    message.reader_feature_flags = message.writer_feature_flags = 2
    assert [info.version for info in list_versions(dataset_of(manifest_file(message)))] == [1]
