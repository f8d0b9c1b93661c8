"""Positions of tokens to streams of packed differences (scalar index page, 8.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.text_positions import GROUP
from lance_core.kernels.text_write_bits import (
    put_packed_small,
    put_varint,
    put_word,
    signed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def write_positions(
    positions: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    out: NDArray[np.uint8],
    ends: NDArray[np.int64],
) -> None:
    """Write the positions of posting lists, block by block.

    Parameters
    ----------
    positions
        Those of all postings one after the other, ascending in each.
    frequencies
        How many each posting has.
    bounds
        Blocks, as `text_write_postings.write_postings` takes them.
    out
        Receives the streams; 5 bytes for each position are enough.
    ends
        Receives where blocks begin and end in ``out``, shape ``(n + 1,)``.
    """
    waiting = np.zeros(GROUP, np.uint32)
    at, place = 0, 0
    ends[0] = 0
    for block in range(bounds.shape[0] - 1):
        filled = 0
        for posting in range(bounds[block], bounds[block + 1]):
            before = np.uint32(0)
            for _ in range(frequencies[posting]):
                waiting[filled] = positions[place] - before
                before = positions[place]
                place += 1
                filled += 1
                if filled == GROUP:
                    at = put_packed_small(waiting, 0, out, at)
                    filled = 0
        for index in range(filled):
            at = put_varint(out, at, signed(waiting[index]))
        ends[block + 1] = at


@kernel
def put_group(
    positions: NDArray[np.uint32],
    start: int,
    waiting: NDArray[np.uint32],
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write 128 positions: the first, and packed differences; returns the position behind."""
    at = put_word(out, at, signed(positions[start]))
    waiting[0] = 0
    for index in range(1, GROUP):
        waiting[index] = positions[start + index] - positions[start + index - 1]
    return put_packed_small(waiting, 0, out, at)


@kernel
def write_position_parts(
    positions: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    out: NDArray[np.uint8],
    ends: NDArray[np.int64],
    firsts: NDArray[np.int64],
) -> int:
    """Write the positions of each posting in parts of their own, as version 1 has them.

    Parameters
    ----------
    positions, frequencies
        As `write_positions` takes them.
    out
        Receives the parts; 4 bytes for each posting and 5 for each position are enough.
    ends
        Receives where parts begin and end in ``out``; two for each posting, one for every 128
        positions and one more are enough.
    firsts
        Receives which parts each posting has: from ``firsts[i]`` to ``firsts[i + 1]``.

    Returns
    -------
    int
        How many parts there are.
    """
    waiting = np.zeros(GROUP, np.uint32)
    at, part, place = 0, 0, 0
    ends[0] = 0
    firsts[0] = 0
    for posting in range(frequencies.shape[0]):
        left = signed(frequencies[posting])
        at = put_word(out, at, left)
        part += 1
        ends[part] = at
        while left >= GROUP:
            at = put_group(positions, place, waiting, out, at)
            part += 1
            ends[part] = at
            place += GROUP
            left -= GROUP
        if left > 0:
            for index in range(place, place + left):
                at = put_word(out, at, signed(positions[index]))
            part += 1
            ends[part] = at
            place += left
        firsts[posting + 1] = part
    return part
