from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.ids import FragmentId
from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.deletion import read_deleted_offsets
from lance_core.table.fragment import DeletionFile, DeletionFileType, Fragment
from tests.manifest_bytes import scheduler_of

ARROW, BITMAP = DeletionFileType.ARROW_ARRAY, DeletionFileType.BITMAP


def arrow_file(column: pa.Array, *, codec: str | None = None) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"row_id": column})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def offsets(*values: int | None) -> pa.Array:
    return pa.array(values, pa.uint32())


def fragment_of(kind: DeletionFileType, num_deleted_rows: int, physical_rows: int) -> Fragment:
    deletion_file = DeletionFile(kind, 7, 11, num_deleted_rows, None)
    return Fragment(FragmentId(3), physical_rows, (), deletion_file)


def read(
    data: bytes, kind: DeletionFileType, *, num_deleted_rows: int = 0, physical_rows: int = 100
) -> BitMap:
    scheduler = scheduler_of({f"_deletions/3-7-11.{kind.value}": data})
    return read_deleted_offsets(scheduler, fragment_of(kind, num_deleted_rows, physical_rows))


def test_a_fragment_without_a_deletion_file_has_no_deleted_rows() -> None:
    fragment = Fragment(FragmentId(3), 100, (), None)
    assert read_deleted_offsets(scheduler_of({}), fragment) == BitMap()


def test_an_arrow_file_may_be_in_any_order() -> None:
    assert read(arrow_file(offsets(0, 10, 1, 2)), ARROW, num_deleted_rows=4) == BitMap(
        [0, 1, 2, 10]
    )


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_an_arrow_file_may_be_compressed(codec: str) -> None:
    column = pa.array(np.arange(90, dtype=np.uint32))
    assert read(arrow_file(column, codec=codec), ARROW) == BitMap(range(90))


def test_a_bitmap_file_is_one_roaring_bitmap() -> None:
    assert read(BitMap([5, 99]).serialize(), BITMAP, num_deleted_rows=2) == BitMap([5, 99])


def test_the_type_comes_from_the_manifest_and_not_from_the_bytes() -> None:
    with pytest.raises(CorruptFileError):
        read(arrow_file(offsets(1)), BITMAP)


def test_a_file_larger_than_the_first_read_is_read_whole() -> None:
    rows = np.random.default_rng(1).permutation(50_000).astype(np.uint32)
    data = arrow_file(pa.array(rows))
    store = MemoryStore()
    store.put("_deletions/3-7-11.arrow", data)
    counted = CountingStore(store)
    fragment = fragment_of(ARROW, 50_000, 50_000)
    assert len(read_deleted_offsets(RangeScheduler(counted), fragment)) == 50_000
    assert counted.bytes_read == len(data)


def test_a_count_that_was_not_recorded_is_not_checked() -> None:
    assert read(arrow_file(offsets(1, 2)), ARROW, num_deleted_rows=0) == BitMap([1, 2])


def test_another_number_of_rows_than_the_manifest_says_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="2 rows are deleted, the manifest says 3"):
        read(arrow_file(offsets(1, 2)), ARROW, num_deleted_rows=3)


def test_a_deleted_row_that_the_fragment_has_not_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="row 100 is deleted, the fragment has 100"):
        read(arrow_file(offsets(100)), ARROW, physical_rows=100)


def test_a_missing_file_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match=r"_deletions/3-7-11\.bin: .*missing"):
        read_deleted_offsets(scheduler_of({}), fragment_of(BITMAP, 1, 10))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"ARROW1\0\0",
        arrow_file(offsets(1, 2))[:-9],
        arrow_file(pa.array([1, 2], pa.int64())),
        arrow_file(offsets(1, None)),
    ],
    ids=["empty", "only a magic", "cut", "int64", "null"],
)
def test_a_file_that_is_no_column_of_offsets_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"_deletions/3-7-11\.arrow"):
        read(data, ARROW)


def test_a_compressed_buffer_that_claims_more_memory_than_there_is_is_corrupt() -> None:
    column = pa.array(np.arange(1000, dtype=np.uint32))
    data = arrow_file(column, codec="zstd")
    claim, lie = struct.pack("<q", 4000), struct.pack("<q", 2**60)
    assert data.count(claim) == 1
    with pytest.raises(CorruptFileError):
        read(data.replace(claim, lie), ARROW, physical_rows=1000)
