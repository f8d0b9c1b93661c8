"""Random nested tables: whatever we write, we read back equal, however it is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lance_core.encodings.version import FileVersion
from lance_core.file.reader import LanceFileReader
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from tests.file_reads import assert_reads_as
from tests.lance_cases import write_case
from tests.lance_strategies import lance_cases, many


@pytest.mark.parametrize("version", list(FileVersion), ids=lambda version: version.value)
@many
@given(data=st.data())
def test_whatever_is_written_reads_back_equal(version: FileVersion, data: st.DataObject) -> None:
    case = data.draw(lance_cases(version.value))
    store = MemoryStore()
    written = write_case(case, store, "file.lance")
    reader = LanceFileReader.open(RangeScheduler(store), written.path, written.size)
    assert_reads_as(reader, case.table)
