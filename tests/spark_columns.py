"""A column of every type that has a place in Spark, three rows each."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa

from tests.lance_cases import children_of

_DATE = pa.array([dt.date(2026, 11, 28), None, dt.date(1, 1, 1)])
_MICROS = pa.array([1_700_000_000_123_456, None, -1])
COLUMNS = {
    "null": pa.nulls(3),
    "bool": pa.array([True, None, False]),
    **{
        f"{sign}int{bits}": pa.array([0, None, 2 ** (bits - (sign == "")) - 1]).cast(
            pa.type_for_alias(f"{sign}int{bits}")
        )
        for sign in ("", "u")
        for bits in (8, 16, 32)
    },
    "int64": pa.array([-(2**63), None, 2**63 - 1]),
    "uint64": pa.array([0, None, 2**64 - 1], pa.uint64()),
    "float16": pa.array(np.array([1.5, -0.0, np.nan], np.float16)),
    "float32": pa.array([1.5, None, np.inf], pa.float32()),
    "float64": pa.array([1.5, None, -0.0]),
    "string": pa.array(["a", None, "ü"]),
    "large_string": pa.array(["a", None, "ü"], pa.large_string()),
    "binary": pa.array([b"a", None, b""]),
    "large_binary": pa.array([b"a", None, b""], pa.large_binary()),
    "fixed_size_binary": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "date32": _DATE,
    "date64": _DATE.cast(pa.date64()),
    "time32": pa.array([1, None, 86_399], pa.int32()).cast(pa.time32("s")),
    "time64": pa.array([1, None, 86_399_999_999_999]).cast(pa.time64("ns")),
    "timestamp s": pa.array([1, None, -1]).cast(pa.timestamp("s")),
    "timestamp ms": pa.array([1, None, -1]).cast(pa.timestamp("ms", "+02:00")),
    "timestamp us": _MICROS.cast(pa.timestamp("us", "UTC")),
    "duration": _MICROS.cast(pa.duration("us")),
    "decimal": pa.array([Decimal("1.25"), None, Decimal("-0.01")], pa.decimal128(38, 2)),
    "decimal of tens": pa.array([1200, None, -300])
    .cast(pa.decimal128(20, 0))
    .cast(pa.decimal256(18, -2)),
    "decimal256": pa.array([Decimal("1.25"), None, Decimal("-0.01")], pa.decimal256(38, 2)),
    "dictionary": pa.array(["a", None, "a"]).dictionary_encode(),
    "vectors": pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float32(), 2)),
    "half vectors": pa.FixedSizeListArray.from_arrays(
        pa.array(np.array([1, 2, 3, 4, 5, np.inf], np.float16)), 2
    ),
    "byte vectors": pa.array([[1, 2], None, [255, 0]], pa.list_(pa.uint8(), 2)),
    "lists": pa.array([[1], None, []], pa.list_(pa.uint16())),
    "large lists": pa.array([["a", None], None, []], pa.large_list(pa.large_string())),
    "maps": pa.array([[("a", 1)], None, []], pa.map_(pa.large_string(), pa.uint8())),
    "structs": pa.array(
        [{"a": 1, "b": [1]}, None, {"a": None, "b": None}],
        pa.struct({"a": pa.uint32(), "b": pa.large_list(pa.int8())}),
    ),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "1"])),
}


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Tell whether Spark cuts values of a type, or of its parts."""
    if getattr(kind, "unit", None) == "ns":
        return not pa.types.is_time(kind)
    return any(has_nanoseconds(child.type) for child in children_of(kind))
