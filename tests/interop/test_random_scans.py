"""Scans of random tables: the same rows, in the same order, of the same types as pylance's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import cycle
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.dataset import ColumnOrdering

from lance_core import open_dataset
from lance_core.scan.ordering import OrderBy

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core import Dataset

pytestmark = pytest.mark.interop

WORDS = ["", "a", "Z", "ab", "é", "zebra", "text " * 30]
FILTERS = [
    "i < 40",
    "f > 0.5",
    "f = f",
    "s = 'a' OR s IS NULL",
    "s >= 'ab' AND i % 3 = 0",
    "b",
    "NOT b AND f < 2.0",
    "st.x > 5",
    "d < date '2024-02-01'",
    "t IS NOT NULL",
    "dict = 'x'",
    "dec > cast('2.50' as decimal(6, 2))",
    "_rowid < 4294967300",
    "_rowoffset IN (1, 5, 60)",
    "_rowoffset = 3",
    "_rowid IN (0, 7, 4294967299, 8589934593, 99999999999) AND i < 60",
    "_rowaddr IN (1, 2, 3, 4294967299, 8589934593, 99999999999999) AND s >= 'a'",
    "_rowid IN (1, 2) OR i < 3",
    "i IS NULL AND i = 1",
    "true",
    "id >= 0",
    "array_length(l) > 1",
]
KEYS = ["i", "f", "h", "s", "b", "d", "t", "dec", "dict", "bin", "st.x", "u"]
COLUMNS: list[list[str] | None] = [
    None,
    ["id"],
    ["vec", "id"],
    ["st", "s"],
    ["st.x", "dict"],
    ["_rowid", "l", "_rowoffset"],
    ["_rowaddr"],
]


def maybe(rng: np.random.Generator, values: Any) -> list[Any]:
    """Return values, a fifth of them null."""
    return [None if rng.random() < 0.2 else each for each in values]


def make_rows(
    rng: np.random.Generator, first: int, num_rows: int, *, null_structs: bool
) -> pa.Table:
    odd = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf])
    is_odd = rng.random(num_rows) < 0.3
    floats = np.where(is_odd, rng.choice(odd, num_rows), rng.normal(size=num_rows))
    numbers = rng.integers(-50, 100, num_rows).tolist()
    vectors = rng.random(num_rows * 4).astype(np.float32)
    structs = [{"x": n, "y": str(n)} for n in numbers]
    labels = pa.array(maybe(rng, rng.choice(["x", "y", "z"], num_rows).tolist()))
    return pa.table(
        {
            "id": pa.array(range(first, first + num_rows), pa.int64()),
            "i": pa.array(maybe(rng, numbers), pa.int32()),
            "u": pa.array(maybe(rng, rng.integers(0, 2**63, num_rows).tolist()), pa.uint64()),
            "f": pa.array(maybe(rng, floats.tolist()), pa.float64()),
            "h": pa.array(maybe(rng, floats.astype(np.float16).tolist()), pa.float16()),
            "s": pa.array(maybe(rng, rng.choice(WORDS, num_rows).tolist()), pa.string()),
            "b": pa.array(maybe(rng, (rng.random(num_rows) < 0.5).tolist())),
            "d": pa.array(maybe(rng, [dt.date(2024, 1, 1 + n % 28) for n in numbers])),
            "t": pa.array(maybe(rng, [n * 10**6 for n in numbers]), pa.timestamp("us")),
            "dec": pa.array(maybe(rng, [Decimal(n) / 4 for n in numbers]), pa.decimal128(6, 2)),
            "dict": labels.dictionary_encode(),
            "bin": pa.array(maybe(rng, [bytes([n % 256] * (n % 3)) for n in numbers])),
            "st": pa.array(maybe(rng, structs) if null_structs else structs),
            "l": pa.array(maybe(rng, [list(range(n % 4)) for n in numbers]), pa.list_(pa.int16())),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4),
        }
    )


class Tables:
    """One table, to both libraries."""

    def __init__(self, path: Path, seed: int, version: str, *, stable: bool) -> None:
        rng = np.random.default_rng(seed)
        first = 0
        for number in range(3):
            num_rows = int(rng.integers(5, 80))
            lance.write_dataset(
                make_rows(rng, first, num_rows, null_structs=version != "2.0"),
                str(path),
                mode="create" if number == 0 else "append",
                data_storage_version=version,  # type: ignore[arg-type]  # one of theirs
                enable_stable_row_ids=stable,
                max_rows_per_file=50,
            )
            first += num_rows
        theirs = lance.dataset(str(path))
        theirs.delete(f"id % {rng.integers(2, 6)} = 1")
        if seed % 2 == 0:
            theirs.update({"i": "i + 1"}, where="i < 20")
        self.theirs = lance.dataset(str(path))
        self.ours: Dataset = open_dataset(path)

    def ask(self, **query: Any) -> tuple[pa.Table, pa.Table]:
        order = query.pop("order_by", [])
        wanted = self.theirs.to_table(
            **query,
            order_by=[ColumnOrdering(o.column, o.ascending, o.nulls_first) for o in order],
        )
        return self.ours.scan(**query, order_by=order).read_all(), wanted


@pytest.fixture(
    scope="module",
    params=[(0, "2.2", False), (1, "2.0", False), (2, "2.1", True), (3, "2.2", True)],
    ids=str,
)
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    seed, version, stable = request.param
    path = tmp_path_factory.mktemp("scans") / "t.lance"
    return Tables(path, seed, version, stable=stable)


def same(found: pa.Table, wanted: pa.Table, asked: object) -> None:
    assert found.schema.equals(wanted.schema, check_metadata=True), asked
    assert str(found.to_pydict()) == str(wanted.to_pydict()), asked  # where NaN equals itself


@pytest.mark.parametrize("text", FILTERS)
def test_the_rows_that_pass_a_filter_are_pylances(tables: Tables, text: str) -> None:
    pages = cycle(((None, 0), (3, 0), (7, 5), (1000, 30), (None, 500)))
    for columns, (limit, offset) in zip([*COLUMNS, ["s"]], pages, strict=False):
        query = {"filter": text, "columns": columns, "limit": limit, "offset": offset}
        same(*tables.ask(**query), query)
    assert tables.ours.count_rows(text) == tables.theirs.count_rows(text)


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_batches_are_no_larger_than_asked_for(tables: Tables, batch_rows: int) -> None:
    batches = list(tables.ours.scan(["id"], filter="i < 40", batch_rows=batch_rows))
    assert max(batch.num_rows for batch in batches) <= batch_rows
    wanted = tables.theirs.to_table(columns=["id"], filter="i < 40")
    assert pa.Table.from_batches(batches).equals(wanted)


@pytest.mark.parametrize("key", KEYS)
def test_rows_are_in_pylances_order(tables: Tables, key: str) -> None:
    rng = np.random.default_rng(len(key))
    for ascending in (True, False):
        for nulls_first in (True, False):
            order = [
                OrderBy(key, ascending, nulls_first),
                OrderBy(str(rng.choice(KEYS)), not ascending, nulls_first),
                OrderBy("id", ascending),
            ]
            limit = [None, 1, 20, 1000][int(rng.integers(4))]
            columns = COLUMNS[int(rng.integers(1, len(COLUMNS)))] or []
            query = {
                "columns": columns,
                "filter": [None, "i < 40", "f > 0.5"][int(rng.integers(3))],
                "limit": limit,
                "offset": int(rng.integers(0, 10)),
                # without it pylance 14.0.2 fails for columns left out
                "with_row_id": "_rowid" not in columns,
            }
            same(*tables.ask(**query, order_by=order), (query, order))


def test_columns_are_computed_as_by_pylance(tables: Tables) -> None:
    columns = {
        "twice": "id * 2",
        "s": "upper(s)",
        "part": "st.x",
        "kind": "dict",
        "whole": "st",
        "row": "_rowid",
        "sum": "f + 1",
        "cast": "cast(i as double)",
    }
    for query in (
        {"limit": 20},
        {"filter": "i < 40", "offset": 3},
        {"order_by": [OrderBy("i"), OrderBy("id")], "limit": 9},
    ):
        found, wanted = tables.ask(columns=columns, **query)
        assert str(found.to_pydict()) == str(wanted.to_pydict())
        assert found.schema.types == wanted.schema.types
        assert found.schema.names == wanted.schema.names


def test_rows_are_taken_by_all_their_names(tables: Tables) -> None:
    names = ["_rowoffset", "_rowid", "_rowaddr"]
    rows = tables.ours.scan([*names, "id", "s", "st"]).read_all()
    wanted = rows.take([5, 0, 17, 5]).select(["s", "id", "st"])
    for name, by in zip(names, ("offset", "row_id", "address"), strict=True):
        indices = rows[name].take([5, 0, 17, 5]).to_numpy()
        found = tables.ours.take(indices, ["s", "id", "st"], by=by)  # type: ignore[arg-type]
        assert found.to_pydict() == wanted.to_pydict()


def test_rows_that_are_not_there_are_refused(tables: Tables) -> None:
    for by in ("offset", "row_id", "address"):
        with pytest.raises(Exception, match=r"fragment|asked for|no row"):
            tables.ours.take([2**40], by=by)
        with pytest.raises(Exception, match="not negative"):
            tables.ours.take([-1], by=by)
