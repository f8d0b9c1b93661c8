from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pytest

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.file.columns import ColumnTarget
from lance_core.ids import ColumnIndex, FieldId
from lance_core.index.ordinals import OrdinalSpace, live_words
from lance_core.index.vector.bound import BoundSegment
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.pq import ProductQuantizer
from lance_core.index.vector.quantizer import SearchOptions
from lance_core.index.vector.segment import VectorSegment
from lance_core.index.vector.storage import PartitionStorage
from lance_core.io.memory_store import MemoryStore
from lance_core.io.metering import metered
from lance_core.io.scheduler import RangeScheduler
from lance_core.kernels.topk import TopRows
from lance_core.schema.field import LanceField
from lance_core.table.base_paths import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.file.reader import LanceFileReader
    from lance_core.index.candidates import Candidates
    from lance_core.index.vector.held_partitions import HeldPartitions

LENGTHS = (3, 0, 5, 2)
NUM_ROWS = sum(LENGTHS)
ROW_IDS = LanceField(FieldId(0), "_rowid", "uint64", nullable=True)
CODES = LanceField(FieldId(1), "__pq_code", "fixed_size_list:uint8:2", nullable=True)


class FakeReader:
    """Columns in memory that remember what was read of them."""

    path = "_indices/x/auxiliary.idx"
    nbytes = 0
    num_rows = NUM_ROWS
    rows_kept_back = 0

    def __init__(self) -> None:
        codes = np.arange(2 * NUM_ROWS, dtype=np.uint8)
        self.columns = {
            ROW_IDS.id: pa.array(np.arange(NUM_ROWS, dtype=np.uint64)[::-1].copy()),
            CODES.id: pa.FixedSizeListArray.from_arrays(pa.array(codes), 2),
        }
        self.reads: list[list[tuple[int, int]]] = []

    def read(
        self, targets: Sequence[ColumnTarget], ranges: Sequence[tuple[int, int]]
    ) -> list[pa.Array]:
        self.reads.append(list(ranges))
        rows = [row for start, end in ranges for row in range(start, end - self.rows_kept_back)]
        return [self.columns[t.field.id].take(pa.array(rows, pa.int64())) for t in targets]


def make_segment(reader: FakeReader, *, is_transposed: bool = True) -> VectorSegment:
    lengths = np.array(LENGTHS, np.int64)
    codebook = np.zeros((2, 1, 256), np.float32)
    codebook[:, 0, :] = np.arange(256)
    centroids = np.zeros((len(LENGTHS), 2), np.float32)
    return VectorSegment(
        uuid="x",
        folder=Place(RangeScheduler(MemoryStore()), "_indices/x"),
        kind="IVF_PQ",
        metric=Metric.L2,
        centroids=centroids,
        offsets=np.cumsum(lengths) - lengths,
        lengths=lengths,
        storage=PartitionStorage(
            cast("LanceFileReader", reader),
            ColumnTarget(ROW_IDS, {ROW_IDS.id: ColumnIndex(0)}),
            (ColumnTarget(CODES, {CODES.id: ColumnIndex(1)}),),
        ),
        quantizer=ProductQuantizer(codebook, centroids, Metric.L2, is_transposed),
    )


SPACE = OrdinalSpace([0], [NUM_ROWS])
ALL = live_words(SPACE, {})
QUERY = np.zeros(2, np.float32)


def bind(
    reader: FakeReader, cache: ByteCache | None = None, *, is_transposed: bool = True
) -> BoundSegment:
    return BoundSegment(
        make_segment(reader, is_transposed=is_transposed),
        RangeScheduler(MemoryStore()),
        ByteCache(1 << 20) if cache is None else cache,
        SPACE,
        "store",
    )


def nearest(
    bound: BoundSegment,
    held: HeldPartitions,
    query: NDArray[np.float32],
    words: NDArray[np.uint64],
    k: int,
) -> Candidates:
    return bound.search(held, query, words, SearchOptions(k))


def ids(*partitions: int) -> NDArray[np.int64]:
    return np.array(partitions, np.int64)


def test_missing_partitions_are_read_in_one_batch_in_file_order() -> None:
    reader = FakeReader()
    bound = bind(reader)
    held = bound.acquire(ids(3, 0, 1))
    assert reader.reads == [[(0, 3), (8, 10)]]
    assert held.rows[:, 2].tolist() == [2, 3, 0]
    assert held.num_rows == 5


def test_partitions_in_memory_are_not_read_again() -> None:
    reader = FakeReader()
    bound = bind(reader)
    bound.acquire(ids(0, 2))
    bound.acquire(ids(2, 3))
    bound.acquire(ids(3, 2, 0))
    assert reader.reads == [[(0, 3), (3, 8)], [(8, 10)]]


def test_resident_partitions_are_all_or_nothing_and_never_read() -> None:
    reader = FakeReader()
    bound = bind(reader)
    bound.acquire(ids(0))
    assert bound.resident(ids(0, 2)) is None
    assert bound.resident(ids(0)) is not None
    assert len(reader.reads) == 1


def test_partitions_found_in_memory_count_as_hits_of_the_query() -> None:
    bound = bind(FakeReader())
    with metered() as meter:
        bound.acquire(ids(0, 2))
        bound.acquire(ids(0, 2))
    assert (meter.cache_hits, meter.cache_misses) == (2, 2)


def test_another_binding_of_the_same_rows_shares_the_cached_partitions() -> None:
    reader, cache = FakeReader(), ByteCache(1 << 20)
    bind(reader, cache).acquire(ids(0, 2))
    bind(reader, cache).acquire(ids(0, 2))
    assert len(reader.reads) == 1


def test_a_partition_dropped_by_the_cache_is_read_again() -> None:
    reader, cache = FakeReader(), ByteCache(1 << 20)
    bound = bind(reader, cache)
    bound.acquire(ids(0))
    cache.clear()
    gc.collect()
    assert bound.resident(ids(0)) is None
    bound.acquire(ids(0))
    assert len(reader.reads) == 2


def test_a_search_keeps_its_partitions_when_the_cache_drops_them() -> None:
    bound = bind(FakeReader(), cache := ByteCache(1 << 20))
    held = bound.acquire(ids(0, 2))
    expected = nearest(bound, held, QUERY, ALL, 10)
    cache.clear()
    gc.collect()
    found = nearest(bound, held, QUERY, ALL, 10)
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_partitions_larger_than_the_budget_are_searched_all_the_same() -> None:
    bound = bind(FakeReader(), ByteCache(0))
    assert len(nearest(bound, bound.acquire(ids(0, 2, 3)), QUERY, ALL, 100)) == NUM_ROWS


def test_partitions_in_use_are_the_last_to_leave_a_full_cache() -> None:
    reader = FakeReader()
    block_bytes = 6 * 3  # two bytes of code and an ordinal for each of three rows
    bound = bind(reader, ByteCache(block_bytes + 6 * 5 + 1))
    bound.acquire(ids(0))
    bound.acquire(ids(2))
    bound.acquire(ids(0))
    bound.acquire(ids(3))
    gc.collect()
    assert bound.resident(ids(0)) is not None
    assert bound.resident(ids(2)) is None


def test_codes_run_over_the_whole_partition_column_by_column() -> None:
    reader = FakeReader()
    bound = bind(reader)
    # partition 0: bytes 0..5 are the first codes 0, 1, 2 and the second codes 3, 4, 5
    found = nearest(bound, bound.acquire(ids(0)), QUERY, ALL, 3)
    assert found.distances.tolist() == [0 + 9, 1 + 16, 4 + 25]
    assert found.row_ids.tolist() == [9, 8, 7]


def test_codes_stored_row_by_row_are_turned() -> None:
    bound = bind(FakeReader(), is_transposed=False)
    found = nearest(bound, bound.acquire(ids(0)), QUERY, ALL, 3)
    assert found.distances.tolist() == [0 + 1, 4 + 9, 16 + 25]


def test_rows_outside_the_space_are_never_found() -> None:
    space = OrdinalSpace([0], [8])
    bound = BoundSegment(
        make_segment(FakeReader()),
        RangeScheduler(MemoryStore()),
        ByteCache(1 << 20),
        space,
        "store",
    )
    words = live_words(space, {})
    found = nearest(bound, bound.acquire(ids(0, 2, 3)), QUERY, words, 100)
    assert sorted(found.row_ids.tolist()) == list(range(8))


def test_a_search_in_pieces_finds_the_same() -> None:
    bound = bind(FakeReader())
    held = bound.acquire(ids(2, 1, 3, 0))
    expected = nearest(bound, held, QUERY, ALL, 4)
    for max_rows in (1, 5, 7, 100):
        top = TopRows(4, held.num_rows)
        pieces = list(held.pieces(max_rows))
        for piece in pieces:
            bound.search_into(piece, QUERY, ALL, top, SearchOptions(4))
        assert sum(len(piece.partitions) for piece in pieces) == 4
        found = bound.candidates(top)
        assert found.row_ids.tolist() == expected.row_ids.tolist()


def test_k_of_any_size_is_cut_to_the_rows_held() -> None:
    bound = bind(FakeReader())
    held = bound.acquire(ids(0))
    assert len(nearest(bound, held, QUERY, ALL, 2**63 - 1)) == 3
    assert len(nearest(bound, held, QUERY, ALL, 0)) == 0


def test_holding_no_partition_finds_nothing() -> None:
    bound = bind(FakeReader())
    assert len(nearest(bound, bound.acquire(ids()), QUERY, ALL, 5)) == 0
    assert list(bound.acquire(ids()).pieces(10)) == []


def test_read_only_queries_and_masks_are_taken() -> None:
    bound = bind(FakeReader())
    query, words = QUERY.copy(), ALL.copy()
    query.flags.writeable = words.flags.writeable = False
    assert len(nearest(bound, bound.acquire(ids(0)), query, words, 5)) == 3


def test_a_query_or_mask_of_the_wrong_size_is_refused() -> None:
    bound = bind(FakeReader())
    held = bound.acquire(ids(0))
    with pytest.raises(InvalidRequestError, match="dimensions"):
        nearest(bound, held, np.zeros(3, np.float32), ALL, 5)
    with pytest.raises(InvalidRequestError, match="mask"):
        nearest(bound, held, QUERY, np.zeros(0, np.uint64), 5)


def test_a_null_row_address_is_corrupt() -> None:
    reader = FakeReader()
    reader.columns[ROW_IDS.id] = pa.array([None] * NUM_ROWS, pa.uint64())
    with pytest.raises(CorruptFileError, match="null"):
        bind(reader).acquire(ids(0))


@pytest.mark.parametrize("row", [None, [1, None]], ids=["row", "element"])
def test_a_null_code_is_corrupt(row: list[int | None] | None) -> None:
    reader = FakeReader()
    reader.columns[CODES.id] = pa.array([row] * NUM_ROWS, pa.list_(pa.uint8(), 2))
    with pytest.raises(CorruptFileError, match="null"):
        bind(reader).acquire(ids(0))


def test_threads_that_miss_the_same_partitions_read_each_once() -> None:
    reader = FakeReader()
    bound = bind(reader)
    start = threading.Barrier(4)

    def search(partitions: tuple[int, ...]) -> int:
        start.wait()
        return len(nearest(bound, bound.acquire(ids(*partitions)), QUERY, ALL, 100))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(search, [(0, 2), (2, 3), (3, 0), (0, 2, 3)]))
    assert found == [8, 7, 5, 10]
    read = [row_range for ranges in reader.reads for row_range in ranges]
    assert sorted(read) == [(0, 3), (3, 8), (8, 10)]


def test_fewer_rows_than_the_header_says_are_corrupt() -> None:
    reader = FakeReader()
    reader.rows_kept_back = 1
    with pytest.raises(CorruptFileError, match="2 rows where 3"):
        bind(reader).acquire(ids(0))
