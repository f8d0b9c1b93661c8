"""Columns that we add, change and drop: pylance reads them, and goes on with the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core.dataset import ColumnChange, Dataset, open_dataset, write_dataset
from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    LanceError,
    TypeMismatchError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS = 25
LIVE = [i for i in range(NUM_ROWS) if i not in {0, 3, 9, 10, 24}]


def rows() -> pa.Table:
    ids = range(NUM_ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"name {i}" for i in ids],
            "st": [{"x": i, "y": [str(i)], "in": {"a": 1, "b": 2}} for i in ids],
            "ls": [[{"p": i, "q": i}] * (i % 3) for i in ids],
            "m": pa.array([[("k", i)] for i in ids], pa.map_(pa.string(), pa.int64())),
            "vec": pa.FixedSizeListArray.from_arrays(
                pa.array(np.arange(NUM_ROWS * 2, dtype=np.float32)), 2
            ),
        }
    )


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> Dataset:
    """A dataset of pylance's with deleted rows at the ends and in the middle of fragments."""
    uri = str(tmp_path / "t.lance")
    made = lance.write_dataset(
        rows(), uri, max_rows_per_file=10, enable_stable_row_ids=request.param
    )
    made.delete("id IN (0, 3, 9, 10, 24)")
    return open_dataset(uri)


def theirs(dataset: Dataset) -> pa.Table:
    """Return what pylance sees, after making sure that we see the same."""
    columns = [*dataset.schema.names, "_rowid", "_rowaddr", "_row_last_updated_at_version"]
    table = lance.dataset(dataset.uri).to_table(columns=columns)
    assert dataset.scan(columns).read_all().equals(table)
    lance.dataset(dataset.uri).validate()
    return table


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"twice": pc.multiply(batch["id"], 2)})


def test_columns_of_nulls_need_no_file(dataset: Dataset) -> None:
    before = {each.path for each in dataset.snapshot.scheduler.store.list_tree("data")}
    more = pa.schema([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    changed = dataset.add_columns(more).add_columns(pa.field("c", pa.json_()))
    assert theirs(changed)["b"].to_pylist() == [None] * len(LIVE)
    assert {each.path for each in changed.snapshot.scheduler.store.list_tree("data")} == before
    lance.dataset(dataset.uri).update({"a": "7"}, where="id = 5")
    assert sorted(theirs(changed.checkout())["a"].drop_null().to_pylist()) == [7]


def test_columns_are_computed_from_others(dataset: Dataset) -> None:
    changed = dataset.add_columns(doubled, read_columns=["id"])
    assert theirs(changed)["twice"].to_pylist() == [2 * i for i in LIVE]
    assert changed.add_columns(
        lambda batch: pa.table({"both": pc.add(batch["id"], batch["twice"]), "st2": batch["st"]})
    ).scan(["both"]).read_all()["both"].to_pylist() == [3 * i for i in LIVE]
    theirs(changed.checkout())


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("batch_rows", [3, 7, 100])
def test_columns_are_given_in_the_order_of_a_scan(
    dataset: Dataset, batch_rows: int, nullable: bool
) -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable), pa.field("s", pa.string())])
    given = pa.table({"n": LIVE, "s": [str(i) for i in LIVE]}, schema=schema)
    changed = dataset.add_columns(given.to_reader(batch_rows))
    assert theirs(changed).select(["n", "s"]).equals(given)
    grown = changed.append(rows().slice(0, 2).append_column("n", pa.array([5, 6])))
    assert theirs(grown)["n"].to_pylist() == [*LIVE, 5, 6]


def test_blobs_and_json_can_be_added(dataset: Dataset) -> None:
    fields = [
        pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        pa.field("j", pa.json_()),
    ]
    blobs = [None if i == 5 else bytes([i]) * 70_000 for i in LIVE]
    texts = pa.array([str(i) for i in LIVE], pa.json_())
    given = pa.table([pa.array(blobs, pa.large_binary()), texts], schema=pa.schema(fields))
    changed = dataset.add_columns(given)
    read = lance.dataset(changed.uri).scanner(blob_handling="all_binary").to_table()
    assert read["b"].to_pylist() == blobs
    assert read["j"].cast(pa.string()).to_pylist() == [str(i) for i in LIVE]


def test_a_table_without_rows_gets_columns(tmp_path: Path) -> None:
    made = write_dataset(str(tmp_path / "t"), rows().slice(0, 0))
    changed = made.add_columns(doubled).add_columns(pa.table({"z": pa.array([], pa.int8())}))
    assert theirs(changed).schema.names[6:8] == ["twice", "z"]


def failing(batch: pa.RecordBatch) -> pa.RecordBatch:
    if 11 in batch["id"].to_pylist():
        return pa.record_batch({"n": ["text"] * batch.num_rows})
    return pa.record_batch({"n": batch["id"]})


def empty(batch: pa.RecordBatch) -> pa.RecordBatch:
    del batch
    return pa.record_batch({"n": [1]})


def batches() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"n": [1]})
    yield pa.record_batch({"n": ["a"]})


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (pa.field("id", pa.int32()), InvalidRequestError, r"has columns \['id'\] already"),
        (pa.field("n", pa.int32(), nullable=False), InvalidRequestError, "would be; give"),
        (pa.table({"n": [1]}), InvalidRequestError, "1 values are given for 20 rows|for 7 rows"),
        (pa.table({"n": range(21)}), InvalidRequestError, "more values are given than"),
        (pa.table({}), InvalidRequestError, "there is no column"),
        (failing, TypeMismatchError, "cast it"),
        (empty, InvalidRequestError, "gave 1 rows for 7"),
        (lambda _: None, InvalidRequestError, "let it return a record batch"),
        (batches, InvalidRequestError, "let it return|gave"),
        (7, InvalidRequestError, "give a pyarrow table"),
        ("n", InvalidRequestError, "give a pyarrow table"),
    ],
)
def test_columns_that_cannot_be_added_leave_nothing(
    dataset: Dataset, columns: Any, error: type[Exception], message: str
) -> None:
    store = dataset.snapshot.scheduler.store
    before = {each.path for each in store.list_tree("")}
    columns = columns if columns is not batches else (lambda _: batches())
    with pytest.raises(error, match=message):
        dataset.add_columns(columns)
    assert {each.path for each in store.list_tree("")} == before
    with pytest.raises(UnknownColumnError, match="columns to read"):
        dataset.add_columns(doubled, read_columns=["nope"])


def test_batches_of_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="give batches of one schema"):
        write_dataset(str(tmp_path / "t"), batches())
    assert not list((tmp_path / "t").rglob("*.lance"))


def test_values_are_computed_anew_when_rows_were_added_meanwhile(dataset: Dataset) -> None:
    lance.write_dataset(rows().slice(0, 2), dataset.uri, mode="append")
    changed = dataset.add_columns(doubled)
    assert theirs(changed)["twice"].to_pylist() == [2 * i for i in [*LIVE, 0, 1]]


def test_given_values_fit_rows_deleted_but_not_rows_added_meanwhile(dataset: Dataset) -> None:
    lance.dataset(dataset.uri).delete("id IN (1, 20)")
    changed = dataset.add_columns(pa.table({"n": LIVE}))
    assert theirs(changed)["n"].to_pylist() == theirs(changed)["id"].to_pylist()
    lance.write_dataset(rows().slice(0, 2), dataset.uri, mode="append")
    values = pa.table({"o": changed.scan(["id"]).read_all()["id"]})
    with pytest.raises(CommitConflictError, match="were added while values"):
        changed.add_columns(values)


def test_columns_are_renamed_and_declared(dataset: Dataset) -> None:
    changed = dataset.alter_columns(
        ColumnChange("name", name="title", nullable=False),
        ColumnChange("st.x", name="xx"),
        ColumnChange("id", name="name"),
    )
    table = theirs(changed)
    assert table.schema.names[:3] == ["name", "title", "st"]
    assert not lance.dataset(changed.uri).schema.field("title").nullable
    assert table["st"][0].as_py() == {"xx": 1, "y": ["1"], "in": {"a": 1, "b": 2}}
    back = changed.alter_columns(ColumnChange("title", nullable=True))
    assert lance.dataset(back.uri).schema.field("title").nullable


def test_columns_are_cast(dataset: Dataset) -> None:
    lance.dataset(dataset.uri).create_scalar_index("id", "BTREE")
    lance.dataset(dataset.uri).create_scalar_index("name", "BTREE")
    changed = dataset.checkout().alter_columns(
        ColumnChange("id", name="number", data_type=pa.int32()),
        ColumnChange("vec", data_type=pa.list_(pa.float16(), 2)),
        ColumnChange("name", name="title"),
    )
    table = theirs(changed)
    assert table.schema.names[:6] == ["number", "title", "st", "ls", "m", "vec"]
    assert table["number"].type == pa.int32()
    assert table["number"].to_pylist() == LIVE
    assert table["vec"][0].as_py() == [2.0, 3.0]
    reader = lance.dataset(changed.uri)
    assert [each.name for each in reader.describe_indices()] == ["name_idx"]
    assert reader.to_table(filter="title = 'name 5'")["number"].to_pylist() == [5]
    floats = changed.alter_columns(ColumnChange("number", data_type=pa.float64()))
    assert theirs(floats)["number"].to_pylist() == [float(i) for i in LIVE]
    reader = lance.dataset(changed.uri)
    change: Any = {"path": "number", "data_type": pa.float32()}  # its annotation is wrong
    reader.alter_columns(change)
    assert theirs(floats.checkout())["number"].type == pa.float32()


def test_columns_and_parts_are_dropped(dataset: Dataset) -> None:
    lance.dataset(dataset.uri).create_scalar_index("id", "BTREE")
    changed = dataset.checkout().drop_columns(["id", "st.in.a", "st.y", "ls.item.p"])
    table = theirs(changed)
    assert table.schema.names[:5] == ["name", "st", "ls", "m", "vec"]
    assert table["st"][0].as_py() == {"x": 1, "in": {"b": 2}}
    assert table["ls"][0].as_py() == [{"q": 1}]
    assert lance.dataset(changed.uri).describe_indices() == []
    more = changed.add_columns(pa.table({"id": LIVE})).drop_columns(["st", "ls", "name", "m"])
    assert theirs(more)["id"].to_pylist() == LIVE
    lance.dataset(more.uri).drop_columns(["vec"])
    assert theirs(more.checkout())["id"].to_pylist() == LIVE


def test_a_file_without_live_columns_leaves_the_fragment(dataset: Dataset) -> None:
    changed = dataset.add_columns(doubled).drop_columns(["twice"])
    assert [len(each.data_files) for each in changed.snapshot.fragments] == [1, 1, 1]
    changed = changed.add_columns(doubled)
    changed = changed.alter_columns(ColumnChange("twice", data_type=pa.float64()))
    assert [len(each.data_files) for each in changed.snapshot.fragments] == [2, 2, 2]
    theirs(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.alter_columns(), "at least one ColumnChange"),
        (lambda d: d.alter_columns(ColumnChange("nope", name="x")), 'unknown column "nope"'),
        (lambda d: d.alter_columns(ColumnChange("id", name="name")), "cannot be named 'name'"),
        (lambda d: d.alter_columns(ColumnChange("st.x", name="y")), "cannot be named 'y'"),
        (lambda d: d.alter_columns(ColumnChange("id", name="a.b")), "has a dot"),
        (lambda d: d.alter_columns(ColumnChange("id", name="")), "is taken, empty"),
        (lambda d: d.alter_columns(*[ColumnChange("id", name="x")] * 2), "changed twice"),
        (lambda d: d.alter_columns(ColumnChange("name", data_type=pa.int32())), "cannot be cast"),
        (lambda d: d.alter_columns(ColumnChange("st", data_type=pa.int32())), "cannot become"),
        (lambda d: d.alter_columns(ColumnChange("st.x", data_type=pa.int32())), "add a new"),
        (lambda d: d.alter_columns(ColumnChange("id", data_type=pa.null())), "cast from int64"),
        (lambda d: d.alter_columns(ColumnChange("ls.item.p", nullable=False)), "always be null"),
        (lambda d: d.drop_columns("id"), "columns is 'id'; give"),
        (lambda d: d.drop_columns([]), "columns has 0 names"),
        (lambda d: d.drop_columns(["nope"]), "unknown column"),
        (lambda d: d.drop_columns(d.schema.names), "at least one"),
        (lambda d: d.drop_columns(["st.in.a", "st.in.b"]), "no part of 'in'"),
        (lambda d: d.drop_columns(["m.entries.key"]), "no part of 'm'"),
        (lambda d: d.drop_columns(["ls.item"]), "no part of 'ls'"),
    ],
)
def test_changes_that_make_no_sense_are_refused(
    dataset: Dataset, change: Callable[[Dataset], Dataset], message: str
) -> None:
    with pytest.raises(LanceError, match=message):
        change(dataset)
    assert dataset.latest_version() == dataset.version


def test_a_column_with_nulls_may_not_be_declared_without(dataset: Dataset) -> None:
    changed = dataset.update({"name": None}, where="id = 5")
    with pytest.raises(InvalidRequestError, match="has nulls and cannot be declared without"):
        changed.alter_columns(ColumnChange("name", nullable=False))
    declared = changed.alter_columns(
        ColumnChange("st.in.a", nullable=False), ColumnChange("ls", nullable=False)
    )
    assert theirs(declared).num_rows == len(LIVE)
    with pytest.raises(InvalidRequestError, match=r"holds nulls|but is declared without"):
        declared.update({"ls": None})
