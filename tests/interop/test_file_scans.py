"""Streams of batches from one file: the same rows as a read, in bounded pieces."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, UnknownColumnError
from lance_core.file.reader import LanceFileReader
from lance_core.file.windows import COPIED_WINDOW_BYTES, WINDOW_BYTES
from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from tests.lance_columns import VERSIONS, lance_file, lance_table, open_bytes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS = 30_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    lengths = np.append(0, np.cumsum(rng.integers(0, 4, NUM_ROWS)))
    items = pa.array(rng.integers(0, 1000, lengths[-1]))
    return pa.table(
        {
            "id": pa.array(np.arange(NUM_ROWS)),
            "text": pa.array([f"{i} {'x' * (i % 300)}" for i in range(NUM_ROWS)]),
            "few": pa.array([f"category {i % 9}" if i % 4 else None for i in range(NUM_ROWS)]),
            "list": pa.ListArray.from_arrays(pa.array(lengths, pa.int32()), items),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(rng.random(NUM_ROWS * 64).astype(np.float32)), 64
            ),
            "point": pa.StructArray.from_arrays(
                [pa.array(np.arange(NUM_ROWS)), pa.array(rng.random(NUM_ROWS))], ["x", "y"]
            ),
        }
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("read_ahead", [0, 3])
def test_a_scan_is_the_whole_table(table: pa.Table, version: str, read_ahead: int) -> None:
    reader = open_bytes(lance_table(table, version, page_rows=4000))
    batches = list(reader.scan(batch_rows=1000, read_ahead=read_ahead))
    found = pa.Table.from_batches(batches)
    found.validate(full=True)
    assert found.schema == table.schema
    assert found.equals(table)
    assert {batch.num_rows for batch in batches[:-1]} == {1000}


def test_ranges_are_streamed_one_after_another(table: pa.Table) -> None:
    reader = open_bytes(lance_table(table, "2.2"))
    ranges = [(29_000, 30_000), (5, 5), (0, 12_345), (29_500, 29_501)]
    found = reader.scan(["text", "id"], ranges, batch_rows=700).read_all()
    parts = [table.select(["text", "id"]).slice(start, stop - start) for start, stop in ranges]
    assert found.equals(pa.concat_tables(parts).cast(found.schema))


def test_parts_of_structs_are_named_by_their_paths(table: pa.Table) -> None:
    reader = open_bytes(lance_table(table, "2.2"))
    found = reader.scan(["point.y", "point"]).read_all()
    assert found.column_names == ["point.y", "point"]
    assert found["point.y"].equals(pa.chunked_array(table["point"].combine_chunks().field("y")))


def test_batches_are_bounded_by_bytes(table: pa.Table) -> None:
    reader = open_bytes(lance_table(table, "2.2"))
    batches = list(reader.scan(["vector", "text"], batch_bytes=100_000))
    assert max(batch.nbytes for batch in batches) <= 100_000
    assert sum(batch.num_rows for batch in batches) == NUM_ROWS


def test_a_row_larger_than_a_batch_may_be_is_a_batch_of_its_own() -> None:
    reader = open_bytes(lance_file(pa.array(["x" * 5000, "y", "z"]), "2.2"))
    assert [batch.num_rows for batch in reader.scan(batch_bytes=100)] == [1, 2]


def test_no_byte_of_chunks_is_read_much_more_than_once(table: pa.Table) -> None:
    data = lance_table(table, "2.2")
    store = MemoryStore()
    store.put("file.lance", data)
    counting = CountingStore(store)
    reader = LanceFileReader.open(RangeScheduler(counting), "file.lance", len(data))
    reader.scan(batch_rows=100).read_all()
    assert counting.bytes_read < 1.25 * len(data)


@pytest.mark.parametrize("num_rows", [200_000, 800_000])
def test_the_memory_of_a_scan_does_not_depend_on_the_size_of_the_file(num_rows: int) -> None:
    texts = pa.array([f"text {i:092}" for i in range(1000)] * (num_rows // 1000))
    data = lance_table(pa.table({"t": texts, "n": pa.array(np.arange(num_rows))}), "2.2", 50_000)
    reader = open_bytes(data)
    for batch in reader.scan(ranges=[(0, 1000)]):  # code is loaded before the measurement
        del batch
    tracemalloc.start()
    try:
        rows = sum(batch.num_rows for batch in reader.scan())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == num_rows
    assert peak < 32 << 20


def test_the_batches_of_copied_rows_lie_in_windows_that_the_allocator_keeps(tmp_path: Path) -> None:
    numbers = pa.array(np.arange(1_000_000) * 3)
    path = tmp_path / "file.lance"
    path.write_bytes(lance_file(numbers, "2.2"))
    batches = list(LanceFileReader.open_path(path).scan(["c"]))
    assert pa.Table.from_batches(batches)["c"].combine_chunks().equals(numbers)
    sizes = {batch["c"].buffers()[1].size for batch in batches}
    assert COPIED_WINDOW_BYTES / 4 < max(sizes) <= COPIED_WINDOW_BYTES < WINDOW_BYTES


def test_dictionaries_of_all_batches_begin_alike_so_that_arrow_files_hold_them() -> None:
    words = pa.array([f"w{i // 3000}" for i in range(NUM_ROWS)])
    data = lance_file(words.dictionary_encode(), "2.2", page_rows=1000)
    reader = open_bytes(data)
    batches = list(reader.scan(batch_rows=500, read_ahead=1))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_file(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    found = pa.ipc.open_file(sink.getvalue()).read_all()["c"]
    assert found.cast(pa.string()).combine_chunks().equals(words)


def test_a_file_is_opened_by_its_path_alone(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "file.lance"
    path.write_bytes(lance_table(table, "2.1"))
    assert LanceFileReader.open_path(path).scan(["id"]).read_all()["id"].equals(table["id"])
    assert LanceFileReader.open_path(f"file://{path}").num_rows == NUM_ROWS


def test_a_scan_of_no_columns_counts_the_rows(table: pa.Table) -> None:
    reader = open_bytes(lance_table(table, "2.2"))
    assert sum(batch.num_rows for batch in reader.scan([], [(5, 20_000)])) == 19_995


def test_an_empty_file_has_no_batches() -> None:
    reader = open_bytes(lance_file(pa.array([], pa.string()), "2.2"))
    assert reader.scan().read_all().num_rows == 0


def test_bad_requests_are_refused_before_anything_is_read(table: pa.Table) -> None:
    reader = open_bytes(lance_table(table, "2.2"))
    with pytest.raises(InvalidRequestError, match="batch_rows"):
        reader.scan(batch_rows=0)
    with pytest.raises(InvalidRequestError, match="not inside"):
        reader.scan(ranges=[(0, NUM_ROWS + 1)])
    with pytest.raises(UnknownColumnError):
        reader.scan(["nothing"])
