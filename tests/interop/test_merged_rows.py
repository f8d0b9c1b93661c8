"""Rows that we merge in by their keys: the same rules on the same rows as pylance's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

from lance_core.dataset import Dataset, open_dataset, write_dataset
from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("x", pa.int64())])
KINDS = ["a", "b", None]


def rows(ids: list[int | None], x: int) -> pa.Table:
    kinds = [None if i is None else KINDS[i % 3] for i in ids]
    return pa.table({"id": ids, "kind": kinds, "x": [x] * len(ids)}, schema=SCHEMA)


def made(root: Path, *, stable: bool = False) -> Dataset:
    uri = str(root)
    table = rows([*range(25), None], 0)
    lance.write_dataset(table, uri, max_rows_per_file=10, enable_stable_row_ids=stable)
    return open_dataset(uri)


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def theirs(dataset: Dataset) -> list[dict[str, Any]]:
    table = lance.dataset(dataset.uri).to_table()
    assert sorted_rows(dataset.scan().read_all()) == sorted_rows(table)
    return sorted_rows(table)


def by_pylance(dataset: Dataset, data: pa.Table, on: list[str], rules: dict[str, str]) -> None:
    builder = lance.dataset(dataset.uri).merge_insert(on)
    matched = rules.get("when_matched", "update")
    if matched == "update":
        builder = builder.when_matched_update_all()
    elif matched == "fail":
        builder = builder.when_matched_fail()
    if rules.get("when_not_matched", "insert") == "insert":
        builder = builder.when_not_matched_insert_all()
    if rules.get("when_not_matched_by_source") == "delete":
        builder = builder.when_not_matched_by_source_delete()
    builder.execute(data)


RULES = [
    {},
    {"when_matched": "nothing"},
    {"when_not_matched": "nothing"},
    {"when_not_matched_by_source": "delete"},
    {"when_matched": "nothing", "when_not_matched_by_source": "delete"},
    {"when_not_matched": "nothing", "when_not_matched_by_source": "delete"},
    {
        "when_matched": "nothing",
        "when_not_matched": "nothing",
        "when_not_matched_by_source": "delete",
    },
]


@pytest.mark.parametrize("on", [["id"], ["id", "kind"], ["kind", "id"]])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("stable", [False, True])
def test_the_rules_do_what_pylance_does(
    tmp_path: Path, rules: dict[str, Any], on: list[str], stable: bool
) -> None:
    ours, other = made(tmp_path / "a", stable=stable), made(tmp_path / "b", stable=stable)
    data = rows([3, 24, 11, 100, 101, None], 7)
    by_pylance(other, data, on, rules)
    changed = ours.merge_insert(data, on, **rules)
    assert theirs(changed) == theirs(other.checkout())
    lance.dataset(ours.uri).validate()


def test_updated_rows_keep_their_ids(tmp_path: Path) -> None:
    ours = made(tmp_path / "a", stable=True)
    changed = ours.merge_insert(rows([24, 3, 100], 7), "id")
    columns = ["id", "_rowid", "_row_created_at_version"]
    table = lance.dataset(changed.uri).to_table(columns=columns, filter="x = 7")
    assert table.to_pydict() == {
        "id": [3, 24, 100],
        "_rowid": [3, 24, 26],
        "_row_created_at_version": [1, 1, 2],
    }


@pytest.mark.parametrize("stable", [False, True])
def test_missing_columns_keep_their_values(tmp_path: Path, stable: bool) -> None:
    ours = made(tmp_path / "a", stable=stable)
    changed = ours.merge_insert(pa.table({"x": [5, 6, 7], "id": [13, 2, 99]}), "id")
    found = {row["id"]: row for row in theirs(changed)}
    assert found[13] == {"id": 13, "kind": KINDS[1], "x": 5}
    assert found[2] == {"id": 2, "kind": KINDS[2], "x": 6}
    assert found[99] == {"id": 99, "kind": None, "x": 7}
    assert len(found) == 27


def test_an_index_finds_merged_rows_only(tmp_path: Path) -> None:
    ours = made(tmp_path / "a")
    lance.dataset(ours.uri).create_scalar_index("x", "BTREE")
    ours.checkout().merge_insert(pa.table({"id": [3], "x": [5]}), "id")
    reader = lance.dataset(ours.uri)
    assert reader.to_table(filter="x = 5")["id"].to_pylist() == [3]
    assert 3 not in reader.to_table(filter="x = 0")["id"].to_pylist()


@pytest.mark.parametrize("defer", [False, True])
def test_an_indexed_key_is_found_after_a_compaction(tmp_path: Path, defer: bool) -> None:
    ours = made(tmp_path / "a")
    theirs_ = lance.dataset(ours.uri)
    theirs_.create_scalar_index("id", "BTREE")
    theirs_.delete("id < 3")
    theirs_.optimize.compact_files(target_rows_per_fragment=100, defer_index_remap=defer)
    changed = ours.checkout().merge_insert(rows([2, 3, 20], 7), "id")
    assert sorted(row["id"] for row in theirs(changed) if row["x"] == 7) == [2, 3, 20]
    assert len(theirs(changed)) == 24
    assert lance.dataset(ours.uri).to_table(filter="id = 20")["x"].to_pylist() == [7]


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1.5, 2.5, float("inf"), None]),
        pa.array([b"a", b"", b"\xff", None]),
        pa.array([True, False, None]),
        pa.array(["a", "b", None, "a"]).dictionary_encode().slice(0, 3),
        pa.array([1, 2, 3, None], pa.timestamp("us", "UTC")),
        pa.array([b"ab", b"cd", None], pa.binary(2)),
        pa.array([0.5, 2.5], pa.float16()),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_are_of_many_types(tmp_path: Path, keys: pa.Array) -> None:
    first = write_dataset(str(tmp_path / "t"), pa.table({"key": keys, "x": [0] * len(keys)}))
    given = pa.table({"key": keys, "x": range(1, len(keys) + 1)})
    changed = first.merge_insert(given, "key")
    table = lance.dataset(changed.uri).to_table()
    assert table.num_rows == len(keys) + keys.null_count
    assert table["x"].to_pylist().count(0) == keys.null_count


def test_doubled_keys_may_be_new_but_not_update(tmp_path: Path) -> None:
    ours = made(tmp_path / "a")
    with pytest.raises(InvalidRequestError, match=r"2 of the rows have the key id = 3"):
        ours.merge_insert(rows([3, 3], 7), "id")
    assert len(theirs(ours.merge_insert(rows([50, 50], 7), "id"))) == 28
    changed = ours.checkout().merge_insert(rows([3, 3], 7), "id", when_matched="nothing")
    assert len(theirs(changed)) == 28


def test_a_match_may_be_forbidden(tmp_path: Path) -> None:
    ours = made(tmp_path / "a")
    with pytest.raises(InvalidRequestError, match="has the key id = 24, kind = 'a' already"):
        ours.merge_insert(rows([50, 24], 7), ["id", "kind"], when_matched="fail")
    changed = ours.merge_insert(rows([50, None], 7), "id", when_matched="fail")
    assert len(theirs(changed)) == 28


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (rows([1], 1), {"on": []}, InvalidRequestError, "name at least one"),
        (rows([1], 1), {"on": "nope"}, UnknownColumnError, "in the rows given"),
        (pa.table({"x": [1]}), {"on": "id"}, UnknownColumnError, "in the rows given"),
        (pa.table({"id": ["a"]}), {"on": "id"}, TypeMismatchError, "cast it"),
        (pa.table({"id": [[1]]}), {"on": "id"}, TypeMismatchError, "keys are numbers"),
        (pa.table({"id": [1], "z": [1]}), {"on": "id"}, InvalidRequestError, "besides"),
        (rows([1], 1), {"on": "id", "when_matched": "x"}, InvalidRequestError, "give update or"),
        (
            rows([1], 1),
            {"on": "id", "when_matched": "nothing", "when_not_matched": "nothing"},
            InvalidRequestError,
            "change nothing",
        ),
    ],
)
def test_merges_that_make_no_sense_are_refused(
    tmp_path: Path,
    data: pa.Table,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    ours = made(tmp_path / "a")
    with pytest.raises(error, match=message):
        ours.merge_insert(data, **options)
    assert ours.latest_version() == 1


def test_a_key_that_others_inserted_meanwhile_is_not_inserted_again(tmp_path: Path) -> None:
    ours = made(tmp_path / "a")
    for number, insert in enumerate(
        (
            lambda: lance.write_dataset(rows([100], 1), ours.uri, mode="append"),
            lambda: ours.merge_insert(rows([101], 1), "id"),
            lambda: by_pylance(ours, rows([102], 1), ["id"], {}),
        )
    ):
        insert()
        changed = ours.merge_insert(rows([100 + number], 9), "id")
        found = [row["x"] for row in theirs(changed) if row["id"] == 100 + number]
        assert found == [9]


def test_pylance_looks_again_when_we_inserted_its_key(tmp_path: Path) -> None:
    field = SCHEMA.field("id").with_nullable(False)
    field = field.with_metadata({"lance-schema:unenforced-primary-key": "true"})
    table = rows([1, 2], 0).cast(SCHEMA.set(0, field))
    old = lance.write_dataset(table, tmp_path / "t")
    ours = open_dataset(str(tmp_path / "t"))
    ours.merge_insert(rows([50], 9).cast(table.schema), "id")
    merge = old.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows([50], 7).cast(table.schema))
    assert [row["x"] for row in theirs(ours.checkout()) if row["id"] == 50] == [7]
    newest = ours.merge_insert(rows([50], 8).cast(table.schema), "id")
    assert [row["x"] for row in theirs(newest) if row["id"] == 50] == [8]


def test_empty_rows_merge_into_empty_datasets(tmp_path: Path) -> None:
    ours = write_dataset(str(tmp_path / "t"), rows([], 0))
    assert theirs(ours.merge_insert(rows([], 0), "id")) == []
    assert len(theirs(ours.checkout().merge_insert(rows([1, 2], 0), "id"))) == 2
    changed = ours.checkout().merge_insert(rows([], 0), "id", when_not_matched_by_source="delete")
    assert theirs(changed) == []
