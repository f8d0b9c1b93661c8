"""NaNs asked for by an index: those of a narrow column too, named as doubles."""

from __future__ import annotations

import math

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core

pytestmark = pytest.mark.interop

NUMBERS = [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, 1.5, None]
KINDS = {"float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64()}
LITERALS = (
    *("CAST('NaN' AS DOUBLE)", "arrow_cast('NaN', 'Float32')", "CAST('-nan' AS DOUBLE)"),
    *(
        "CAST('NaN' AS DOUBLE), 0",
        "CAST('inf' AS DOUBLE), CAST('NaN' AS DOUBLE)",
        "CAST(1e300 AS DOUBLE), 1.5",
    ),
)
TESTS = (
    *(f"x {test} ({each})" for each in LITERALS for test in ("IN", "NOT IN")),
    *(f"x {test} {LITERALS[0]}" for test in ("=", "<>", "<", "<=", ">", ">=")),
)


@pytest.mark.parametrize("index", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
@pytest.mark.parametrize("kind", KINDS)
def test_nans_are_found_as_a_scan_finds_them(tmp_path, kind, index) -> None:
    numbers = pa.array(
        np.array([0 if each is None else each for each in NUMBERS], kind),
        mask=np.array([each is None for each in NUMBERS]),
    )
    theirs = lance.write_dataset(pa.table({"x": numbers}), str(tmp_path / "t.lance"))
    if kind == "float16" and index == "BLOOMFILTER":
        pytest.skip("pylance builds none for halves")
    theirs.create_scalar_index("x", index)
    ours = lance_core.open_dataset(str(theirs.uri))
    for text in TESTS:
        scanner = theirs.scanner(filter=text, use_scalar_index=False, with_row_id=True)
        expected = scanner.to_table()["_rowid"].to_pylist()
        assert ours.scan(["_rowid"], filter=text).read_all()["_rowid"].to_pylist() == expected, text
