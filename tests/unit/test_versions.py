from __future__ import annotations

import pytest

from lance_core.errors import CorruptFileError, DatasetNotFoundError, VersionNotFoundError
from lance_core.io.memory_store import MemoryStore
from lance_core.table.naming import NamingScheme, manifest_path
from lance_core.table.versions import find_manifest, latest_version, list_manifests

DETACHED = 2**63 + 5


def store_with(*versions: int, scheme: NamingScheme = NamingScheme.V2) -> MemoryStore:
    store = MemoryStore()
    for version in versions:
        store.put(manifest_path(version, scheme), b"")
    return store


@pytest.mark.parametrize("scheme", [NamingScheme.V1, NamingScheme.V2])
def test_versions_are_listed_in_ascending_order(scheme: NamingScheme) -> None:
    store = store_with(9, 10, 2, scheme=scheme)
    assert [location.version for location in list_manifests(store)] == [2, 9, 10]


@pytest.mark.parametrize("scheme", [NamingScheme.V1, NamingScheme.V2])
def test_the_latest_version_is_the_largest_number(scheme: NamingScheme) -> None:
    assert latest_version(store_with(9, 10, scheme=scheme)) == 10


def test_a_version_is_found_by_its_number() -> None:
    assert find_manifest(store_with(1, 3), 3).meta.path == manifest_path(3, NamingScheme.V2)


def test_a_cleaned_version_is_not_found_and_the_message_says_what_exists() -> None:
    with pytest.raises(VersionNotFoundError, match="no version 2; it has 2 versions, 1 to 3"):
        find_manifest(store_with(1, 3), 2)
    with pytest.raises(VersionNotFoundError, match="no version 2; its only version is 4"):
        find_manifest(store_with(4), 2)


def test_a_folder_without_manifests_is_no_dataset() -> None:
    with pytest.raises(DatasetNotFoundError, match="memory://"):
        find_manifest(MemoryStore())


def test_both_naming_schemes_in_one_folder_are_refused() -> None:
    store = store_with(1, 2)
    store.put(manifest_path(3, NamingScheme.V1), b"")
    with pytest.raises(CorruptFileError, match="V1 and V2"):
        find_manifest(store)


def test_foreign_and_unfinished_files_are_passed_over() -> None:
    store = store_with(1)
    for name in (
        ".tmp_2.manifest",
        "latest_version_hint.json",
        "2.manifest-6f0a",
        "sub/2.manifest",
    ):
        store.put(f"_versions/{name}", b"")
    assert latest_version(store) == 1


def test_a_detached_version_is_never_the_latest() -> None:
    store = store_with(4)
    store.put(manifest_path(DETACHED, NamingScheme.DETACHED), b"")
    assert latest_version(store) == 4


def test_a_detached_version_opens_by_its_number() -> None:
    store = store_with(4)
    store.put(manifest_path(DETACHED, NamingScheme.DETACHED), b"")
    assert find_manifest(store, DETACHED).scheme is NamingScheme.DETACHED


def test_a_dataset_of_detached_versions_only_has_no_latest() -> None:
    store = store_with(DETACHED, scheme=NamingScheme.DETACHED)
    with pytest.raises(DatasetNotFoundError, match="only detached"):
        find_manifest(store)
    with pytest.raises(VersionNotFoundError, match="all versions are detached"):
        find_manifest(store, 1)
