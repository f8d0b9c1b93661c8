"""Rows that we delete and update: pylance sees it, and we do so with its datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core.dataset import Dataset, open_dataset, write_dataset
from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    TypeMismatchError,
    UnknownColumnError,
)
from lance_core.operations import commit_planned as planning
from lance_core.table.fragment import DeletionFileType

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

VERSIONS = ["2.0", "2.1", "2.2"]
NUM_ROWS = 25
ALL = list(range(NUM_ROWS))


def rows(num_rows: int = NUM_ROWS) -> pa.Table:
    ids = range(num_rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [None if i % 5 == 0 else f"name {i}" for i in ids],
            "st": [{"x": i, "y": [str(i)]} for i in ids],
            "vec": pa.FixedSizeListArray.from_arrays(
                pa.array(np.arange(num_rows * 4, dtype=np.float32)), 4
            ),
        }
    )


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> Dataset:
    """A dataset of pylance's with fragments of ten rows."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(), uri, max_rows_per_file=10, enable_stable_row_ids=request.param)
    return open_dataset(uri)


def theirs(dataset: Dataset) -> pa.Table:
    """Return what pylance sees, after making sure that we see the same."""
    columns = [*dataset.schema.names, "_rowid", "_rowaddr"]
    columns += ["_row_created_at_version", "_row_last_updated_at_version"]
    table = lance.dataset(dataset.uri).to_table(columns=columns)
    assert dataset.scan(columns).read_all().equals(table)
    lance.dataset(dataset.uri).validate()
    return table


def ids(dataset: Dataset) -> list[int]:
    found: list[int] = theirs(dataset)["id"].to_pylist()
    return found


def test_deleted_rows_are_gone_for_both(dataset: Dataset) -> None:
    once = dataset.delete("id IN (3, 11, 24) OR name IS NULL AND id < 10")
    assert ids(once) == [i for i in ALL if i not in {0, 3, 5, 11, 24}]
    lance.dataset(dataset.uri).delete("id = 4")
    twice = once.checkout().delete("st.x BETWEEN 12 AND 14")
    assert ids(twice) == [i for i in ALL if i not in {0, 3, 4, 5, 11, 12, 13, 14, 24}]
    assert dataset.count_rows() == NUM_ROWS


def test_a_fragment_without_rows_leaves_the_dataset(dataset: Dataset) -> None:
    changed = dataset.delete("id >= 10 AND id < 20")
    assert [each.id for each in changed.snapshot.fragments] == [0, 2]
    emptied = changed.delete("true")
    assert (ids(emptied), emptied.snapshot.fragments) == ([], ())
    assert ids(emptied.append(rows().slice(0, 2))) == [0, 1]


def test_a_deletion_of_nothing_is_a_version(dataset: Dataset) -> None:
    changed = dataset.delete("id = -1")
    assert (changed.version, ids(changed)) == (dataset.version + 1, ALL)


def test_many_deletions_are_kept_as_a_bitmap(tmp_path: Path) -> None:
    made = write_dataset(str(tmp_path / "t.lance"), pa.table({"id": range(20_000)}))
    few, many = made.delete("id < 4999"), made.delete("id < 5000")
    assert file_type(few) is DeletionFileType.ARROW_ARRAY
    assert file_type(many) is DeletionFileType.BITMAP
    assert lance.dataset(made.uri).count_rows() == 15_000


def file_type(dataset: Dataset) -> DeletionFileType:
    deletion_file = dataset.snapshot.fragments[0].deletion_file
    assert deletion_file is not None
    return deletion_file.file_type


def test_two_deletions_from_one_version_add_up(dataset: Dataset) -> None:
    dataset.delete("id = 1")
    assert ids(dataset.delete("id = 2")) == [0, *ALL[3:]]
    lance.dataset(dataset.uri).delete("id = 3")
    assert ids(dataset.delete("id IN (1, 2, 3, 4)")) == [0, *ALL[5:]]


def test_updated_rows_have_new_values_and_their_old_ids(dataset: Dataset) -> None:
    before = theirs(dataset)
    changed = dataset.update({"name": "new", "id": lambda b: pc.add(b["id"], 100)}, "id IN (3, 24)")
    after = theirs(changed)
    assert after["id"].to_pylist() == [i for i in ALL if i not in {3, 24}] + [103, 124]
    assert after["name"].to_pylist()[-2:] == ["new", "new"]
    assert after["st"].to_pylist()[-2:] == [before["st"][3].as_py(), before["st"][24].as_py()]
    assert after["vec"].to_pylist()[-1] == before["vec"][24].as_py()
    if dataset.snapshot.has_stable_row_ids:
        assert after["_rowid"].to_pylist()[-2:] == [3, 24]
        assert after["_row_created_at_version"].to_pylist()[-2:] == [1, 1]
        assert after["_row_last_updated_at_version"].to_pylist()[-2:] == [2, 2]
    lance.dataset(dataset.uri).update({"name": "'theirs'"}, where="id = 103")
    again = changed.checkout().update({"name": None}, where="name = 'theirs' OR id = 0")
    assert sorted(ids(again)) == sorted([i for i in ALL if i not in {3, 24}] + [103, 124])
    assert [row["id"] for row in theirs(again).to_pylist()[-2:]] == [0, 103]


def test_all_rows_are_updated_without_a_predicate(dataset: Dataset) -> None:
    changed = dataset.update({"vec": [1.0, 2.0, 3.0, 4.0], "st": {"x": 1, "y": ["a", None]}})
    assert theirs(changed)["vec"].to_pylist() == [[1.0, 2.0, 3.0, 4.0]] * NUM_ROWS
    assert theirs(changed)["st"].to_pylist() == [{"x": 1, "y": ["a", None]}] * NUM_ROWS
    nothing = changed.update({"id": 1}, where="id = -1")
    assert (ids(nothing), nothing.version) == (ALL, changed.version + 1)


def test_an_index_finds_updated_rows(dataset: Dataset) -> None:
    lance.dataset(dataset.uri).create_scalar_index("id", "BTREE")
    lance.dataset(dataset.uri).create_scalar_index("name", "BITMAP")
    changed = dataset.checkout().update({"id": 500}, where="id = 7")
    reader = lance.dataset(changed.uri)
    assert reader.to_table(filter="id = 500")["name"].to_pylist() == ["name 7"]
    assert reader.to_table(filter="id = 7").num_rows == 0
    assert reader.to_table(filter="name = 'name 7'")["id"].to_pylist() == [500]
    changed.update({"name": "other"}, where="id IN (500, 8)")
    reader = lance.dataset(changed.uri)
    assert reader.to_table(filter="name IN ('name 7', 'name 8')").num_rows == 0
    assert sorted(reader.to_table(filter="name = 'other'")["id"].to_pylist()) == [8, 500]
    reader.optimize.optimize_indices()
    reader = lance.dataset(changed.uri)
    assert reader.to_table(filter="name IN ('name 7', 'name 8')").num_rows == 0
    assert sorted(reader.to_table(filter="name = 'other'")["id"].to_pylist()) == [8, 500]


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_json_and_dictionaries_survive_an_update(version: str, tmp_path: Path) -> None:
    blobs = [b"a", None, b"x" * 70_000, b"", b"z" * 5_000_000]
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
            pa.field("j", pa.json_()),
            pa.field("d", pa.dictionary(pa.int8(), pa.string())),
        ]
    )
    texts = ['{"a":1}', None, "[]", "17", '"x"']
    table = pa.table(
        {
            "id": pa.array(range(5), pa.int64()),
            "b": pa.array(blobs, pa.large_binary()),
            "j": pa.array(texts, pa.json_()),
            "d": pa.array(["p", "q", None, "p", "r"]).dictionary_encode().cast(schema.types[3]),
        },
        schema=schema,
    )
    made = write_dataset(str(tmp_path / "t.lance"), table, data_storage_version=version)
    changed = made.update({"id": lambda batch: pc.multiply(batch["id"], 10)}, where="id > 0")
    changed = changed.update({"b": b"new", "j": "{}", "d": "s"}, where="id = 40")
    reader = lance.dataset(changed.uri)
    read = reader.scanner(blob_handling="all_binary").to_table()
    assert read["id"].to_pylist() == [0, 10, 20, 30, 40]
    assert read["b"].to_pylist() == [*blobs[:4], b"new"]
    assert read["j"].cast(pa.string()).to_pylist() == [*texts[:4], "{}"]
    assert read["d"].cast(pa.string()).to_pylist() == ["p", "q", None, "p", "s"]


JSON_TEXTS = [
    "1e3",
    "123456789012345678901234567890",
    '{"b":0.1,"a":[null,1.0]}',
    '"\\u00e9"',
    "-0.0",
]


@pytest.mark.parametrize("stable", [False, True])
def test_json_of_rows_that_move_stays_as_it_was(tmp_path: Path, stable: bool) -> None:
    nested = pa.struct([pa.field("j", pa.json_())])
    texts = pa.array(JSON_TEXTS, pa.json_())
    structs = pa.StructArray.from_arrays([texts], fields=list(nested))
    table = pa.table({"id": range(5), "j": texts, "st": structs})
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table, uri, enable_stable_row_ids=stable)
    before = lance.dataset(uri).to_table(columns=["j", "st"])
    seen: list[list[str]] = []

    def same(batch: pa.RecordBatch) -> pa.Array:
        seen.append(batch["j"].storage.to_pylist())
        return batch["id"]

    moved = open_dataset(uri).update({"id": same}).update({"id": lambda batch: batch["id"]})
    moved = moved.merge_insert(pa.table({"id": range(5)}), "id")
    assert lance.dataset(uri).to_table(columns=["j", "st"]).to_pylist() == before.to_pylist()
    assert seen == [before["j"].combine_chunks().storage.to_pylist()]
    changed = moved.update({"j": '{"x":1}'}, where="id = 0")
    assert changed.scan(["j"]).read_all()["j"].to_pylist()[-1] == '{"x":1}'


def test_a_column_added_since_is_null_in_updated_rows_too(dataset: Dataset) -> None:
    lance.dataset(dataset.uri).add_columns(pa.field("later", pa.int32()))
    changed = dataset.checkout().update({"name": "x"}, where="id = 1")
    assert theirs(changed)["later"].to_pylist() == [None] * NUM_ROWS


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({}, InvalidRequestError, "give new values by column"),
        ({"id": 1.5}, TypeMismatchError, "'id' is int64, which 1.5 is not"),
        ({"id": "12"}, TypeMismatchError, "which '12' is not"),
        ({"st": {"x": 1.5, "y": []}}, TypeMismatchError, "a value of that type"),
        ({"nope": 1}, UnknownColumnError, "unknown column"),
        ({"st.x": 1}, UnknownColumnError, "unknown column"),
        ({"id": "a"}, TypeMismatchError, "'id' is int64, which 'a' is not"),
        ({"id": lambda _: pa.array([1])}, TypeMismatchError, "the function gave 1 of int64"),
        ({"id": lambda b: b["name"]}, TypeMismatchError, "gave 10 of string"),
        ({"id": lambda _: 3}, TypeMismatchError, "the function gave 3"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    dataset: Dataset, values: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        dataset.update(values)
    assert dataset.latest_version() == dataset.version


def test_an_update_is_done_anew_when_others_changed_its_rows(dataset: Dataset) -> None:
    lance.dataset(dataset.uri).update({"name": "'theirs'"}, where="id < 3")
    changed = dataset.update({"id": lambda b: pc.add(b["id"], 100)}, where="id = 1")
    found = {row["id"]: row["name"] for row in theirs(changed).to_pylist()}
    assert found[101] == "theirs"
    assert len(list(changed.snapshot.scheduler.store.list_tree("data"))) == 5


def test_work_that_others_undo_again_and_again_is_given_up(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_MAX_PLANS", 2)

    def meanwhile(batch: pa.RecordBatch) -> pa.Array:
        lance.dataset(dataset.uri).update({"name": "'theirs'"}, where="id = 1")
        return batch["id"]

    with pytest.raises(CommitConflictError, match="Update after Update"):
        dataset.update({"id": meanwhile}, where="id = 1")
    assert len(list(dataset.snapshot.scheduler.store.list_tree("data"))) == 5
