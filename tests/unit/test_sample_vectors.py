"""Random samples of vector columns: how many, which ones, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build import budget
from lance_core.index.vector.build.budget import LEAST_BYTES, Budget
from lance_core.index.vector.build.parameters import VectorParameters
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.operations.append import create_dataset
from lance_core.operations.delete import delete_rows
from lance_core.operations.new_index import NewIndex, recipe_of
from lance_core.operations.sample_vectors import VectorSample, sample_vectors
from lance_core.operations.write_fragments import FragmentOptions
from lance_core.table.files import TableFiles

if TYPE_CHECKING:
    from lance_core.table.snapshot import Snapshot

FILES = TableFiles(ByteCache(16 << 20))
DIMENSION = 4
PLENTY = 256 << 20


def vectors(num_rows: int) -> pa.Array:
    """Return vectors whose numbers all are the number of their row."""
    numbers = np.repeat(np.arange(num_rows, dtype=np.float32), DIMENSION)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers), DIMENSION)


def written(column: pa.Array, rows_of_fragment: int = 1000) -> Snapshot:
    options = FragmentOptions(max_rows_per_file=rows_of_fragment)
    return create_dataset(
        RangeScheduler(MemoryStore()), pa.table({"n": np.arange(len(column)), "v": column}), options
    )


def sample(
    snapshot: Snapshot, covered: list[int] | None = None, memory: int = PLENTY, **given: Any
) -> VectorSample:
    index = NewIndex("i", "v", "IVF_FLAT", {"metric": "cosine", **given})
    parameters = recipe_of(snapshot, index)
    assert isinstance(parameters, VectorParameters)
    fragments = BitMap(snapshot.fragments_by_id if covered is None else covered)
    return sample_vectors(FILES, snapshot, "v", parameters, fragments, memory)


def test_a_sample_has_as_many_vectors_as_wanted_of_distinct_rows_spread_over_all() -> None:
    snapshot = written(vectors(20_000), 7_000)
    found = sample(snapshot, num_partitions=4, sample_rate=500)
    assert len(found.vectors) == 2000
    assert 19_900 < found.num_vectors <= 20_000  # the first one has no length
    row_ids = found.vectors.row_ids
    rows = (row_ids >> np.uint64(32)) * 7_000 + (row_ids & np.uint64(0xFFFF_FFFF))
    assert len(np.unique(rows)) == 2000
    assert np.abs(np.histogram(rows, 10, (0, 20_000))[0] - 200).max() < 100
    np.testing.assert_array_equal(found.vectors.values, np.full((2000, 4), 0.5, np.float32))
    again = sample(snapshot, num_partitions=4, sample_rate=500)
    np.testing.assert_array_equal(again.vectors.row_ids, row_ids)


def test_a_small_column_is_taken_whole_without_deleted_rows_and_other_fragments() -> None:
    snapshot = delete_rows(FILES, written(vectors(300), 100), "n = 50 or n > 290")
    found = sample(snapshot, [0, 2], num_partitions=2)
    kept = [*range(1, 50), *range(51, 100), *range(200, 291)]  # the first has no length
    assert found.num_vectors == len(kept)
    row_ids = np.sort(found.vectors.row_ids)
    assert row_ids.tolist() == [(n // 100 << 32) + n % 100 for n in kept]


@pytest.mark.parametrize("share", [2, 50])
def test_rows_without_a_vector_make_that_more_rows_are_read(share: int) -> None:
    has_vector = np.arange(30_000) % share == 1
    column = pa.array(vectors(30_000).to_pylist(), vectors(1).type, mask=~has_vector)
    found = sample(written(column, 30_000), num_partitions=2, sample_rate=100)
    assert len(found.vectors) == 200
    assert abs(found.num_vectors - 30_000 / share) < 0.3 * 30_000 / share
    assert (found.vectors.row_ids % np.uint64(share) == 1).all()


def test_a_column_without_any_vector_has_an_empty_sample() -> None:
    for column in (pa.nulls(50, vectors(1).type), vectors(0), vectors(1)):
        found = sample(written(column), num_partitions=2)
        assert (len(found.vectors), found.num_vectors) == (0, 0)
        assert found.vectors.values.shape == (0, DIMENSION)


def test_of_lists_their_vectors_are_counted() -> None:
    lists = pa.ListArray.from_arrays(list(range(0, 9001, 3)), vectors(9000))
    found = sample(written(lists), num_partitions=4, sample_rate=100)
    assert len(found.vectors) == 400
    assert 8900 < found.num_vectors <= 9000


def test_a_sample_is_smaller_where_memory_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "LEAST_BYTES", 1)
    found = sample(written(vectors(20_000)), memory=32_000, num_partitions=10)
    assert len(found.vectors) == Budget(32_000).sample_bytes // (4 * DIMENSION)
    assert 19_900 < found.num_vectors <= 20_000


def test_less_memory_than_any_build_takes_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=f"at least {LEAST_BYTES}"):
        sample(written(vectors(100)), memory=LEAST_BYTES - 1)


def test_fragments_that_give_a_part_of_a_sample_give_what_is_wanted_of_them() -> None:
    snapshot = written(vectors(3000))
    index = NewIndex("i", "v", "IVF_FLAT", {"num_partitions": 4, "sample_rate": 500})
    parameters = recipe_of(snapshot, index)
    assert isinstance(parameters, VectorParameters)
    found = [
        sample_vectors(FILES, snapshot, "v", parameters, BitMap([each]), PLENTY, wanted)
        for each, wanted in ((0, 30), (1, 0), (2, 5000))
    ]
    assert [len(each.vectors) for each in found] == [30, 0, 1000]
    assert [each.num_vectors for each in found] == [1000, 1000, 1000]
    assert len(np.unique(found[0].vectors.row_ids)) == 30
