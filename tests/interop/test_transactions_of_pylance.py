"""Transactions that pylance wrote, as our values and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import lance
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError
from lance_core.proto import transaction_pb2
from lance_core.table.transaction import Transaction, UnknownOperation
from lance_core.table.transaction_from_proto import transaction_from_bytes
from lance_core.table.transaction_of_version import transaction_of
from lance_core.table.transaction_to_proto import transaction_to_bytes
from lance_core.table.versions import find_manifest
from tests.committed import opened

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lance.dataset import AlterColumn

pytestmark = pytest.mark.interop


def history(root: Path, *, stable: bool = False) -> None:
    """Make a dataset with one version, or more, of each operation."""
    table = pa.table({"id": pa.array(range(100), pa.int64()), "x": [float(i) for i in range(100)]})
    dataset = lance.write_dataset(table, root, max_rows_per_file=25, enable_stable_row_ids=stable)
    lance.write_dataset(table.slice(0, 10), root, mode="append", commit_message="ten more")
    dataset = lance.dataset(root)
    dataset.delete("id = 3")
    dataset.update({"x": "x + 1"}, where="id = 5")
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table({"id": pa.array([7, 1000], pa.int64()), "x": [0.0, 0.0]})
    )
    dataset.create_scalar_index("id", "BTREE")
    dataset.add_columns({"y": "x * 2"})
    dataset.drop_columns(["y"])
    dataset.alter_columns(cast("Iterable[AlterColumn]", {"path": "x", "name": "z"}))
    dataset.update_config({"a": "b"})
    dataset.delete_config_keys(["a"])
    dataset.update_metadata({"k": "v"})
    dataset.update_schema_metadata({"k": "v"})
    dataset.update_field_metadata({"id": {"unit": "1"}})
    dataset.optimize.compact_files()
    dataset.restore()
    lance.write_dataset(table, root, mode="overwrite")


def test_every_operation_comes_back_as_it_was(tmp_path: Path) -> None:
    history(tmp_path)
    seen: set[str] = set()
    for file in (tmp_path / "_transactions").iterdir():
        data = file.read_bytes()
        transaction = transaction_from_bytes(data, file.name)
        assert transaction.file_name == file.name
        before = transaction_pb2.Transaction.FromString(data)
        after = transaction_pb2.Transaction.FromString(transaction_to_bytes(transaction))
        assert after == before
        seen.add(type(transaction.operation).__name__)
    assert seen == {
        *("Append", "CreateIndex", "Delete", "Merge", "Overwrite", "Project"),
        *("ReserveFragments", "Restore", "Rewrite", "Update", "UpdateConfig"),
    }


def read_transaction(root: Path) -> Transaction:
    snapshot = opened(root)
    meta = find_manifest(snapshot.scheduler.store).meta
    return transaction_of(snapshot.scheduler, snapshot.manifest, meta)


def test_a_version_s_transaction_is_found_in_the_manifest_or_beside_it(tmp_path: Path) -> None:
    history(tmp_path)
    snapshot = opened(tmp_path)
    inline = read_transaction(tmp_path)
    snapshot.manifest.message.ClearField("transaction_section")
    meta = find_manifest(snapshot.scheduler.store).meta
    beside = transaction_of(snapshot.scheduler, snapshot.manifest, meta)
    assert beside == inline
    snapshot.manifest.message.transaction_section_deprecated = meta.size
    with pytest.raises(CorruptFileError, match="behind the end"):
        transaction_of(snapshot.scheduler, snapshot.manifest, meta)
    snapshot.manifest.message.ClearField("transaction_section_deprecated")
    snapshot.manifest.message.transaction_file = "1-gone.txn"
    gone = transaction_of(snapshot.scheduler, snapshot.manifest, meta)
    assert isinstance(gone.operation, UnknownOperation)


def test_an_operation_of_a_later_release_is_unknown() -> None:
    data = transaction_pb2.Transaction(read_version=3, uuid="u").SerializeToString()
    composite = data + bytes.fromhex("a20700")  # field 116, empty
    read = transaction_from_bytes(composite, "x.txn")
    assert (read.read_version, read.uuid) == (3, "u")
    assert isinstance(read.operation, UnknownOperation)
    overlay = transaction_pb2.Transaction(data_overlay=transaction_pb2.Transaction.DataOverlay())
    read = transaction_from_bytes(overlay.SerializeToString(), "x.txn")
    assert read.operation == UnknownOperation("data_overlay")
    with pytest.raises(CorruptFileError, match=r"x\.txn"):
        transaction_from_bytes(b"\xff\xff", "x.txn")
