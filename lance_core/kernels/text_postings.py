"""Blocks of posting lists to documents and frequencies (scalar index page, 8.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at
from lance_core.kernels.text_bits import (
    TOO_SHORT,
    WORD_BITS,
    byte_at,
    unpack_lanes,
    varint_at,
    word_at,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALL_BLOCK = 128
"""Blocks of so many postings begin with a score; those of 256 do not."""

ALL_FIT = -1

_SCORE_BYTES = 4
_FIRST_BYTES = 4
_LANES_OF_SMALL = 4
_LANES_OF_LARGE = 8


@kernel
def unpack_small(
    view: NDArray[np.uint8], at: int, end: int, out: NDArray[np.uint32], start: int
) -> int:
    """Unpack 128 numbers behind a byte that tells their width; returns the position behind."""
    if at >= end:
        return TOO_SHORT
    width = byte_at(view, at)
    behind = at + 1 + 4 * _LANES_OF_SMALL * width
    if width > WORD_BITS or behind > end:
        return TOO_SHORT
    unpack_lanes(view, at + 1, width, _LANES_OF_SMALL, out, start)
    return behind


@kernel
def unpack_large(
    view: NDArray[np.uint8], at: int, width: int, end: int, out: NDArray[np.uint32], start: int
) -> int:
    """Unpack 256 numbers of a width; returns the position behind."""
    behind = at + 4 * _LANES_OF_LARGE * width
    if width > WORD_BITS or behind > end:
        return TOO_SHORT
    unpack_lanes(view, at, width, _LANES_OF_LARGE, out, start)
    return behind


@kernel
def unpack_patched(
    view: NDArray[np.uint8], at: int, end: int, out: NDArray[np.uint32], start: int
) -> int:
    """Unpack 256 numbers, of some of which the upper bits follow; returns the position behind."""
    if at + 2 > end:
        return TOO_SHORT
    width, patches = byte_at(view, at), byte_at(view, at + 1)
    at = unpack_large(view, at + 2, width, end, out, start)
    for _ in range(patches):
        if at == TOO_SHORT or at >= end:
            return TOO_SHORT
        place = start + byte_at(view, at)
        upper, at = varint_at(view, at + 1, end)
        if upper << width >= 1 << WORD_BITS:
            return TOO_SHORT
        out[place] |= np.uint32(upper << width)
    return at


@kernel
def unpack_full(
    view: NDArray[np.uint8],
    block_size: int,
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    start: int,
) -> bool:
    """Unpack a full block, documents as differences behind the first; False if it does not fit."""
    at = _SCORE_BYTES if block_size == SMALL_BLOCK else 0
    end = view.shape[0]
    if at + _FIRST_BYTES >= end:
        return False
    first = word_at(view, at)
    at += _FIRST_BYTES
    if block_size == SMALL_BLOCK:
        at = unpack_small(view, at, end, docs, start)
        at = unpack_small(view, at, end, frequencies, start) if at != TOO_SHORT else at
    else:
        at = unpack_large(view, at + 1, byte_at(view, at), end, docs, start)
        at = unpack_patched(view, at, end, frequencies, start) if at != TOO_SHORT else at
    docs[start] = first
    return bool(at == end)


@kernel
def read_varints(
    view: NDArray[np.uint8], at: int, out: NDArray[np.uint32], start: int, stop: int
) -> int:
    """Read varints to ``out[start:stop]``; returns the position behind."""
    for place in range(start, stop):
        number, at = varint_at(view, at, view.shape[0])
        if at == TOO_SHORT:
            return TOO_SHORT
        out[place] = number
    return at


@kernel
def read_tail(
    view: NDArray[np.uint8],
    at: int,
    is_varint: bool,
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    start: int,
) -> bool:
    """Read a block that is not full, documents as differences; False if it does not fit."""
    stop = docs.shape[0]
    end = view.shape[0]
    if is_varint:
        at = read_varints(view, at, docs, start, stop)
        return at != TOO_SHORT and read_varints(view, at, frequencies, start, stop) == end
    size = stop - start
    if at + 8 * size != end:
        return False
    before = np.uint32(0)
    for place in range(size):
        doc = word_at(view, at + 4 * place)
        docs[start + place] = doc - before
        before = doc
        frequencies[start + place] = word_at(view, at + 4 * (size + place))
    return True


@kernel
def sum_up(docs: NDArray[np.uint32], start: int, stop: int, least: int, num_docs: int) -> int:
    """Turn differences into documents; returns the last, or ``TOO_SHORT`` if they do not ascend."""
    doc = np.int64(docs[start])
    ascend = doc >= np.int64(least)
    for place in range(start + 1, stop):
        ascend &= docs[place] > 0
        doc += np.int64(docs[place])
        docs[place] = doc
    return doc if ascend and doc < num_docs else TOO_SHORT  # type: ignore[return-value]  # is int64


@kernel
def read_postings(
    base: int,
    offsets: NDArray[np.int64],
    block_size: int,
    is_varint: bool,
    num_docs: int,
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
) -> int:
    """Decode the posting list of one token.

    Parameters
    ----------
    base, offsets
        Block ``i`` is the bytes ``[offsets[i], offsets[i + 1])`` from the address ``base``. The
        caller has checked that the blocks are as many as the postings need.
    block_size
        Postings of a block, 128 or 256.
    is_varint
        How a block is stored that is not full.
    num_docs
        Documents are less than this.
    docs, frequencies
        Receive the documents, ascending, and how often each has the token, shape ``(n,)``.

    Returns
    -------
    int
        The number of a block that contradicts the format, or ``ALL_FIT``.
    """
    size = docs.shape[0]
    least = 0
    for block in range(offsets.shape[0] - 1):
        view = bytes_at(base + offsets[block], offsets[block + 1] - offsets[block])
        start = block * block_size
        stop = min(start + block_size, size)
        if stop - start == block_size:
            fits = unpack_full(view, block_size, docs, frequencies, start)
        else:
            at = _SCORE_BYTES if block_size == SMALL_BLOCK else 0
            fits = read_tail(view, at, is_varint, docs, frequencies, start)
        last = sum_up(docs, start, stop, least, num_docs) if fits else TOO_SHORT
        if last == TOO_SHORT:
            return block
        least = last + 1
    return ALL_FIT


@warmup
def warm() -> None:
    """Compile or load the kernels of this module."""
    block = np.array([0, 0, 0, 0, 0, 1], np.uint8)
    one = np.zeros(1, np.uint32)
    offsets = np.array([0, len(block)], np.int64)
    read_postings(address_of(block), offsets, SMALL_BLOCK, True, 1, one, one.copy())
