from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

from lance_core.dataset import open_dataset
from lance_core.errors import InvalidRequestError, VersionNotFoundError
from lance_core.io.open import open_store
from lance_core.table.refs import Tag, list_branches, list_tags, read_tag, write_tag

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.io.store import ObjectStore

pytestmark = pytest.mark.interop


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """Versions 1 and 2, a branch of the second with a version 3, and a tag on each branch."""
    dataset = lance.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t.lance")
    dataset.insert(pa.table({"a": [3]}))
    dataset.tags.create("old", 1)
    branch = dataset.create_branch("feature/x", 2)
    branch.insert(pa.table({"a": [9]}))
    dataset.tags.create("mine", ("feature/x", 3))
    dataset.insert(pa.table({"a": [4]}))
    return open_store(str(tmp_path / "t.lance"))


def rows(uri: str, version: int | str | None = None, branch: str | None = None) -> list[int]:
    values: list[int] = open_dataset(uri, version, branch=branch).scan().read_all()["a"].to_pylist()
    return values


def test_tags_and_branches_open_their_versions(store: ObjectStore) -> None:
    assert rows(store.uri, "old") == [1, 2]
    assert rows(store.uri, "mine") == [1, 2, 3, 9]
    assert rows(store.uri, "mine", "feature/x") == [1, 2, 3, 9]
    assert rows(store.uri, branch="feature/x") == [1, 2, 3, 9]
    assert rows(store.uri, 2, "feature/x") == [1, 2, 3]
    assert rows(store.uri, branch="main") == rows(store.uri) == [1, 2, 3, 4]


def test_tags_are_as_pylance_lists_them(store: ObjectStore) -> None:
    theirs = lance.dataset(store.uri).tags.list()
    for tag in list_tags(store):
        expected = theirs.pop(tag.name)
        assert tag.branch == expected["branch"]
        assert tag.version == expected["version"]
        assert tag.created_at == expected["created_at"]
        assert tag.manifest_size == expected["manifest_size"]
    assert theirs == {}


def test_branches_are_as_pylance_lists_them(store: ObjectStore) -> None:
    (branch,) = list_branches(store)
    expected = lance.dataset(store.uri).branches.list()["feature/x"]
    assert branch.parent_branch is None
    assert branch.parent_version == expected["parent_version"] == 2
    assert branch.created_at.timestamp() == expected["create_at"]
    assert list(branch.lineage) == expected["branch_identifier"]


def test_pylance_opens_what_we_tag(store: ObjectStore) -> None:
    now = datetime(2026, 11, 28, 1, 2, 3, 456789, UTC)
    write_tag(store, Tag("ours", 2, None, 400, now, now))
    assert lance.dataset(store.uri, version="ours").count_rows() == 3
    listed = lance.dataset(store.uri).tags.list()["ours"]
    assert listed["created_at"] == now
    moved = Tag("ours", 3, "feature/x", 400, now, now + timedelta(days=1))
    with pytest.raises(InvalidRequestError, match="already"):
        write_tag(store, moved)
    write_tag(store, moved, replace=True)
    assert lance.dataset(store.uri, version="ours").count_rows() == 4
    assert read_tag(store, "ours") == moved


def test_what_is_not_there_is_named_with_what_is(store: ObjectStore) -> None:
    with pytest.raises(VersionNotFoundError, match="mine, old"):
        open_dataset(store.uri, "new")
    with pytest.raises(VersionNotFoundError, match="feature/x"):
        open_dataset(store.uri, branch="feature")
    with pytest.raises(InvalidRequestError, match="another branch"):
        open_dataset(store.uri, "old", branch="feature/x")


@pytest.mark.parametrize(
    "name", ["", "a/b", "a b", "..", "../x", ".x", "x.", "a..b", "x.lock", "a%b"]
)
def test_what_is_no_name_of_a_tag_is_refused_as_pylance_does(store: ObjectStore, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="no name of a tag"):
        open_dataset(store.uri, name)
    with pytest.raises((OSError, ValueError), match="Ref"):
        lance.dataset(store.uri).tags.create(name, 1)


@pytest.mark.parametrize(
    "name", ["", "a b", "..", "../x", "a//b", "/a", "a/", "a..b", "x.lock", "a%b"]
)
def test_what_is_no_name_of_a_branch_is_refused_as_pylance_does(
    store: ObjectStore, name: str
) -> None:
    with pytest.raises(InvalidRequestError, match="no name of a branch"):
        open_dataset(store.uri, branch=name)
    with pytest.raises((OSError, ValueError), match="Ref"):
        lance.dataset(store.uri).create_branch(name, 1)


def test_a_detached_version_opens_by_its_number_only(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t.lance")
    fragments = lance.fragment.write_fragments(pa.table({"a": [3]}), tmp_path / "t.lance")
    detached = lance.LanceDataset.commit(
        dataset, lance.LanceOperation.Append(fragments), read_version=1, detached=True
    )
    assert rows(str(tmp_path / "t.lance")) == [1, 2]
    assert rows(str(tmp_path / "t.lance"), detached.version) == [1, 2, 3]
