"""Manifests, versions and deletion files as pylance writes them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.deletion import read_deleted_offsets
from lance_core.table.fragment import DeletionFileType, Fragment
from lance_core.table.snapshot import Snapshot, list_versions, open_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


def table(num_rows: int) -> pa.Table:
    return pa.table({"id": np.arange(num_rows), "half": np.arange(num_rows) / 2})


def opened(root: Path, version: int | None = None) -> Snapshot:
    return open_snapshot(RangeScheduler(open_store(str(root))), version)


def deleted(snapshot: Snapshot) -> dict[int, BitMap]:
    return {
        fragment.id: read_deleted_offsets(snapshot.scheduler, fragment)
        for fragment in snapshot.fragments
    }


def kind_of(fragment: Fragment) -> DeletionFileType | None:
    return None if fragment.deletion_file is None else fragment.deletion_file.file_type


@pytest.mark.parametrize("v2_names", [True, False])
def test_both_naming_schemes_open_at_their_latest_version(tmp_path: Path, v2_names: bool) -> None:
    for _ in range(11):
        lance.write_dataset(
            table(3), tmp_path / "t.lance", mode="append", enable_v2_manifest_paths=v2_names
        )
    snapshot = opened(tmp_path / "t.lance")
    assert snapshot.version == 11
    assert opened(tmp_path / "t.lance", 2).version == 2
    assert [fragment.physical_rows for fragment in snapshot.fragments] == [3] * 11


def test_both_naming_schemes_in_one_dataset_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "t.lance"
    lance.write_dataset(table(3), root)
    lance.write_dataset(table(3), root, mode="append")
    newest = min((root / "_versions").glob("*.manifest"))
    newest.rename(newest.with_name("2.manifest"))
    with pytest.raises(CorruptFileError, match="V1 and V2"):
        opened(root)


@pytest.mark.parametrize("data_version", ["legacy", "2.0", "2.1", "2.2"])
def test_fragments_and_data_files_are_as_pylance_lists_them(
    tmp_path: Path, data_version: Literal["legacy", "2.0", "2.1", "2.2"]
) -> None:
    dataset = lance.write_dataset(
        table(10), tmp_path / "t.lance", max_rows_per_file=4, data_storage_version=data_version
    )
    snapshot = opened(tmp_path / "t.lance")
    for ours, theirs in zip(snapshot.fragments, dataset.get_fragments(), strict=True):
        assert ours.id == theirs.fragment_id
        assert ours.physical_rows == theirs.physical_rows
        (mine,), (file,) = ours.data_files, theirs.data_files()
        assert (mine.path, mine.size) == (file.path, file.file_size_bytes)
        assert list(mine.field_ids) == file.fields
        assert mine.is_legacy is (data_version == "legacy")


@pytest.mark.parametrize(
    ("num_rows", "kind"),
    [(4999, DeletionFileType.ARROW_ARRAY), (5000, DeletionFileType.BITMAP)],
)
def test_both_kinds_of_deletion_files_name_the_deleted_rows(
    tmp_path: Path, num_rows: int, kind: DeletionFileType
) -> None:
    dataset = lance.write_dataset(table(6000), tmp_path / "t.lance")
    dataset.delete(f"id < {num_rows}")
    snapshot = opened(tmp_path / "t.lance")
    assert kind_of(snapshot.fragments[0]) is kind
    assert deleted(snapshot) == {0: BitMap(range(num_rows))}
    assert snapshot.fragments[0].num_live_rows == dataset.count_rows()


def test_deletions_add_up_over_versions(tmp_path: Path) -> None:
    dataset = lance.write_dataset(table(60), tmp_path / "t.lance", max_rows_per_file=30)
    dataset.delete("id % 7 = 3")
    dataset.delete("id > 50")
    snapshot = opened(tmp_path / "t.lance")
    expected = [row for row in range(60) if row % 7 == 3 or row > 50]
    assert {
        (fragment_id, row) for fragment_id, rows in deleted(snapshot).items() for row in rows
    } == {(row // 30, row % 30) for row in expected}
    assert deleted(opened(tmp_path / "t.lance", 1)) == {0: BitMap(), 1: BitMap()}


def test_a_fragment_without_live_rows_is_gone(tmp_path: Path) -> None:
    dataset = lance.write_dataset(table(60), tmp_path / "t.lance", max_rows_per_file=30)
    dataset.delete("id < 30")
    assert [fragment.id for fragment in opened(tmp_path / "t.lance").fragments] == [1]


def test_versions_have_the_times_that_pylance_shows(tmp_path: Path) -> None:
    dataset = lance.write_dataset(table(3), tmp_path / "t.lance")
    dataset.delete("id = 1")
    dataset.insert(table(2))
    infos = list_versions(RangeScheduler(open_store(str(tmp_path / "t.lance"))))
    theirs = dataset.versions()
    assert [info.version for info in infos] == [entry["version"] for entry in theirs]
    for info, entry in zip(infos, theirs, strict=True):
        assert isinstance(entry["timestamp"], datetime)
        assert info.timestamp.timestamp() == pytest.approx(entry["timestamp"].timestamp(), abs=1e-5)


def test_index_entries_are_as_pylance_describes_them(tmp_path: Path) -> None:
    dataset = lance.write_dataset(table(40), tmp_path / "t.lance", max_rows_per_file=20)
    dataset.create_scalar_index("half", "BTREE", name="by_half")
    dataset.create_scalar_index("id", "BITMAP", name="by_id")
    dataset.insert(table(5))
    indices = {index.name: index for index in opened(tmp_path / "t.lance").indices}
    by_half = indices["by_half"]
    assert by_half.type_name == "BTreeIndexDetails"
    assert by_half.fragment_bitmap == BitMap([0, 1])
    assert by_half.field_ids == (1,)
    assert by_half.dataset_version == 1
    assert not by_half.is_system
    assert {file.path for file in by_half.files} == {"page_data.lance", "page_lookup.lance"}
    for file in by_half.files:
        path = tmp_path / "t.lance" / "_indices" / by_half.uuid / file.path
        assert path.stat().st_size == file.size
    assert indices["by_id"].type_name == "BitmapIndexDetails"
    described = {
        index.name: [segment.uuid for segment in index.segments]
        for index in dataset.describe_indices()
    }
    assert {name: [index.uuid] for name, index in indices.items()} == described


def test_a_reuse_index_is_a_system_entry(tmp_path: Path) -> None:
    dataset = lance.write_dataset(table(40), tmp_path / "t.lance", max_rows_per_file=20)
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files(defer_index_remap=True)
    indices = opened(tmp_path / "t.lance").indices
    assert [index.name for index in indices if index.is_system] == ["__lance_frag_reuse"]


def test_an_empty_table_has_a_schema_and_no_fragments(tmp_path: Path) -> None:
    lance.write_dataset(table(0), tmp_path / "t.lance")
    snapshot = opened(tmp_path / "t.lance")
    assert snapshot.schema.names == ("id", "half")
    assert snapshot.fragments == ()
