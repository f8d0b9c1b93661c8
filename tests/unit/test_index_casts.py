"""Casts of columns that indices see through: only those that tell every two values apart."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import TypeMismatchError
from lance_core.expr.compare import compare_bits
from lance_core.expr.convert import convert
from lance_core.expr.sargable import index_leaf
from lance_core.expr.tree import Cast, Column, Compare, Literal
from lance_core.schema.from_arrow import schema_from_arrow

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ZONES = (None, "UTC", "America/New_York")
SPRING_AND_FALL = (1_710_053_999, 1_710_054_000, 1_730_611_800, 1_730_615_400)


def integers(kind: pa.DataType) -> pa.Array:
    limits = np.iinfo(kind.to_pandas_dtype())
    odd = {limits.min, limits.min + 1, 0, 1, 100, limits.max - 1, limits.max}
    return pa.array(sorted(odd | {min(2**at + 1, limits.max) for at in (24, 53)}), kind)


def decimals(kind: pa.DataType) -> pa.Array:
    step = Decimal(1).scaleb(-kind.scale)
    most = step * (10 ** min(kind.precision, 27) - 1)
    return pa.array([-most, -step, step * 0, step, most], kind)


def instants(unit: str) -> pa.Array:
    size = UNITS[unit]
    odd = {-1, 0, 1, size - 1, size, *(each * size for each in SPRING_AND_FALL)}
    return pa.array(sorted(odd), pa.int64())


VALUES: dict[pa.DataType, pa.Array] = {
    **{
        kind: integers(kind)
        for kind in (getattr(pa, f"{u}int{bits}")() for u in ("", "u") for bits in (8, 16, 32, 64))
    },
    pa.float16(): pa.array(np.array([-1.5, 0.1, 1, 2049, 2051], np.float16)),
    pa.float32(): pa.array([-1.5, 0.1, 0.10000001, 1.0, 2049, 16777217.0], pa.float32()),
    pa.float64(): pa.array([-1.5, 0.1, 0.1 + 1e-16, 1.0, 2**53 + 2.0]),
    **{
        kind: decimals(kind)
        for kind in (
            *(pa.decimal128(*size) for size in ((3, 0), (5, 2), (10, 2), (20, 0), (38, 10))),
            pa.decimal256(50, 3),
        )
    },
    **{
        pa.timestamp(unit, zone): instants(unit).cast(pa.timestamp(unit, zone))
        for unit in UNITS
        for zone in ZONES
    },
    **{pa.duration(unit): instants(unit).cast(pa.duration(unit)) for unit in UNITS},
    pa.date32(): pa.array([-1, 0, 1, 19726], pa.date32()),
    pa.date64(): pa.array([-86_400_000, 0, 86_400_000], pa.date64()),
    pa.string(): pa.array(["", "1", "2"]),
    pa.large_string(): pa.array(["", "1", "2"], pa.large_string()),
    pa.binary(): pa.array([b"", b"1", b"2"]),
    pa.bool_(): pa.array([False, True]),
}


def keeps_all_apart(values: pa.Array, kind: pa.DataType) -> bool:
    made = convert(values, kind)
    in_order = compare_bits("<", made.slice(0, len(made) - 1), made.slice(1))
    return all(in_order.to_pylist())


def is_asked_of_an_index(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether an index is asked about a column of a type, cast to another, being some value."""
    schema = schema_from_arrow(pa.schema({"x": given}))
    cast = Cast(Column("x", given, 1), kind, 1)
    return any(
        index_leaf(Compare("=", cast, Literal(convert(each, kind), 1), 1), schema) is not None
        for each in VALUES[given]
    )


@pytest.mark.parametrize("given", VALUES, ids=str)
def test_an_index_is_asked_about_no_cast_that_joins_values(given: pa.DataType) -> None:
    for kind in VALUES:
        try:
            joins = not keeps_all_apart(VALUES[given], kind)
        except TypeMismatchError:  # no such cast
            continue
        if kind != given and joins:
            assert not is_asked_of_an_index(given, kind), f"{given} as {kind}"


@pytest.mark.parametrize("unit", UNITS)
def test_an_index_is_asked_about_times_in_finer_units(unit: str) -> None:
    order = list(UNITS)
    finer = {each for each in order if is_asked_of_an_index(pa.timestamp(unit), pa.timestamp(each))}
    assert finer == set(order[order.index(unit) :])


def test_an_index_is_asked_about_wider_numbers() -> None:
    for given, kind in (
        (pa.int8(), pa.int16()),
        (pa.uint32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(10, 2)),
    ):
        assert is_asked_of_an_index(given, kind)
