"""Kernels that code vectors do what their plain twins in numpy do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from lance_core.index.vector.build.encode_pq import ProductEncoder
from lance_core.index.vector.build.model import PqCoding, VectorModel
from lance_core.index.vector.build.usable import UsableVectors
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.rabit_extra import extra_layout
from lance_core.kernels.memory import address_of
from lance_core.kernels.rq_levels import find_levels, room_for_rises
from lance_core.kernels.sq_encode import encode_scalars
from lance_core.kernels.usable_vectors import mark_finite, normalise
from tests.rabit_codes import extra_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_PARTS = [1, 0.15, 0.20, 0.52, 0.59, 0.71, 0.75, 0.77, 0.81]
seeds = st.integers(0, 1 << 32)
LARGEST = float(np.finfo(np.float32).max)
finite = st.floats(-LARGEST, LARGEST, width=32) | st.sampled_from([0.0, LARGEST, 2.0**-140])
odd_floats = finite | st.sampled_from([np.nan, np.inf, -np.inf])
shapes = st.tuples(st.integers(0, 9), st.integers(1, 40))


@given(hnp.arrays(np.float32, shapes, elements=odd_floats))
def test_only_vectors_of_finite_numbers_stay_marked(vectors: NDArray[np.float32]) -> None:
    marks = np.ones(len(vectors), np.bool_)
    mark_finite(address_of(vectors), vectors.shape[1], marks)
    np.testing.assert_array_equal(marks, np.isfinite(vectors).all(axis=1))


@given(hnp.arrays(np.float32, shapes, elements=finite))
def test_vectors_of_all_lengths_but_none_get_unit_length(vectors: NDArray[np.float32]) -> None:
    unit, marks = np.zeros_like(vectors), np.ones(len(vectors), np.bool_)
    normalise(address_of(vectors), unit, marks)
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1)
    np.testing.assert_array_equal(marks, lengths > 0)
    expected = wide[marks] / lengths[marks, None]
    np.testing.assert_allclose(unit[marks], expected, rtol=1e-5, atol=1e-9)


@given(
    hnp.arrays(np.float32, st.integers(0, 60), elements=st.floats(-1e9, 1e9, width=32)),
    st.floats(-100, 100),
    st.floats(0, 100),
)
def test_scalar_codes_are_cut_off_between_their_bounds(
    numbers: NDArray[np.float32], start: float, gap: float
) -> None:
    codes = np.zeros(len(numbers), np.uint8)
    end = start + gap
    encode_scalars(address_of(numbers), start, end, codes)
    if end == start:
        assert not codes.any()
        return
    with np.errstate(over="ignore"):
        levels = (numbers.astype(np.float64) - start) * 255 / (end - start)
    np.testing.assert_array_equal(codes, np.clip(np.trunc(levels), 0, 255))


@pytest.mark.parametrize("metric", [Metric.L2, Metric.DOT])
@given(seed=seeds, width=st.integers(1, 11), num_bits=st.sampled_from([4, 8]))
def test_product_codes_are_the_nearest(
    seed: int, width: int, num_bits: int, metric: Metric
) -> None:
    generator = np.random.default_rng(seed)
    num_rows, num_subs = int(generator.integers(1, 300)), 2 * int(generator.integers(1, 4))
    codebook = generator.standard_normal((num_subs, 1 << num_bits, width), np.float32)
    centroids = generator.standard_normal((3, num_subs * width), np.float32)
    vectors = generator.standard_normal((num_rows, num_subs * width), np.float32)
    partitions = generator.integers(0, 3, num_rows).astype(np.uint32)
    model = VectorModel(metric, pa.float32(), centroids, PqCoding(num_bits, codebook))
    rows = UsableVectors(vectors, np.arange(num_rows, dtype=np.uint64))
    found = ProductEncoder(model, PqCoding(num_bits, codebook)).encode(rows, partitions)
    codes = found["__pq_code"]
    if num_bits == 4:
        codes = np.stack([codes & 15, codes >> 4], axis=2).reshape(num_rows, num_subs)
    taken = centroids[partitions] if metric == Metric.L2 else np.float32(0)
    parts = (vectors - taken).astype(np.float64).reshape(num_rows, num_subs, 1, width)
    distances = ((parts - codebook) ** 2).sum(axis=3)
    chosen = np.take_along_axis(distances, codes[:, :, None].astype(np.int64), axis=2)[:, :, 0]
    np.testing.assert_allclose(chosen, distances.min(axis=2), rtol=1e-5)


def levels_by_definition(rotated: NDArray[np.float32], num_bits: int) -> NDArray[np.int64]:
    """Return levels as the vector index page, section 4.4, defines them, added as float32."""
    most = (1 << num_bits) - 1
    total = np.float32(0)
    for each in rotated:
        total += each * each
    sizes = np.abs(rotated) / np.sqrt(total)
    end = np.float32(most + 10) / sizes.max()
    start = end * np.float32(FIRST_PARTS[num_bits])
    levels = np.minimum((start * sizes + np.float32(1e-5)).astype(np.int64), most)
    rises = [
        (np.float32(level) / sizes[j], j)
        for j in range(len(sizes))
        for level in range(levels[j] + 1, most + 1)
        if sizes[j] > 0 and np.float32(level) / sizes[j] < end
    ]
    product, square = np.float32(0), np.float32(len(sizes) / 4)
    for level, size in zip(levels, sizes, strict=True):
        if size > 0:
            product += np.float32(level + 0.5) * size
            square += np.float32(level * level + level)
    best, scale = product / np.sqrt(square), start
    for threshold, j in sorted(rises):
        levels[j] += 1
        square += np.float32(2 * levels[j])
        product += sizes[j]
        if product / np.sqrt(square) > best:
            best, scale = product / np.sqrt(square), threshold
    found: NDArray[np.int64] = np.minimum((scale * sizes + np.float32(1e-5)).astype(np.int64), most)
    return found


@given(seed=seeds, dimension=st.integers(1, 40), num_bits=st.integers(1, 8))
def test_levels_are_those_of_the_best_scale(seed: int, dimension: int, num_bits: int) -> None:
    generator = np.random.default_rng(seed)
    rotated = generator.standard_normal(dimension).astype(np.float32)
    # Equal coordinates rise together, and zeros never do.
    rotated[generator.random(dimension) < 0.2] = rotated[0]
    rotated[1:][generator.random(dimension - 1) < 0.2] = 0
    levels = np.empty(dimension, np.int32)
    find_levels(rotated, num_bits, levels, room_for_rises(dimension, num_bits))
    np.testing.assert_array_equal(levels, levels_by_definition(rotated, num_bits))


@given(seed=seeds, dimension=st.integers(1, 25), num_bits=st.integers(1, 8))
def test_extra_codes_are_packed_by_their_definition(
    seed: int, dimension: int, num_bits: int
) -> None:
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 1 << num_bits, (5, 8 * dimension)).astype(np.uint8)
    layout = extra_layout(num_bits, 8 * dimension)
    packed = np.zeros((5, layout.row_bytes), np.uint8)
    layout.pack(codes, packed)
    expected: Any = np.stack([extra_bytes(each, num_bits) for each in codes])
    np.testing.assert_array_equal(packed, expected)
