"""Masks of rows that pass: a bitset over row offsets, seen through any numbering of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import example, given, strategies as st

from lance_core.ids import FragmentId
from lance_core.index.ordinals import OrdinalSpace
from lance_core.kernels.masks import clear_held_rows, copy_bits
from lance_core.kernels.memory import address_of
from lance_core.query.row_masks import AddressRuns, RowMask, mask_passing, passing_addresses
from lance_core.row_set import contains, count, full_words, num_words, to_ordinals, words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

flags = hnp.arrays(np.bool_, st.integers(1, 300))


def packed(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    return words_of(np.flatnonzero(bits).astype(np.uint32), len(bits))


@example(bits=np.arange(300) % 3 == 0, seed=0, before=64)
@example(bits=np.arange(128) % 3 == 0, seed=0, before=0)
@given(bits=flags, seed=st.integers(0, 99), before=st.integers(0, 130))
def test_runs_of_bits_arrive_where_they_are_sent(
    bits: NDArray[np.bool_], seed: int, before: int
) -> None:
    generator = np.random.default_rng(seed)
    edges = np.unique(np.concatenate(([0, len(bits)], generator.integers(0, len(bits), 5))))
    starts, lengths = edges[:-1].astype(np.int64), np.diff(edges).astype(np.int64)
    order = generator.permutation(len(starts))
    targets = np.empty(len(starts), np.int64)
    targets[order] = before + np.cumsum(lengths[order]) - lengths[order]
    words = np.zeros(num_words(before + len(bits) + 1), np.uint64)
    copy_bits(packed(bits), starts, lengths, targets, words)
    expected = np.zeros(len(words) * 64, np.bool_)
    for start, length, target in zip(starts, lengths, targets, strict=True):
        expected[target : target + length] = bits[start : start + length]
    np.testing.assert_array_equal(to_ordinals(words), np.flatnonzero(expected))


@given(parts=st.lists(flags, min_size=1, max_size=4), seed=st.integers(0, 99))
def test_a_row_is_in_the_mask_if_it_is_live_and_passes(
    parts: list[NDArray[np.bool_]], seed: int
) -> None:
    ids = [3 * number + 1 for number in range(len(parts))]
    passing = {
        FragmentId(each): RowMask(packed(bits), int(bits.sum()))
        for each, bits in zip(ids, parts, strict=True)
    }
    space = OrdinalSpace(ids, [len(bits) for bits in parts])
    is_live = np.random.default_rng(seed).random(space.size + 1) < 0.7
    is_live[-1] = False
    mask = mask_passing(packed(is_live), AddressRuns.of_space(space), passing)
    expected = np.flatnonzero(np.append(np.concatenate(parts), False) & is_live)
    np.testing.assert_array_equal(to_ordinals(mask.words), expected)
    assert mask.num_rows == len(expected)


@given(parts=st.lists(flags, min_size=1, max_size=4))
def test_addresses_of_rows_that_pass_ascend(parts: list[NDArray[np.bool_]]) -> None:
    passing = {
        FragmentId(each): RowMask(packed(bits), int(bits.sum())) for each, bits in enumerate(parts)
    }
    expected = [
        (number << 32) + int(offset)
        for number, bits in enumerate(parts)
        for offset in np.flatnonzero(bits)
    ]
    assert passing_addresses(passing).tolist() == expected


@given(held=st.lists(st.lists(st.integers(0, 200), unique=True), max_size=4))
def test_rows_of_blocks_leave_the_set(held: list[list[int]]) -> None:
    arrays = [np.array(each, np.uint32) for each in held]
    blocks = np.array([(0, address_of(each), len(each)) for each in arrays], np.int64)
    words = full_words(201)
    clear_held_rows(blocks.reshape(-1, 3), words)
    gone = np.unique(np.concatenate([np.empty(0, np.uint32), *arrays]))
    assert not contains(words, gone).any()
    assert count(words) == 201 - len(gone)
