"""What users of such systems reported about scans and filters (field reports), on ours."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core import open_dataset, write_dataset
from lance_core.errors import InvalidRequestError
from lance_core.scan.ordering import OrderBy

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core import Dataset

pytestmark = pytest.mark.interop

TYPES = pa.schema({"id": pa.int64(), "x": pa.float64(), "s": pa.string()})


def written(path: Path, table: pa.Table) -> Dataset:
    lance.write_dataset(table, str(path), data_storage_version="2.2")
    return open_dataset(path)


def ids(dataset: Dataset, text: str, **query: object) -> list[int]:
    scan = dataset.scan(["id"], filter=text, **query)  # type: ignore[arg-type]  # as given
    found: list[int] = scan.read_all()["id"].to_pylist()
    return found


def test_pages_follow_each_other_without_a_gap(tmp_path: Path) -> None:  # no. 24, 25
    dataset = written(tmp_path / "t", pa.table({"id": range(100), "x": [0.5] * 100}))
    for order in ((), (OrderBy("x"),), (OrderBy("id", ascending=False),)):
        pages = [ids(dataset, "id >= 10", order_by=order, limit=7, offset=n * 7) for n in range(13)]
        whole = ids(dataset, "id >= 10", order_by=order)
        assert [row for page in pages for row in page] == whole
        assert len(whole) == 90


@pytest.mark.parametrize("limit", [16_384, 20_000, 10**6, 2**62], ids=str)
def test_limits_may_be_above_the_number_of_rows(tmp_path: Path, limit: int) -> None:  # no. 26
    dataset = written(tmp_path / "t", pa.table({"id": range(50)}))
    assert len(ids(dataset, "id >= 0", limit=limit)) == 50
    assert len(ids(dataset, "id >= 0", limit=limit, order_by=["id"])) == 50


@pytest.mark.parametrize(
    "columns", [["_rowid"], ["_rowaddr"], ["id", "_rowid"], ["_rowoffset", "id"], []], ids=str
)
def test_rows_may_be_shown_by_their_names_alone(tmp_path: Path, columns: list[str]) -> None:
    table = pa.table({"id": range(20), "x": [i / 2 for i in range(20)]})  # no. 28
    dataset = written(tmp_path / "t", table)
    wanted = table.filter(pc.less(table["x"], 3.0)).num_rows
    for query in ({}, {"order_by": ["x"]}, {"limit": 100}):
        found = dataset.scan(columns, filter="x < 3", **query).read_all()
        assert found.schema.names == columns
        assert found.num_rows == wanted


def test_not_leaves_out_what_is_unknown(tmp_path: Path) -> None:  # no. 31
    dataset = written(tmp_path / "t", pa.table({"id": [0, 1, 2], "b": [True, False, None]}))
    assert ids(dataset, "NOT b") == [1]
    assert dataset.count_rows("NOT b") == 1


def test_names_between_double_quotes_are_told_of(tmp_path: Path) -> None:  # no. 34
    table = pa.table({"id": [0, 1], "PartyAbbrev": ["D", "R"], "a b-c": [1, 2], "é": [1, 2]})
    dataset = written(tmp_path / "t", table)
    with pytest.raises(InvalidRequestError, match="`PartyAbbrev`"):
        ids(dataset, "\"PartyAbbrev\" = 'D'")
    assert ids(dataset, "`PartyAbbrev` = 'D' AND `a b-c` = 1 AND é = 1") == [0]
    assert ids(dataset, "PartyAbbrev = 'R'", order_by=["a b-c"]) == [1]


def test_parameters_need_no_quoting(tmp_path: Path) -> None:  # no. 35
    dataset = written(tmp_path / "t", pa.table({"id": [0, 1], "s": ["O'Brien", "x"]}))
    assert ids(dataset, "s = $s", params={"s": "O'Brien"}) == [0]
    assert ids(dataset, "s = $s", params={"s": "x' OR 1=1 --"}) == []
    assert dataset.count_rows("s = $s", params={"s": "x"}) == 1
    computed = dataset.scan({"n": "id + $by"}, params={"by": 10}, limit=1).read_all()
    assert computed["n"].to_pylist() == [10]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_keep_their_unit(tmp_path: Path, unit: str, zone: str | None) -> None:  # no. 36
    first = dt.datetime(2024, 1, 1, tzinfo=None if zone is None else dt.UTC)
    times = [first + dt.timedelta(hours=n) for n in range(99)]
    column = pa.array(times, pa.timestamp(unit, zone))
    dataset = written(tmp_path / "t", pa.table({"id": range(99), "ts": column}))
    assert len(ids(dataset, "ts > timestamp '2024-01-03 01:00:00'")) == 49
    assert ids(dataset, "ts > timestamp '2024-01-03 01:00:00'", order_by=["ts"], limit=1) == [50]


def test_rows_without_a_column_show_null_in_it(tmp_path: Path) -> None:  # no. 41
    path = tmp_path / "t"
    lance.write_dataset(pa.table({"id": [0, 1]}), str(path))
    lance.dataset(str(path)).add_columns(pa.schema([pa.field("b", pa.int32())]))
    more = pa.table({"id": [2], "b": pa.array([7], pa.int32())})
    lance.write_dataset(more, str(path), mode="append")
    lance.write_dataset(pa.table({"id": [3]}), str(path), mode="append")
    dataset = open_dataset(path)
    assert ids(dataset, "b IS NULL") == [0, 1, 3]
    assert ids(dataset, "b = 7") == [2]
    order = [OrderBy("b", nulls_first=True)]
    assert ids(dataset, "id >= 0", order_by=order) == [0, 1, 3, 2]


@pytest.mark.parametrize("how", ["no fragments", "no rows", "all deleted"])
def test_empty_tables_give_empty_answers_of_the_right_types(
    tmp_path: Path, how: str
) -> None:  # no. 42
    path = tmp_path / "t"
    if how == "no fragments":
        write_dataset(path, TYPES.empty_table())
    else:
        rows = 0 if how == "no rows" else 5
        table = pa.table({"id": range(rows), "x": [0.5] * rows, "s": ["a"] * rows}, schema=TYPES)
        lance.write_dataset(table, str(path))
        lance.dataset(str(path)).delete("id >= 0")
    dataset = open_dataset(path)
    for query in ({}, {"filter": "x < 3"}, {"order_by": ["x"]}, {"filter": "_rowid IN (0, 1)"}):
        found = dataset.scan(**query).read_all()
        assert (found.num_rows, found.schema) == (0, TYPES)
        found = dataset.scan({"y": "x * 2"}, **query).read_all()
        assert (found.num_rows, found.schema.types) == (0, [pa.float64()])
    assert dataset.count_rows("x < 3") == 0


def test_nan_is_larger_than_all_numbers_and_nulls_go_where_they_are_sent(
    tmp_path: Path,
) -> None:
    values = [float("nan"), 1.0, None, float("inf"), -0.0, 0.0]
    dataset = written(tmp_path / "t", pa.table({"id": range(6), "x": values}))
    assert ids(dataset, "id >= 0", order_by=["x"]) == [4, 5, 1, 3, 0, 2]
    down = OrderBy("x", ascending=False, nulls_first=True)
    assert ids(dataset, "id >= 0", order_by=[down], limit=3) == [2, 0, 3]
