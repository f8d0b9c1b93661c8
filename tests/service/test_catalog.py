"""Names, listings and opened datasets, without HTTP."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.errors import DatasetNotFoundError
from lance_core.io.open import open_store
from service.catalog.confinement import Confinement
from service.catalog.datasets import OpenDatasets, Slots
from service.catalog.errors import NamespaceNotFoundError, PermissionDeniedError
from service.catalog.freshness import ANY_AGE, Freshness, Look
from service.catalog.listing import Listing
from service.catalog.names import Namespace, TableName
from service.catalog.paging import page_of
from service.catalog.pins import LATEST, Pin
from tests.fake_dataset import FakeDataset, FakeStore

if TYPE_CHECKING:
    from pathlib import Path

EMPTY = pa.table({"id": pa.array([], pa.int64())})
URI = "/root/t.lance"


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> Any:
        return Look(self.now_s, self.now_s)


@pytest.fixture
def clock() -> Any:
    return Clock()


@pytest.fixture
def store() -> Any:
    return FakeStore(t=FakeDataset(EMPTY, version=1))


@pytest.fixture
def datasets(store: FakeStore, clock: Clock) -> Any:
    return OpenDatasets(store, Slots(4), max_age_s=5, now=clock)


def commit(store: FakeStore, version: Any, **more: Any) -> None:
    store.datasets["t.lance"][version] = FakeDataset(EMPTY, version=version, **more)


def test_a_dataset_is_opened_once_within_the_interval(
    datasets: OpenDatasets, store: FakeStore, clock: Clock
) -> None:
    first = datasets.open(URI, LATEST, ANY_AGE)
    clock.now_s += 4.9
    assert datasets.open(URI, LATEST, ANY_AGE) is first
    assert datasets.resident(URI, LATEST, ANY_AGE) is first
    assert len(store.opened) == 1


def test_after_the_interval_the_store_is_asked_and_the_same_version_is_kept(
    datasets: OpenDatasets, store: FakeStore, clock: Clock
) -> None:
    first = datasets.open(URI, LATEST, ANY_AGE)
    store.datasets["t.lance"] = {1: FakeDataset(EMPTY, version=1)}
    clock.now_s += 5
    assert datasets.resident(URI, LATEST, ANY_AGE) is None
    assert datasets.open(URI, LATEST, ANY_AGE) is first
    assert len(store.opened) == 2


def test_a_dataset_made_anew_at_the_same_version_is_another_one(
    datasets: OpenDatasets, store: FakeStore, clock: Clock
) -> None:
    first = datasets.open(URI, LATEST, ANY_AGE)
    commit(store, 1, incarnation="two")
    clock.now_s += 5
    assert datasets.open(URI, LATEST, ANY_AGE) is not first


@pytest.mark.parametrize(
    "demand",
    [Freshness(min_version=2), Freshness(not_before_s=1000.5), Freshness(max_age_s=0)],
    ids=["min version", "not before", "max age"],
)
def test_a_demand_makes_the_store_be_asked_earlier(
    datasets: OpenDatasets, store: FakeStore, clock: Clock, demand: Freshness
) -> None:
    datasets.open(URI, LATEST, ANY_AGE)
    commit(store, 2)
    clock.now_s += 1
    assert datasets.open(URI, LATEST, ANY_AGE).version == 1
    assert datasets.resident(URI, LATEST, demand) is None
    assert datasets.open(URI, LATEST, demand).version == 2
    assert datasets.open(URI, LATEST, ANY_AGE).version == 2


@pytest.mark.parametrize(
    "demand",
    [Freshness(min_version=1), Freshness(not_before_s=1000.0), Freshness(max_age_s=1.1)],
    ids=["min version", "not before", "max age"],
)
def test_a_demand_that_is_met_costs_nothing(
    datasets: OpenDatasets, store: FakeStore, clock: Clock, demand: Freshness
) -> None:
    datasets.open(URI, LATEST, ANY_AGE)
    clock.now_s += 1
    assert datasets.resident(URI, LATEST, demand) is not None
    assert len(store.opened) == 1


def test_a_version_that_does_not_exist_yet_gives_the_newest_there_is(
    datasets: OpenDatasets, store: FakeStore, clock: Clock
) -> None:
    datasets.open(URI, LATEST, ANY_AGE)
    clock.now_s += 1
    assert datasets.open(URI, LATEST, Freshness(min_version=99)).version == 1
    assert len(store.opened) == 2


def test_pinned_versions_ignore_demands_and_share_the_open_latest_version(
    datasets: OpenDatasets, clock: Clock
) -> None:
    latest = datasets.open(URI, LATEST, ANY_AGE)
    pinned = datasets.open(URI, Pin(1), Freshness(min_version=5))
    assert pinned is latest
    clock.now_s += 1
    assert datasets.resident(URI, Pin(1), Freshness(max_age_s=0)) is pinned


def test_a_dataset_that_was_dropped_is_not_found_and_forgotten(
    datasets: OpenDatasets, store: FakeStore, clock: Clock
) -> None:
    datasets.open(URI, LATEST, ANY_AGE)
    del store.datasets["t.lance"]
    clock.now_s += 5
    with pytest.raises(DatasetNotFoundError):
        datasets.open(URI, LATEST, ANY_AGE)
    assert datasets.resident(URI, LATEST, ANY_AGE) is None


def test_names_that_do_not_exist_push_nothing_out(datasets: OpenDatasets, store: FakeStore) -> None:
    datasets.open(URI, LATEST, ANY_AGE)
    for number in range(10):
        datasets.resident(f"/root/{number}.lance", LATEST, ANY_AGE)
        with pytest.raises(DatasetNotFoundError):
            datasets.open(f"/root/{number}.lance", LATEST, ANY_AGE)
    assert datasets.resident(URI, LATEST, ANY_AGE) is not None


def test_threads_that_ask_together_share_one_look(datasets: OpenDatasets, store: FakeStore) -> None:
    store.delay_s = 0.05
    barrier = threading.Barrier(8)
    found = []

    def ask() -> None:
        barrier.wait()
        found.append(datasets.open(URI, LATEST, ANY_AGE))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(dataset) for dataset in found}) == 1
    assert len(store.opened) == 1


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)


@given(st.sets(names), st.none() | st.integers(1, 5))
def test_pages_put_together_are_all_names_in_byte_order(given_names: Any, limit: Any) -> None:
    seen, token = [], None
    while True:
        page = page_of(given_names, limit=limit, token=token)
        assert limit is None or len(page.names) <= limit
        seen += page.names
        token = page.next_token
        if token is None:
            break
    assert seen == sorted(given_names, key=str.encode)


def test_a_token_need_not_exist() -> None:
    assert page_of(["a", "c"], limit=None, token="b").names == ["c"]  # noqa: S106 - a name
    assert page_of(["a", "c"], limit=None, token="c").names == []  # noqa: S106 - a name


@pytest.fixture
def root(tmp_path: Path) -> Any:
    for folder in ("t1.lance", "a/t2.lance", "a/b/t3.lance", ".hidden/x.lance", "empty", ".lance"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "file.lance").write_text("no folder")
    return tmp_path


def listing_of(root: Path) -> Any:
    return Listing(open_store(str(root)), str(root), Confinement(str(root), []))


def test_a_listing_tells_tables_from_namespaces(root: Path) -> None:
    listing = listing_of(root)
    assert listing.tables(Namespace()) == ["t1"]
    assert sorted(listing.namespaces(Namespace())) == ["a", "empty"]
    assert listing.tables(Namespace(("a",))) == ["t2"]
    assert listing.tables(Namespace(("empty",))) == []
    everything = {"$".join((*place.parts, name)) for place, name in listing.all_tables(Namespace())}
    assert everything == {"t1", "a$t2", "a$b$t3"}


@pytest.mark.parametrize("parts", [("nope",), ("a", "nope"), ("t1.lance",), (".hidden",)])
def test_namespaces_that_do_not_exist(root: Path, parts: Any) -> None:
    with pytest.raises(NamespaceNotFoundError):
        listing_of(root).require(Namespace(parts))


@pytest.mark.parametrize("name", ["", "a/b", "..", ".", "a\\b", "x\0y"])
def test_names_hold_nothing_that_leads_elsewhere(name: str) -> None:
    if name != "":
        with pytest.raises(PermissionDeniedError):
            TableName(Namespace(), name)
        with pytest.raises(PermissionDeniedError):
            Namespace((name,))


def test_symbolic_links_may_lead_to_allowed_roots_only(tmp_path: Path) -> None:
    for folder in ("served", "other/t.lance", "shared/t.lance"):
        (tmp_path / folder).mkdir(parents=True)
    served = tmp_path / "served"
    (served / "bad.lance").symlink_to(tmp_path / "other/t.lance")
    (served / "good.lance").symlink_to(tmp_path / "shared/t.lance")
    (served / "own.lance").mkdir()
    (served / "alias.lance").symlink_to(served / "own.lance")
    confinement = Confinement(str(served), [str(tmp_path / "shared")])
    for name in ("good", "own", "alias", "missing"):
        confinement.check(f"{served}/{name}.lance")
    with pytest.raises(PermissionDeniedError):
        confinement.check(f"{served}/bad.lance")


def test_remote_places_are_not_looked_at() -> None:
    Confinement("s3://bucket/root", []).check("s3://bucket/root/t.lance")
