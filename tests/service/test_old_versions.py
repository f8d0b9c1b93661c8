"""Versions that nobody uses any more, and what the cache holds for them alone, are let go."""

from __future__ import annotations

import time
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import lance
import pytest

from lance_core import Session, open_dataset
from service.catalog import datasets
from service.catalog.catalog import Catalog
from service.catalog.freshness import ANY_AGE, Freshness
from service.catalog.names import Namespace, TableName
from service.catalog.pins import LATEST, Pin
from service.settings import Settings
from tests.pylance_dataset import VECTORS, write_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.dataset import Dataset
    from service.catalog.database import Database

pytestmark = pytest.mark.interop

T1 = TableName(Namespace(()), "t1")
NOW = Freshness(max_age_s=0)


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def catalog(tmp_path: Path, session: Session) -> Catalog:
    write_dataset(tmp_path / "t1.lance")
    settings = Settings(root=str(tmp_path))
    return Catalog(settings, partial(open_dataset, session=session))


@pytest.fixture
def database(catalog: Catalog) -> Database:
    return catalog.databases[None]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t1.lance")


def warm(dataset: Dataset) -> None:
    """Fill the cache in many ways."""
    for use_index in (True, False):
        dataset.search(VECTORS[3], nprobes=4, use_index=use_index, filter="id > 5 AND price < 100")
    dataset.scan().read_all()


def words_of(session: Session) -> set[Any]:
    """All names in the keys that the cache holds."""
    found: list[Any] = list(session.cache.held_keys())
    words = set()
    while found:
        each = found.pop()
        if isinstance(each, tuple):
            found.extend(each)
        else:
            words.add(each)
    return words


def rebuild(path: str) -> None:
    """Write all rows anew, and the index too."""
    dataset = lance.dataset(path)
    dataset.optimize.compact_files()
    dataset.create_index(
        "vec", "IVF_PQ", metric="l2", num_partitions=4, num_sub_vectors=8, replace=True
    )


def names_of(dataset: Dataset) -> set[Any]:
    """What names a version, its segments and its data files in keys."""
    snapshot = dataset.snapshot
    files = {f"data/{each.path}" for f in snapshot.fragments for each in f.data_files}
    return {snapshot.incarnation, *(each.uuid for each in snapshot.indices), *files}


def test_what_a_newer_version_does_not_need_leaves_the_cache(
    catalog: Catalog, database: Database, session: Session, path: str
) -> None:
    old = database.open(T1, LATEST, ANY_AGE)
    warm(old)
    assert names_of(old) <= words_of(session)
    rebuild(path)
    new = database.open(T1, LATEST, NOW)
    warm(new)
    gone = names_of(old) - names_of(new)
    assert len(gone) >= 4
    used = session.cache_stats.used_bytes
    catalog.release_unused()
    assert gone <= words_of(session), "a request still holds it"
    dead = weakref.ref(old)
    del old
    assert dead() is None
    catalog.release_unused()
    assert gone & words_of(session) == set()
    assert names_of(new) <= words_of(session)
    assert session.cache_stats.used_bytes < 0.7 * used


def test_what_a_newer_version_shares_stays(
    catalog: Catalog, database: Database, session: Session, path: str
) -> None:
    old = database.open(T1, LATEST, ANY_AGE)
    warm(old)
    incarnation = old.snapshot.incarnation
    shared = names_of(old) - {incarnation}
    del old
    lance.dataset(path).delete("id = 7")
    new = database.open(T1, LATEST, NOW)
    catalog.release_unused()
    assert shared <= words_of(session)
    assert incarnation not in words_of(session)
    misses = session.cache_stats.misses
    new.search(VECTORS[3], nprobes=4)
    again = session.cache_stats.misses
    new.search(VECTORS[3], nprobes=4)
    assert session.cache_stats.misses == again
    assert again - misses < 20


@pytest.mark.parametrize("pin", [Pin(1), Pin("first")], ids=["number", "tag"])
def test_versions_asked_for_by_name_go_after_a_minute_without_use(
    catalog: Catalog, database: Database, session: Session, path: str, pin: Pin, monkeypatch: Any
) -> None:
    lance.dataset(path).tags.create("first", 1)
    warm(database.open(T1, LATEST, ANY_AGE))
    old = weakref.ref(database.open(T1, pin, ANY_AGE))
    dataset = old()
    assert dataset is not None
    warm(dataset)
    incarnation = dataset.snapshot.incarnation
    del dataset
    catalog.release_unused()
    assert old() is not None
    assert incarnation in words_of(session)
    later = time.monotonic() + datasets.UNUSED_FOR_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    catalog.release_unused()
    assert old() is None
    assert incarnation not in words_of(session)
    assert database.resident(T1, LATEST, Freshness(max_age_s=1e9)) is not None


def test_memory_stays_flat_over_many_versions(
    catalog: Catalog, database: Database, session: Session, path: str
) -> None:
    sizes, entries = [], []
    for number in range(8):
        lance.dataset(path).update({"price": f"price + {number}"}, where="id % 3 = 0")
        lance.dataset(path).optimize.compact_files()
        warm(database.open(T1, LATEST, NOW))
        catalog.release_unused()
        sizes.append(session.cache_stats.used_bytes)
        entries.append(session.cache_stats.entries)
    assert max(sizes[3:]) < 1.5 * sizes[2]
    assert max(entries[3:]) < 1.5 * entries[2]
    assert catalog.num_open == 1


def test_a_table_that_nobody_has_open_keeps_what_is_cached_for_it(
    tmp_path: Path, session: Session
) -> None:
    for name in ("t1", "t2"):
        write_dataset(tmp_path / f"{name}.lance")
    settings = Settings(root=str(tmp_path), max_open_datasets=1)
    catalog = Catalog(settings, partial(open_dataset, session=session))
    database = catalog.databases[None]
    warm(database.open(T1, LATEST, ANY_AGE))
    database.open(TableName(Namespace(()), "t2"), LATEST, ANY_AGE)
    entries = session.cache_stats.entries
    catalog.release_unused()
    assert session.cache_stats.entries == entries
