"""What mapping adds to the store contract: files that change underneath, crashes, descriptors."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from lance_core.errors import (
    CorruptFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
)
from lance_core.io.file_maps import seldom_checked
from lance_core.io.mapped_store import MappedStore
from lance_core.io.metering import metered
from lance_core.io.scheduler import RangeScheduler


@pytest.fixture
def store(tmp_path: Path) -> MappedStore:
    return MappedStore(tmp_path)


def test_a_file_that_shrank_is_corrupt_and_stays_so(store: MappedStore, tmp_path: Path) -> None:
    store.put("a", bytes(10_000))
    store.get_range("a", 0, 10)
    os.truncate(tmp_path / "a", 100)
    for _ in range(2):
        with pytest.raises(
            CorruptFileError, match="had 10000 bytes when it was opened and has 100"
        ):
            store.get_range("a", 0, 10)
    with pytest.raises(CorruptFileError):
        store.map("a")
    with pytest.raises(CorruptFileError):
        RangeScheduler(store).read("a", [(0, 10)])


def test_a_block_that_checks_seldom_sees_a_file_that_shrank_before_it(
    store: MappedStore, tmp_path: Path
) -> None:
    store.put("a", bytes(10_000))
    store.map("a")
    with seldom_checked(look_again_ms=0):
        store.map("a")
        os.truncate(tmp_path / "a", 100)
        assert len(store.get_range("a", 0, 10)) == 10
    with seldom_checked(look_again_ms=0):
        for _ in range(2):
            with pytest.raises(CorruptFileError):
                store.map("a")


def test_a_block_that_checks_seldom_counts_looks_shortly_before_it(
    store: MappedStore, tmp_path: Path
) -> None:
    store.put("a", bytes(10_000))
    store.map("a")
    os.truncate(tmp_path / "a", 100)
    with seldom_checked(look_again_ms=60_000):
        assert len(store.get_range("a", 0, 10)) == 10
    for _ in range(2):
        with pytest.raises(CorruptFileError):
            store.map("a")
        with seldom_checked(look_again_ms=60_000), pytest.raises(CorruptFileError):
            store.map("a")


def test_a_file_that_shrank_is_seen_by_a_block_once_the_last_look_is_old(
    store: MappedStore, tmp_path: Path
) -> None:
    store.put("a", bytes(10_000))
    store.map("a")
    os.truncate(tmp_path / "a", 100)
    time.sleep(0.002)
    with seldom_checked(look_again_ms=1), pytest.raises(CorruptFileError):
        store.map("a")


def test_a_file_replaced_under_its_name_is_mapped_anew(store: MappedStore, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    assert bytes(store.get_range("a", 0, 3)) == b"old"
    (tmp_path / "b").write_bytes(b"new")
    (tmp_path / "b").replace(tmp_path / "a")
    assert bytes(store.get_range("a", 0, 3)) == b"new"


def test_a_dataset_made_anew_at_its_path_shows_its_new_bytes(
    store: MappedStore, tmp_path: Path
) -> None:
    store.put("t.lance/data/a", b"old data")
    store.get_range("t.lance/data/a", 0, 8)
    shutil.rmtree(tmp_path / "t.lance")
    store.put("t.lance/data/a", b"new")
    assert bytes(store.get_range("t.lance/data/a", 0, 3)) == b"new"
    with pytest.raises(CorruptFileError):
        store.get_range("t.lance/data/a", 0, 8)


def test_a_file_that_grew_is_mapped_anew(store: MappedStore, tmp_path: Path) -> None:
    store.put("a", b"0123")
    store.get_range("a", 0, 4)
    with (tmp_path / "a").open("ab") as file:
        file.write(b"4567")
    assert bytes(store.get_range("a", 0, 8)) == b"01234567"


def test_a_removed_file_is_missing_at_once(store: MappedStore, tmp_path: Path) -> None:
    store.put("a", b"0123")
    view = store.get_range("a", 0, 4)
    (tmp_path / "a").unlink()
    with pytest.raises(ObjectNotFoundError):
        store.get_range("a", 0, 4)
    assert bytes(view) == b"0123"


def test_slices_of_one_file_share_its_memory(store: MappedStore) -> None:
    store.put("a", b"0123")
    assert store.get_range("a", 0, 4).obj is store.get_range("a", 1, 2).obj


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_mapped_files_hold_no_descriptors(store: MappedStore) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    views = []
    for number in range(20):
        store.put(f"{number}", bytes([number]))
        views.append(store.map(f"{number}"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert [view[0] for view in views if view is not None] == list(range(20))


def test_a_view_outlives_its_place_among_the_kept_maps(tmp_path: Path) -> None:
    store = MappedStore(tmp_path, max_maps=1)
    store.put("a", b"0123")
    store.put("b", b"4567")
    view = store.get_range("a", 0, 4)
    store.get_range("b", 0, 4)
    assert bytes(view) == b"0123"


def test_reads_are_counted_as_slices(store: MappedStore) -> None:
    store.put("a", bytes(100))
    with metered() as meter:
        RangeScheduler(store).read("a", [(0, 10), (5, 25)])
    assert (meter.bytes_read, meter.store_requests) == (30, 2)


def test_writes_leave_nothing_beside_the_file(store: MappedStore, tmp_path: Path) -> None:
    store.put("d/a", b"0")
    store.put("d/a", b"1")
    store.put_if_absent("d/b", b"2")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("d/b", b"3")
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["a", "b"]


def test_what_a_crash_left_of_a_write_is_not_listed(store: MappedStore, tmp_path: Path) -> None:
    store.put("d/a", b"0")
    (tmp_path / "d" / ".lance-serve-1f").write_bytes(b"half of it")
    assert [meta.path for meta in store.list_tree("d")] == ["d/a"]
    assert [meta.path for meta in store.list_folder("d")[1]] == ["d/a"]


def test_a_linked_folder_is_a_folder_but_is_not_descended_into(
    store: MappedStore, tmp_path: Path
) -> None:
    store.put("real.lance/a", b"0")
    (tmp_path / "linked.lance").symlink_to(tmp_path / "real.lance")
    (tmp_path / "real.lance" / "circle").symlink_to(tmp_path)
    assert store.list_folder("")[0] == ["linked.lance", "real.lance"]
    assert [meta.path for meta in store.list_tree("")] == ["real.lance/a"]
    assert [meta.path for meta in store.list_tree("linked.lance")] == ["linked.lance/a"]


def test_a_dangling_link_is_no_object(store: MappedStore, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "gone")
    assert store.list_folder("") == ([], [])
    with pytest.raises(ObjectNotFoundError):
        store.get_range("a", 0, 1)


def test_a_root_that_is_a_file_fails_to_take_objects(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0")
    with pytest.raises(StoreError):
        MappedStore(tmp_path / "file").put("a", b"0")


def test_opening_a_store_makes_no_folder(tmp_path: Path) -> None:
    store = MappedStore(tmp_path / "root")
    assert store.list_folder("") == ([], [])
    assert not (tmp_path / "root").exists()


def test_a_file_that_vanishes_while_its_folder_is_listed_is_left_out(tmp_path: Path, monkeypatch):
    """Writers remove their staging files at any moment."""
    (tmp_path / "folder").mkdir()
    for name in ("kept", "staged"):
        (tmp_path / "folder" / name).write_bytes(b"x")
    store = MappedStore(str(tmp_path))
    listed = store._entries

    def entries_then_commit(folder: str) -> list[os.DirEntry[str]]:
        entries = listed(folder)
        (tmp_path / "folder" / "staged").unlink(missing_ok=True)
        return entries

    monkeypatch.setattr(store, "_entries", entries_then_commit)
    assert [meta.path for meta in store.list_folder("folder")[1]] == ["folder/kept"]
    (tmp_path / "folder" / "staged").write_bytes(b"x")
    assert [meta.path for meta in store.list_tree("folder")] == ["folder/kept"]
