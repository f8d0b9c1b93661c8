"""Datasets that we make, append to and overwrite: pylance reads them, and we go on with its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset import ColumnChange, open_dataset, write_dataset
from lance_core.errors import InvalidRequestError, TypeMismatchError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Literal

    DataVersion = Literal["2.0", "2.1", "2.2"]

pytestmark = pytest.mark.interop

VERSIONS = ["2.0", "2.1", "2.2"]
BLOB = {b"lance-encoding:blob": b"true"}


def rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([None if i % 5 == 0 else f"name {i}" for i in ids], pa.string()),
            "tags": pa.array([["t"] * (i % 3) for i in ids], pa.list_(pa.string())),
            "vec": pa.FixedSizeListArray.from_arrays(
                pa.array(np.arange(first * 4, last * 4, dtype=np.float32)), 4
            ),
        }
    )


def by_pylance(uri: str) -> pa.Table:
    return lance.dataset(uri).to_table()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t.lance")


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_what_we_create_and_append(uri: str, version: str, stable: bool) -> None:
    made = write_dataset(
        uri, rows(0, 25), max_rows_per_file=10, data_storage_version=version, stable_row_ids=stable
    )
    assert (made.version, made.count_rows()) == (1, 25)
    grown = made.append(rows(25, 40), max_rows_per_file=10)
    theirs = lance.dataset(uri)
    assert theirs.data_storage_version == version
    assert theirs.has_stable_row_ids == stable
    assert [each.count_rows() for each in theirs.get_fragments()] == [10, 10, 5, 10, 5]
    assert by_pylance(uri).equals(rows(0, 40))
    assert grown.scan(with_row_id=True).read_all().equals(theirs.to_table(with_row_id=True))
    assert made.count_rows() == 25


@pytest.mark.parametrize("stable", [False, True])
def test_each_appends_to_the_other(uri: str, stable: bool) -> None:
    lance.write_dataset(rows(0, 10), uri, enable_stable_row_ids=stable)
    write_dataset(uri, rows(10, 20), mode="append")
    lance.write_dataset(rows(20, 30), uri, mode="append")
    ours = open_dataset(uri)
    assert ours.scan().read_all().equals(rows(0, 30))
    assert (
        ours.scan(with_row_id=True).read_all().equals(lance.dataset(uri).to_table(with_row_id=True))
    )


def test_an_overwrite_brings_other_columns_and_keeps_old_versions(uri: str) -> None:
    lance.write_dataset(rows(0, 10), uri)
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    made = write_dataset(uri, pa.table({"x": [1.5]}), mode="overwrite", data_storage_version="2.1")
    assert made.version == 3
    assert by_pylance(uri).equals(pa.table({"x": [1.5]}))
    assert lance.dataset(uri).describe_indices() == []
    assert lance.dataset(uri).data_storage_version == "2.1"
    assert made.checkout(1).scan().read_all().equals(rows(0, 10))
    assert made.overwrite(rows(3, 5)).append(rows(5, 6)).scan().read_all().equals(rows(3, 6))
    assert by_pylance(uri).equals(rows(3, 6))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_dataset_that_is_not_there_is_made_in_every_mode(uri: str, mode: str) -> None:
    write_dataset(uri, rows(0, 3), mode=mode)  # type: ignore[arg-type]  # one of two
    assert by_pylance(uri).equals(rows(0, 3))


def batches() -> Iterator[pa.RecordBatch]:
    for start in range(0, 30, 10):
        yield from rows(start, start + 10).to_batches()


@pytest.mark.parametrize(
    "source",
    [
        lambda: rows(0, 30),
        lambda: rows(0, 30).combine_chunks().to_batches()[0],
        lambda: rows(0, 30).to_reader(7),
        batches,
        lambda: list(batches()),
        lambda: open_stream(rows(0, 30)),
    ],
    ids=["table", "batch", "reader", "generator", "list", "c stream"],
)
def test_rows_come_in_many_forms(uri: str, source: Callable[[], pa.Table]) -> None:
    write_dataset(uri, source())
    assert by_pylance(uri).equals(rows(0, 30))


class open_stream:  # noqa: N801  # stands for a frame of another library
    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("data", ["rows", {"id": [1]}, [{"id": 1}], [], 7, b"x", None, [None]])
def test_what_are_no_rows_is_refused(uri: str, data: object) -> None:
    with pytest.raises(InvalidRequestError, match="give a"):
        write_dataset(uri, data)


def test_columns_go_by_their_names_and_missing_ones_are_null(uri: str) -> None:
    made = write_dataset(uri, rows(0, 4))
    made.append(rows(4, 6).select(["vec", "tags", "name", "id"]))
    lance.dataset(uri).add_columns(pa.field("later", pa.int32()))
    grown = open_dataset(uri).append(rows(6, 8).select(["name", "id"]))
    read = by_pylance(uri)
    assert read["id"].to_pylist() == list(range(8))
    assert read["vec"].to_pylist()[5:] == [[20.0, 21.0, 22.0, 23.0], None, None]
    assert grown.scan().read_all().equals(read)


def test_rows_fit_a_table_that_others_changed_meanwhile(uri: str) -> None:
    old = write_dataset(uri, rows(0, 3))
    lance.dataset(uri).add_columns(pa.field("later", pa.int32()))
    change: Any = {"path": "name", "name": "title"}
    lance.dataset(uri).alter_columns(change)
    lance.dataset(uri).drop_columns(["vec"])
    grown = old.append(rows(3, 5))
    assert (
        grown.scan(["id", "title"])
        .read_all()
        .equals(rows(0, 5).select(["id", "name"]).rename_columns(["id", "title"]))
    )
    assert by_pylance(uri).equals(grown.scan().read_all())


@pytest.mark.parametrize(
    "change",
    [
        {"path": "id", "nullable": False},
        {"path": "id", "data_type": pa.int32()},
        {"path": "missing", "nullable": False},
    ],
)
@pytest.mark.parametrize("actor", ["us", "them"])
def test_rows_for_columns_that_others_changed_meanwhile_are_refused(
    uri: str, change: dict[str, Any], actor: str
) -> None:
    table = pa.table({"id": [1], "missing": [1]})
    old = write_dataset(uri, table)
    if actor == "us":
        old.alter_columns(ColumnChange(**change))
    else:
        theirs: Any = change
        lance.dataset(uri).alter_columns(theirs)
    before = {each.path for each in old.snapshot.scheduler.store.list_tree("data")}
    with pytest.raises(InvalidRequestError, match=r"was changed while|may not be null any more"):
        old.append(table.select(["id"]))
    assert {each.path for each in old.snapshot.scheduler.store.list_tree("data")} == before
    assert old.checkout().count_rows() == 1


def test_two_overwrites_both_happen(uri: str) -> None:
    old = write_dataset(uri, rows(0, 3))
    lance.write_dataset(pa.table({"x": [1]}), uri, mode="overwrite")
    assert old.overwrite(rows(5, 6)).version == 3
    assert by_pylance(uri).equals(rows(5, 6))


def test_pylance_does_not_append_to_a_column_that_we_cast(uri: str) -> None:
    made = write_dataset(uri, rows(0, 3))
    old = lance.dataset(uri)
    made.alter_columns(ColumnChange("id", data_type=pa.int32()))
    with pytest.raises(OSError, match=r"(?i)conflict"):
        old.insert(rows(3, 5))
    assert by_pylance(uri)["id"].to_pylist() == [0, 1, 2]


NOT_NULL = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.int64())])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (pa.table({"id": [1], "z": [1]}), InvalidRequestError, r"have \['z'\] besides"),
        (pa.table({"x": [1]}), InvalidRequestError, r"lack \['id'\], which may not be null"),
        (pa.table({"id": ["a"]}), TypeMismatchError, "'id' is int64 in the table and string in"),
        (pa.table({"id": pa.array([1], pa.int32())}), TypeMismatchError, "int32 in the rows"),
        (pa.table({"id": pa.array([None], pa.int64())}), InvalidRequestError, "holds nulls"),
        (pa.table({"id": [1]}).rename_columns([""]), InvalidRequestError, "besides"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_leave_nothing(
    uri: str, given: pa.Table, error: type[Exception], message: str
) -> None:
    made = write_dataset(uri, pa.table({"id": [1], "x": [2]}, schema=NOT_NULL))
    before = {each.path for each in made.snapshot.scheduler.store.list_tree("")}
    with pytest.raises(error, match=message):
        made.append(given)
    assert {each.path for each in made.snapshot.scheduler.store.list_tree("")} == before


def test_nullable_columns_may_fill_those_that_are_not(uri: str) -> None:
    made = write_dataset(uri, pa.table({"id": [1], "x": [2]}, schema=NOT_NULL))
    made.append(pa.table({"id": [5], "x": [None]}, schema=pa.schema({"id": "int64", "x": "int64"})))
    assert by_pylance(uri).to_pylist() == [{"id": 1, "x": 2}, {"id": 5, "x": None}]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (pa.table({}), {}, "there is no column"),
        (rows(0, 1), {"mode": "make"}, "give create, append or overwrite"),
        (rows(0, 1), {"data_storage_version": "0.1"}, "none of 2.0, 2.1, 2.2"),
        (rows(0, 1), {"max_rows_per_file": 0}, "max_rows_per_file is 0"),
    ],
)
def test_datasets_that_cannot_be_made_are_refused(
    uri: str, table: pa.Table, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        write_dataset(uri, table, **options)  # type: ignore[arg-type]  # that is the point


def test_a_dataset_is_not_made_twice(uri: str) -> None:
    write_dataset(uri, rows(0, 1))
    with pytest.raises(InvalidRequestError, match="already; append to it"):
        write_dataset(uri, rows(0, 1))


def test_no_files_are_added_to_tables_of_legacy_ones(uri: str) -> None:
    lance.write_dataset(pa.table({"id": [1]}), uri, data_storage_version="legacy")
    with pytest.raises(UnsupportedFeatureError, match=r'version "0\.1", which are not written'):
        write_dataset(uri, pa.table({"id": [1]}), mode="append")
    write_dataset(uri, pa.table({"id": [1]}), mode="overwrite", data_storage_version="2.2")
    assert by_pylance(uri).num_rows == 1


def test_a_table_without_rows_is_one(uri: str) -> None:
    made = write_dataset(uri, rows(0, 0))
    assert (made.count_rows(), lance.dataset(uri).count_rows()) == (0, 0)
    assert made.append(rows(0, 2)).count_rows() == 2
    assert by_pylance(uri).equals(rows(0, 2))


def blobs(values: list[bytes | None]) -> pa.Table:
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata=BLOB), ("id", pa.int64())])
    return pa.table({"b": pa.array(values, pa.large_binary()), "id": range(len(values))}, schema)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_blobs_are_appended_to_blobs(uri: str, first: str, version: DataVersion) -> None:
    table, more = blobs([b"a", None, b"x" * 70_000]), blobs([b"b" * 100, b""])
    if first == "ours":
        write_dataset(uri, table, data_storage_version=version)
        lance.write_dataset(more, uri, mode="append")
    else:
        lance.write_dataset(table, uri, data_storage_version=version)
        write_dataset(uri, more, mode="append")
    write_dataset(uri, more.select(["id"]), mode="append")
    read = lance.dataset(uri).scanner(blob_handling="all_binary").to_table()["b"].to_pylist()
    assert read == [b"a", None, b"x" * 70_000, b"b" * 100, b"", None, None]


@pytest.mark.parametrize("version", VERSIONS)
def test_json_and_dictionaries_and_metadata_stay(uri: str, version: str) -> None:
    schema = pa.schema(
        [pa.field("j", pa.json_()), pa.field("d", pa.dictionary(pa.int8(), pa.string()))],
        {"who": "us"},
    )
    values = [pa.array(['{"a":1}', None], pa.json_()), pa.array(["x", "y"]).dictionary_encode()]
    table = pa.table([values[0], values[1].cast(schema.field("d").type)], schema=schema)
    write_dataset(uri, table, data_storage_version=version).append(table)
    theirs = by_pylance(uri)
    assert theirs["j"].cast(pa.string()).to_pylist() == ['{"a":1}', None] * 2
    assert theirs["d"].cast(pa.string()).to_pylist() == ["x", "y"] * 2
    assert lance.dataset(uri).schema.metadata == {b"who": b"us"}
