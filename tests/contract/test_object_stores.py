"""What every object store promises, asked of each one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from lance_core.errors import (
    CorruptFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
)
from lance_core.io.counting_store import CountingStore
from lance_core.io.deleting import delete_all
from lance_core.io.disk_tier import DiskTier
from lance_core.io.mapped_store import MappedStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.obstore_store import ObStore
from lance_core.table.dataset_stores import KEPT_OBJECTS

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.io.store import ObjectStore

AWKWARD_NAMES = ("a b.lance", "100%.lance", "%20.lance", "é.lance", "x#1y.lance", "_.-~", "a+b&c=d")
ESCAPES = ("../secret", "a/../../secret", "/etc/passwd", "a//b", "./a", "", "a/", "..", "a\0b")


class ObjectStoreContract:
    """Inherit and say how to make an empty store."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        raise NotImplementedError

    def test_a_range_gives_the_bytes_from_start_up_to_end(self, store: ObjectStore) -> None:
        store.put("data/a.lance", b"0123456789")
        assert bytes(store.get_range("data/a.lance", 2, 5)) == b"234"

    def test_the_whole_object_is_a_range(self, store: ObjectStore) -> None:
        store.put("a", b"0123")
        assert bytes(store.get_range("a", 0, 4)) == b"0123"

    def test_an_empty_range_is_empty(self, store: ObjectStore) -> None:
        store.put("a", b"0123")
        assert bytes(store.get_range("a", 4, 4)) == b""

    def test_a_deleted_object_is_gone(self, store: ObjectStore) -> None:
        store.put("a/b", b"0123")
        store.put("a/c", b"4567")
        store.delete("a/b")
        store.delete("a/b")
        store.delete("a")
        with pytest.raises(ObjectNotFoundError):
            store.head("a/b")
        assert [meta.path for meta in store.list_folder("a")[1]] == ["a/c"]
        store.put_if_absent("a/b", b"89")
        assert bytes(store.get_range("a/b", 0, 2)) == b"89"

    @pytest.mark.parametrize("count", [0, 1, 3, 25])
    def test_many_objects_are_deleted_and_the_others_stay(
        self, store: ObjectStore, count: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lance_core.io.deleting._TOGETHER", 10)
        paths = [f"a b/{number:05d}.x%" for number in range(count)]
        for path in paths:
            store.put(path, b"1")
        store.put("a b/other", b"2")
        delete_all(store, [*paths[::2], "a b/none", *paths[1::2], "none"])
        assert [meta.path for meta in store.list_tree("a b")] == ["a b/other"]

    def test_an_empty_object_can_be_read(self, store: ObjectStore) -> None:
        store.put("a", b"")
        assert bytes(store.get_range("a", 0, 0)) == b""
        assert store.head("a").size == 0

    def test_ranges_are_read_only_bytes(self, store: ObjectStore) -> None:
        store.put("a", b"0123")
        view = store.get_range("a", 0, 4)
        assert view.readonly
        assert (view.format, view.ndim, view.contiguous) == ("B", 1, True)

    @pytest.mark.parametrize(
        ("start", "end"), [(0, 5), (3, 9), (4, 5), (9, 12), (3, 2), (-1, 2), (0, 1 << 62)]
    )
    def test_a_range_outside_the_object_is_corruption(
        self, store: ObjectStore, start: int, end: int
    ) -> None:
        store.put("data/a.lance", b"0123")
        with pytest.raises(CorruptFileError) as caught:
            store.get_range("data/a.lance", start, end)
        assert caught.value.path == "data/a.lance"

    def test_a_missing_object_cannot_be_read(self, store: ObjectStore) -> None:
        with pytest.raises(ObjectNotFoundError, match=r"a\.lance"):
            store.get_range("data/a.lance", 0, 1)

    def test_a_missing_object_has_no_head(self, store: ObjectStore) -> None:
        with pytest.raises(ObjectNotFoundError, match=r"a\.lance"):
            store.head("data/a.lance")

    def test_a_folder_is_no_object(self, store: ObjectStore) -> None:
        store.put("data/a.lance", b"0123")
        with pytest.raises(ObjectNotFoundError):
            store.get_range("data", 0, 1)
        with pytest.raises(ObjectNotFoundError):
            store.head("data")

    def test_nothing_lies_below_an_object(self, store: ObjectStore) -> None:
        store.put("a", b"0123")
        with pytest.raises(ObjectNotFoundError):
            store.get_range("a/b", 0, 1)
        assert list(store.list_tree("a")) == []

    def test_head_tells_path_size_and_time(self, store: ObjectStore) -> None:
        store.put("data/a.lance", b"0123")
        meta = store.head("data/a.lance")
        assert (meta.path, meta.size) == ("data/a.lance", 4)
        assert abs(meta.last_modified - datetime.now(UTC)) < timedelta(minutes=5)

    def test_the_e_tag_changes_with_the_content(self, store: ObjectStore) -> None:
        store.put("a", b"0123")
        before = store.head("a").e_tag
        store.put("a", b"4567")
        assert before is not None
        assert store.head("a").e_tag != before

    def test_put_replaces(self, store: ObjectStore) -> None:
        store.put("a", b"0123")
        assert bytes(store.get_range("a", 0, 4)) == b"0123"
        store.put("a", b"456789")
        assert bytes(store.get_range("a", 0, 6)) == b"456789"

    def test_a_view_keeps_its_bytes_when_the_object_is_replaced(self, store: ObjectStore) -> None:
        store.put("a", b"0123")
        view = store.get_range("a", 1, 3)
        store.put("a", b"4567")
        assert bytes(view) == b"12"

    def test_put_if_absent_writes_a_new_object(self, store: ObjectStore) -> None:
        store.put_if_absent("_versions/1.manifest", b"first")
        assert bytes(store.get_range("_versions/1.manifest", 0, 5)) == b"first"

    def test_put_if_absent_leaves_an_object_alone(self, store: ObjectStore) -> None:
        store.put("a", b"first")
        with pytest.raises(ObjectExistsError):
            store.put_if_absent("a", b"second")
        assert bytes(store.get_range("a", 0, 5)) == b"first"

    def test_of_many_who_put_if_absent_one_succeeds(self, store: ObjectStore) -> None:
        together = threading.Barrier(4)

        def attempt(number: int) -> int | None:
            together.wait()
            try:
                store.put_if_absent("a", bytes([number]))
            except ObjectExistsError:
                return None
            return number

        with ThreadPoolExecutor(4) as pool:
            winners = [number for number in pool.map(attempt, range(4)) if number is not None]
        assert len(winners) == 1
        assert bytes(store.get_range("a", 0, 1)) == bytes(winners)

    def test_a_tree_lists_all_depths_in_order_of_the_path(self, store: ObjectStore) -> None:
        paths = ["a/z", "a-b", "a/b/c", "b", "a/b.c"]
        for path in paths:
            store.put(path, path.encode())
        assert [meta.path for meta in store.list_tree("")] == sorted(paths)

    def test_a_tree_lists_its_own_folder_only(self, store: ObjectStore) -> None:
        for path in ("data/a", "data/b/c", "data2/d", "dat"):
            store.put(path, b"")
        assert [meta.path for meta in store.list_tree("data")] == ["data/a", "data/b/c"]

    def test_a_folder_may_be_written_with_a_slash(self, store: ObjectStore) -> None:
        store.put("data/b/c", b"")
        assert [meta.path for meta in store.list_tree("data/")] == ["data/b/c"]
        assert store.list_folder("data/") == (["b"], [])

    def test_listings_tell_what_head_tells(self, store: ObjectStore) -> None:
        store.put("data/a", b"0123")
        assert list(store.list_tree("data")) == [store.head("data/a")]
        assert store.list_folder("data") == ([], [store.head("data/a")])

    def test_a_folder_lists_what_is_directly_inside(self, store: ObjectStore) -> None:
        for path in ("t/z", "t/_versions/1", "t/data/a", "t/data/b", "t/a", "u"):
            store.put(path, b"")
        names, objects = store.list_folder("t")
        assert names == ["_versions", "data"]
        assert [meta.path for meta in objects] == ["t/a", "t/z"]

    def test_the_root_is_a_folder(self, store: ObjectStore) -> None:
        for path in ("b", "x.lance/data/a"):
            store.put(path, b"")
        names, objects = store.list_folder("")
        assert names == ["x.lance"]
        assert [meta.path for meta in objects] == ["b"]

    def test_a_missing_folder_is_empty(self, store: ObjectStore) -> None:
        assert list(store.list_tree("none")) == []
        assert store.list_folder("none") == ([], [])

    @pytest.mark.parametrize("name", AWKWARD_NAMES)
    def test_awkward_names_are_kept(self, store: ObjectStore, name: str) -> None:
        store.put(f"{name}/{name}", b"0123")
        assert bytes(store.get_range(f"{name}/{name}", 0, 4)) == b"0123"
        assert [meta.path for meta in store.list_tree(name)] == [f"{name}/{name}"]
        assert store.list_folder("")[0] == [name]

    @pytest.mark.parametrize("path", ESCAPES)
    def test_paths_stay_inside_the_root(self, store: ObjectStore, path: str) -> None:
        for use in (
            lambda: store.get_range(path, 0, 1),
            lambda: store.head(path),
            lambda: store.put(path, b"x"),
            lambda: store.put_if_absent(path, b"x"),
        ):
            with pytest.raises(StoreError, match="path inside a store"):
                use()
        assert list(store.list_tree("")) == []

    @pytest.mark.parametrize("path", ESCAPES)
    def test_maps_stay_inside_the_root(self, store: ObjectStore, path: str) -> None:
        store.put("a", b"0123")
        if store.map("a") is not None:
            with pytest.raises(StoreError, match="path inside a store"):
                store.map(path)

    @pytest.mark.parametrize("folder", ["..", "a/../..", "/", "//", "/etc", "."])
    def test_folders_stay_inside_the_root(self, store: ObjectStore, folder: str) -> None:
        with pytest.raises(StoreError, match="path inside a store"):
            store.list_folder(folder)
        with pytest.raises(StoreError, match="path inside a store"):
            store.list_tree(folder)

    def test_a_map_is_the_whole_object(self, store: ObjectStore) -> None:
        store.put("a", b"0123")
        whole = store.map("a")
        assert whole is None or (bytes(whole) == b"0123" and whole.readonly)

    def test_threads_may_share_the_store(self, store: ObjectStore) -> None:
        content = bytes(range(256))
        store.put("a", content)
        ranges = [(start, start + 16) for start in range(240)]
        with ThreadPoolExecutor(4) as pool:
            views = list(pool.map(lambda bounds: store.get_range("a", *bounds), ranges))
        assert [bytes(view) for view in views] == [content[start:end] for start, end in ranges]


class TestMemoryStore(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()


class TestMappedStore(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return MappedStore(tmp_path / "root")


class TestMappedStoreThatKeepsOneMap(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return MappedStore(tmp_path / "root", max_maps=1)


class TestObStoreOnFiles(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return ObStore(f"file://{tmp_path}")


class TestObStoreInMemory(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return ObStore("memory://")


class TestCountingStore(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return CountingStore(MappedStore(tmp_path / "root"))


class TestTieredStore(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return DiskTier(tmp_path, 1 << 20, KEPT_OBJECTS).over(MemoryStore())
