"""Every type cast to every type: what pylance makes of it, or refused with a typed error."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError

pytestmark = pytest.mark.interop

STAMPS = pa.array([1_704_326_400_000_000, -31_186_676_600_000, None], pa.timestamp("us"))
UNITS = ("s", "ms", "us", "ns")
COLUMNS = {
    **{f"i{bits}": pa.array([1, -2, None], f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": pa.array([1, 2, None], f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": pa.array([1, -2, None], f"float{bits}") for bits in (16, 32, 64)},
    "dec": pa.array([Decimal("1.25"), Decimal("5.00"), None], pa.decimal128(10, 2)),
    "wide": pa.array([Decimal("1.25"), Decimal("5.00"), None], pa.decimal256(40, 2)),
    "b": pa.array([True, False, None]),
    "s": pa.array(["5", "1", None]),
    "clock": pa.array(["01:00:00", "00:00:02.5", None]),
    "day": pa.array(["2024-01-04", "2024-01-04 00:00:00.123456789", None]),
    "ls": pa.array(["5", "1", None], pa.large_string()),
    "bin": pa.array([b"1", b"5", None]),
    "lb": pa.array([b"1", b"5", None], pa.large_binary()),
    "fb": pa.array([b"1", b"5", None], pa.binary(1)),
    "d32": pa.array([19726, -1, None], pa.date32()),
    "d64": pa.array([86_400_000 * 19726, 0, None], pa.date64()),
    **{f"ts_{unit}": STAMPS.cast(pa.timestamp(unit), safe=False) for unit in UNITS},
    "tz": STAMPS.cast(pa.timestamp("us", "UTC")),
    "ny": STAMPS.cast(pa.timestamp("ms", "America/New_York"), safe=False),
    **{f"time_{unit}": pa.array([3600, 2, None], pa.time32(unit)) for unit in ("s", "ms")},
    **{f"time_{unit}": pa.array([3600, 2, None], pa.time64(unit)) for unit in ("us", "ns")},
    **{f"dur_{unit}": pa.array([1, -2_500_000, None], pa.duration(unit)) for unit in UNITS},
    "nothing": pa.nulls(3),
    "l": pa.array([[1, 2], [], None]),
    "fsl": pa.array([[1, 2], [3, 4], None], pa.list_(pa.float32(), 2)),
    "st": pa.array([{"x": 1}, {"x": 2}, None]),
}
SQL_TYPES = (
    *("tinyint", "int", "bigint", "int unsigned", "bigint unsigned", "float", "double"),
    *("decimal(20,4)", "string", "binary", "boolean", "date"),
    *("timestamp(0)", "timestamp(3)", "timestamp", "timestamp(9)"),
)
ARROW_TYPES = (
    *("Int8", "UInt64", "Float16", "Float64", "Utf8", "LargeUtf8", "LargeBinary", "Boolean"),
    *("Date32", "Date64", "Decimal128(20, 4)", "Decimal256(40, 4)"),
    *("Timestamp(Second, None)", "Timestamp(Nanosecond, None)"),
    *('Timestamp(Microsecond, Some("UTC"))', 'Timestamp(ms, Some("America/New_York"))'),
    *("Time32(Second)", "Time32(ms)", "Time64(Microsecond)", "Time64(ns)"),
    *("Duration(Second)", "Duration(Millisecond)", "Duration(us)", "Duration(Nanosecond)"),
)
NOT_ALIKE = ("'Date64'",)
"""Dates of whole days only: not so for pylance."""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("casts") / "t.lance"
    return lance.write_dataset(pa.table(COLUMNS), str(folder), data_storage_version="2.1")


def made_by_pylance(dataset: lance.LanceDataset, text: str) -> pa.Array | None:
    try:
        return dataset.to_table(columns={"x": text})["x"].combine_chunks()
    except BaseException:  # it panics at some
        return None


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_is_made_as_pylance_makes_it_or_refused(theirs, name):
    ours = lance_core.open_dataset(theirs.uri)
    casts = [f"{how}({name} AS {kind})" for kind in SQL_TYPES for how in ("CAST", "TRY_CAST")]
    for text in (*casts, *(f"arrow_cast({name}, '{kind}')" for kind in ARROW_TYPES)):
        try:
            made = ours.scan({"x": text}).read_all()["x"].combine_chunks()
        except InvalidRequestError as error:
            assert "at character" in str(error)  # noqa: PT017  # most of them have a value
            continue
        expected = made_by_pylance(theirs, text)
        if expected is not None and not any(each in text for each in NOT_ALIKE):
            assert made.equals(expected), text


TEXTS = [
    *("", "0", "00", "-0", "+", "-", ".", "1.", "+.5", "-.5", "1.5", "-1.25", "1.005", "-1.995"),
    *(
        "1e3",
        "1e-1",
        " 1",
        "1 ",
        "\t1",
        "\u30001",
        "1_0",
        "0x1",
        "0X1F",
        "+0x1",
        "+1",
        "++1",
        "1.2.3",
    ),
    *("1.a", "a.1", "000012.5", "-00.4", "0.4", "0.5", "1,5", "1.5-", "1.-5", "- 1", "0b1", "NaN"),
    *("99999999.99", "9" * 12, "1" * 20, "0." + "1" * 40, "0." + "9" * 40, "1." + "0" * 39 + "1"),
]
FLOATS = [
    *(0.0, -0.0, 0.1, 1.5, 9_999_999_999.0, 1e10, 12_345_678_901.5, -1e12, 3.3e12, 1e13, 1e15),
    *(123_456_789_012_345.6, 9_999_999_999_999_998.0, 1e16, 1e17, 1e300, 1e-4, 1.5e-5, 1e-5),
    *(9.99e-6, 1.25e-6, 1e-6, -1e-6, 1e-7, 5e-324, float("inf"), float("-inf"), float("nan")),
]
LARGE = [0, 5, 2**63 - 1, 2**63, 2**64 - 1]
SPELLED = {
    "s": pa.array([*TEXTS, None]),
    "ls": pa.array([*TEXTS, None], pa.large_string()),
    "dic": pa.array([*TEXTS, None]).dictionary_encode(),
    "f": pa.array([*FLOATS, None]),
    "g": pa.array([*FLOATS, None], pa.float32()),
    "h": pa.array(
        [*(np.float16(each) for each in FLOATS if not 6e4 < abs(each) < 1e308), None], pa.float16()
    ),
    "u": pa.array([*LARGE, None], pa.uint64()),
}
OF_TEXTS = (
    *("decimal(10,0)", "decimal(10,1)", "decimal(20,4)", "decimal(38,38)", "decimal(38,10)"),
    *("tinyint", "int", "bigint unsigned", "float", "double"),
)
OF_NUMBERS = ("string", "int", "bigint", "timestamp(0)", "timestamp", "timestamp(9)")


@pytest.mark.parametrize("name", SPELLED)
def test_odd_values_are_read_and_spelled_as_pylance_does_it(tmp_path, name):
    kinds = OF_TEXTS if name in {"s", "ls", "dic"} else OF_NUMBERS
    table = pa.table({name: SPELLED[name]})
    theirs = lance.write_dataset(table, "memory://casts", data_storage_version="2.1")
    lance_core.write_dataset(str(tmp_path / "t.lance"), table)
    ours = lance_core.open_dataset(str(tmp_path / "t.lance"))
    made = ours.scan({kind: f"TRY_CAST({name} AS {kind})" for kind in kinds}).read_all()
    for kind in kinds:
        expected = made_by_pylance(theirs, f"TRY_CAST({name} AS {kind})")
        assert expected is not None
        assert made[kind].combine_chunks().cast(pa.string()).equals(expected.cast(pa.string()))


def test_bytes_are_cast_to_texts_only(theirs):
    ours = lance_core.open_dataset(theirs.uri)
    for kind in ("int", "double", "decimal(10,2)", "boolean", "date", "timestamp"):
        with pytest.raises(InvalidRequestError, match="cannot be made"):
            ours.scan({"x": f"TRY_CAST(bin AS {kind})"}).read_all()


def test_to_timestamp_has_nanoseconds(tmp_path):
    theirs = lance.write_dataset(TIMES, str(tmp_path / "t.lance"), data_storage_version="2.1")
    ours = lance_core.open_dataset(theirs.uri)
    for text in (f"to_timestamp('{NANOS}') = tns", "to_timestamp(1704326400) < tns"):
        found = ours.scan(["row"], filter=text).read_all()["row"].to_pylist()
        assert found == theirs.to_table(columns=["row"], filter=text)["row"].to_pylist()
    with pytest.raises(InvalidRequestError, match="1600-01-01"):
        ours.scan(["row"], filter="to_timestamp('1600-01-01') < tns")


NANOS = "2024-01-04 00:00:00.000000001"
TIMES = pa.table(
    {
        "row": [0, 1, 2],
        "ts": pa.array([dt.datetime(2024, 1, 4), dt.datetime(2024, 1, 5), None]),  # noqa: DTZ001
        "tns": pa.array([1704326400000000001, 1704326400000000000, None], pa.timestamp("ns")),
        "tsz": pa.array([1704326400000000001, 0, None], pa.timestamp("ns", "UTC")),
        "t32": pa.array([3600, 2, None], pa.time32("s")),
        "t64": pa.array([3600000000, 2, None], pa.time64("us")),
        "t64n": pa.array([3600000000000, 2, None], pa.time64("ns")),
        "dur": pa.array([1, 2, None], pa.duration("s")),
        "durm": pa.array([1, 2, None], pa.duration("ms")),
    }
)
ALIKE = (
    "t32 = arrow_cast('01:00:00', 'Time32(Second)')",
    "t32 = arrow_cast('01:00', 'Time32(Second)')",
    "t32 <> arrow_cast('01:00:00.7', 'Time32(Second)')",
    "t64 = arrow_cast('01:00:00', 'Time64(Microsecond)')",
    "t64 > arrow_cast('00:59:59.123456', 'Time64(µs)')",
    "t64n BETWEEN arrow_cast('00:00:00', 'Time64(ns)') AND arrow_cast('00:00:01', 'Time64(ns)')",
    "t32 IN (arrow_cast('01:00:00', 'Time32(Second)'), NULL)",
    "arrow_cast(3600, 'Time32(Second)') = t32",
    "CAST(t64 AS string) = '01:00:00'",
    "dur = arrow_cast(1, 'Duration(Second)')",
    "dur = arrow_cast(1000, 'Duration(Millisecond)')",
    "dur <= arrow_cast(1500, 'Duration(Millisecond)')",
    "dur IN (arrow_cast(1, 'Duration(s)'), arrow_cast(5, 'Duration(s)'))",
    "dur > durm",
    f"tns = timestamp '{NANOS}'",
    f"tns < timestamp '{NANOS}'",
    f"tns = timestamp(9) '{NANOS}'",
    f"tsz = timestamp '{NANOS}+00:00'",
    f"ts = timestamp '{NANOS}'",
    f"timestamp(3) '{NANOS}' >= ts",
    "timestamp(0) '1969-01-04 00:00:00.9' < ts",
    "CAST(ts AS double) > 1",
)
ONLY_OURS: tuple[tuple[str, list[int]], ...] = (
    ("t32 = '01:00:00'", [0]),
    ("t64 < '01:00:00.5'", [0, 1]),
    ("t64n IN ('01:00:00', '00:00:00.000000002')", [0, 1]),
    ("'00:30:00' < t32", [0]),
    ("t32 = t64", [0]),
    ("t32 = '01:00:00.5'", []),
    ("t32 < '01:00:00.5'", [0, 1]),
    (f"ts = '{NANOS}'", []),
    (f"ts < '{NANOS}'", [0]),
    (f"tns = '{NANOS}'", [0]),
    ("ts >= '2024-01-05 00:00:00.0000000'", [1]),
)
REFUSED = ("t64 = '1:00'", "t32 = 'noon'", "ts = 'noon'", "dur = '1'")


@pytest.mark.parametrize("index", [None, "BTREE", "ZONEMAP"])
def test_times_are_found_as_pylance_finds_them(tmp_path, index):
    theirs = lance.write_dataset(TIMES, str(tmp_path / "t.lance"), data_storage_version="2.1")
    for name in TIMES.column_names[1:] if index is not None else ():
        theirs.create_scalar_index(name, index)
    ours = lance_core.open_dataset(theirs.uri)
    for text in ALIKE:
        found = ours.scan(["row"], filter=text).read_all()["row"].to_pylist()
        scanner = theirs.scanner(columns=["row"], filter=text, use_scalar_index=False)
        assert found == scanner.to_table()["row"].to_pylist(), text
    for text, rows in ONLY_OURS:
        assert ours.scan(["row"], filter=text).read_all()["row"].to_pylist() == rows, text
    for text in REFUSED:
        with pytest.raises(InvalidRequestError, match="filter at character"):
            ours.scan(["row"], filter=text)
