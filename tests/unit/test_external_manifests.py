"""Commits that an external store decides on, over a store without conditional puts."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lance_core.errors import (
    CorruptFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
    UnsupportedFeatureError,
)
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.commit import commit
from lance_core.table.external_manifests import ExternallyVersionedStore, ManifestRow
from lance_core.table.snapshot import Snapshot, open_snapshot
from lance_core.table.transaction import Append, Overwrite, Transaction
from tests.manifest_bytes import fragment_message, int_field

BASE = "bucket/t.lance"


class Rows:
    """An external store in a dictionary; it can fail at a write."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], ManifestRow] = {}
        self.fails_at: str | None = None
        self._lock = threading.Lock()

    def latest(self, base_uri: str) -> ManifestRow | None:
        mine = [row for (base, _), row in self.rows.items() if base == base_uri]
        return max(mine, key=lambda row: row.version, default=None)

    def put_if_absent(self, base_uri: str, row: ManifestRow) -> None:
        self._maybe_fail("absent")
        with self._lock:
            if (base_uri, row.version) in self.rows:
                raise ObjectExistsError(f"version {row.version}")
            self.rows[base_uri, row.version] = row

    def put_if_present(self, base_uri: str, row: ManifestRow) -> None:
        self._maybe_fail("present")
        with self._lock:
            if (base_uri, row.version) not in self.rows:
                raise ObjectNotFoundError(f"version {row.version}")
            self.rows[base_uri, row.version] = row

    def _maybe_fail(self, write: str) -> None:
        if self.fails_at == write:
            raise StoreUnavailableError("gone for now")


class PlainStore(MemoryStore):
    """A store that cannot put conditionally."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise UnsupportedFeatureError("no conditional put")


class Setting:
    """A dataset in a plain store, and the external store beside it."""

    def __init__(self) -> None:
        self.plain = PlainStore()
        self.rows = Rows()
        self.store = ExternallyVersionedStore(self.plain, self.rows, BASE, uri=f"s3://{BASE}")

    def create(self) -> Snapshot:
        return self.commit(Transaction(0, Overwrite((fragment_message(),), (int_field(0, "id"),))))

    def append(self) -> Snapshot:
        return self.commit(Transaction(1, Append((fragment_message(),))))

    def commit(self, transaction: Transaction) -> Snapshot:
        return commit(RangeScheduler(self.store), transaction)

    def opened(self) -> Snapshot:
        return open_snapshot(RangeScheduler(self.store))

    def names(self) -> set[str]:
        paths = [meta.path for meta in self.plain.list_folder("_versions")[1]]
        return {path for path in paths if not path.endswith(".json")}


@pytest.fixture
def setting() -> Setting:
    return Setting()


def final(version: int) -> str:
    return f"_versions/{2**64 - 1 - version}.manifest"


def test_a_store_without_conditional_put_takes_no_commits(setting: Setting) -> None:
    transaction = Transaction(0, Overwrite((), (int_field(0, "id"),)))
    with pytest.raises(UnsupportedFeatureError, match="conditional put"):
        commit(RangeScheduler(setting.plain), transaction)
    assert setting.names() == set()


def test_commits_have_a_row_and_a_manifest_of_the_usual_name(setting: Setting) -> None:
    setting.create()
    assert setting.append().version == 2
    assert setting.names() == {final(1), final(2)}
    assert [row.path for row in setting.rows.rows.values()] == [
        f"{BASE}/{final(1)}",
        f"{BASE}/{final(2)}",
    ]
    assert setting.rows.rows[BASE, 2].size == setting.plain.head(final(2)).size


def test_many_writers_each_commit_once(setting: Setting) -> None:
    setting.create()
    with ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(lambda _: setting.append().version, range(12)))
    assert sorted(versions) == list(range(2, 14))
    assert len(setting.opened().fragments) == 13
    assert setting.names() == {final(version) for version in range(1, 14)}


def test_a_row_that_is_taken_leaves_nothing_behind(setting: Setting) -> None:
    setting.create()
    with pytest.raises(ObjectExistsError):
        setting.store.put_if_absent(final(1), b"other")
    assert setting.names() == {final(1)}
    assert setting.opened().version == 1


def test_a_writer_that_stopped_after_its_row_has_committed(setting: Setting) -> None:
    setting.create()
    setting.rows.fails_at = "present"
    with pytest.raises(StoreUnavailableError):
        setting.append()
    assert setting.rows.rows[BASE, 2].path.startswith(f"{BASE}/{final(2)}-")
    with pytest.raises(StoreUnavailableError):
        setting.opened()
    setting.rows.fails_at = None
    assert setting.opened().version == 2
    assert setting.names() == {final(1), final(2)}
    assert setting.rows.rows[BASE, 2].path == f"{BASE}/{final(2)}"
    assert len(setting.append().fragments) == 3


def staged_only(setting: Setting) -> str:
    """Commit a version whose manifest has no final name yet; return the name it has."""
    setting.create()
    setting.append()
    data = bytes(setting.plain.get_range(final(2), 0, setting.plain.head(final(2)).size))
    staged = f"{final(2)}-01234567-89ab-cdef-0123-456789abcdef"
    setting.plain.delete(final(2))
    setting.plain.put(staged, data)
    setting.rows.rows[BASE, 2] = ManifestRow(2, f"{BASE}/{staged}", len(data))
    return staged


def test_a_reader_puts_a_committed_manifest_in_its_place(setting: Setting) -> None:
    staged_only(setting)
    assert setting.store.head(final(2)).size == setting.rows.rows[BASE, 2].size
    assert setting.names() == {final(1), final(2)}


def test_a_manifest_that_somebody_else_put_in_place_is_found(setting: Setting) -> None:
    staged = staged_only(setting)
    data = bytes(setting.plain.get_range(staged, 0, setting.plain.head(staged).size))
    setting.plain.put(final(2), data)
    setting.plain.delete(staged)
    assert setting.opened().version == 2


def test_a_committed_manifest_that_is_lost_is_not_passed_over(setting: Setting) -> None:
    staged = staged_only(setting)
    setting.plain.delete(staged)
    with pytest.raises(CorruptFileError, match="version 2 is committed, but missing"):
        setting.opened()


def test_a_manifest_of_another_size_is_not_the_one_committed(setting: Setting) -> None:
    setting.create()
    setting.plain.put(final(1), b"short")
    with pytest.raises(CorruptFileError, match="5 bytes"):
        setting.opened()


def test_a_row_of_another_place_is_refused(setting: Setting) -> None:
    setting.create()
    setting.rows.rows[BASE, 2] = ManifestRow(2, f"elsewhere/{final(2)}", None)
    with pytest.raises(CorruptFileError, match="no manifest of"):
        setting.opened()


def test_a_dataset_that_was_there_before_its_rows_is_read(setting: Setting) -> None:
    setting.create()
    setting.rows.rows.clear()
    assert setting.append().version == 2
    assert set(setting.rows.rows) == {(BASE, 2)}


def test_other_objects_are_those_of_the_store(setting: Setting) -> None:
    setting.store.put("data/a", b"01")
    assert [meta.path for meta in setting.store.list_tree("data")] == ["data/a"]
    assert setting.store.list_folder("data")[1][0].size == 2
    with setting.store.open_sink("data/b") as sink:
        sink.write(b"234")
        sink.finish()
    assert bytes(setting.store.map("data/b") or b"") == b"234"
    with pytest.raises(UnsupportedFeatureError):
        setting.store.put_if_absent("data/c", b"")
    with pytest.raises(ObjectNotFoundError):
        setting.store.head("data/c")
