"""Scans of tables that are larger than the memory allowed, and what scans do not read."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.io.metering import metered
from lance_core.query.request import ScanQuery
from lance_core.scan.ordering import OrderBy

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS, ROW_BYTES = 100_000, 4_000
_PROGRAM = """
import resource, sys
from lance_core import open_dataset
from lance_core.scan.ordering import OrderBy

dataset = open_dataset(sys.argv[1])
def ask(**query):
    return sum(batch.num_rows for batch in dataset.scan(["payload", "id"], **query))

ask(filter="u < 2", order_by=[OrderBy("u")], limit=1)  # loads kernels
held = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmData")) << 10
resource.setrlimit(resource.RLIMIT_DATA, (held + (200 << 20), resource.RLIM_INFINITY))
try:
    bytearray(400 << 20)
    sys.exit("the limit does not hold")
except MemoryError:
    pass
print(ask(filter="u < 50"), ask(filter="u < 1"), ask(filter="u >= 0", limit=30_000, offset=60_000))
print(ask(order_by=[OrderBy("u", False), OrderBy("id")], limit=20), dataset.count_rows("u < 50"))
print(ask(order_by=[OrderBy("u", False), OrderBy("id")], filter="u < 20"))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 400 MB in four fragments; ``u`` is 0 to 99, ``id`` counts the rows."""
    path = tmp_path_factory.mktemp("large") / "t.lance"
    rng = np.random.default_rng(1)
    for number in range(4):
        count = NUM_ROWS // 4
        ids = np.arange(number * count, (number + 1) * count)
        blocks = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(ROW_BYTES), count, [None, pa.py_buffer(rng.bytes(count * ROW_BYTES))]
        )
        rows = pa.table({"id": ids, "u": ids * 7 % 100, "payload": blocks})
        lance.write_dataset(
            rows, str(path), mode="append" if number else "create", data_storage_version="2.2"
        )
    return path


def test_scans_stay_small_whatever_the_table(path: Path) -> None:
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _PROGRAM, str(path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    first, second, third = ran.stdout.split("\n")[:3]
    assert first == f"{NUM_ROWS // 2} {NUM_ROWS // 100} 30000"
    assert second == f"20 {NUM_ROWS // 2}"
    assert third == f"{NUM_ROWS // 5}"


def bytes_of(path: Path, **query: object) -> tuple[int, int]:
    """Return rows of a scan and what it read, by a dataset opened for it alone."""
    dataset = open_dataset(path)
    with metered() as meter:
        rows = dataset.scan(**query).read_all()  # type: ignore[arg-type]  # as given
    return rows.num_rows, meter.bytes_read


def test_a_scan_stops_where_its_limit_is_reached(path: Path) -> None:
    num_rows, num_bytes = bytes_of(path, filter="u < 50", limit=10)
    assert num_rows == 10
    assert num_bytes < 3 << 20  # of 400 MB


def test_other_columns_are_read_only_of_rows_that_pass(path: Path) -> None:
    num_rows, num_bytes = bytes_of(path, filter="id = 77000")
    assert num_rows == 1
    assert num_bytes < 2 << 20
    skipped = bytes_of(path, columns=["payload"], filter="u >= 0", limit=5, offset=90_000)
    assert skipped[0] == 5
    assert skipped[1] < 4 << 20


def test_an_order_reads_other_columns_only_of_rows_it_returns(path: Path) -> None:
    order = [OrderBy("id", ascending=False)]
    num_rows, num_bytes = bytes_of(path, order_by=order, limit=5, offset=3)
    assert num_rows == 5
    assert num_bytes < 2 << 20


@pytest.mark.parametrize("name", ["_rowid", "_rowaddr", "_rowoffset"])
def test_rows_that_a_filter_names_are_found_without_a_scan(path: Path, name: str) -> None:
    dataset = open_dataset(path)
    query = ScanQuery(("id",), filter=f"{name} IN (5, 3) AND u >= 0")
    assert "Scan: fragments=1," in dataset.explain(query)
    num_rows, num_bytes = bytes_of(path, columns=["id"], filter=query.filter)
    assert num_rows == 2
    assert num_bytes < 100 << 10  # mostly ends of files
