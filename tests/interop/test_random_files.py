"""Random nested tables: what pylance writes we read back equal, and what we write, pylance does."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from lance_core.file.reader import LanceFileReader
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from tests.file_reads import assert_reads_as
from tests.lance_cases import write_case
from tests.lance_columns import VERSIONS, open_bytes
from tests.lance_strategies import lance_cases, many
from tests.pylance_files import assert_pylance_reads, write_with_pylance

pytestmark = pytest.mark.interop
NAME = "file.lance"


@pytest.mark.parametrize("version", VERSIONS)
@many
@given(data=st.data())
def test_whatever_pylance_writes_reads_back_equal(version: str, data: st.DataObject) -> None:
    case = data.draw(lance_cases(version))
    with TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        write_with_pylance(case, path)
        assert_reads_as(open_bytes(path.read_bytes()), case.table)
        mapped = RangeScheduler(MappedStore(Path(folder)))
        assert_reads_as(LanceFileReader.open(mapped, NAME), case.table)


@pytest.mark.parametrize("version", VERSIONS)
@many
@given(data=st.data())
def test_whatever_we_write_pylance_reads_back_equal(version: str, data: st.DataObject) -> None:
    case = data.draw(lance_cases(version))
    with TemporaryDirectory() as folder:
        store = MappedStore(Path(folder))
        write_case(case, store, NAME)
        assert_pylance_reads(Path(folder) / NAME, case.table)
        assert_reads_as(LanceFileReader.open(RangeScheduler(store), NAME), case.table)
