from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.index.vector.rabit_extra import extra_layout
from lance_core.kernels.ivf_rq import EXACT, ROUNDED, ROUNDED_FINELY, RabitCodes, search_rq
from lance_core.kernels.memory import address_of
from lance_core.kernels.rq_extra import fill_weights, sum_fields
from lance_core.kernels.rq_heap import open_heap, push
from lance_core.kernels.rq_lanes import sum_block
from lance_core.kernels.rq_rotation import NUM_ROUNDS, rotate
from lance_core.kernels.rq_signs import pack_signs, unpack_signs
from lance_core.kernels.rq_tables import fill_groups, round_groups, sum_blocks
from lance_core.kernels.topk import TopRows
from tests.kernel_blocks import all_rows, nearest
from tests.rabit_codes import (
    CodedPartition,
    extra_bytes,
    packed_by_definition,
    random_partition,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

seeds = st.integers(0, 2**32 - 1)
num_bytes = st.integers(1, 40)
extra_bits = st.integers(0, 8)
NO_MATRIX = np.empty((0, 8), np.float32)


def normal(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@given(seed=seeds, rows=st.integers(0, 150), width=num_bytes)
def test_sign_codes_are_packed_as_files_hold_them(seed: int, rows: int, width: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 256, (rows, width)).astype(np.uint8)
    packed = pack_signs(codes)
    np.testing.assert_array_equal(packed, packed_by_definition(codes))
    np.testing.assert_array_equal(unpack_signs(packed, width), codes)


def fast_rotation(vector: NDArray[np.float32], signs: NDArray[np.float32]) -> NDArray[np.float32]:
    rotated = np.empty_like(vector)
    rotate(vector, signs, NO_MATRIX, rotated)
    return rotated


def test_the_fast_rotation_mixes_both_ends_of_an_odd_width() -> None:
    # The check of the vector index page, section 4.4.
    first = np.zeros(24, np.float32)
    first[0] = 1
    rotated = fast_rotation(first, np.ones((NUM_ROUNDS, 24), np.float32))
    expected = [0.453125, 0, 0, 0, 0.34375, 0.296875, 0.296875, 0.296875, -0.125]
    expected += [0.0625, 0.0625, 0.0625, 0.546875, 0, 0, 0, 0, 0.046875, 0.046875, 0.046875]
    assert rotated.tolist() == [*expected, 0.28125, 0, 0, 0]


@given(seed=seeds, width=num_bytes)
def test_the_fast_rotation_keeps_inner_products(seed: int, width: int) -> None:
    a, b = normal(seed, 2, 8 * width)
    signs = np.where(normal(seed + 1, NUM_ROUNDS, 8 * width) < 0, -1, 1).astype(np.float32)
    product = fast_rotation(a, signs) @ fast_rotation(b, signs)
    scale = np.linalg.norm(a) * np.linalg.norm(b)
    assert abs(product - a @ b) <= 1e-5 * scale


@given(seed=seeds, width=num_bytes)
def test_a_matrix_rotates_by_multiplication(seed: int, width: int) -> None:
    matrix, vector = normal(seed, 8 * width, 8 * width), normal(seed + 1, 8 * width)
    rotated = np.empty_like(vector)
    rotate(vector, np.ones((NUM_ROUNDS, 8 * width), np.float32), matrix, rotated)
    np.testing.assert_allclose(rotated, matrix @ vector, rtol=1e-4, atol=1e-4)


@given(seed=seeds, width=st.one_of(num_bytes, st.integers(120, 300)), blocks=st.integers(0, 4))
def test_whole_numbers_are_summed_over_the_nibbles_of_every_row(
    seed: int, width: int, blocks: int
) -> None:
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 256, (32 * blocks, width)).astype(np.uint8)
    table = generator.integers(0, 256, (2 * width, 16)).astype(np.uint8)
    before = generator.integers(0, 1000, 32 * blocks).astype(np.uint32)
    sums, part = before.copy(), np.empty(32 * blocks, np.uint16)
    packed = pack_signs(codes)
    sum_blocks(address_of(packed), table, np.uint32(3), part, sums)
    nibbles = np.stack([codes & 15, codes >> 4], axis=2).reshape(len(codes), 2 * width)
    expected = table.astype(np.int64)[np.arange(2 * width), nibbles].sum(axis=1)
    assert sums.tolist() == (before + 3 * expected).tolist()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names an instruction of x86-64")
def test_sixteen_lookups_are_one_instruction() -> None:
    # LLVM finds it by the shape of the code; when it does not, sums are right and ten times slower.
    @numba.njit
    def sums(codes: int, table: int, num_groups: int, out: int) -> None:
        sum_block(codes, table, num_groups, out)

    compiled: Any = sums
    compiled.compile((numba.int64,) * 4)
    (code,) = compiled.inspect_asm().values()
    assert "pshufb" in code
    assert "pinsrb" not in code


@given(seed=seeds, width=num_bytes, levels=st.sampled_from([ROUNDED, ROUNDED_FINELY]))
def test_rounded_sums_are_off_by_at_most_half_a_step(seed: int, width: int, levels: int) -> None:
    query = normal(seed, 8 * width)
    groups = np.empty((2 * width, 16), np.float32)
    lower, upper = np.empty((2, 2 * width, 16), np.uint8)
    fill_groups(query, groups)
    step, offset = round_groups(groups, np.float32(levels), lower, upper)
    for v in range(16):
        chosen = [query[bit::4] for bit in range(4) if v >> bit & 1]
        np.testing.assert_allclose(groups[:, v], sum(chosen, np.zeros(2 * width)), atol=1e-5)
    whole = lower.astype(np.float64) + 256.0 * upper
    assert whole.min() == 0
    assert whole.max() == levels
    restored = whole * step + offset / (2 * width)
    assert np.abs(restored - groups).max() <= 0.5001 * step + 1e-5


def test_a_query_of_zeros_has_no_step() -> None:
    lower, upper = np.empty((2, 2, 16), np.uint8)
    groups = np.zeros((2, 16), np.float32)
    step, offset = round_groups(groups, np.float32(ROUNDED), lower, upper)
    assert step == offset == 0
    assert not lower.any()
    assert not upper.any()


@given(seed=seeds, width=num_bytes, num_bits=st.integers(1, 8))
def test_extra_codes_are_summed_from_their_packed_bytes(
    seed: int, width: int, num_bits: int
) -> None:
    dimension = 8 * width
    codes = np.random.default_rng(seed).integers(0, 1 << num_bits, dimension).astype(np.uint8)
    query = normal(seed, dimension)
    layout = extra_layout(num_bits, dimension)
    stored = extra_bytes(codes, num_bits)
    assert len(stored) == layout.row_bytes
    row = layout.regroup(stored[None])
    weights = np.empty(len(layout.factors), np.float32)
    fill_weights(query, layout.dimensions, layout.factors, weights)
    found = sum_fields(address_of(row), layout.fields, weights)
    scale = (1 << num_bits) * np.abs(query).sum()
    assert abs(found - codes @ query.astype(np.float64)) <= 1e-6 * scale


@given(keys=st.lists(st.integers(0, 2**63), max_size=60), k=st.integers(1, 20), data=st.data())
def test_the_heap_keeps_the_smallest_keys_and_knows_the_largest_of_them(
    keys: list[int], k: int, data: st.DataObject
) -> None:
    before = data.draw(st.integers(0, len(keys)))
    top = TopRows(k, 100)
    top.keys[:before] = keys[:before]
    top.state[0] = before
    open_heap(top.keys, top.state, k)
    for key in keys[before:]:
        if np.uint64(key) < top.state[1]:
            push(top.keys, top.state, k, np.uint64(key))
    expected = sorted(keys)[:k]
    kept = int(top.state[0])
    assert sorted(top.keys[:kept].tolist()) == expected
    if kept == k:
        assert int(top.state[1]) == expected[-1]


class Coded:
    """Partitions of random codes, and what kernels take of them."""

    def __init__(
        self, seed: int, lengths: Sequence[int], width: int, num_bits: int, *, is_dot: bool
    ) -> None:
        generator = np.random.default_rng(seed)
        self.dimension, self.num_bits, self.is_dot = 8 * width, num_bits, is_dot
        self.parts = [random_partition(generator, n, self.dimension, num_bits) for n in lengths]
        total = sum(lengths)
        self.ordinals = np.split(
            generator.permutation(total).astype(np.uint32), np.cumsum(lengths)[:-1]
        )
        self.centroids = normal(seed + 1, len(lengths) + 2, self.dimension)
        self.probes = generator.permutation(len(lengths) + 2)[: len(lengths)]
        self.query = normal(seed + 2, self.dimension)
        layout = extra_layout(num_bits, self.dimension)
        self.codes = RabitCodes(
            np.ones((NUM_ROUNDS, self.dimension), np.float32),
            np.eye(self.dimension, dtype=np.float32),
            num_bits,
            layout.row_bytes,
            layout.fields,
            layout.dimensions,
            layout.factors,
            is_residual=False,
            is_dot=is_dot,
        )
        self._arrays = [self._block(part, layout) for part in self.parts]

    def _block(self, part: CodedPartition, layout: Any) -> list[NDArray[Any]]:
        signs = np.packbits(part.signs, axis=1, bitorder="little")
        arrays: list[NDArray[Any]] = [pack_signs(signs)]
        arrays += [part.add, part.scale]
        if self.num_bits > 0:
            rows = [extra_bytes(row, self.num_bits) for row in part.extra]
            stored = np.array(rows, np.uint8).reshape(len(rows), layout.row_bytes)
            arrays += [part.errors, layout.regroup(stored), part.add_extra, part.scale_extra]
        return arrays

    def search(self, k: int, levels: int, words: NDArray[np.uint64], **bounds: Any) -> Any:
        top = TopRows(k, sum(map(len, self.ordinals)), **bounds)
        self.search_into(top, levels, words, slice(None))
        return top.nearest()

    def search_into(
        self, top: TopRows, levels: int, words: NDArray[np.uint64], partitions: slice
    ) -> None:
        rows = [
            [address_of(arrays[0]), address_of(own), len(own), *map(address_of, arrays[1:])]
            for arrays, own in zip(self._arrays, self.ordinals, strict=True)
        ]
        search_rq(
            np.array(rows, np.int64)[partitions],
            self.probes[partitions],
            self.query,
            self.centroids,
            self.codes,
            words,
            top,
            levels=levels,
            use_extra=True,
        )

    def terms(self, partition: int) -> tuple[float, float, float, float]:
        """Return what is added, ratio, origin and slack."""
        query = self.query.astype(np.float64)
        centroid = self.centroids[self.probes[partition]].astype(np.float64)
        if not self.is_dot:
            square = ((query - centroid) ** 2).sum()
            return square, 1, 0, np.sqrt(square)
        ratio = query @ centroid / (centroid @ centroid)
        slack = float(np.linalg.norm(query - ratio * centroid))
        return 1 - query @ centroid, ratio, 1, slack

    def expected(self, k: int) -> list[tuple[float, int]]:
        """Rule out and keep rows one after the other."""
        kept: list[tuple[float, int]] = []
        query = self.query.astype(np.float64)
        for p, part in enumerate(self.parts):
            added, ratio, origin, slack = self.terms(p)
            estimates = part.estimates(query, added, ratio, origin)
            bounds = estimates - part.errors * slack
            if self.num_bits == 0:
                distances, bounds = estimates, np.full(len(bounds), -np.inf)
            else:
                distances = part.distances(query, added, self.num_bits, ratio, origin)
            for i, ordinal in enumerate(self.ordinals[p].tolist()):
                if len(kept) < k or bounds[i] < kept[-1][0]:
                    kept = sorted([*kept, (float(distances[i]), ordinal)])[:k]
        return kept


searches = given(
    seed=seeds,
    lengths=st.lists(st.integers(0, 200), min_size=1, max_size=3),
    width=st.integers(1, 10),
    num_bits=extra_bits,
    is_dot=st.booleans(),
)


@searches
def test_rows_are_ruled_out_by_the_worst_distance_kept_before_them(
    seed: int, lengths: list[int], width: int, num_bits: int, is_dot: bool
) -> None:
    coded = Coded(seed, lengths, width, num_bits, is_dot=is_dot)
    found, ordinals = coded.search(10, EXACT, all_rows(sum(lengths)))
    expected = coded.expected(10)
    distances = np.array([distance for distance, _ in expected])
    np.testing.assert_allclose(found, distances, rtol=1e-4, atol=1e-3)
    # Rows whose distances round alike may change places.
    assert len(set(ordinals.tolist()) ^ {each for _, each in expected}) <= 2


@searches
def test_a_search_in_pieces_finds_what_one_search_does(
    seed: int, lengths: list[int], width: int, num_bits: int, is_dot: bool
) -> None:
    coded = Coded(seed, lengths, width, num_bits, is_dot=is_dot)
    words = all_rows(sum(lengths))
    expected, order = coded.search(10, ROUNDED, words)
    top = TopRows(10, sum(lengths))
    coded.search_into(top, ROUNDED, words, slice(1))
    coded.search_into(top, ROUNDED, words, slice(1, None))
    found, ordinals = top.nearest()
    assert found.tolist() == expected.tolist()
    assert ordinals.tolist() == order.tolist()


@searches
@pytest.mark.parametrize("levels", [ROUNDED, ROUNDED_FINELY])
def test_rounding_moves_distances_by_less_than_a_step_per_nibble(
    levels: int, seed: int, lengths: list[int], width: int, num_bits: int, is_dot: bool
) -> None:
    coded = Coded(seed, lengths, width, num_bits, is_dot=is_dot)
    total = sum(lengths)
    exact, order = coded.search(total, EXACT, all_rows(total))
    rounded, other = coded.search(total, levels, all_rows(total))
    assert sorted(order.tolist()) == sorted(other.tolist())
    by_ordinal = dict(zip(order.tolist(), exact.tolist(), strict=True))
    gaps = [abs(by_ordinal[o] - d) for o, d in zip(other.tolist(), rounded.tolist(), strict=True)]
    spread = 8 * np.abs(coded.query).max()
    assert max(gaps, default=0) <= 2 * width * spread / levels + 1e-3


@given(seed=seeds, lengths=st.lists(st.integers(0, 200), min_size=1, max_size=3), bits=extra_bits)
def test_only_rows_of_the_mask_inside_the_range_are_found(
    seed: int, lengths: list[int], bits: int
) -> None:
    coded = Coded(seed, lengths, 3, bits, is_dot=False)
    total = sum(lengths)
    everything, ordinals = coded.search(total, ROUNDED, all_rows(total))
    alive = np.random.default_rng(seed).random(total + 1) < 0.5
    words = np.packbits(np.resize(alive, -(-(total + 1) // 64) * 64), bitorder="little")
    if total == 0:
        return
    lower, upper = np.quantile(everything, [0.2, 0.8])
    k = total  # so that no row is ruled out
    found, kept = coded.search(k, ROUNDED, words.view(np.uint64), lower=lower, upper=upper)
    expected = nearest(everything, ordinals, k, alive=alive, lower=lower, upper=upper)
    within = set(expected[1])
    # The upper bound rules rows out by their signs alone.
    assert set(kept.tolist()) <= within
    assert found.tolist() == sorted(found.tolist())
    if bits == 0:
        assert (found.tolist(), kept.tolist()) == expected


def test_a_search_for_no_rows_finds_none() -> None:
    found, ordinals = Coded(1, [5], 1, 3, is_dot=False).search(0, ROUNDED, all_rows(5))
    assert len(found) == len(ordinals) == 0


def test_bounds_that_say_nothing_rule_no_row_out() -> None:
    coded = Coded(3, [100], 2, 4, is_dot=False)
    coded.parts[0].errors[:] = np.inf
    found, _ = coded.search(100, EXACT, all_rows(100))
    some, _ = coded.search(7, EXACT, all_rows(100))
    assert len(found) == 100
    assert some.tolist() == found[:7].tolist()
