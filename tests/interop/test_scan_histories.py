"""Scans and takes after random histories of commits equal those of pylance."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from lance_core.row_address import pack_row_addresses
from tests.opened_table import OpenedTable, open_table

pytestmark = pytest.mark.interop

DataVersion = Literal["2.0", "2.1", "2.2"]
PSEUDO = [
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
]


def rows(seed: int, num_rows: int, first_id: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    is_null = rng.random(num_rows) < 0.2
    names = [f"row {i % 13}" for i in range(num_rows)]
    vectors = rng.standard_normal((num_rows, 4)).astype(np.float32)
    return pa.table(
        {
            "id": np.arange(first_id, first_id + num_rows),
            "price": pa.array(rng.random(num_rows), mask=is_null),
            "name": pa.array(names, pa.string(), mask=np.roll(is_null, 1)),
            "ok": rng.random(num_rows) < 0.5,
            "vec": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 4),
        }
    )


class History:
    """A dataset under change; columns and ids are remembered so that every step makes sense."""

    def __init__(
        self, root: Path, data_version: DataVersion, seed: int, *, stable_row_ids: bool = False
    ) -> None:
        self.seed = seed
        self.next_id = 0
        self.num_added = 0
        self.dataset = lance.write_dataset(
            self.new_rows(25),
            root,
            max_rows_per_file=10,
            data_storage_version=data_version,
            enable_stable_row_ids=stable_row_ids,
        )

    def new_rows(self, num_rows: int) -> pa.Table:
        table = rows(self.seed + self.next_id, num_rows, self.next_id)
        self.next_id += num_rows
        return table

    def step(self, action: str, number: int) -> None:
        getattr(self, action)(number)

    def append(self, number: int) -> None:
        known = set(self.dataset.schema.names)
        table = self.new_rows(number % 23 + 1)
        table = table.select([name for name in table.column_names if name in known])
        lance.write_dataset(table, self.dataset.uri, mode="append", max_rows_per_file=9)
        self.dataset = lance.dataset(self.dataset.uri)

    def delete(self, number: int) -> None:
        self.dataset.delete(f"id % {number % 7 + 2} = 1")

    def delete_run(self, number: int) -> None:
        self.dataset.delete(f"id >= {number % 20} AND id < {number % 20 + number % 15}")

    def update(self, number: int) -> None:
        self.dataset.update({"ok": "true"}, where=f"id % {number % 5 + 3} = 0")

    def merge_insert(self, number: int) -> None:
        merge = self.dataset.merge_insert("id")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        known = set(self.dataset.schema.names)
        if set(rows(0, 1, 0).column_names) == known:
            merge.execute(rows(self.seed, 12, number % 40))

    def restore(self, number: int) -> None:
        lance.dataset(self.dataset.uri, version=number % self.dataset.version + 1).restore()
        self.dataset = lance.dataset(self.dataset.uri)

    def spill(self, number: int) -> None:
        del number
        self.dataset.update_config({"lance.row_lineage.spill": "true"})
        self.dataset.update_config({"lance.row_lineage.inline_max_bytes": "0"})

    def add_column(self, number: int) -> None:
        self.num_added += 1
        self.dataset.add_columns({f"added{self.num_added}": f"id * {number}"})

    def drop_column(self, number: int) -> None:
        candidates = [name for name in self.dataset.schema.names if name not in ("id", "ok")]
        if len(candidates) > 1:
            self.dataset.drop_columns([candidates[number % len(candidates)]])

    def rename_column(self, number: int) -> None:
        candidates = [name for name in self.dataset.schema.names if name.startswith("added")]
        if candidates:
            name = candidates[number % len(candidates)]
            change: Any = {"path": name, "name": f"{name}_{number}"}  # its annotation is wrong
            self.dataset.alter_columns(change)

    def compact(self, number: int) -> None:
        self.dataset.optimize.compact_files(target_rows_per_fragment=number + 5)


ACTIONS = [
    "append",
    "delete",
    "delete_run",
    "update",
    "merge_insert",
    "restore",
    "spill",
    "add_column",
    "drop_column",
    "rename_column",
    "compact",
]
steps = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 60)), max_size=6)


def check(ours: OpenedTable, dataset: lance.LanceDataset, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [*dataset.schema.names, *PSEUDO]
    truth = dataset.to_table(columns=columns)
    assert ours.scan(columns).equals(truth)
    offset, limit = rng.integers(0, truth.num_rows + 3, size=2).tolist()
    part = ours.scan(columns, offset=offset, limit=limit, batch_rows=4)
    assert part.equals(truth.slice(offset, limit))
    if truth.num_rows > 0:
        wanted = rng.integers(0, truth.num_rows, size=8)
        addresses = truth["_rowaddr"].combine_chunks().to_numpy()[wanted]
        assert ours.take(addresses, columns).equals(truth.take(wanted))


@settings(max_examples=20)
@given(st.sampled_from(["2.0", "2.1", "2.2"]), steps, st.integers(0, 1000), st.booleans())
def test_every_version_of_a_history_reads_as_pylance_reads_it(
    data_version: DataVersion, steps: list[tuple[str, int]], seed: int, stable_row_ids: bool
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        history = History(folder / "t.lance", data_version, seed, stable_row_ids=stable_row_ids)
        for action, number in steps:
            history.step(action, number)
        for version in {1, history.dataset.version}:
            theirs = lance.dataset(folder / "t.lance", version=version)
            check(open_table(folder / "t.lance", version), theirs, seed)
    finally:
        shutil.rmtree(folder)


def test_a_column_that_only_new_fragments_have_is_null_in_the_old_ones(tmp_path: Path) -> None:
    lance.write_dataset(rows(1, 10, 0), tmp_path / "t.lance")
    dataset = lance.dataset(tmp_path / "t.lance")
    dataset.add_columns(pa.field("later", pa.string()))
    later = rows(2, 5, 10).append_column("later", pa.array(["x"] * 5))
    lance.write_dataset(later, tmp_path / "t.lance", mode="append")
    ours = open_table(tmp_path / "t.lance")
    assert ours.scan(["later"])["later"].to_pylist() == [None] * 10 + ["x"] * 5
    addresses = pack_row_addresses(np.array([1, 0, 1], np.uint32), np.array([4, 9, 0], np.uint32))
    assert ours.take(addresses, ["id", "later"]).to_pylist() == [
        {"id": 14, "later": "x"},
        {"id": 9, "later": None},
        {"id": 10, "later": "x"},
    ]


def test_a_struct_whose_parts_lie_in_two_files_reads_as_pylance_reads_it(tmp_path: Path) -> None:
    xs = pa.array([{"x": i} if i % 3 else None for i in range(12)], pa.struct([("x", pa.int64())]))
    table = pa.table({"id": np.arange(12), "st": xs})
    dataset = lance.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=5)
    kind = pa.struct([("z", pa.int64())])

    @lance.batch_udf(output_schema=pa.schema([pa.field("st", kind)]))
    def add_z(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = [{"z": i} if i % 2 else None for i in batch["id"].to_pylist()]
        return pa.record_batch({"st": pa.array(values, kind)})

    dataset.add_columns(add_z, read_columns=["id"])
    dataset.delete("id = 7")
    ours = open_table(tmp_path / "t.lance")
    assert ours.scan().equals(dataset.to_table())
    assert ours.scan(["st.z", "st.x"]).equals(dataset.to_table(columns=["st.z", "st.x"]))
    rows = pack_row_addresses(np.array([2, 0], np.uint32), np.array([1, 3], np.uint32))
    assert ours.take(rows, ["st"])["st"].to_pylist() == [
        {"x": 11, "z": 11},
        {"x": None, "z": 3},
    ]
