"""Commits of ours from an old version, after pylance committed; and the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.dataset import open_dataset
from lance_core.errors import CommitConflictError
from lance_core.proto import table_pb2
from lance_core.table.commit import commit
from lance_core.table.deletion_writer import write_deletion_file
from lance_core.table.fragment import DeletionFileType
from lance_core.table.transaction import CreateIndex, Delete, Project, Transaction, Update
from tests.committed import (
    append,
    apply,
    create,
    deleted_fragments,
    deletion,
    new_fragment,
    opened,
)
from tests.interop.test_commits_seen_by_pylance import (
    coverage,
    found,
    ids_of,
    rows,
    transaction,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


def test_an_append_of_an_old_version_follows_what_pylance_appended(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10))
    lance.write_dataset(rows(10, 20), str(tmp_path), mode="append")
    lance.dataset(str(tmp_path)).delete("id < 5")
    lance.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    snapshot = append(old, rows(20, 30))
    assert snapshot.version == 5
    assert ids_of(tmp_path) == list(range(5, 30))
    assert transaction(tmp_path, 5).read_version == 1


def test_deletions_of_other_rows_are_merged(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10), rows(10, 20))
    lance.dataset(str(tmp_path)).delete("id = 9")
    old = opened(tmp_path)
    ours = deletion(old, {0: [0, 1], 1: [5]})
    lance.dataset(str(tmp_path)).delete("id in (2, 3)")
    snapshot = apply(old, ours)
    assert ids_of(tmp_path) == [4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 16, 17, 18, 19]
    assert transaction(tmp_path, snapshot.version).read_version == 3
    merged, kept = [fragment.deletion_file for fragment in snapshot.fragments]
    assert merged is not None
    assert (merged.read_version, merged.num_deleted_rows) == (3, 5)
    assert merged.file_type is DeletionFileType.ARROW_ARRAY
    assert kept is not None
    assert kept.read_version == 2


def test_the_same_row_cannot_be_deleted_twice(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10))
    ours = deletion(old, {0: [0, 1]})
    lance.dataset(str(tmp_path)).delete("id = 1")
    with pytest.raises(CommitConflictError, match="fragment 0") as caught:
        apply(old, ours)
    assert caught.value.is_retryable
    assert ids_of(tmp_path) == [0, *range(2, 10)]


def test_a_row_that_pylance_updated_cannot_be_deleted_where_it_was(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10))
    ours = deletion(old, {0: [0, 1]})
    lance.dataset(str(tmp_path)).update({"name": "'new'"}, where="id = 1")
    with pytest.raises(CommitConflictError, match="fragment 0"):
        apply(old, ours)
    apply(old, deletion(old, {0: [0]}))
    assert ids_of(tmp_path) == list(range(1, 10))
    assert found(tmp_path, "id = 1") == ["new"]


def test_a_fragment_whose_last_rows_two_writers_delete_is_removed(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10), rows(10, 20))
    ours = deletion(old, {0: range(5)})
    lance.dataset(str(tmp_path)).delete("id >= 5 AND id < 10")
    snapshot = apply(old, ours)
    assert [fragment.id for fragment in snapshot.fragments] == [1]
    assert ids_of(tmp_path) == list(range(10, 20))


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_fragment_that_one_removed_is_gone_for_the_other(tmp_path: Path, is_whole: bool) -> None:
    old = create(tmp_path, rows(0, 10), rows(10, 20))
    ours = deletion(old, {0: range(10) if is_whole else [0]})
    condition = "id = 3" if is_whole else "id < 10"
    lance.dataset(str(tmp_path)).delete(condition)
    with pytest.raises(CommitConflictError) as caught:
        apply(old, ours)
    assert caught.value.is_retryable


def test_a_deletion_after_a_compaction_has_to_be_done_anew(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10), rows(10, 20))
    ours = deletion(old, {0: [0]})
    lance.dataset(str(tmp_path)).optimize.compact_files()
    with pytest.raises(CommitConflictError, match="Delete after Rewrite") as caught:
        apply(old, ours)
    assert caught.value.is_retryable


def test_an_update_of_other_rows_is_merged(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10))
    updated, removed = deleted_fragments(old, {0: [0]})
    added = new_fragment(old.scheduler.store, rows(100, 101), old.schema)
    lance.dataset(str(tmp_path)).update({"name": "'new'"}, where="id = 1")
    lance.dataset(str(tmp_path)).delete("id = 2")
    snapshot = apply(old, Update(removed, updated, (added,)))
    assert [fragment.id for fragment in snapshot.fragments] == [0, 1, 2]
    assert ids_of(tmp_path) == [1, *range(3, 10), 100]
    assert found(tmp_path, "id = 1") == ["new"]


def test_what_is_read_after_an_overwrite_conflicts_for_good(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10))
    lance.write_dataset(rows(0, 5), str(tmp_path), mode="overwrite")
    with pytest.raises(CommitConflictError, match="Append after Overwrite") as caught:
        append(old, rows(10, 20))
    assert not caught.value.is_retryable


def test_a_deletion_keeps_the_columns_that_pylance_dropped_dropped(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10))
    lance.dataset(str(tmp_path)).add_columns({"twice": "id * 2"})
    old = opened(tmp_path)
    ours = deletion(old, {0: [0]})
    lance.dataset(str(tmp_path)).drop_columns(["twice"])
    snapshot = apply(old, ours)
    assert len(snapshot.fragments[0].data_files) == 1
    assert lance.dataset(str(tmp_path)).to_table() == rows(1, 10)


def test_a_new_index_gives_up_fragments_whose_column_was_rewritten(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10), rows(10, 20))
    dataset = lance.dataset(str(tmp_path))
    dataset.create_scalar_index("id", "BTREE")
    snapshot = opened(tmp_path)
    (entry,) = snapshot.manifest.index_section.indices
    old = apply(snapshot, CreateIndex(removed_indices=(entry,)))
    dataset = lance.dataset(str(tmp_path))
    new = pa.table({"name": ["n15"], "id": [115]})
    updated, fields = dataset.get_fragments()[1].update_columns(new, left_on="name")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    apply(old, CreateIndex(new_indices=(entry,)))
    assert coverage(tmp_path) == [{0}]
    assert found(tmp_path, "id = 115") == ["n15"]
    assert found(tmp_path, "id = 15") == []


def test_an_index_on_a_column_that_is_gone_is_refused(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10))
    lance.dataset(str(tmp_path)).create_scalar_index("name", "BTREE")
    snapshot = opened(tmp_path)
    (entry,) = snapshot.manifest.index_section.indices
    old = apply(snapshot, CreateIndex(removed_indices=(entry,)))
    lance.dataset(str(tmp_path)).drop_columns(["name"])
    with pytest.raises(CommitConflictError, match="column is gone"):
        apply(old, CreateIndex(new_indices=(entry,)))


def test_pylance_rebases_over_our_commits(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10))
    stale = lance.dataset(str(tmp_path))
    late = lance.dataset(str(tmp_path))
    snapshot = opened(tmp_path)
    snapshot = append(apply(snapshot, deletion(snapshot, {0: [0]})), rows(10, 20))
    stale.delete("id = 5")
    lance.write_dataset(rows(20, 30), late, mode="append")
    assert ids_of(tmp_path) == [*range(1, 5), *range(6, 30)]


def test_a_version_without_its_transaction_stops_the_rebase(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10))
    append(old, rows(10, 20))
    append(old, rows(20, 30))
    version_2 = tmp_path / "_versions" / f"{2**64 - 1 - 2}.manifest"
    version_2.unlink()
    with pytest.raises(CommitConflictError, match="version 2") as caught:
        append(old, rows(30, 40))
    assert caught.value.is_retryable


def test_a_commit_that_was_published_unseen_is_not_published_twice(tmp_path: Path) -> None:
    old = create(tmp_path, rows(0, 10))
    fields = tuple(old.manifest.message.fields)
    transaction = Transaction(old.version, Project(fields, preserves_nullability=True))
    first = commit(old.scheduler, transaction)
    append(first, rows(10, 20))
    assert commit(old.scheduler, transaction).version == first.version
    assert opened(tmp_path).version == 3


def test_deletions_of_a_clone_are_merged_with_those_of_its_source(tmp_path: Path) -> None:
    create(tmp_path / "source", rows(0, 10))
    source = lance.dataset(str(tmp_path / "source"))
    source.delete("id = 0")
    source.shallow_clone(str(tmp_path / "clone"), source.version)
    old = open_dataset(tmp_path / "clone").snapshot
    message = table_pb2.DataFragment()
    message.CopyFrom(old.manifest.message.fragments[0])
    store = old.scheduler.store
    message.deletion_file.CopyFrom(write_deletion_file(store, 0, old.version, BitMap([0, 1])))
    lance.dataset(str(tmp_path / "clone")).delete("id = 2")
    operation = Delete((message,), ())
    commit(old.scheduler, Transaction(old.version, operation), open_base=old.open_base)
    assert ids_of(tmp_path / "clone") == list(range(3, 10))
    assert ids_of(tmp_path / "source") == list(range(1, 10))
