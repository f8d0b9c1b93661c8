"""Scalar indices that we built: pylance uses and maintains them, and both answer as a scan does."""

from __future__ import annotations

import datetime
import decimal
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import lance_core
from tests.index_contents import index_contents
from tests.scalar_tables import INDICES, TESTS, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

pytestmark = pytest.mark.interop

NOT_INDEXED = {"free = 2", "free IS NULL", "id % 3 = 1"}
NUM_ROWS, FRAGMENT_ROWS = 900, 400
DECIMAL, WIDE_DECIMAL = pa.decimal128(12, 2), pa.decimal256(40, 0)
TIME = pa.timestamp("us")


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def check_answers(folder: Path, tests: Sequence[str], *, used: bool = True) -> None:
    """Check filters by both readers against a scan of pylance."""
    theirs, ours = lance.dataset(str(folder)), lance_core.open_dataset(folder)
    for test in tests:
        expected = ids(theirs.to_table(filter=test, use_scalar_index=False, columns=["id"]))
        scanner = theirs.scanner(filter=test, columns=["id"])
        assert not used or "ScalarIndexQuery" in scanner.explain_plan(verbose=True), test
        assert ids(scanner.to_table()) == expected, test
        assert ids(ours.scan(["id"], filter=test).read_all()) == expected, test


@pytest.mark.parametrize(("version", "stable"), [("2.0", False), ("2.1", False), ("2.2", True)])
def test_indices_of_every_kind_answer_as_a_scan_does(
    tmp_path: Path, version: Any, stable: bool
) -> None:
    theirs = lance.write_dataset(
        rows(0, NUM_ROWS),
        str(tmp_path),
        max_rows_per_file=FRAGMENT_ROWS,
        enable_stable_row_ids=stable,
        data_storage_version=version,
    )
    theirs.delete("id % 7 = 3")
    dataset = lance_core.open_dataset(tmp_path)
    for number, (column, kind, parameters) in enumerate(INDICES):
        dataset = dataset.create_index(column, kind, f"{column}_{number}", **parameters)
    indexed = [test for test in TESTS if test not in NOT_INDEXED]
    check_answers(tmp_path, indexed)
    assert list(dataset.verify()) == []
    theirs = lance.dataset(str(tmp_path))
    theirs.optimize.compact_files(target_rows_per_fragment=2 * NUM_ROWS)
    theirs.insert(rows(5000, 5100))
    theirs.optimize.optimize_indices()
    lance_core.open_dataset(tmp_path).optimize_indices()  # what pylance does not of zones
    check_answers(tmp_path, TESTS[::2], used=False)


def spread(kind: pa.DataType) -> tuple[pa.Array, Mapping[str, str]]:
    """Return values of a type with nulls in between, and literals for some of them."""
    numbers = [None if n % 9 == 4 else n % 37 for n in range(NUM_ROWS)]
    make, spell = _MAKERS[kind]
    values = pa.array([None if n is None else make(n) for n in numbers], kind)
    return values, {"low": spell(make(5)), "high": spell(make(20))}


def _quoted(value: object) -> str:
    return f"'{value}'"


def _hex(value: bytes) -> str:
    return f"X'{value.hex()}'"


def _spelt(kind: str) -> Any:
    return lambda value: f"{kind} '{value}'"


def _float(n: int) -> float:
    return float("nan") if n == 36 else float("-inf") if n == 35 else -0.0 if n == 0 else n / 4 - 2


def _day(n: int) -> datetime.date:
    return datetime.date(2024, 1, 1) + datetime.timedelta(n)


def _moment(n: int) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, n % 24, n)  # noqa: DTZ001 - the column has no zone


_MAKERS: dict[pa.DataType, tuple[Any, Any]] = {
    pa.int8(): (int, str),
    pa.uint64(): (lambda n: n + 2**63, str),
    pa.int64(): (lambda n: n - 18, str),
    pa.float32(): (_float, str),
    pa.float64(): (_float, str),
    pa.bool_(): (lambda n: n > 18, str),
    pa.string(): (lambda n: f"t{n:02d}", _quoted),
    pa.large_string(): (lambda n: f"é{n:02d}", _quoted),
    pa.binary(): (lambda n: bytes([n, 200]), _hex),
    pa.large_binary(): (lambda n: bytes([200, n]), _hex),
    pa.binary(3): (lambda n: bytes([n, 1, 255]), _hex),
    DECIMAL: (
        lambda n: decimal.Decimal(n - 18) / 4,
        lambda value: f"CAST({value} AS DECIMAL(12, 2))",
    ),
    pa.date32(): (_day, _spelt("date")),
    TIME: (_moment, _spelt("timestamp")),
}
BLOOMED = [kind for kind in _MAKERS if kind not in (pa.bool_(), pa.binary(3), DECIMAL)]
CASES: list[tuple[str, pa.DataType, dict[str, Any]]] = [
    *[("BTREE", kind, {"zone_size": 100}) for kind in _MAKERS],
    *[("BITMAP", kind, {}) for kind in _MAKERS],
    *[("ZONEMAP", kind, {"rows_per_zone": 20}) for kind in _MAKERS],
    *[("BLOOMFILTER", kind, {"number_of_items": 20}) for kind in BLOOMED],
]


def test_values_of_every_type_are_found_in_indices_of_every_kind(tmp_path: Path) -> None:
    columns = {f"c{n}": spread(kind)[0] for n, (_, kind, _) in enumerate(CASES)}
    table = pa.table({"id": pa.array(range(NUM_ROWS)), **columns})
    lance.write_dataset(table, str(tmp_path), max_rows_per_file=FRAGMENT_ROWS)
    dataset = lance_core.open_dataset(tmp_path)
    for number, (index_kind, _, parameters) in enumerate(CASES):
        dataset = dataset.create_index(f"c{number}", index_kind, **parameters)
    for number, (index_kind, kind, _) in enumerate(CASES):
        _, spelt = spread(kind)
        column = f"c{number}"
        tests = [f"{column} = {spelt['low']}", f"{column} IS NULL"]
        if index_kind != "BLOOMFILTER" and kind != pa.bool_():
            tests += [f"{column} < {spelt['high']}", f"{column} >= {spelt['high']}"]
            tests.append(f"{column} <> {spelt['low']}")
        check_answers(tmp_path, tests, used=False)


def both(folder: Path, column: str, kind: str, parameters: dict[str, Any]) -> list[Any]:
    """Return what the files of pylance's index and of ours hold."""
    config: Any = IndexConfig(kind.lower(), parameters) if parameters else kind
    theirs = lance.dataset(str(folder))
    theirs.create_scalar_index(column, config, name=f"theirs_{kind}_{column}")
    ours = lance_core.open_dataset(folder)
    ours.create_index(column, kind, f"ours_{kind}_{column}", **parameters)
    return [index_contents(folder, f"{whose}_{kind}_{column}") for whose in ("theirs", "ours")]


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_files_hold_what_those_of_pylance_do(tmp_path: Path, version: Any) -> None:
    table = rows(0, NUM_ROWS)
    theirs = lance.write_dataset(
        table, str(tmp_path), max_rows_per_file=FRAGMENT_ROWS, data_storage_version=version
    )
    theirs.delete("id % 7 = 3 OR id BETWEEN 300 AND 330")
    for column, kind, parameters in INDICES:
        expected, found = both(tmp_path, column, kind, parameters)
        assert found.keys() == expected.keys()
        for file, (their_rows, metadata, buffers) in expected.items():
            our_rows, our_metadata, our_buffers = found[file]
            assert our_metadata == metadata, (column, kind)
            assert our_buffers == buffers, (column, kind)
            for name in their_rows.column_names:
                if name == "ids":  # equal values are in no order
                    assert sorted(our_rows[name].to_pylist()) == sorted(
                        their_rows[name].to_pylist()
                    )
                else:
                    assert repr(our_rows[name].to_pylist()) == repr(their_rows[name].to_pylist()), (
                        column,
                        kind,
                        name,
                    )
        described = {each.name: each for each in lance_core.open_dataset(tmp_path).snapshot.indices}
        mine, other = (described[f"{whose}_{kind}_{column}"] for whose in ("ours", "theirs"))
        assert (mine.type_name, mine.index_version) == (other.type_name, other.index_version)
        assert mine.field_ids == other.field_ids
        assert np.array_equal(list(mine.fragment_bitmap or ()), list(other.fragment_bitmap or ()))
