"""What we committed, in pylance's hands: opened, appended to, deleted from, compacted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

from lance_core.dataset import open_dataset
from lance_core.errors import CommitConflictError
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.schema.to_proto import field_messages
from lance_core.schema.tree import LanceSchema
from lance_core.table.naming import NamingScheme
from lance_core.table.next_version import NewDataset
from lance_core.table.transaction import (
    CreateIndex,
    DataReplacement,
    MapUpdate,
    Merge,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateConfig,
    UpdateMode,
)
from tests.committed import (
    append,
    apply,
    create,
    delete,
    deleted_fragments,
    new_file,
    new_fragment,
    opened,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot

pytestmark = pytest.mark.interop


def rows(start: int, end: int) -> pa.Table:
    ids = range(start, end)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})


def ids_of(root: Path) -> list[int]:
    """Return the ids of all rows, which both libraries have to see."""
    theirs: list[int] = sorted(lance.dataset(str(root)).to_table()["id"].to_pylist())
    ours = open_dataset(root).scan(["id"]).read_all()["id"].to_pylist()
    assert theirs == sorted(ours)
    return theirs


def found(root: Path, condition: str) -> list[str]:
    names: list[str] = lance.dataset(str(root)).to_table(filter=condition)["name"].to_pylist()
    return names


def coverage(root: Path) -> list[set[int]]:
    """Return which fragments each index segment covers, as pylance reads it."""
    description = lance.dataset(str(root)).describe_indices()
    return [set(segment.fragment_ids) for index in description for segment in index.segments]


def transaction(root: Path, version: int) -> lance.Transaction:
    read = lance.dataset(str(root)).read_transaction(version)
    assert read is not None
    return read


def fragments(snapshot: Snapshot) -> dict[int, table_pb2.DataFragment]:
    return {each.id: each for each in snapshot.manifest.message.fragments}


@pytest.mark.parametrize("scheme", [NamingScheme.V1, NamingScheme.V2])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_dataset_of_ours_takes_what_pylance_does(
    tmp_path: Path, scheme: NamingScheme, version: str
) -> None:
    create(tmp_path, rows(0, 100), rows(100, 200), new=NewDataset(version, scheme))
    dataset = lance.dataset(str(tmp_path))
    assert (dataset.version, dataset.data_storage_version) == (1, version)
    delete(append(opened(tmp_path), rows(200, 300)), {1: range(50), 2: range(100)})
    assert ids_of(tmp_path) == [*range(100), *range(150, 200)]
    dataset = lance.dataset(str(tmp_path))
    dataset = lance.write_dataset(rows(300, 310), dataset, mode="append")
    dataset.delete("id < 20")
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    (compacted,) = dataset.get_fragments()
    delete(append(opened(tmp_path), rows(400, 410)), {int(compacted.fragment_id): [0]})
    expected = [*range(21, 100), *range(150, 200), *range(300, 310), *range(400, 410)]
    assert ids_of(tmp_path) == expected
    assert found(tmp_path, "id = 305") == ["n305"]
    names = [path.name for path in (tmp_path / "_versions").glob("*.manifest")]
    assert {len(name) == 29 for name in names} == {scheme is NamingScheme.V2}


def test_an_overwrite_and_a_restore_keep_ids_counting(tmp_path: Path) -> None:
    snapshot = create(tmp_path, rows(0, 10), rows(10, 20))
    other = pa.table({"x": [1.0, 2.0]})
    fields = tuple(field_messages(schema_from_arrow(other.schema)))
    operation = Overwrite((new_fragment(snapshot.scheduler.store, other),), fields)
    snapshot = apply(snapshot, operation)
    dataset = lance.dataset(str(tmp_path))
    assert dataset.to_table() == other
    assert [each.fragment_id for each in dataset.get_fragments()] == [2]
    snapshot = apply(snapshot, Restore(1))
    assert ids_of(tmp_path) == list(range(20))
    append(snapshot, rows(20, 30))
    dataset = lance.dataset(str(tmp_path))
    assert [each.fragment_id for each in dataset.get_fragments()] == [0, 1, 3]
    dataset.restore()
    assert ids_of(tmp_path) == list(range(30))


def test_a_compaction_of_ours_is_read_and_compacted_again(tmp_path: Path) -> None:
    snapshot = create(tmp_path, rows(0, 10), rows(10, 20), rows(20, 30))
    snapshot = delete(snapshot, {1: [0]})
    old = fragments(snapshot)
    apply(snapshot, ReserveFragments(2))
    merged = pa.concat_tables([rows(0, 10), rows(11, 20)])
    moved = new_fragment(snapshot.scheduler.store, merged, snapshot.schema)
    moved.id = 4
    apply(snapshot, Rewrite((RewriteGroup((old[0], old[1]), (moved,)),)))
    dataset = lance.dataset(str(tmp_path))
    assert [each.fragment_id for each in dataset.get_fragments()] == [2, 4]
    assert ids_of(tmp_path) == [*range(10), *range(11, 30)]
    dataset.optimize.compact_files()
    assert [each.fragment_id for each in lance.dataset(str(tmp_path)).get_fragments()] == [5]
    assert ids_of(tmp_path) == [*range(10), *range(11, 30)]


def test_rows_updated_by_us_are_found_where_they_are_now(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10), rows(10, 20))
    lance.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    snapshot = opened(tmp_path)
    updated, removed = deleted_fragments(snapshot, {0: [3], 1: range(10)})
    moved = rows(100, 111)
    added = new_fragment(snapshot.scheduler.store, moved, snapshot.schema)
    apply(snapshot, Update(removed, updated, (added,)))
    assert ids_of(tmp_path) == [0, 1, 2, *range(4, 10), *range(100, 111)]
    assert found(tmp_path, "id = 105") == ["n105"]
    assert found(tmp_path, "id in (3, 12)") == []
    assert coverage(tmp_path) == [{0, 1}]


@pytest.mark.parametrize("kind", ["replacement", "update", "merge"])
def test_columns_rewritten_in_place_leave_the_coverage_of_their_indices(
    tmp_path: Path, kind: str
) -> None:
    create(tmp_path, rows(0, 10), rows(10, 20))
    dataset = lance.dataset(str(tmp_path))
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("name", "BTREE")
    snapshot = opened(tmp_path)
    ids = LanceSchema(snapshot.schema.fields[:1], {})
    file = new_file(snapshot.scheduler.store, rows(100, 110).select(["id"]), ids)
    if kind == "replacement":
        apply(snapshot, DataReplacement((Replacement(1, file),)))
    else:
        changed = fragments(snapshot)[1]
        changed.files[0].fields[:] = [-2, 1]
        changed.files.append(file)
        if kind == "update":
            columns = UpdateMode.REWRITE_COLUMNS
            operation = Update(updated_fragments=(changed,), fields_modified=(0,), mode=columns)
            apply(opened(tmp_path), operation)
        else:
            fields = tuple(snapshot.manifest.message.fields)
            apply(opened(tmp_path), Merge((fragments(snapshot)[0], changed), fields))
    assert ids_of(tmp_path) == [*range(10), *range(100, 110)]
    assert found(tmp_path, "id = 105") == ["n15"]
    assert found(tmp_path, "id = 15") == []
    assert coverage(tmp_path) == [{0}, {0, 1}]


def test_a_dropped_column_takes_its_files_and_indices_along(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10))
    dataset = lance.dataset(str(tmp_path))
    dataset.add_columns({"twice": "id * 2"})
    dataset.create_scalar_index("twice", "BTREE")
    dataset.create_scalar_index("id", "BTREE")
    snapshot = opened(tmp_path)
    fields = tuple(snapshot.manifest.message.fields[:2])
    snapshot = apply(snapshot, Project(fields, preserves_nullability=True))
    dataset = lance.dataset(str(tmp_path))
    assert dataset.to_table() == rows(0, 10)
    assert len(snapshot.fragments[0].data_files) == 1
    assert [index.name for index in dataset.describe_indices()] == ["id_idx"]


def test_config_and_metadata_are_those_we_set(tmp_path: Path) -> None:
    snapshot = create(tmp_path, rows(0, 10))
    text = MapUpdate({"a": "1", "b": "2"})
    snapshot = apply(snapshot, UpdateConfig(text, text, text, {1: MapUpdate({"unit": "m"})}))
    assert snapshot.manifest.flags.writer == 8
    snapshot = apply(snapshot, UpdateConfig(MapUpdate({"a": None, "c": ""})))
    dataset = lance.dataset(str(tmp_path))
    assert dataset.config() == {"b": "2", "c": ""}
    assert dataset.metadata == {"a": "1", "b": "2"}
    assert dataset.schema.metadata == {b"a": b"1", b"b": b"2"}
    assert dataset.schema.field("name").metadata == {b"unit": b"m"}
    apply(snapshot, UpdateConfig(MapUpdate({}, replaces=True)))
    assert lance.dataset(str(tmp_path)).config() == {}
    assert opened(tmp_path).manifest.flags.writer == 0


def test_an_index_entry_is_removed_and_put_back(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10))
    lance.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    snapshot = opened(tmp_path)
    (entry,) = snapshot.manifest.index_section.indices
    snapshot = apply(snapshot, CreateIndex(removed_indices=(entry,)))
    assert coverage(tmp_path) == []
    snapshot = apply(snapshot, CreateIndex(new_indices=(entry,)))
    assert coverage(tmp_path) == [{0}]
    assert found(tmp_path, "id = 5") == ["n5"]
    (kept,) = snapshot.manifest.index_section.indices
    assert kept == entry


def test_making_a_dataset_where_one_is_conflicts(tmp_path: Path) -> None:
    create(tmp_path, rows(0, 10))
    with pytest.raises(CommitConflictError):
        create(tmp_path, rows(0, 10))
    assert ids_of(tmp_path) == list(range(10))


def test_pylance_reads_the_transaction_that_we_wrote(tmp_path: Path) -> None:
    snapshot = delete(create(tmp_path, rows(0, 10)), {0: [1]})
    read = transaction(tmp_path, 2)
    assert read.read_version == 1
    assert isinstance(read.operation, lance.LanceOperation.Delete)
    assert read.operation.predicate == "true"
    file = tmp_path / "_transactions" / snapshot.manifest.message.transaction_file
    manifest = (tmp_path / snapshot.manifest.path).read_bytes()
    assert file.read_bytes() in manifest
    assert (tmp_path / "_versions" / "latest_version_hint.json").read_text() == '{"version":2}'
