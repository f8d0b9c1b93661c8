"""Pairs of operations: whether the second may follow the first, says pylance and say we."""

from __future__ import annotations

import itertools
import shutil
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import lance
import pyarrow as pa
import pytest

from lance_core.errors import CommitConflictError
from lance_core.table.commit import commit
from lance_core.table.transaction_from_proto import transaction_from_bytes
from tests.committed import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from lance.dataset import AlterColumn

    from lance_core.table.transaction import Transaction

pytestmark = pytest.mark.interop


def table(start: int, end: int) -> pa.Table:
    ids = pa.array(range(start, end), pa.int64())
    return pa.table({"id": ids, "x": ids, "s": [f"s{i}" for i in range(start, end)]})


def update_columns(dataset: lance.LanceDataset) -> None:
    new = pa.table({"id": pa.array([5], pa.int64()), "x": pa.array([7], pa.int64())})
    updated, fields = dataset.get_fragments()[0].update_columns(new, left_on="id")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


RENAMED = cast("Iterable[AlterColumn]", {"path": "s", "name": "t"})

ACTS: dict[str, Callable[[lance.LanceDataset], object]] = {
    "append": lambda ds: ds.insert(table(100, 110)),
    "delete": lambda ds: ds.delete("id = 1"),
    "delete elsewhere": lambda ds: ds.delete("id = 11"),
    "remove": lambda ds: ds.delete("id < 10"),
    "update": lambda ds: ds.update({"s": "'u'"}, where="id = 2"),
    "update elsewhere": lambda ds: ds.update({"s": "'u'"}, where="id = 12"),
    "columns": update_columns,
    "overwrite": lambda ds: lance.write_dataset(table(0, 5), ds.uri, mode="overwrite"),
    "index": lambda ds: ds.create_scalar_index("x", "BTREE"),
    "other index": lambda ds: ds.create_scalar_index("s", "BITMAP"),
    "merge": lambda ds: ds.add_columns({"y": "x * 2"}),
    "drop": lambda ds: ds.drop_columns(["s"]),
    "rename": lambda ds: ds.alter_columns(RENAMED),
    "config": lambda ds: ds.update_config({"a": "1"}),
    "other config": lambda ds: ds.update_config({"b": "1"}),
    "schema metadata": lambda ds: ds.update_schema_metadata({"k": "v"}),
}

MERGED = {
    ("delete", "update"),
    ("update", "delete"),
    ("delete elsewhere", "update elsewhere"),
    ("update elsewhere", "delete elsewhere"),
}
"""Deletions of different rows of a fragment: pylance merges them only where it knows the rows."""

DANGLING = ("drop", "other index")
"""An index on a column that is gone: pylance commits it."""


@pytest.fixture(scope="module")
def acted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return one copy of a dataset per act, each with the act as its second version."""
    start = tmp_path_factory.mktemp("start")
    lance.write_dataset(table(0, 30), start, max_rows_per_file=10)
    copies = {name: tmp_path_factory.mktemp("acted") / "t.lance" for name in ACTS}
    for name, act in ACTS.items():
        shutil.copytree(start, copies[name])
        act(lance.dataset(copies[name]))
    return copies


def brought_together(first: Path, second: Path, target: Path) -> Transaction:
    """Copy a dataset and the files of another one; return the other one's transaction."""
    shutil.copytree(first, target)
    for folder in ("data", "_deletions", "_indices"):
        if (second / folder).exists():
            shutil.copytree(second / folder, target / folder, dirs_exist_ok=True)
    name = opened(second, 2).manifest.message.transaction_file
    read = transaction_from_bytes((second / "_transactions" / name).read_bytes(), name)
    return replace(read, uuid=str(uuid.uuid4()))  # else we would find it committed already


def outcome_of_pylance(root: Path, second: Path) -> str:
    transaction = lance.dataset(second).read_transaction(2)
    assert transaction is not None
    try:
        lance.LanceDataset.commit(str(root), transaction.operation, read_version=1)
    except OSError as error:
        return "retry" if "Retryable" in str(error) else "fail"
    return "done"


def outcome_of_ours(root: Path, transaction: Transaction) -> str:
    try:
        commit(opened(root).scheduler, transaction)
    except CommitConflictError as error:
        return "retry" if error.is_retryable else "fail"
    return "done"


@pytest.mark.parametrize(("theirs", "ours"), list(itertools.product(ACTS, ACTS)))
def test_a_pair_has_the_same_outcome(
    acted: dict[str, Path], tmp_path: Path, theirs: str, ours: str
) -> None:
    transaction = brought_together(acted[theirs], acted[ours], tmp_path / "ours")
    brought_together(acted[theirs], acted[ours], tmp_path / "pylance")
    found = outcome_of_ours(tmp_path / "ours", transaction)
    expected = outcome_of_pylance(tmp_path / "pylance", acted[ours])
    if (theirs, ours) in MERGED:
        assert (found, expected) == ("done", "retry")
    elif (theirs, ours) == DANGLING:
        assert (found, expected) == ("retry", "done")
    else:
        assert found == expected
