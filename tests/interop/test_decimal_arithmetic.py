"""Arithmetic with decimals has pylance's digits, and those of Python where pylance has no room."""

from __future__ import annotations

import decimal
from decimal import Decimal
from random import Random

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.expr.filter import parse_expression

pytestmark = pytest.mark.interop

NUM_ROWS = 60
DECIMALS = {
    "money": pa.decimal128(10, 2),
    "count": pa.decimal128(5, 0),
    "fine": pa.decimal128(20, 7),
    "wide": pa.decimal128(38, 10),
    "part": pa.decimal128(9, 9),
    "long": pa.decimal256(50, 3),
}
WHOLE = {
    "i8": pa.int8(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u8": pa.uint8(),
    "u64": pa.uint64(),
}


def drawn(random: Random, kind: pa.DataType) -> list[Decimal | int | None]:
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return random.choices([3, 5, 7, 100, limits.max, max(limits.min, -7)], k=NUM_ROWS)
    sizes = (kind.precision - 1, kind.precision // 2, 1)
    made: list[Decimal | int | None] = []
    for _ in range(NUM_ROWS):
        number = random.choice((-1, 1)) * random.randrange(1, 10 ** random.choice(sizes))
        made.append(Decimal(number).scaleb(-kind.scale, decimal.Context(prec=80)))
    made[7] = None
    return made


TABLE = pa.table(
    {
        name: pa.array(drawn(Random(name), kind), kind)
        for name, kind in {**DECIMALS, **WHOLE}.items()
    }
)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    uri = str(tmp_path_factory.mktemp("decimals") / "t.lance")
    return lance.write_dataset(TABLE, uri), lance_core.open_dataset(uri)


def made(ours: lance_core.Dataset, text: str) -> pa.Array:
    return ours.scan({"x": text}).read_all()["x"].combine_chunks()


def made_by_pylance(theirs: lance.LanceDataset, text: str) -> pa.Array | None:
    try:
        return theirs.to_table(columns={"x": text})["x"].combine_chunks()
    except BaseException:  # products of 128 bits overflow, and some panic
        return None


def has_room(values: pa.Array) -> bool:
    """Whether decimals have no more digits than their type has, which pylance does not check."""
    kind = values.type
    if not pa.types.is_decimal(kind):
        return True
    limit = Decimal(10) ** (kind.precision - kind.scale)
    return all(each is None or abs(each) < limit for each in values.to_pylist())


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
def test_operators_make_the_decimals_that_pylance_makes(both, operator):
    theirs, ours = both
    num_alike = 0
    for left in TABLE.column_names:
        for right in TABLE.column_names:
            if not {left, right} & {*DECIMALS, "u64"}:
                continue
            text = f"{left} {operator} {right}"
            expected = made_by_pylance(theirs, text)
            if expected is not None and has_room(expected):
                assert made(ours, text).equals(expected), text
                num_alike += 1
    assert num_alike > 50


@pytest.mark.parametrize("name", DECIMALS)
def test_what_overflows_in_pylance_is_as_python_divides_it(name):
    other = "wide"
    kind = parse_expression(f"{name} / {other}", TABLE.schema).type
    context = decimal.Context(prec=200, rounding=decimal.ROUND_DOWN)
    batch = TABLE.combine_chunks().to_batches()[0]
    expected = [
        None
        if left is None or right is None
        else context.divide(left, right).quantize(Decimal(1).scaleb(-kind.scale), context=context)
        for left, right in zip(TABLE[name].to_pylist(), TABLE[other].to_pylist(), strict=True)
    ]
    if any(each is not None and abs(each) >= 10 ** (38 - kind.scale) for each in expected):
        expected = [each if abs(each or 0) < 10 ** (38 - kind.scale) else None for each in expected]
        batch = batch.filter(pa.array([each is not None for each in expected]))
        expected = [each for each in expected if each is not None]
    found = parse_expression(f"{name} / {other}", TABLE.schema).evaluate(batch)
    assert found.to_pylist() == expected


@pytest.mark.parametrize("name", DECIMALS)
@pytest.mark.parametrize("kind", ["double", "float", "string"])
def test_decimals_are_cast_to_what_pylance_casts_them_to(both, name, kind):
    theirs, ours = both
    text = f"CAST({name} AS {kind})"
    expected = theirs.to_table(columns={"x": text})["x"].combine_chunks()
    assert made(ours, text).equals(expected)


def test_decimals_of_few_digits_become_the_nearest_floats():
    random = Random(1)
    kind = pa.decimal128(15, 4)
    values = [Decimal(random.randrange(-(10**15), 10**15)).scaleb(-4) for _ in range(3000)]
    batch = pa.record_batch({"x": pa.array(values, kind)})
    for text in ("CAST(x AS double)", "x + 0.0", "x * 1.0"):
        found = parse_expression(text, batch.schema).evaluate(batch)
        assert found.to_pylist() == [float(each) for each in values]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (pa.decimal128(20, 7), ["0.0000000", "0.0000001", "-12.5000000"]),
        (pa.decimal128(38, 38), ["0." + "0" * 37 + "1", "0." + "9" * 38]),
        (pa.decimal256(60, 20), ["0." + "0" * 20, "1" * 40 + "." + "0" * 20]),
        (pa.decimal128(5, 0), ["0", "-12345"]),
    ],
)
def test_decimals_are_spelled_with_all_their_digits(kind, texts):
    batch = pa.record_batch({"x": pa.array([*map(Decimal, texts), None], kind)})
    assert parse_expression("CAST(x AS string)", batch.schema).evaluate(batch).to_pylist() == [
        *texts,
        None,
    ]
    joined = parse_expression("concat(x, '!')", batch.schema).evaluate(batch).to_pylist()
    assert joined == [*(f"{each}!" for each in texts), "!"]


def test_decimals_below_no_digits_behind_the_point_are_computed_with(tmp_path):
    batch = pa.record_batch({"x": pa.array([Decimal(1200), None], pa.decimal128(5, -2))})
    for text, expected in {"CAST(x AS double)": 1200.0, "x / 7": Decimal("171.42")}.items():
        found = parse_expression(text, batch.schema).evaluate(batch)
        assert found.to_pylist() == [expected, None]


@pytest.mark.parametrize("text", ["money / (count - count)", "wide % (i8 - i8)", "money / 0"])
def test_dividing_by_zero_is_refused(both, text):
    _, ours = both
    with pytest.raises(InvalidRequestError, match="divide by zero"):
        made(ours, text)


def test_results_of_too_many_digits_are_refused(both):
    _, ours = both
    for text in ("wide * wide * wide", "long * long * long"):
        with pytest.raises(InvalidRequestError, match=r"digits|precision"):
            made(ours, text)
