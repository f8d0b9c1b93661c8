"""Histories of pylance, committed anew by us: each manifest has to say what pylance's said."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.fragment import DataFile
from pyroaring import BitMap

from lance_core.io.mapped_store import MappedStore
from lance_core.proto import table_pb2
from lance_core.schema.tree import LanceSchema
from lance_core.table.commit import commit
from lance_core.table.row_ids import decode_row_ids
from lance_core.table.row_versions import decode_row_versions
from lance_core.table.transaction_from_proto import transaction_from_bytes
from tests.committed import new_file, opened
from tests.interop.test_transactions_of_pylance import history

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.table.manifest import Manifest
    from lance_core.table.transaction import Transaction

pytestmark = pytest.mark.interop

_OF_THE_COMMIT = (
    *("timestamp", "transaction_file", "writer_version"),
    *("index_section", "transaction_section"),
)


def transactions(root: Path) -> list[Transaction]:
    """Return the transactions of all versions but the first."""
    found = []
    for version in range(2, lance.dataset(root).version + 1):
        name = opened(root, version).manifest.message.transaction_file
        data = (root / "_transactions" / name).read_bytes()
        found.append(transaction_from_bytes(data, name))
    return found


def replay(theirs: Path, ours: Path) -> None:
    """Commit the history of one dataset to a copy of its first version; compare every version."""
    shutil.copytree(theirs, ours)
    first = opened(theirs, 1).manifest.path
    for file in (ours / "_versions").iterdir():
        if not first.endswith(file.name):
            file.unlink()
    for version, transaction in enumerate(transactions(theirs), 2):
        made = commit(opened(ours).scheduler, transaction)
        assert made.version == version
        assert_same(made.manifest, opened(theirs, version).manifest)
    assert lance.dataset(ours).to_table() == lance.dataset(theirs).to_table()


def assert_same(ours: Manifest, theirs: Manifest) -> None:
    assert comparable(ours.message) == comparable(theirs.message)
    expected = {each.uuid.uuid: entry(each) for each in theirs.index_section.indices}
    assert {each.uuid.uuid: entry(each) for each in ours.index_section.indices} == expected


def comparable(manifest: table_pb2.Manifest) -> table_pb2.Manifest:
    """Return a manifest without what differs from commit to commit, and sequences expanded."""
    copy = table_pb2.Manifest()
    copy.CopyFrom(manifest)
    for name in _OF_THE_COMMIT:
        copy.ClearField(name)  # type: ignore[arg-type] # a literal above
    for fragment in copy.fragments:
        if fragment.HasField("inline_row_ids"):
            ids = decode_row_ids(fragment.inline_row_ids, "")
            fragment.inline_row_ids = b"%a" % ids.at(np.arange(len(ids))).tolist()
        if fragment.HasField("inline_created_at_versions"):
            created = expanded(fragment.inline_created_at_versions)
            fragment.inline_created_at_versions = created
        if fragment.HasField("inline_last_updated_at_versions"):
            updated = expanded(fragment.inline_last_updated_at_versions)
            fragment.inline_last_updated_at_versions = updated
    return copy


def expanded(data: bytes) -> bytes:
    """Return the version of each row, however the rows are cut into runs."""
    versions = decode_row_versions(data, "")
    return b"%a" % versions.at(np.arange(len(versions))).tolist()


def entry(message: table_pb2.IndexMetadata) -> tuple[set[int], table_pb2.IndexMetadata]:
    copy = table_pb2.IndexMetadata()
    copy.CopyFrom(message)
    copy.ClearField("fragment_bitmap")
    copy.ClearField("created_at")
    return set(BitMap.deserialize(message.fragment_bitmap)), copy


def only(schema: LanceSchema, name: str) -> LanceSchema:
    """Return a schema of one column, which keeps its id."""
    return LanceSchema(tuple(field for field in schema.fields if field.name == name), {})


@pytest.mark.parametrize("stable", [False, True])
def test_every_operation_makes_the_manifest_that_pylance_made(tmp_path: Path, stable: bool) -> None:
    history(tmp_path / "theirs", stable=stable)
    replay(tmp_path / "theirs", tmp_path / "ours")


@pytest.mark.parametrize("stable", [False, True])
def test_indices_are_covered_after_updates_and_compactions_as_pylance_covers_them(
    tmp_path: Path, stable: bool
) -> None:
    root = tmp_path / "theirs"
    ids = pa.array(range(300), pa.int64())
    table = pa.table({"id": ids, "x": ids, "s": [f"w{i % 7}" for i in range(300)]})
    dataset = lance.write_dataset(table, root, max_rows_per_file=100, enable_stable_row_ids=stable)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("x", "BITMAP")
    dataset.create_scalar_index("s", "INVERTED")
    dataset.update({"x": "x + 1000"}, where="id % 5 = 0")
    dataset.delete("id % 3 = 0 AND id < 200")
    dataset.merge_insert("id").when_matched_update_all().execute(table.slice(10, 1))
    updated, fields = dataset.get_fragments()[1].update_columns(
        pa.table({"id": pa.array([151], pa.int64()), "x": pa.array([7], pa.int64())}), left_on="id"
    )
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    dataset = lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    tree = opened(root).schema
    file = new_file(MappedStore(str(root)), table.slice(0, 100).select(["x"]), only(tree, "x"))
    described = DataFile(file.path, [1], [0], 2, 2, file.file_size_bytes)
    replacement = lance.LanceOperation.DataReplacementGroup(2, described)
    replaced = lance.LanceOperation.DataReplacement([replacement])
    lance.LanceDataset.commit(dataset, replaced, read_version=dataset.version)
    dataset = lance.dataset(root)
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    replay(root, tmp_path / "ours")
