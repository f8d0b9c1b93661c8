"""Versions by name, branches and clones, restored versions and metadata: ours, seen by pylance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset import Dataset, open_dataset, write_dataset
from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    LanceError,
    UnknownColumnError,
    VersionNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop


def rows(first: int, last: int) -> pa.Table:
    vectors = np.arange(first * 4, last * 4, dtype=np.float32)
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int64()),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4),
        }
    )


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> Dataset:
    """Three versions: ten rows, without the first, with five more."""
    made = write_dataset(str(tmp_path / "t.lance"), rows(0, 10), stable_row_ids=request.param)
    return made.delete("id = 0").append(rows(10, 15))


def ids(dataset: Dataset) -> list[int]:
    found: list[int] = dataset.scan(["id"]).read_all()["id"].to_pylist()
    return found


def theirs(dataset: Dataset) -> list[int]:
    """Return what pylance sees, after making sure that we see the same."""
    table = lance.dataset(dataset.uri).to_table(with_row_id=True)
    assert list(dataset.verify()) == []
    assert dataset.scan(with_row_id=True).read_all().equals(table)
    found: list[int] = table["id"].to_pylist()
    return found


def test_an_old_version_is_restored(dataset: Dataset) -> None:
    restored = dataset.checkout(1).restore()
    assert (restored.version, theirs(restored)) == (4, list(range(10)))
    grown = restored.append(rows(20, 22))
    assert theirs(grown) == [*range(10), 20, 21]
    assert ids(grown.restore(3)) == list(range(1, 15))
    lance.dataset(dataset.uri, version=2).restore()
    assert theirs(dataset.checkout()) == list(range(1, 10))
    with pytest.raises(VersionNotFoundError):
        dataset.restore(99)


def test_tags_name_versions(dataset: Dataset) -> None:
    made = dataset.create_tag("first", 1)
    dataset.create_tag("here")
    listed = lance.dataset(dataset.uri).tags.list()
    assert {name: tag["version"] for name, tag in listed.items()} == {"first": 1, "here": 3}
    assert listed["first"]["manifest_size"] == made.manifest_size
    assert [tag.name for tag in dataset.tags()] == ["first", "here"]
    assert ids(dataset.checkout("first")) == list(range(10))
    assert lance.dataset(dataset.uri, version="here").count_rows() == 14
    dataset.update_tag("first", 2)
    assert lance.dataset(dataset.uri, version="first").count_rows() == 9
    lance.dataset(dataset.uri).tags.update("here", 1)
    assert dataset.checkout("here").version == 1
    dataset.delete_tag("here")
    assert list(lance.dataset(dataset.uri).tags.list()) == ["first"]


def test_a_branch_goes_its_own_way(dataset: Dataset) -> None:
    lance.dataset(dataset.uri).create_scalar_index("id", "BTREE")
    branch = dataset.checkout().create_branch("feature/x")
    assert (branch.version, theirs(branch)) == (4, list(range(1, 15)))
    grown = branch.append(rows(100, 102)).delete("id < 5").update({"id": 200}, where="id = 14")
    assert theirs(grown) == [*range(5, 14), 100, 101, 200]
    assert ids(dataset.checkout()) == list(range(1, 15))
    reader = lance.dataset(dataset.uri).checkout_version(("feature/x", None))
    assert reader.to_table(filter="id = 200").num_rows == 1
    assert reader.to_table(filter="id = 7").num_rows == 1
    assert len(reader.describe_indices()) == 1
    reader.insert(rows(300, 301))
    assert theirs(grown.checkout())[-1] == 300
    (listed,) = lance.dataset(dataset.uri).branches.list().items()
    assert (listed[0], listed[1]["parent_version"]) == ("feature/x", 4)
    assert listed[1]["manifest_size"] == dataset.branches()[0].manifest_size


def test_versions_of_branches_are_checked_out_from_anywhere(dataset: Dataset) -> None:
    branch = dataset.create_branch("b").append(rows(50, 51))
    branch.create_tag("on-b")
    dataset.create_tag("on-main")
    for opened in (dataset, branch):
        assert ids(opened.checkout("on-b")) == [*range(1, 15), 50]
        assert ids(opened.checkout("on-main")) == list(range(1, 15))
        assert ids(opened.checkout(branch="main")) == list(range(1, 15))
        assert ids(opened.checkout(branch="b")) == [*range(1, 15), 50]
        assert ids(opened.checkout(3, branch="b")) == list(range(1, 15))
        assert [each.name for each in opened.tags()] == ["on-b", "on-main"]
    assert branch.checkout().version == 4
    assert lance.dataset(dataset.uri, version="on-b").count_rows() == 15


def test_branches_begin_on_branches(dataset: Dataset) -> None:
    inner = dataset.create_branch("a").append(rows(50, 52)).create_branch("a/b")
    assert theirs(inner.delete("id = 3")) == [1, 2, *range(4, 15), 50, 51]
    listed = lance.dataset(dataset.uri).branches.list()["a/b"]
    assert (listed["parent_branch"], listed["parent_version"]) == ("a", 4)
    assert len(listed["branch_identifier"]) == 2
    deeper = lance.dataset(dataset.uri).checkout_version(("a/b", None)).create_branch("c")
    assert deeper.count_rows() == 15
    assert ids(dataset.checkout(branch="c"))[:3] == [1, 2, 4]
    assert theirs(dataset.checkout(branch="c").create_branch("d"))[:3] == [1, 2, 4]


def test_a_branch_is_deleted_when_nobody_needs_it(dataset: Dataset) -> None:
    branch = dataset.create_branch("a")
    inner = branch.create_branch("a/b")
    branch.create_tag("t")
    with pytest.raises(InvalidRequestError, match=r"branches \['a/b'\] and tags \['t'\]"):
        dataset.delete_branch("a")
    with pytest.raises(InvalidRequestError, match="open another one"):
        inner.delete_branch("a/b")
    dataset.delete_tag("t")
    dataset.delete_branch("a/b")
    dataset.delete_branch("a")
    assert (dataset.branches(), lance.dataset(dataset.uri).branches.list()) == ([], {})
    assert not list(dataset.snapshot.scheduler.store.list_tree("tree"))
    again = dataset.create_branch("a")
    lance.dataset(dataset.uri).branches.delete("a")
    assert (again.version, dataset.branches()) == (3, [])


def test_a_clone_lies_elsewhere(dataset: Dataset, tmp_path: Path) -> None:
    clone = dataset.shallow_clone(tmp_path / "clone.lance")
    assert theirs(clone) == list(range(1, 15))
    grown = clone.delete("id IN (1, 12)").append(rows(90, 91))
    assert theirs(grown) == [*range(2, 12), 13, 14, 90]
    lance.write_dataset(rows(91, 92), clone.uri, mode="append")
    assert theirs(grown.checkout())[-1] == 91
    assert theirs(dataset.checkout()) == list(range(1, 15))
    of_branch = dataset.create_branch("b").append(rows(60, 61))
    other = of_branch.shallow_clone(tmp_path / "other.lance")
    assert theirs(other.append(rows(61, 62)))[-2:] == [60, 61]
    assert other.checkout().version == 5
    with pytest.raises(InvalidRequestError, match="already; take another place"):
        dataset.shallow_clone(tmp_path / "clone.lance")


def test_configuration_and_metadata_are_changed(dataset: Dataset) -> None:
    changed = dataset.update_config({"a": "1", "b": "2"}).update_config({"a": None, "c": "3"})
    changed = changed.update_metadata({"who": "us"}).update_schema_metadata({"s": "t"})
    changed = changed.update_field_metadata("vec", {"unit": "m"})
    reader = lance.dataset(dataset.uri)
    assert reader.config() == changed.config == {"b": "2", "c": "3"}
    assert reader.metadata == changed.metadata == {"who": "us"}
    assert reader.schema.metadata == changed.schema.metadata == {b"s": b"t"}
    assert reader.schema.field("vec").metadata == {b"unit": b"m"}
    reader.update_config({"d": "4"})
    replaced = changed.checkout().update_config({"e": "5"}, replace=True)
    assert lance.dataset(dataset.uri).config() == replaced.config == {"e": "5"}
    assert lance.dataset(dataset.uri).count_rows() == 14


def test_two_who_set_one_key_do_not_both_win(dataset: Dataset) -> None:
    dataset.update_config({"a": "1"})
    dataset.update_config({"b": "2"})
    with pytest.raises(CommitConflictError):
        dataset.update_config({"a": "3"})


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda d: d.create_tag("a/b"), InvalidRequestError, "no name of a tag"),
        (lambda d: d.create_tag("x", 9), VersionNotFoundError, "9"),
        (lambda d: d.update_tag("x"), VersionNotFoundError, 'no tag "x"'),
        (lambda d: d.delete_tag("y"), VersionNotFoundError, 'no tag "y"'),
        (lambda d: [d.create_tag("z"), d.create_tag("z")], InvalidRequestError, 'tag "z" already'),
        (lambda d: d.create_branch("main"), InvalidRequestError, "no name of a branch"),
        (lambda d: d.create_branch("../x"), InvalidRequestError, '"../x" is no name'),
        (lambda d: [d.create_branch("b"), d.create_branch("b")], InvalidRequestError, "already"),
        (lambda d: d.delete_branch("x"), VersionNotFoundError, 'no branch "x"'),
        (lambda d: d.checkout(branch="y"), VersionNotFoundError, 'no branch "y"'),
        (lambda d: d.checkout("x"), VersionNotFoundError, 'there is no tag "x"'),
        (
            lambda d: d.update_config({"a": 1}),
            InvalidRequestError,
            "the text of 'a' in entries is a str, not",
        ),
        (lambda d: d.update_metadata({1: "a"}), InvalidRequestError, "a key of entries is a str"),
        (lambda d: d.update_field_metadata("x", {}), UnknownColumnError, "unknown column"),
        (lambda d: d.shallow_clone(b"x"), InvalidRequestError, "give a path"),
    ],
)
def test_names_that_make_no_sense_are_refused(
    dataset: Dataset, change: Callable[[Dataset], object], error: type[LanceError], message: str
) -> None:
    with pytest.raises(error, match=message):
        change(dataset)


def test_a_branch_opens_by_its_name(dataset: Dataset) -> None:
    dataset.create_branch("b").append(rows(50, 51))
    assert ids(open_dataset(dataset.uri, branch="b"))[-1] == 50
