"""What every store promises of objects that are written in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from lance_core.errors import ObjectNotFoundError, StoreError
from lance_core.io.counting_store import CountingStore
from lance_core.io.mapped_store import MappedStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.obstore_store import ObStore

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.io.store import ObjectStore

PATH = "data/a.lance"
MEGABYTE = 1 << 20


def content(store: ObjectStore, path: str = PATH) -> bytes:
    return bytes(store.get_range(path, 0, store.head(path).size))


class ObjectSinkContract:
    """Inherit and say how to make an empty store."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        raise NotImplementedError

    def test_pieces_become_one_object(self, store: ObjectStore) -> None:
        with store.open_sink(PATH) as sink:
            for piece in (b"ab", b"", memoryview(b"cd"), np.arange(2, dtype=np.uint8)):
                sink.write(piece)
            assert sink.finish() == 6
        assert content(store) == b"abcd\0\1"

    def test_the_size_is_where_the_next_piece_begins(self, store: ObjectStore) -> None:
        with store.open_sink(PATH) as sink:
            sink.write(np.zeros((2, 3), np.uint16))
            assert sink.size == 12

    def test_no_piece_makes_an_empty_object(self, store: ObjectStore) -> None:
        with store.open_sink(PATH) as sink:
            assert sink.finish() == 0
        assert content(store) == b""

    def test_pieces_may_be_overwritten_after_they_were_written(self, store: ObjectStore) -> None:
        piece = bytearray(b"old")
        with store.open_sink(PATH) as sink:
            sink.write(piece)
            piece[:] = b"new"
            sink.finish()
        assert content(store) == b"old"

    def test_readers_never_see_a_part(self, store: ObjectStore) -> None:
        with store.open_sink(PATH) as sink:
            sink.write(bytes(MEGABYTE))
            with pytest.raises(ObjectNotFoundError):
                store.head(PATH)
            assert list(store.list_tree("")) == []

    def test_the_old_object_is_read_until_the_new_one_is_complete(self, store: ObjectStore) -> None:
        store.put(PATH, b"old")
        with store.open_sink(PATH) as sink:
            sink.write(b"newer")
            assert content(store) == b"old"
            sink.finish()
        assert content(store) == b"newer"

    def test_an_aborted_object_leaves_the_old_one(self, store: ObjectStore) -> None:
        store.put(PATH, b"old")
        with store.open_sink(PATH) as sink:
            sink.write(b"newer")
            sink.abort()
        assert content(store) == b"old"

    def test_an_error_in_the_block_leaves_nothing(self, store: ObjectStore) -> None:
        def fail() -> None:
            with store.open_sink(PATH) as sink:
                sink.write(bytes(MEGABYTE))
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        assert list(store.list_tree("")) == []

    def test_a_closed_sink_takes_nothing_more(self, store: ObjectStore) -> None:
        sink = store.open_sink(PATH)
        sink.finish()
        for use in (lambda: sink.write(b"x"), sink.finish):
            with pytest.raises(StoreError, match="closed"):
                use()
        sink.abort()
        assert content(store) == b""

    def test_an_aborted_sink_cannot_be_finished(self, store: ObjectStore) -> None:
        sink = store.open_sink(PATH)
        sink.abort()
        with pytest.raises(StoreError, match="closed"):
            sink.finish()

    def test_large_objects_are_whole(self, store: ObjectStore) -> None:
        pieces = [bytes([number]) * MEGABYTE for number in range(20)]
        with store.open_sink(PATH) as sink:
            for piece in pieces:
                sink.write(piece)
            sink.finish()
        assert content(store) == b"".join(pieces)

    @pytest.mark.parametrize("path", ["../a", "/a", "", "a//b"])
    def test_paths_stay_inside_the_root(self, store: ObjectStore, path: str) -> None:
        with pytest.raises(StoreError, match="path inside a store"):
            store.open_sink(path)


class TestMemorySinks(ObjectSinkContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()


class TestMappedSinks(ObjectSinkContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return MappedStore(tmp_path / "root")

    def test_an_aborted_file_leaves_no_temporary_one(self, tmp_path: Path) -> None:
        with MappedStore(tmp_path).open_sink("a") as sink:
            sink.write(b"x")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_cannot_be_made_is_a_store_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with (
            pytest.raises(StoreError),
            MappedStore(tmp_path).open_sink("file/a") as sink,
        ):
            sink.write(b"x")


class TestObStoreSinksOnFiles(ObjectSinkContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return ObStore(f"file://{tmp_path}")


class TestObStoreSinksInMemory(ObjectSinkContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return ObStore("memory://")


class TestCountingSinks(ObjectSinkContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return CountingStore(MappedStore(tmp_path / "root"))
