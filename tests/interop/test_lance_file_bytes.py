"""Which bytes of a file are read: those of the rows, and what says where they lie."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_core.file.reader import LanceFileReader
from lance_core.ids import ColumnIndex
from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from tests.lance_columns import lance_file, lance_table, open_bytes

pytestmark = pytest.mark.interop
ROWS = 40_000


def counted(data: bytes) -> tuple[LanceFileReader, CountingStore]:
    inner = MemoryStore()
    inner.put("file.lance", data)
    store = CountingStore(inner, coalesce_gap=0)
    reader = LanceFileReader.open(RangeScheduler(store), "file.lance", len(data))
    return reader, store


@pytest.fixture(scope="module")
def wide() -> tuple[pa.Array, bytes]:
    values = np.random.default_rng(0).standard_normal(ROWS * 64).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(values), 64)
    return column, lance_file(column, "2.2")


@pytest.fixture(scope="module")
def numbers() -> tuple[pa.Array, bytes]:
    column = pa.array(np.random.default_rng(0).integers(0, 2**20, ROWS).astype(np.uint32))
    return column, lance_file(column, "2.2")


def test_opening_reads_one_tail_of_64_kib(wide: tuple[pa.Array, bytes]) -> None:
    _, data = wide
    _, store = counted(data)
    assert store.ranges == [("file.lance", len(data) - 65536, len(data))]


def test_opening_a_file_with_much_metadata_reads_twice() -> None:
    table = pa.table({f"column number {i}": [i] for i in range(1500)})
    data = lance_table(table, "2.2")
    reader, store = counted(data)
    assert len(store.ranges) == 2
    assert reader.schema.names == tuple(table.column_names)
    (found,) = reader.read([reader.target("column number 1499")], [(0, 1)])
    assert found.to_pylist() == [1499]


def test_wide_rows_are_read_without_anything_else(wide: tuple[pa.Array, bytes]) -> None:
    column, data = wide
    reader, store = counted(data)
    store.reset()
    (found,) = reader.read([reader.target("c")], [(100, 110)])
    assert found.equals(column.slice(100, 10))
    assert store.bytes_read == 10 * 256


def test_raw_pages_are_told_where_they_lie(wide: tuple[pa.Array, bytes]) -> None:
    column, data = wide
    reader, _ = counted(data)
    pages = reader.fixed_width_pages(ColumnIndex(0))
    assert pages is not None
    assert sum(page.num_rows for page in pages) == ROWS
    raw = b"".join(
        data[page.offset : page.offset + page.num_rows * page.bits_per_value // 8] for page in pages
    )
    assert raw == column.values.to_numpy().tobytes()


def test_packed_pages_are_not_raw(numbers: tuple[pa.Array, bytes]) -> None:
    reader, _ = counted(numbers[1])
    assert reader.fixed_width_pages(ColumnIndex(0)) is None


def test_a_packed_row_costs_its_chunk_once_the_table_is_known(
    numbers: tuple[pa.Array, bytes],
) -> None:
    column, data = numbers
    reader, store = counted(data)
    targets = [reader.target("c")]
    store.reset()
    reader.take(targets, np.array([5]))
    tables = sum(end - start for _, start, end in store.ranges[:-1])
    assert tables <= 4 * (ROWS // 1024 + 1)
    store.reset()
    (found,) = reader.take(targets, np.array([30_000, 30_001]))
    assert found.equals(column.slice(30_000, 2))
    assert store.bytes_read <= 1024 * 20 // 8 + 16


def test_neighbouring_rows_of_strings_read_only_their_chunks() -> None:
    column = pa.array([f"text {i} {'y' * (i % 50)}" for i in range(ROWS)])
    reader, store = counted(lance_file(column, "2.2"))
    targets = [reader.target("c")]
    reader.take(targets, np.array([0]))
    store.reset()
    (found,) = reader.take(targets, np.array([20_000, 20_001]))
    assert found.equals(column.slice(20_000, 2))
    assert store.bytes_read <= 2 * 8192


def test_long_strings_read_only_their_own_bytes() -> None:
    column = pa.array([f"{i:06}" * 60 for i in range(ROWS)])
    reader, store = counted(lance_file(column, "2.2"))
    store.reset()
    (found,) = reader.take([reader.target("c")], np.array([20_000]))
    assert found.equals(column.slice(20_000, 1))
    assert store.bytes_read < 500


def test_all_columns_and_ranges_share_the_requests_of_a_step(
    wide: tuple[pa.Array, bytes],
) -> None:
    column, _ = wide
    table = pa.table({"a": column, "b": column})
    reader = open_bytes(lance_table(table, "2.2"))
    asked = reader.byte_ranges([reader.target("a"), reader.target("b")], [(5, 6), (90, 100)])
    assert [end - start for start, end in asked] == [256, 2560, 256, 2560]


def test_a_page_state_is_read_once(numbers: tuple[pa.Array, bytes]) -> None:
    reader, _ = counted(numbers[1])
    targets = [reader.target("c")]
    first = reader.byte_ranges(targets, [(0, 10)])
    second = reader.byte_ranges(targets, [(0, 10)])
    assert len(first) == len(second) + 1


def test_memory_held_is_stated_and_grows_with_page_states(
    numbers: tuple[pa.Array, bytes],
) -> None:
    reader, _ = counted(numbers[1])
    before = reader.nbytes
    reader.read([reader.target("c")], [(0, 10)])
    assert before < reader.nbytes < before + 10_000
