"""What the documents of blocks can have at best: scores and impacts (scalar index page, 8.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.text_write_bits import put_varint, signed

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_CODES = 240
"""Codes of lengths of 32 bits are less than this."""

_EXACT = 8


@kernel
def length_code(length: int) -> int:
    """Return the byte that stands for a document length, rounded down to four leading bits."""
    shift = 0
    while length >> shift >= 2 * _EXACT:
        shift += 1
    if length < _EXACT:
        return length
    return ((length >> shift) & 7) | ((shift + 1) << 3)


@kernel
def length_codes(lengths: NDArray[np.uint32], codes: NDArray[np.uint8]) -> None:
    """Fill ``codes`` with those of document lengths; shape ``(n,)`` both."""
    for doc in range(lengths.shape[0]):
        codes[doc] = length_code(signed(lengths[doc]))


@kernel(ordered=True)
def best_weights(
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    norms: NDArray[np.float32],
    best: NDArray[np.float32],
) -> None:
    """Find the highest weight of a document of each block, without the token's share.

    Parameters
    ----------
    docs, frequencies, bounds
        As `text_write_postings.write_postings` takes them.
    norms
        By document: what a frequency is added to before it is divided by the sum.
    best
        Receives the weights, shape ``(n,)``.
    """
    for block in range(bounds.shape[0] - 1):
        highest = np.float32(0)
        for index in range(bounds[block], bounds[block + 1]):
            frequency = np.float32(frequencies[index])
            highest = max(highest, frequency / (frequency + norms[docs[index]]))
        best[block] = highest


@kernel
def add_highest(
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    start: int,
    stop: int,
    codes: NDArray[np.uint8],
    highest: NDArray[np.uint32],
) -> tuple[int, int]:
    """Raise the highest frequency of each code to those of some postings.

    Returns the lowest and the highest of their codes.
    """
    lowest, top = NUM_CODES, 0
    for index in range(start, stop):
        code = signed(codes[docs[index]])
        highest[code] = max(highest[code], frequencies[index])
        lowest, top = min(lowest, code), max(top, code)
    return lowest, top


@kernel
def put_entry(
    last_doc: int,
    highest: NDArray[np.uint32],
    lowest: int,
    top: int,
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write an entry, of a pair for each code whose frequency no lower code reaches.

    Returns the position behind. ``highest`` by code is set to 0, from ``lowest`` to ``top``.
    """
    at = put_varint(out, at, last_doc)
    pairs, reached = 0, np.uint32(0)
    for code in range(lowest, top + 1):
        if highest[code] > reached:
            reached = highest[code]
            pairs += 1
    at = put_varint(out, at, pairs)
    frequency, code_before = 0, 0
    for code in range(lowest, top + 1):
        if signed(highest[code]) > frequency:
            added = (signed(highest[code]) - frequency - 1) << 1
            step = code - code_before
            if step == 1:
                at = put_varint(out, at, added)
            else:
                at = put_varint(out, put_varint(out, at, added | 1), step)
            frequency, code_before = signed(highest[code]), code
        highest[code] = 0
    return at


@kernel
def write_impacts(
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    firsts: NDArray[np.int64],
    group_blocks: int,
    codes: NDArray[np.uint8],
    out: NDArray[np.uint8],
    ends: NDArray[np.int64],
) -> None:
    """Write the impacts of posting lists.

    Parameters
    ----------
    docs, frequencies, bounds
        As `text_write_postings.write_postings` takes them.
    firsts
        List ``i`` has the blocks from ``firsts[i]`` to ``firsts[i + 1]``; shape ``(n + 1,)``.
    group_blocks
        Behind the entries of a list's blocks there is one for so many of them.
    codes
        Of the lengths, by document.
    out
        Receives the entries; 20 bytes for each posting and for each entry are enough.
    ends
        Receives where entries begin and end in ``out``: one more than they are.
    """
    highest = np.zeros(NUM_CODES, np.uint32)
    at, entry = 0, 0
    ends[0] = 0
    for each in range(firsts.shape[0] - 1):
        first, behind = firsts[each], firsts[each + 1]
        for step in (1, group_blocks):
            for block in range(first, behind, step):
                start, stop = bounds[block], bounds[min(block + step, behind)]
                lowest, top = add_highest(docs, frequencies, start, stop, codes, highest)
                at = put_entry(signed(docs[stop - 1]), highest, lowest, top, out, at)
                entry += 1
                ends[entry] = at
