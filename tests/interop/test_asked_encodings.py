"""pylance reads every encoding that we choose, by what values look like and by what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader as PylanceReader

from lance_core.io.mapped_store import MappedStore
from tests.written_files import FILE, write_table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS = 6000
VERSIONS = ["2.1", "2.2"]
HINTS: dict[str, dict[str, str]] = {
    "nothing": {},
    "zstd": {"compression": "zstd", "compression-level": "3"},
    "lz4": {"compression": "lz4"},
    "split": {"compression": "zstd", "bss": "on"},
    "fsst": {"compression": "fsst"},
    "none": {"compression": "none"},
    "full-zip": {"structural-encoding": "fullzip"},
    "mini-block": {"structural-encoding": "miniblock"},
    "plain items": {"dict-values-compression": "none"},
    "zstd items": {"dict-values-compression": "zstd"},
    "no runs": {"rle-threshold": "0"},
}


def numbers(kind: str, arrow_type: pa.DataType) -> pa.Array:
    """Return integers or floats that look like ``kind`` says."""
    rng = np.random.default_rng(5)
    few = rng.integers(0, 2**63, 9)
    drawn = {
        "few": few[rng.integers(0, 9, NUM_ROWS)],
        "runs": np.repeat(rng.integers(0, 100, NUM_ROWS), 300)[:NUM_ROWS],
        "many runs": np.repeat(rng.integers(0, 2**40, NUM_ROWS), 3)[:NUM_ROWS],
        "narrow": rng.integers(0, 50, NUM_ROWS),
        "wide": rng.integers(0, 2**63, NUM_ROWS),
    }[kind]
    return pa.array(drawn.astype(arrow_type.to_pandas_dtype()), arrow_type)


def strings(kind: str, arrow_type: pa.DataType) -> pa.Array:
    """Return byte strings that look like ``kind`` says."""
    rng = np.random.default_rng(5)
    pool = [bytes(rng.integers(97, 123, size, np.uint8)) for size in rng.integers(0, 40, 50)]
    rows = {
        "few": [pool[index] for index in rng.integers(0, 50, NUM_ROWS)],
        "prose": [b" ".join(pool[index] for index in rng.integers(0, 50, 4)) for _ in range(900)],
        "long": [b" ".join(pool[index] for index in rng.integers(0, 50, 40)) for _ in range(200)],
        "huge": [pool[10] * 3000, b"", pool[11] * 4000],
    }[kind]
    return pa.array(rows, pa.binary()).cast(arrow_type)


NUMBERS = [pa.uint8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]
CASES = [
    *((numbers, kind, arrow_type)
      for kind in ("few", "runs", "many runs", "narrow", "wide")
      for arrow_type in NUMBERS),
    *((strings, kind, arrow_type)
      for kind in ("few", "prose", "long", "huge")
      for arrow_type in (pa.string(), pa.large_binary())),
]  # fmt: skip


def with_nulls(column: pa.Array) -> pa.Array:
    valid = np.random.default_rng(6).random(len(column)) < 0.9
    return pa.compute.if_else(pa.array(valid), column, None)


@pytest.mark.parametrize("asked", HINTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_whatever_is_asked_for(asked: str, version: str, tmp_path: Path) -> None:
    metadata = {f"lance-encoding:{key}": value for key, value in HINTS[asked].items()}
    for make, kind, arrow_type in CASES:
        plain = make(kind, arrow_type)
        for column in (plain, with_nulls(plain)):
            schema = pa.schema([pa.field("c", arrow_type, metadata=metadata)])
            table = pa.table([column], schema=schema)
            write_table(MappedStore(tmp_path), FILE, table, version)
            reader = PylanceReader(str(tmp_path / FILE))
            read = reader.read_all().to_table()
            assert read["c"].combine_chunks().equals(column), (kind, arrow_type)
            rows = [0, 1, len(column) - 1]
            taken = reader.take_rows(rows).to_table()
            assert taken["c"].combine_chunks().equals(column.take(rows)), (kind, arrow_type)
            (tmp_path / FILE).unlink()
