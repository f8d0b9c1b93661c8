"""Documents and frequencies to blocks of posting lists (scalar index page, 8.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.text_bits import WORD_BITS
from lance_core.kernels.text_postings import SMALL_BLOCK
from lance_core.kernels.text_write_bits import (
    bits_of,
    pack_lanes,
    put_packed_small,
    put_varint,
    put_word,
    signed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGE_BLOCK = 256

_LARGE_LANES = 8
_WIDTH_BYTES = 32
"""Of 256 numbers, for each bit of their width."""

_MOST_PATCHES = 31


@kernel
def put_differences(
    docs: NDArray[np.uint32], start: int, stop: int, scratch: NDArray[np.uint32]
) -> int:
    """Fill ``scratch`` with how far documents are apart, 0 the first; returns the highest."""
    scratch[0] = 0
    highest = np.uint32(0)
    for index in range(start + 1, stop):
        difference = docs[index] - docs[index - 1]
        scratch[index - start] = difference
        highest = max(highest, difference)
    return signed(highest)


@kernel
def patched_width(values: NDArray[np.uint32], start: int, counts: NDArray[np.int64]) -> int:
    """Return the width at which 256 numbers, upper bits apart, take the fewest bytes.

    ``counts`` is room for 33 numbers.
    """
    counts[:] = 0
    for index in range(start, start + LARGE_BLOCK):
        counts[bits_of(signed(values[index]))] += 1
    widest = WORD_BITS
    while widest > 0 and counts[widest] == 0:
        widest -= 1
    best, best_bytes = widest, _WIDTH_BYTES * widest
    patches = 0
    for width in range(widest - 1, -1, -1):
        patches += counts[width + 1]
        if patches > _MOST_PATCHES:
            break
        size = _WIDTH_BYTES * width
        for bits in range(width + 1, widest + 1):
            size += counts[bits] * (1 + (bits - width + 6) // 7)
        if size < best_bytes:
            best, best_bytes = width, size
    return best


@kernel
def put_patched(
    values: NDArray[np.uint32],
    start: int,
    counts: NDArray[np.int64],
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write 256 frequencies, the upper bits of few of them apart; returns the position behind."""
    width = patched_width(values, start, counts)
    out[at] = width
    patches, places = 0, at + 1
    at = pack_lanes(values, start, width, _LARGE_LANES, out, at + 2)
    for index in range(LARGE_BLOCK):
        upper = signed(values[start + index]) >> width
        if upper > 0:
            out[at] = index
            at = put_varint(out, at + 1, upper)
            patches += 1
    out[places] = patches
    return at


@kernel
def put_full(
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    start: int,
    block_size: int,
    scratch: NDArray[np.uint32],
    counts: NDArray[np.int64],
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write a full block behind its score; returns the position behind."""
    at = put_word(out, at, signed(docs[start]))
    highest = put_differences(docs, start, start + block_size, scratch)
    if block_size == SMALL_BLOCK:
        at = put_packed_small(scratch, 0, out, at)
        return put_packed_small(frequencies, start, out, at)
    width = bits_of(highest)
    out[at] = width
    at = pack_lanes(scratch, 0, width, _LARGE_LANES, out, at + 1)
    return put_patched(frequencies, start, counts, out, at)


@kernel
def put_tail(
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    start: int,
    stop: int,
    is_varint: bool,
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write a block that is not full behind its score; returns the position behind."""
    before = 0
    for index in range(start, stop):
        doc = signed(docs[index])
        at = put_varint(out, at, doc - before) if is_varint else put_word(out, at, doc)
        before = doc
    for index in range(start, stop):
        frequency = signed(frequencies[index])
        at = put_varint(out, at, frequency) if is_varint else put_word(out, at, frequency)
    return at


@kernel
def write_postings(
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    block_size: int,
    is_varint: bool,
    scores: NDArray[np.uint8],
    out: NDArray[np.uint8],
    ends: NDArray[np.int64],
) -> None:
    """Write the blocks of posting lists.

    Parameters
    ----------
    docs, frequencies
        Postings of any number of lists one after the other, documents ascending in each.
    bounds
        Block ``i`` has the postings from ``bounds[i]`` to ``bounds[i + 1]``; shape ``(n + 1,)``.
        Those with fewer than ``block_size``, 128 or 256, are the last ones of their lists.
    is_varint
        How these are stored: as varints, or as words.
    scores
        The bytes of the best score of each block, shape ``(4 * n,)``; blocks of 128 begin so.
    out
        Receives the blocks; 10 bytes for each posting and 16 for each block are enough.
    ends
        Receives where blocks begin and end in ``out``, shape ``(n + 1,)``.
    """
    scratch = np.zeros(LARGE_BLOCK, np.uint32)
    counts = np.zeros(WORD_BITS + 1, np.int64)
    at = 0
    ends[0] = 0
    for block in range(bounds.shape[0] - 1):
        start, stop = bounds[block], bounds[block + 1]
        if block_size == SMALL_BLOCK:
            for index in range(4):
                out[at + index] = scores[4 * block + index]
            at += 4
        if stop - start == block_size:
            at = put_full(docs, frequencies, start, block_size, scratch, counts, out, at)
        else:
            at = put_tail(docs, frequencies, start, stop, is_varint, out, at)
        ends[block + 1] = at
