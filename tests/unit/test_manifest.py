from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyroaring import BitMap

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.proto import table_pb2
from lance_core.table.flags import Feature
from lance_core.table.fragment import DeletionFileType
from lance_core.table.manifest import Manifest, check_supported, read_manifest
from lance_core.table.versions import find_manifest
from tests.manifest_bytes import (
    FOOTER_BYTES,
    dataset_of,
    fragment_message,
    manifest_file,
    manifest_message,
)

if TYPE_CHECKING:
    from collections.abc import Callable

UUID = bytes(range(16))


def read(data: bytes) -> Manifest:
    scheduler = dataset_of(data)
    return read_manifest(scheduler, find_manifest(scheduler.store).meta)


def read_message(message: table_pb2.Manifest) -> Manifest:
    return read(manifest_file(message))


def index_message(**changes: object) -> table_pb2.IndexMetadata:
    fields = {
        "uuid": table_pb2.UUID(uuid=UUID),
        "fields": [0],
        "name": "ix",
        "fragment_bitmap": BitMap([0, 7]).serialize(),
    }
    return table_pb2.IndexMetadata(**{**fields, **changes})  # type: ignore[arg-type]  # test data


def read_index(**changes: object) -> Manifest:
    return read(manifest_file(manifest_message(), indices=[index_message(**changes)]))


def test_schema_and_fragments_come_from_the_message() -> None:
    manifest = read_message(manifest_message())
    assert manifest.schema.names == ("id",)
    (fragment,) = manifest.fragments
    assert (fragment.id, fragment.physical_rows, fragment.num_live_rows) == (0, 10, 10)
    assert fragment.data_files[0].path == "f0.lance"
    assert fragment.data_files[0].columns == {0: 0}


def test_a_manifest_without_an_index_section_has_no_indices() -> None:
    assert read_message(manifest_message()).indices == ()


def test_an_index_section_at_byte_0_is_read() -> None:
    (index,) = read_index().indices
    assert index.uuid == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert index.fragment_bitmap == BitMap([0, 7])


def test_no_bitmap_bytes_mean_unknown_coverage() -> None:
    (index,) = read_index(fragment_bitmap=b"").indices
    assert index.fragment_bitmap is None


def test_a_bitmap_without_members_is_not_unknown_coverage() -> None:
    (index,) = read_index(fragment_bitmap=BitMap().serialize()).indices
    assert index.fragment_bitmap == BitMap()


def test_an_absent_index_version_is_0_and_an_absent_time_is_none() -> None:
    (index,) = read_index().indices
    assert index.index_version == 0
    assert index.created_at_ms is None


@pytest.mark.parametrize(
    "url",
    ["/lance.table.BTreeIndexDetails", "type.googleapis.com/lance.index.pb.BTreeIndexDetails"],
)
def test_the_type_name_is_the_last_part_of_the_type_url(url: str) -> None:
    message = index_message()
    message.index_details.type_url = url
    (index,) = read(manifest_file(manifest_message(), indices=[message])).indices
    assert index.type_name == "BTreeIndexDetails"


def test_an_index_without_details_has_no_type_name() -> None:
    (index,) = read_index().indices
    assert index.type_name == ""


def test_covered_columns_are_not_columns_the_index_is_built_on() -> None:
    (index,) = read_index(fields=[3, 1, 2], covering_fields=[1, 2]).indices
    assert index.field_ids == (3,)


def test_system_entries_are_told_apart() -> None:
    (index,) = read_index(name="__lance_frag_reuse").indices
    assert index.is_system


def test_an_index_uuid_of_the_wrong_length_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="UUID of 3 bytes"):
        _ = read_index(uuid=table_pb2.UUID(uuid=b"abc")).indices


def test_a_broken_fragment_bitmap_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="roaring"):
        _ = read_index(fragment_bitmap=b"nonsense").indices


def test_unknown_fields_stay_in_the_message() -> None:
    unknown = b"\xba\x3e\x02hi"  # field 999
    message = table_pb2.Manifest.FromString(manifest_message().SerializeToString() + unknown)
    assert unknown in read_message(message).message.SerializeToString()


def test_the_time_of_the_commit_is_utc() -> None:
    message = manifest_message()
    message.timestamp.FromDatetime(datetime(2026, 11, 27, 21, 8, 42, 160000, tzinfo=UTC))
    assert read_message(message).timestamp == datetime(2026, 11, 27, 21, 8, 42, 160000, tzinfo=UTC)


def test_a_time_that_was_not_recorded_is_none() -> None:
    assert read_message(manifest_message()).timestamp is None


def test_a_time_beyond_all_years_is_corrupt() -> None:
    message = manifest_message()
    message.timestamp.seconds = 2**62
    with pytest.raises(CorruptFileError, match="timestamp"):
        _ = read_message(message).timestamp


def test_fragments_keep_the_order_of_the_manifest() -> None:
    message = manifest_message()
    del message.fragments[:]
    message.fragments.extend([fragment_message(5), fragment_message(2)])
    manifest = read_message(message)
    assert [fragment.id for fragment in manifest.fragments] == [5, 2]
    assert list(manifest.fragments_by_id) == [5, 2]


def test_negative_field_ids_and_columns_name_nothing() -> None:
    message = manifest_message()
    file = message.fragments[0].files[0]
    file.fields[:] = [0, -2, 4, 5]
    file.column_indices[:] = [0, 1, -1, 2]
    (fragment,) = read_message(message).fragments
    assert fragment.data_files[0].columns == {0: 0, 5: 2}


@pytest.mark.parametrize(
    ("version", "is_legacy"), [((0, 0), True), ((0, 2), True), ((0, 3), False), ((2, 0), False)]
)
def test_files_below_version_0_3_are_legacy(version: tuple[int, int], is_legacy: bool) -> None:
    message = manifest_message()
    file = message.fragments[0].files[0]
    file.file_major_version, file.file_minor_version = version
    (fragment,) = read_message(message).fragments
    assert fragment.data_files[0].is_legacy is is_legacy


def test_a_size_of_0_means_not_recorded() -> None:
    message = manifest_message()
    message.fragments[0].files[0].file_size_bytes = 0
    assert read_message(message).fragments[0].data_files[0].size is None


def test_a_deletion_file_is_named_by_fragment_read_version_and_id() -> None:
    message = manifest_message()
    message.fragments[0].deletion_file.CopyFrom(
        table_pb2.DeletionFile(
            file_type=table_pb2.DeletionFile.BITMAP,
            read_version=3,
            id=2**64 - 1,
            num_deleted_rows=4,
        )
    )
    (fragment,) = read_message(message).fragments
    assert fragment.deletion_file is not None
    assert fragment.deletion_file.file_type is DeletionFileType.BITMAP
    assert fragment.deletion_file.file_name(fragment.id) == f"0-3-{2**64 - 1}.bin"
    assert fragment.num_live_rows == 6


def test_overlay_files_are_refused() -> None:
    message = manifest_message()
    message.fragments[0].overlays.add()
    with pytest.raises(UnsupportedFeatureError, match="overlay"):
        _ = read_message(message).fragments


def _no_column(message: table_pb2.Manifest) -> None:
    message.fragments[0].files[0].column_indices[:] = []


def _same_id(message: table_pb2.Manifest) -> None:
    message.fragments.append(fragment_message(0))


def _tombstone_id(message: table_pb2.Manifest) -> None:
    message.fragments[0].id = 0xFFFF_FFFF


def _more_deleted_than_there_are(message: table_pb2.Manifest) -> None:
    message.fragments[0].deletion_file.num_deleted_rows = 11


def _too_many_rows(message: table_pb2.Manifest) -> None:
    message.fragments[0].physical_rows = 2**32 + 1


def _unknown_deletion_type(message: table_pb2.Manifest) -> None:
    message.fragments[0].deletion_file.MergeFromString(b"\x08\x07")


@pytest.mark.parametrize(
    "spoil",
    [
        _no_column,
        _same_id,
        _tombstone_id,
        _more_deleted_than_there_are,
        _too_many_rows,
        _unknown_deletion_type,
    ],
)
def test_fragments_that_contradict_themselves_are_corrupt(
    spoil: Callable[[table_pb2.Manifest], None],
) -> None:
    message = manifest_message()
    spoil(message)
    with pytest.raises(CorruptFileError, match="_versions/"):
        _ = read_message(message).fragments


def test_an_unsupported_feature_is_refused_by_name() -> None:
    message = manifest_message()
    message.reader_feature_flags = message.writer_feature_flags = int(Feature.DATA_OVERLAY_FILES)
    with pytest.raises(UnsupportedFeatureError, match="data overlay files"):
        check_supported(read_message(message))


def test_a_fragment_tree_is_refused() -> None:
    message = manifest_message()
    message.fragment_tree.tree.SetInParent()
    with pytest.raises(UnsupportedFeatureError, match="tree"):
        check_supported(read_message(message))


def test_a_foreign_file_format_is_refused() -> None:
    message = manifest_message()
    message.data_format.file_format = "parquet"
    with pytest.raises(UnsupportedFeatureError, match="parquet"):
        check_supported(read_message(message))


def test_an_absent_data_format_is_no_reason_to_refuse() -> None:
    message = manifest_message()
    message.ClearField("data_format")
    check_supported(read_message(message))


def with_position(data: bytes, position: int) -> bytes:
    return data[:-FOOTER_BYTES] + struct.pack("<q", position) + data[-8:]


GOOD = manifest_file(manifest_message(), indices=[index_message()])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOOD[-FOOTER_BYTES + 1 :],
        GOOD[-FOOTER_BYTES:],
        GOOD[:-1] + b"X",
        with_position(GOOD, -1),
        with_position(GOOD, len(GOOD)),
        with_position(GOOD, 2**62),
        with_position(GOOD, len(GOOD) - FOOTER_BYTES - 3),
        with_position(GOOD, 4),
    ],
    ids=[
        "empty",
        "part of a footer",
        "only a footer",
        "wrong magic",
        "negative position",
        "position at the end",
        "position far outside",
        "no room for a length",
        "position inside another section",
    ],
)
def test_a_broken_container_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="_versions/"):
        read(data)


def test_an_index_section_beyond_the_file_is_corrupt() -> None:
    message = manifest_message()
    message.index_section = 10**9
    with pytest.raises(CorruptFileError, match="section"):
        read_message(message)
