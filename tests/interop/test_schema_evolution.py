"""Columns that come, go, change names and types: each version reads as pylance reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset import open_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

Dataset = lance.LanceDataset


def table(first: int = 0, last: int = 30) -> pa.Table:
    ids = range(first, last)
    points = [None if i % 5 == 4 else {"x": i, "y": {"a": str(i), "b": i / 2}} for i in ids]
    tags = [None if i % 7 == 3 else [{"k": j, "v": str(j)} for j in range(i % 3)] for i in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([i if i % 3 else None for i in ids], pa.int32()),
            "text": [f"row {i}" for i in ids],
            "point": pa.array(
                points,
                pa.struct(
                    [("x", pa.int64()), ("y", pa.struct([("a", pa.string()), ("b", pa.float64())]))]
                ),
            ),
            "tags": pa.array(tags, pa.list_(pa.struct([("k", pa.int64()), ("v", pa.string())]))),
        }
    )


def alter(dataset: Dataset, **change: Any) -> None:
    given: Any = change  # its annotation is wrong
    dataset.alter_columns(given)


def drop_and_add_again(dataset: Dataset) -> None:
    """The field id of the dropped column is given to the new one."""
    dataset.add_columns({"extra": "id * 2"})
    dataset.drop_columns(["extra"])
    dataset.add_columns({"other": "cast(id as string)"})


def add_the_same_name_with_another_type(dataset: Dataset) -> None:
    dataset.drop_columns(["n"])
    dataset.add_columns({"n": "cast(id as string)"})


def change_type(dataset: Dataset) -> None:
    alter(dataset, path="n", data_type=pa.int64())


def change_type_twice_and_name(dataset: Dataset) -> None:
    alter(dataset, path="n", data_type=pa.int64())
    alter(dataset, path="n", data_type=pa.int16(), name="m")


def rename_nested(dataset: Dataset) -> None:
    alter(dataset, path="point.x", name="z")
    alter(dataset, path="point", name="place")


def drop_nested(dataset: Dataset) -> None:
    dataset.drop_columns(["point.y.a"])


def drop_a_part_of_list_items(dataset: Dataset) -> None:
    dataset.drop_columns(["tags.item.k"])


def add_a_part_of_a_struct(dataset: Dataset) -> None:
    kind = pa.struct([("w", pa.int64())])

    @lance.batch_udf(output_schema=pa.schema([pa.field("point", kind)]))
    def add(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = [{"w": i} if i % 2 else None for i in batch["id"].to_pylist()]
        return pa.record_batch({"point": pa.array(values, kind)})

    dataset.add_columns(add, read_columns=["id"])


def add_a_part_and_drop_it_again(dataset: Dataset) -> None:
    add_a_part_of_a_struct(dataset)
    dataset.drop_columns(["point.w"])


def append_without_a_column(dataset: Dataset) -> None:
    lance.write_dataset(table(30, 40).drop_columns(["n", "point"]), dataset.uri, mode="append")


def add_a_column_without_values(dataset: Dataset) -> None:
    dataset.add_columns(pa.field("later", pa.list_(pa.int16())))
    rows = table(30, 40).append_column("later", pa.array([[1]] * 10, pa.list_(pa.int16())))
    lance.write_dataset(rows, dataset.uri, mode="append")


def rewrite_a_column_in_place(dataset: Dataset) -> None:
    """Leaves a tombstone where the column was."""
    fragment = dataset.get_fragments()[1]
    update = pa.table({"id": [11, 13], "text": ["eleven", "thirteen"]})
    changed, fields = fragment.update_columns(update, left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(
        updated_fragments=[changed], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def overwrite_with_another_schema(dataset: Dataset) -> None:
    lance.write_dataset(pa.table({"n": ["a", "b"]}), dataset.uri, mode="overwrite")


def merge_by_key(dataset: Dataset) -> None:
    dataset.merge(pa.table({"id": [3, 4, 5], "joined": ["c", "d", "e"]}), "id")


STEPS: list[Callable[[Dataset], None]] = [
    drop_and_add_again,
    add_the_same_name_with_another_type,
    change_type,
    change_type_twice_and_name,
    rename_nested,
    drop_nested,
    drop_a_part_of_list_items,
    add_a_part_of_a_struct,
    add_a_part_and_drop_it_again,
    append_without_a_column,
    add_a_column_without_values,
    rewrite_a_column_in_place,
    overwrite_with_another_schema,
    merge_by_key,
]


@pytest.mark.parametrize("stable_row_ids", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_every_version_reads_as_pylance_reads_it(
    tmp_path: Path, step: Callable[[Dataset], None], stable_row_ids: bool
) -> None:
    root = tmp_path / "t.lance"
    dataset = lance.write_dataset(
        table(), root, max_rows_per_file=10, enable_stable_row_ids=stable_row_ids
    )
    dataset.delete("id % 6 = 1")
    step(dataset)
    newest = lance.dataset(root)
    newest.optimize.compact_files()
    for version in range(1, lance.dataset(root).version + 1):
        theirs = lance.dataset(root, version=version)
        ours = open_dataset(root, version)
        assert ours.schema.equals(theirs.schema)
        whole = theirs.to_table()
        assert ours.scan().read_all().equals(whole)
        for name in theirs.schema.names:
            assert ours.scan([name]).read_all().equals(whole.select([name]))
        ranks = np.arange(0, whole.num_rows, 3)
        assert ours.take(ranks).equals(whole.take(pa.array(ranks)))
