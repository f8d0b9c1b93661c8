"""Scans and takes of datasets written by pylance: order, batches, bytes, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError, InvalidRequestError, UnsupportedFeatureError
from lance_core.row_address import pack_row_addresses
from lance_core.scan.ranks import addresses_of_ranks
from lance_core.scan.rows import count_rows, scan_rows
from lance_core.scan.take import take_rows
from tests.manifest_bytes import manifest_file
from tests.opened_table import OpenedTable, open_counted, open_table

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop


def write(root: Path, num_rows: int = 100, **options: object) -> lance.LanceDataset:
    table = pa.table({"id": np.arange(num_rows), "half": np.arange(num_rows) / 2})
    arguments = {"max_rows_per_file": 30, **options}
    return lance.write_dataset(table, root, **arguments)  # type: ignore[arg-type]  # passed on


def addresses(*rows: tuple[int, int]) -> NDArray[np.uint64]:
    fragments, offsets = zip(*rows, strict=True)
    return pack_row_addresses(np.array(fragments, np.uint32), np.array(offsets, np.uint32))


@pytest.fixture
def deleted(tmp_path: Path) -> OpenedTable:
    """Four fragments of 30, 30, 30 and 10 rows, every seventh row deleted."""
    write(tmp_path / "t.lance").delete("id % 7 = 3")
    return open_table(tmp_path / "t.lance")


def test_counting_needs_no_data_file(tmp_path: Path) -> None:
    write(tmp_path / "t.lance").delete("id % 7 = 3")
    ours, store = open_counted(tmp_path / "t.lance")
    store.reset()
    assert count_rows(ours.files, ours.snapshot) == 86
    assert store.num_requests == 0


def test_batches_are_bounded_and_end_with_the_fragment(deleted: OpenedTable) -> None:
    batches = scan_rows(deleted.files, deleted.snapshot, deleted.projection(["id"]), batch_rows=8)
    assert [batch.num_rows for batch in batches] == [8, 8, 8, 2, 8, 8, 8, 1, 8, 8, 8, 2, 8, 1]


def test_an_offset_counts_live_rows(deleted: OpenedTable) -> None:
    part = deleted.scan(["id", "_rowoffset"], offset=25, limit=4)
    assert part["id"].to_pylist() == [29, 30, 32, 33]
    assert part["_rowoffset"].to_pylist() == [25, 26, 27, 28]


@pytest.mark.parametrize(("offset", "limit"), [(86, None), (1000, 5), (0, 0), (10, 0)])
def test_an_empty_part_has_the_schema_of_the_whole(
    deleted: OpenedTable, offset: int, limit: int | None
) -> None:
    part = deleted.scan(["id"], offset=offset, limit=limit)
    assert part.num_rows == 0
    assert part.schema == pa.schema([("id", pa.int64())])


def test_a_huge_limit_is_no_limit(deleted: OpenedTable) -> None:
    assert deleted.scan(["id"], limit=2**63 - 1).num_rows == 86


def test_fragments_before_the_offset_and_after_the_limit_are_not_read(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t.lance")
    ours, store = open_counted(tmp_path / "t.lance")
    store.reset()
    ours.scan(["id"], offset=65, limit=5)
    third = dataset.get_fragments()[2].data_files()[0].path
    assert {path for path, _, _ in store.ranges} == {f"data/{third}"}


def test_no_column_at_all_still_counts_rows(deleted: OpenedTable) -> None:
    assert deleted.scan([]).num_rows == 86


def test_pseudo_columns_alone_need_no_data_file(tmp_path: Path) -> None:
    write(tmp_path / "t.lance")
    ours, store = open_counted(tmp_path / "t.lance")
    store.reset()
    ours.scan(["_rowid", "_rowaddr", "_rowoffset"])
    assert store.num_requests == 0


def test_lineage_columns_are_1_on_a_table_without_stable_row_ids(deleted: OpenedTable) -> None:
    columns = ["_row_created_at_version", "_row_last_updated_at_version"]
    theirs = lance.dataset(deleted.snapshot.scheduler.store.uri).to_table(columns=columns)
    assert deleted.scan(columns).equals(theirs)


def test_taken_rows_come_in_the_order_asked_for(deleted: OpenedTable) -> None:
    table = deleted.take(addresses((3, 5), (0, 29), (3, 5), (1, 2)), ["half", "id", "_rowoffset"])
    assert table.to_pylist() == [
        {"half": 47.5, "id": 95, "_rowoffset": 81},
        {"half": 14.5, "id": 29, "_rowoffset": 25},
        {"half": 47.5, "id": 95, "_rowoffset": 81},
        {"half": 16.0, "id": 32, "_rowoffset": 27},
    ]


def test_taking_nothing_gives_an_empty_table(deleted: OpenedTable) -> None:
    table = deleted.take(np.empty(0, np.uint64), ["id"])
    assert table.num_rows == 0
    assert table.schema == pa.schema([("id", pa.int64())])


def test_a_rank_names_the_row_in_that_place_of_a_scan(deleted: OpenedTable) -> None:
    ranks = np.array([85, 0, 26, 25, 0, 3], np.int64)
    found = addresses_of_ranks(deleted.files, deleted.snapshot, ranks)
    whole = deleted.scan(["_rowaddr"])["_rowaddr"].combine_chunks().to_numpy()
    np.testing.assert_array_equal(found, whole[ranks])


@pytest.mark.parametrize("rank", [-1, 86])
def test_a_rank_outside_the_table_is_refused(deleted: OpenedTable, rank: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"row {rank} is asked for, the table has 86"):
        addresses_of_ranks(deleted.files, deleted.snapshot, np.array([0, rank], np.int64))


@pytest.mark.parametrize("row", [(9, 0), (0, 30), (3, 10)])
def test_an_address_that_names_no_row_is_refused(
    deleted: OpenedTable, row: tuple[int, int]
) -> None:
    with pytest.raises(InvalidRequestError):
        deleted.take(addresses((0, 0), row), ["id"])


def test_a_deleted_row_is_refused_when_the_caller_wants_it_checked(deleted: OpenedTable) -> None:
    with pytest.raises(InvalidRequestError, match="row 3 of fragment 0 is deleted"):
        take_rows(
            deleted.files,
            deleted.snapshot,
            addresses((0, 2), (0, 3)),
            deleted.projection(["id"]),
            check_live=True,
        )


def test_a_second_take_reads_only_the_rows(tmp_path: Path) -> None:
    write(tmp_path / "t.lance")
    ours, store = open_counted(tmp_path / "t.lance")
    ours.take(addresses((0, 1)), ["id"])
    store.reset()
    ours.take(addresses((0, 2)), ["id"])
    assert len(store.ranges) == 1


def test_files_are_shared_between_versions(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t.lance")
    dataset.delete("id = 5")
    new, old = open_table(tmp_path / "t.lance"), open_table(tmp_path / "t.lance", 1)
    fragment = new.snapshot.fragments[0]
    reader = new.files.reader(new.snapshot, fragment.data_files[0])
    assert new.files.reader(old.snapshot, old.snapshot.fragments[0].data_files[0]) is reader


def test_a_missing_data_file_is_corrupt(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t.lance")
    name = dataset.get_fragments()[1].data_files()[0].path
    (tmp_path / "t.lance" / "data" / name).unlink()
    with pytest.raises(CorruptFileError, match=name):
        open_table(tmp_path / "t.lance").scan()


def test_a_data_file_that_vanishes_after_it_was_opened_is_corrupt(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t.lance")
    ours = open_table(tmp_path / "t.lance")
    ours.scan()
    name = dataset.get_fragments()[1].data_files()[0].path
    (tmp_path / "t.lance" / "data" / name).unlink()
    with pytest.raises(CorruptFileError, match=name):
        ours.scan()


@pytest.mark.parametrize("kept_bytes", [0, 10, 400])
def test_a_cut_data_file_is_corrupt(tmp_path: Path, kept_bytes: int) -> None:
    dataset = write(tmp_path / "t.lance")
    path = tmp_path / "t.lance" / "data" / dataset.get_fragments()[1].data_files()[0].path
    path.write_bytes(path.read_bytes()[:kept_bytes])
    with pytest.raises(CorruptFileError, match=path.name):
        open_table(tmp_path / "t.lance").scan()


def test_a_data_file_with_other_rows_than_its_fragment_is_corrupt(tmp_path: Path) -> None:
    write(tmp_path / "t.lance")
    snapshot = open_table(tmp_path / "t.lance").snapshot
    message = snapshot.manifest.message
    message.fragments[1].physical_rows = 31
    path = tmp_path / "t.lance" / snapshot.manifest.path
    path.unlink()  # the old one is mapped
    path.write_bytes(manifest_file(message))
    with pytest.raises(CorruptFileError, match="has 30 rows, fragment 1 has 31"):
        open_table(tmp_path / "t.lance").scan()


def test_a_missing_deletion_file_is_corrupt(tmp_path: Path) -> None:
    write(tmp_path / "t.lance").delete("id = 1")
    (path,) = (tmp_path / "t.lance" / "_deletions").iterdir()
    path.unlink()
    with pytest.raises(CorruptFileError, match=path.name):
        open_table(tmp_path / "t.lance").scan()


def test_legacy_files_are_refused_when_they_are_read(tmp_path: Path) -> None:
    write(tmp_path / "t.lance", data_storage_version="legacy")
    ours = open_table(tmp_path / "t.lance")
    assert count_rows(ours.files, ours.snapshot) == 100
    with pytest.raises(UnsupportedFeatureError, match=r"data/.*legacy"):
        ours.scan()
