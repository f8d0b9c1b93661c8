"""Segments built by pylance, searched by both partition by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import lance
import numpy as np
import pytest

from lance_core.index.vector.pq import ProductQuantizer
from lance_core.io.counting_store import CountingStore
from lance_core.kernels.warm import warm_kernels
from tests.kernel_signatures import num_signatures
from tests.opened_segment import BuiltIndex, build_index, open_segment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.opened_segment import OpenedSegment

pytestmark = pytest.mark.interop

SEARCHES = [(1, 1), (7, 2), (60, 3), (5_000, 6)]


def assert_equal_answers(
    built: BuiltIndex, opened: OpenedSegment, *, tolerance: float, queries: int = 8
) -> None:
    """Compare answers; rows that tie with the last one may differ, which ones is not promised."""
    for query in built.queries(queries):
        for k, nprobes in SEARCHES:
            expected = built.search_by_pylance(query, k, nprobes)
            found = opened.search(query, k, nprobes)
            distances = expected["_distance"].to_numpy()
            scale = np.maximum(1, np.abs(distances))
            assert len(found) == len(distances)
            assert np.all(np.abs(found.distances - distances) <= tolerance * scale)
            distinct = np.abs(distances - distances[-1]) > 2 * tolerance * scale
            expected_ids = set(expected["_rowid"].to_numpy()[distinct].tolist())
            assert expected_ids <= set(found.row_ids.tolist())


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pq_distances_equal_those_of_pylance_bit_for_bit(
    tmp_path: Path, version: Literal["2.0", "2.1", "2.2"]
) -> None:
    built = build_index(tmp_path, "IVF_PQ", "l2", version=version, options={"num_sub_vectors": 4})
    assert_equal_answers(built, open_segment(built.store()), tolerance=0)


@pytest.mark.parametrize("metric", ["l2", "dot"])
@pytest.mark.parametrize("width", [1, 7, 8, 11, 16, 20, 32, 40])
def test_pq_distances_are_equal_for_every_width_of_sub_vectors(
    tmp_path: Path, metric: str, width: int
) -> None:
    built = build_index(
        tmp_path,
        "IVF_PQ",
        metric,
        dimension=3 * width,
        options={"num_sub_vectors": 3, "max_iters": 2},
    )
    assert_equal_answers(built, open_segment(built.store()), tolerance=0, queries=3)


def test_pq_of_normalised_vectors_equals_pylance(tmp_path: Path) -> None:
    built = build_index(tmp_path, "IVF_PQ", "cosine", options={"num_sub_vectors": 4})
    assert_equal_answers(built, open_segment(built.store()), tolerance=1e-6)


def test_pq_codes_stored_row_by_row_are_read(tmp_path: Path) -> None:
    built = build_index(
        tmp_path, "IVF_PQ", "l2", options={"num_sub_vectors": 4, "skip_transpose": True}
    )
    opened = open_segment(built.store())
    assert isinstance(opened.segment.quantizer, ProductQuantizer)
    assert not opened.segment.quantizer.is_transposed
    assert_equal_answers(built, opened, tolerance=0)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("dimension", [16, 200])
def test_whole_vectors_equal_pylance(tmp_path: Path, metric: str, dimension: int) -> None:
    built = build_index(tmp_path, "IVF_FLAT", metric, dimension=dimension)
    scale = np.square(built.vectors).sum(axis=1).max() if metric == "dot" else 1
    assert_equal_answers(built, open_segment(built.store()), tolerance=1e-6 * scale)


def test_whole_vectors_are_used_where_they_lie_in_a_local_file(tmp_path: Path) -> None:
    built = build_index(tmp_path, "IVF_FLAT", "l2", dimension=200)
    opened = open_segment(built.store())
    held = opened.bound.acquire(np.arange(6))
    assert all(block.nbytes == block.ordinals.nbytes for block in held.blocks)
    copied = open_segment(CountingStore(built.store()))
    for query in built.queries(5):
        a, b = opened.search(query, 50, 3), copied.search(query, 50, 3)
        np.testing.assert_array_equal(a.row_ids, b.row_ids)
        np.testing.assert_array_equal(a.distances, b.distances)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float16, 5e-3), (np.float64, 1e-5)], ids=["float16", "float64"]
)
def test_other_float_types_are_computed_in_float32(
    tmp_path: Path, dtype: type[np.floating], tolerance: float
) -> None:
    built = build_index(tmp_path, "IVF_FLAT", "l2", dtype=dtype)
    assert_equal_answers(built, open_segment(built.store()), tolerance=tolerance)


def test_deleted_rows_are_never_found_and_take_no_place(tmp_path: Path) -> None:
    built = build_index(tmp_path, "IVF_PQ", "l2", options={"num_sub_vectors": 4})
    lance.dataset(tmp_path).delete("id % 3 = 0")
    assert_equal_answers(built, open_segment(built.store()), tolerance=0)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("sub_vectors", [2, 4, 16])
def test_pq_of_four_bits_equals_pylance_bit_for_bit(
    tmp_path: Path, metric: str, sub_vectors: int
) -> None:
    built = build_index(
        tmp_path,
        "IVF_PQ",
        metric,
        dimension=32,
        options={"num_sub_vectors": sub_vectors, "num_bits": 4},
    )
    tolerance = 1e-6 if metric == "cosine" else 0
    assert_equal_answers(built, open_segment(built.store()), tolerance=tolerance)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_scalar_quantised_vectors_equal_pylance(
    tmp_path: Path, metric: str, version: Literal["2.0", "2.1", "2.2"]
) -> None:
    built = build_index(tmp_path, "IVF_SQ", metric, dimension=32, version=version)
    scale = np.square(built.vectors).sum(axis=1).max() if metric == "dot" else 1
    assert_equal_answers(built, open_segment(built.store()), tolerance=1e-5 * scale)


def test_a_warm_search_reads_nothing_and_a_cold_one_little_more_than_its_partitions(
    tmp_path: Path,
) -> None:
    built = build_index(
        tmp_path,
        "IVF_PQ",
        "l2",
        num_rows=60_000,
        dimension=32,
        options={"num_sub_vectors": 16, "max_iters": 2},
    )
    store = CountingStore(built.store())
    opened = open_segment(store)
    order, _ = opened.segment.rank(built.queries(1)[0])
    store.reset()
    held = opened.bound.acquire(order[:2])
    # 16 bytes of code and at most 8 of row address; at its ends a partition shares chunks
    assert store.bytes_read <= 1.2 * held.num_rows * 24
    store.reset()
    assert opened.bound.resident(order[:2]) is not None
    opened.bound.acquire(order[:2])
    assert store.num_requests == 0


def test_no_kernel_is_compiled_during_a_query(tmp_path: Path) -> None:
    warm_kernels()
    before = num_signatures()
    kinds = [("IVF_FLAT", {}), ("IVF_PQ", {"num_sub_vectors": 4}), ("IVF_RQ", {}), ("IVF_SQ", {})]
    for index_type, options in kinds:
        built = build_index(tmp_path / index_type, index_type, "dot", options=options)
        for store in (built.store(), CountingStore(built.store())):
            open_segment(store).search(built.queries(1)[0], 10, 3)
    assert num_signatures() == before
