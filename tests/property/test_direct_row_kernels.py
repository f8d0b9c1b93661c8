"""Rows copied by arithmetic equal the rows of a plain array, however the chunks are cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.kernels.bitpacking import BLOCK_ROWS, DONE, UNSIGNED
from lance_core.kernels.direct_rows import (
    CONSTANT,
    PACKED,
    RAW,
    are_inside,
    copy_ranges,
    copy_rows,
)
from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

ELEMENT = UNSIGNED[16]


@dataclass
class Example:
    """A column of 16-bit rows: the chunks as the kernels take them, and the rows they hold."""

    memory: NDArray[np.uint8]
    table: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]
    constants: NDArray[np.unsignedinteger]
    stride: int
    rows: NDArray[np.unsignedinteger]


def raw_of(rows: NDArray[np.unsignedinteger]) -> bytes:
    return rows.tobytes()


def unpacked_block(rows: NDArray[np.unsignedinteger]) -> bytes:
    """Pack rows at full width, which only permutes them (file format, 5.4)."""
    order = [0, 4, 2, 6, 1, 5, 3, 7]
    lanes = BLOCK_ROWS // 16
    padded = np.pad(rows, (0, BLOCK_ROWS - len(rows)))
    starts = [order[row // 8] * 16 + (row % 8) * 128 for row in range(16)]
    packed = np.concatenate([padded[start : start + lanes] for start in starts])
    return np.array([16], ELEMENT).tobytes() + packed.tobytes()


@st.composite
def examples(draw: st.DrawFn) -> Example:
    stride = draw(st.sampled_from([1, 3]))
    kinds = [RAW, CONSTANT] if stride > 1 else [RAW, PACKED, CONSTANT]
    chunks = draw(
        st.lists(st.tuples(st.sampled_from(kinds), st.integers(1, 40)), min_size=1, max_size=6)
    )
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    memory, offsets, sizes, parts = b"\xee" * 5, [], [], []
    constants: list[NDArray[np.unsignedinteger]] = []
    for kind, count in chunks:
        rows = rng.integers(0, 2**16, (count, stride)).astype(ELEMENT)
        if kind == CONSTANT:
            rows[:] = rows[0]
            offsets.append(len(constants))
            constants.append(rows[0])
            data = b""
        else:
            offsets.append(len(memory))
            data = raw_of(rows) if kind == RAW else unpacked_block(rows[:, 0])
        memory += data + b"\xee" * int(rng.integers(0, 4))
        sizes.append(len(data))
        parts.append(rows)
    counts = [count for _, count in chunks]
    return Example(
        np.frombuffer(memory, np.uint8).copy(),
        (
            np.concatenate(([0], np.cumsum(counts))),
            np.array(offsets, np.int64),
            np.array(sizes, np.int64),
            np.array([kind for kind, _ in chunks], np.uint8),
        ),
        np.concatenate([*constants, np.empty(0, ELEMENT)]),
        stride,
        np.concatenate(parts),
    )


@given(example=examples(), data=st.data())
def test_ranges_are_copied_in_their_order(example: Example, data: st.DataObject) -> None:
    num_rows = len(example.rows)
    bound = st.integers(0, num_rows)
    pairs = data.draw(st.lists(st.tuples(bound, bound).map(sorted), max_size=5))
    starts = np.array([start for start, _ in pairs], np.int64)
    stops = np.array([stop for _, stop in pairs], np.int64)
    bases = np.full(len(pairs), address_of(example.memory))
    out = np.empty(int((stops - starts).sum()) * example.stride, ELEMENT)
    arguments = (*example.table, example.constants, example.stride, out)
    assert copy_ranges(bases, starts, stops, *arguments) == DONE
    wanted = [example.rows[start:stop].reshape(-1) for start, stop in pairs]
    np.testing.assert_array_equal(out, np.concatenate([*wanted, np.empty(0, ELEMENT)]))


@given(example=examples(), data=st.data())
def test_single_rows_are_copied_in_their_order(example: Example, data: st.DataObject) -> None:
    rows = np.array(
        data.draw(st.lists(st.integers(0, len(example.rows) - 1), max_size=9)), np.int64
    )
    bases = np.full(len(rows), address_of(example.memory))
    out = np.empty(len(rows) * example.stride, ELEMENT)
    arguments = (*example.table, example.constants, example.stride, out)
    assert copy_rows(bases, rows, *arguments) == DONE
    np.testing.assert_array_equal(out, example.rows[rows].reshape(-1))
    out[:] = 0
    assert copy_rows(bases[:1] if len(rows) > 0 else bases, rows, *arguments) == DONE
    np.testing.assert_array_equal(out, example.rows[rows].reshape(-1))


@pytest.mark.parametrize(
    ("rows", "inside"), [([], True), ([0, 8], True), ([9], False), ([0, -1], False)]
)
def test_rows_outside_a_column_are_seen(rows: list[int], inside: bool) -> None:
    assert are_inside(np.array(rows, np.int64), 9) is inside


@pytest.mark.parametrize("size", [1, 2, 2049])
def test_a_packed_chunk_that_is_too_short_is_found(size: int) -> None:
    memory = np.frombuffer(unpacked_block(np.arange(9).astype(ELEMENT)), np.uint8).copy()
    table = (
        np.array([0, 9]),
        np.array([0]),
        np.array([size]),
        np.array([PACKED], np.uint8),
    )
    bases = np.array([address_of(memory)])
    out, constants = np.empty(1, ELEMENT), np.empty(0, ELEMENT)
    first, second = np.array([3]), np.array([4])
    assert copy_rows(bases, first, *table, constants, 1, out) == 0
    assert copy_ranges(bases, first, second, *table, constants, 1, out) == 0
