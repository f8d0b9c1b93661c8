"""Durations, timestamps, times and dates of all units and zones, in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance.file import LanceFileReader as PylanceReader, LanceFileWriter as PylanceWriter

from lance_core.file import LanceFileReader, LanceFileWriter
from tests.lance_columns import VERSIONS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

UNITS = ("s", "ms", "us", "ns")
ZONES = (None, "UTC", "Europe/Berlin", "+05:30")
WIDE = [
    *(pa.duration(unit) for unit in UNITS),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in ZONES),
    *(pa.time64("us"), pa.time64("ns"), pa.date64()),
]
NARROW = [pa.time32("s"), pa.time32("ms"), pa.date32()]
DAY = 86_400_000


def all_times() -> pa.Table:
    """Return a column of each type."""
    wide = pa.array([0, None, DAY], pa.int64())
    narrow = pa.array([0, None, 86_399], pa.int32())
    columns = [*(wide.cast(kind) for kind in WIDE), *(narrow.cast(kind) for kind in NARROW)]
    return pa.table(columns, names=[f"c{index}" for index in range(len(columns))])


@pytest.mark.parametrize("version", VERSIONS)
def test_both_libraries_read_the_times_of_both(version: str, tmp_path: Path) -> None:
    table = all_times()
    theirs, ours = str(tmp_path / "theirs.lance"), str(tmp_path / "ours.lance")
    with PylanceWriter(theirs, table.schema, version=version) as their_writer:
        their_writer.write_batch(table)
    with LanceFileWriter.open_path(ours, table.schema, version=version) as our_writer:
        our_writer.write_batch(table)
    for path in (theirs, ours):
        assert LanceFileReader.open_path(path).read_all().equals(table)
        assert PylanceReader(path).read_all().to_table().equals(table)
