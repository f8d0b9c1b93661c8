"""Bitsets of rows in one order turned into bitsets in another, and of the rows that blocks hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, uint32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel(ordered=True)
def bits_from(words: NDArray[np.uint64], start: int, count: int) -> np.uint64:
    """Return ``count`` bits of a bitset, 1 to 64, from bit ``start`` on, in the low bits."""
    word = start >> 6
    shift = np.uint64(start & 63)
    bits = words[word] >> shift
    if shift > 0 and word + 1 < len(words):
        bits |= words[word + 1] << (np.uint64(64) - shift)
    kept: np.uint64 = bits & (np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> np.uint64(64 - count))
    return kept


@kernel(ordered=True)
def copy_bits(
    source: NDArray[np.uint64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    targets: NDArray[np.int64],
    words: NDArray[np.uint64],
) -> None:
    """Copy runs of bits from one bitset into another.

    Parameters
    ----------
    source
        Where the bits come from.
    starts, lengths, targets
        Shape ``(r,)``: the first bit of a run in ``source``, how many follow, and where they go.
        All inside the bitsets, which the caller has checked; no two runs go to the same place.
    words
        Receives the bits; those that no run goes to stay.
    """
    for run in range(len(starts)):
        start, target, length = starts[run], targets[run], lengths[run]
        head = min(-target & 63, length)  # up to a word of its own
        if head > 0:
            words[target >> 6] |= bits_from(source, start, head) << np.uint64(target & 63)
        num_whole = (length - head) >> 6
        _copy_whole_words(source, start + head, num_whole, (target + head) >> 6, words)
        done = head + (num_whole << 6)
        if done < length:
            words[(target + done) >> 6] |= bits_from(source, start + done, length - done)


@kernel(ordered=True)
def _copy_whole_words(
    source: NDArray[np.uint64], start: int, num_words: int, first: int, words: NDArray[np.uint64]
) -> None:
    """Copy 64 bits at a time from bit ``start`` on into the words from ``first`` on."""
    word = start >> 6
    low = np.uint64(start & 63)
    if low == 0:
        for each in range(num_words):
            words[first + each] |= source[word + each]
        return
    high = np.uint64(64) - low
    for each in range(num_words):
        bits = (source[word + each] >> low) | (source[word + each + 1] << high)
        words[first + each] |= bits


def clear_held_rows(blocks: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    """Take the rows of some partitions out of a bitset over their ordinals.

    Parameters
    ----------
    blocks
        Shape ``(n, c)``, one row per partition: in column 1 the address of its uint32 ordinals, in
        column 2 their number. The caller keeps the memory alive.
    words
        Dense bitset that holds every ordinal of the blocks.
    """
    for address, num_rows in blocks[:, 1:3].tolist():
        _clear_ordinals(address, num_rows, words)


@kernel(ordered=True)
def _clear_ordinals(address: int, num_rows: int, words: NDArray[np.uint64]) -> None:
    ordinals = uint32_at(address, num_rows)
    for i in range(num_rows):
        bit = np.uint64(1) << np.uint64(ordinals[i] & np.uint32(63))
        words[ordinals[i] >> np.uint32(6)] &= ~bit


@warmup
def _warm() -> None:
    words = np.ones(1, np.uint64)
    place, length = np.zeros(1, np.int64), np.ones(1, np.int64)
    copy_bits(words, place, length, place, np.zeros(1, np.uint64))
    ordinals = np.zeros(1, np.uint32)
    clear_held_rows(np.array([[0, address_of(ordinals), 1]], np.int64), words)
