"""A small table with a column of every kind, for examples of filters."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa

STAMPS = [dt.datetime(2024, 1, 4), dt.datetime(2024, 1, 5, 12), None]  # noqa: DTZ001  # with and without a zone

TABLE = pa.table(
    {
        "row": [0, 1, 2],
        "i8": pa.array([1, 2, None], pa.int8()),
        "i": pa.array([5, -3, None], pa.int64()),
        "u": pa.array([5, 2**64 - 1, None], pa.uint64()),
        "u8": pa.array([5, 200, None], pa.uint8()),
        "f": pa.array([0.1, -0.0, None], pa.float32()),
        "g": pa.array([0.1, 5.0, None], pa.float64()),
        "h": pa.array([0.5, 5.0, None], pa.float16()),
        "n2": [0.0, math.nan, None],
        "price": [1.5, 2.5, None],
        "dec": pa.array([Decimal("1.25"), Decimal("5.00"), None], pa.decimal128(10, 2)),
        "s": ["5", "abc", None],
        "ls": pa.array(["5", "abc", None], pa.large_string()),
        "dic": pa.array(["5", "abc", None]).dictionary_encode(),
        "bs": ["ab\\", "a%b", None],
        "b": [True, False, None],
        "bin": [b"\x05", b"abc", None],
        "lb": pa.array([b"\x05", b"abc", None], pa.large_binary()),
        "fb": pa.array([b"\x05", b"a", None], pa.binary(1)),
        "d": [dt.date(2024, 1, 4), dt.date(2024, 1, 5), None],
        "ts": pa.array(STAMPS, pa.timestamp("us")),
        "tz": pa.array(STAMPS, pa.timestamp("us", "UTC")),
        "ny": pa.array(STAMPS, pa.timestamp("ms", "America/New_York")),
        "t32": pa.array([1, 2, None], pa.time32("s")),
        "dur": pa.array([1, 2, None], pa.duration("s")),
        "nums": [[1, 2], [], None],
        "fl": pa.array([[0.5], [1.5], None], pa.list_(pa.float32())),
        "strs": [["a", "b"], ["c", None], None],
        "fsl": pa.array([[1.0, 2.0], [3.0, 4.0], None], pa.list_(pa.float32(), 2)),
        "st": [{"x": 5, "y": "a"}, {"x": None, "y": "b"}, None],
        "order": [1, 2, None],
        "my col": [7, 8, None],
        "date": [1, 2, 3],
    }
)
