"""Where files of segments go, their folders go too; others stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lance_core
from lance_core.io.mapped_store import MappedStore
from lance_core.operations.write_segment import write_segment

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.index.segment_files import IndexDetails, SegmentFiles

TABLE = pa.table({"id": range(100)})
UUID = "01234567-89ab-cdef-0123-456789abcdef"


def folders(path: Path) -> list[str]:
    return sorted(each.name for each in (path / "_indices").iterdir())


def indexed(path: Path) -> lance_core.Dataset:
    return lance_core.write_dataset(path, TABLE).create_index("id", "BTREE")


def test_a_segment_that_could_not_be_written_leaves_no_folder(tmp_path: Path) -> None:
    dataset = indexed(tmp_path / "t")
    before = folders(tmp_path / "t")

    def fail(out: SegmentFiles) -> IndexDetails:
        with out.create("a.lance", pa.schema([("x", pa.int64())])):
            pass
        assert len(folders(tmp_path / "t")) == len(before) + 1
        raise OSError("no space left")

    covered = dataset.snapshot.indices[0].fragment_bitmap
    assert covered is not None
    with pytest.raises(OSError, match="no space"):
        write_segment(dataset.snapshot, "i", 0, covered, fail)
    assert folders(tmp_path / "t") == before


def test_cleanup_removes_the_folders_of_what_it_removes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = indexed(path).create_index("id", "BTREE")
    dataset.build_segment(lance_core.NewIndex("other", "id", "BITMAP"))
    assert len(folders(path)) == 3
    killed = path / "_indices" / UUID
    for name in (UUID, "notes"):
        (path / "_indices" / name).mkdir()
    dataset.cleanup(retain_versions=1, dry_run=True)
    assert len(folders(path)) == 5
    dataset.cleanup(retain_versions=1)  # a builder may be about to write the others
    assert len(folders(path)) == 4
    assert killed.exists()
    dataset.cleanup(retain_versions=1, delete_unverified=True)
    assert folders(path) == sorted([dataset.snapshot.indices[0].uuid, "notes"])
    assert list(dataset.verify()) == []


def test_only_empty_folders_are_removed(tmp_path: Path) -> None:
    store = MappedStore(tmp_path)
    store.put("full/a", b"x")
    (tmp_path / "writing").mkdir()
    (tmp_path / "writing" / ".tmp").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for each in ("full", "full/a", "writing", "link", "none", "empty"):
        store.remove_folder(each)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["full", "link", "writing"]
    assert bytes(store.get_range("full/a", 0, 1)) == b"x"
