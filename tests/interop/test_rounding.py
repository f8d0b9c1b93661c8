"""Rounding, roots, logarithms and shifts make pylance's values and types."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.expr.filter import parse_expression, parse_filter

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.interop

GENERATOR = np.random.default_rng(6)
FLOATS = np.concatenate(
    [
        GENERATOR.normal(0, 1000, 200),
        GENERATOR.integers(-(10**6), 10**6, 200) / 1000,
        [1e30, -3e38, 5e-324, 0.5, 1.5, 2.5, -0.5, 0.05, 0.25, 1.005, 2.0**53, np.inf, np.nan],
    ]
)
COUNTS = [0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 70, -1, -64]


def of(kind: pa.DataType) -> pa.Array:
    limits = np.iinfo(kind.to_pandas_dtype())
    odd = [limits.min, limits.max, 0, 1, 5, 100, limits.max - 1, None]
    return pa.array([odd[at % len(odd)] for at in range(len(FLOATS))], kind)


def repeated(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    return pa.array([values[at % len(values)] for at in range(len(FLOATS))], kind)


TABLE = pa.table(
    {
        "row": range(len(FLOATS)),
        "f64": FLOATS,
        "f32": pa.array(FLOATS.clip(-3e38, 3e38).astype(np.float32)),
        "f16": pa.array(FLOATS.clip(-6e4, 6e4).astype(np.float16)),
        **{f"{u}int{bits}": of(getattr(pa, f"{u}int{bits}")()) for u in "u" for bits in (8, 64)},
        **{f"int{bits}": of(getattr(pa, f"int{bits}")()) for bits in (8, 16, 32, 64)},
        "money": repeated(
            [Decimal("99999999.99"), Decimal("-0.25"), Decimal("0.15"), None], pa.decimal128(10, 2)
        ),
        "small": repeated([Decimal(99), Decimal(-95), Decimal(4)], pa.decimal128(2, 0)),
        "long": repeated([Decimal("99999999.99"), Decimal("0.125")], pa.decimal256(50, 3)),
        "digits": repeated([1, 0, -1, 3, None], pa.int64()),
        "count": repeated(COUNTS, pa.int64()),
    }
)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    uri = str(tmp_path_factory.mktemp("rounding") / "t.lance")
    return lance.write_dataset(TABLE, uri), lance_core.open_dataset(uri)


def assert_alike(both, text: str) -> None:
    theirs, ours = both
    expected = theirs.to_table(columns={"x": text})["x"].combine_chunks()
    made = ours.scan({"x": text}).read_all()["x"].combine_chunks()
    assert made.type == expected.type, text
    assert made.is_null().equals(expected.is_null()), text
    same = [
        one == other or (one != one and other != other)  # noqa: PLR0124  # NaN
        for one, other in zip(made.to_pylist(), expected.to_pylist(), strict=True)
    ]
    assert all(same), (text, same.index(False))


NUMBERS = ("f64", "f32", "f16", "int8", "int64", "uint8", "uint64", "money", "small", "long")


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_rounded_as_pylance_rounds_them(both, name):
    for digits in ("", ", 0", ", 1", ", 2", ", 5", ", -1", ", -2", ", -9", ", digits"):
        if name == "f32" and digits in {", 1", ", 2", ", 5", ", digits"}:
            continue  # pylance makes the largest infinite
        assert_alike(both, f"round({name}{digits})")


@pytest.mark.parametrize("name", NUMBERS)
def test_roots_and_logarithms_are_of_the_type_that_pylance_gives_them(both, name):
    assert_alike(both, f"sqrt({name})")
    if name not in {"f32", "f64"}:  # the last bit depends on the library
        assert_alike(both, f"ln({name})")
    assert parse_expression(f"ln({name})", TABLE.schema).type == (
        pa.float32() if name == "f32" else pa.float64()
    )


def test_the_largest_floats_stay_as_they_are():
    batch = pa.record_batch({"x": pa.array([3e38, -3e38, 1.25], pa.float32())})
    made = parse_expression("round(x, 1)", batch.schema).evaluate(batch)
    assert made.equals(pa.array([3e38, -3e38, 1.3], pa.float32()))
    wide = pa.record_batch({"x": [1e300, -5.5, 0.0]})
    for text, expected in {"round(x, 310)": [1e300, -5.5, 0], "round(x, -310)": [0, 0, 0]}.items():
        assert parse_expression(text, wide.schema).evaluate(wide).to_pylist() == expected


def test_no_row_is_lost_when_all_its_digits_are_nines():
    batch = pa.record_batch({"x": pa.array([Decimal("99999999.99")], pa.decimal128(10, 2))})
    for text in ("round(x) > 1", "round(x, 1) > 1", "round(x, -3) > 1", "round(x) = 100000000"):
        assert parse_filter(text, batch.schema).evaluate(batch).to_pylist() == [True]


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("operator", ["<<", ">>"])
def test_numbers_are_shifted_by_any_count(both, name, operator):
    assert_alike(both, f"{name} {operator} count")
    assert_alike(both, f"{name} {operator} {name}")


@pytest.mark.parametrize("operator", ["<<", ">>"])
def test_the_widest_numbers_are_shifted_by_columns_and_literals(both, operator):
    for text in (f"uint64 {operator} uint64", f"uint64 {operator} 3", f"int64 {operator} 70"):
        assert_alike(both, text)
    assert_alike(both, f"int64 {operator} -1")
