"""Positions of a token in its documents (scalar index page, 8.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at
from lance_core.kernels.text_bits import TOO_SHORT, WORD_BITS, word_at
from lance_core.kernels.text_postings import ALL_FIT, read_varints, unpack_small

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP = 128
"""So many numbers are packed at a time, in blocks of any size."""

_WORD_BYTES = 4


@kernel
def sum_up_positions(out: NDArray[np.uint32], start: int, stop: int) -> bool:
    """Turn differences into positions; False if they do not fit 32 bits."""
    position = np.int64(0)
    for place in range(start, stop):
        position += np.int64(out[place])
        out[place] = position
    return bool(position >> WORD_BITS == 0)


@kernel
def read_differences(
    view: NDArray[np.uint8], is_packed: bool, out: NDArray[np.uint32], start: int, stop: int
) -> bool:
    """Read the differences of one block; False if they do not fit."""
    at = 0
    if is_packed:
        while stop - start >= GROUP:
            at = unpack_small(view, at, view.shape[0], out, start)
            if at == TOO_SHORT:
                return False
            start += GROUP
    return bool(read_varints(view, at, out, start, stop) == view.shape[0])


@kernel
def read_position_stream(
    base: int,
    block_bounds: NDArray[np.int64],
    block_size: int,
    is_packed: bool,
    starts: NDArray[np.int64],
    out: NDArray[np.uint32],
) -> int:
    """Decode the positions of one token that lie in one stream.

    Parameters
    ----------
    base, block_bounds
        Those of block ``i`` are the bytes ``[block_bounds[i], block_bounds[i + 1])`` from the
        address ``base``; the caller has checked the bounds.
    block_size
        Documents of a block.
    is_packed
        Whether every 128 numbers are packed; else each stands by itself.
    starts
        Where the positions of each document begin in ``out``, shape ``(n + 1,)``.
    out
        Receives the positions.

    Returns
    -------
    int
        The number of a block that contradicts the format, or ``ALL_FIT``.
    """
    num_docs = starts.shape[0] - 1
    for block in range(block_bounds.shape[0] - 1):
        view = bytes_at(base + block_bounds[block], block_bounds[block + 1] - block_bounds[block])
        first = block * block_size
        behind = min(first + block_size, num_docs)
        if not read_differences(view, is_packed, out, starts[first], starts[behind]):
            return block
        for doc in range(first, behind):
            if not sum_up_positions(out, starts[doc], starts[doc + 1]):
                return block
    return ALL_FIT


@kernel
def read_group(view: NDArray[np.uint8], out: NDArray[np.uint32], start: int) -> bool:
    """Read 128 positions of one document: the first, and packed differences."""
    if view.shape[0] < _WORD_BYTES:
        return False
    if unpack_small(view, _WORD_BYTES, view.shape[0], out, start) != view.shape[0]:
        return False
    out[start] = word_at(view, 0)
    return sum_up_positions(out, start, start + GROUP)


@kernel
def read_rest(view: NDArray[np.uint8], out: NDArray[np.uint32], start: int, stop: int) -> bool:
    """Read the last positions of a document, which are stored as they are."""
    if view.shape[0] != _WORD_BYTES * (stop - start):
        return False
    for place in range(start, stop):
        out[place] = word_at(view, _WORD_BYTES * (place - start))
    return True


@kernel
def read_document(
    base: int, offsets: NDArray[np.int64], out: NDArray[np.uint32], start: int, stop: int
) -> bool:
    """Read the positions of one document; ``offsets`` bound its parts."""
    groups = (stop - start) // GROUP
    has_rest = start + groups * GROUP < stop
    if offsets.shape[0] - 1 != 1 + groups + has_rest:
        return False
    count = bytes_at(base + offsets[0], offsets[1] - offsets[0])
    if count.shape[0] != _WORD_BYTES or np.int64(word_at(count, 0)) != stop - start:
        return False
    for part in range(1, groups + 1):
        view = bytes_at(base + offsets[part], offsets[part + 1] - offsets[part])
        if not read_group(view, out, start):
            return False
        start += GROUP
    if not has_rest:
        return True
    size = offsets.shape[0] - 1
    return read_rest(
        bytes_at(base + offsets[size - 1], offsets[size] - offsets[size - 1]), out, start, stop
    )


@kernel
def read_position_lists(
    base: int,
    offsets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    starts: NDArray[np.int64],
    out: NDArray[np.uint32],
) -> int:
    """Decode the positions of one token that lie in parts of their own for each document.

    Parameters
    ----------
    base, offsets
        Part ``i`` is the bytes ``[offsets[i], offsets[i + 1])`` from the address ``base``.
    firsts
        Document ``i`` has the parts from ``firsts[i]`` to ``firsts[i + 1]``; shape ``(n + 1,)``.
    starts, out
        As in `read_position_stream`.

    Returns
    -------
    int
        The number of a document that contradicts the format, or ``ALL_FIT``.
    """
    for doc in range(firsts.shape[0] - 1):
        parts = offsets[firsts[doc] : firsts[doc + 1] + 1]
        if not read_document(base, parts, out, starts[doc], starts[doc + 1]):
            return doc
    return ALL_FIT


@warmup
def warm() -> None:
    """Compile or load the kernels of this module."""
    data = np.array([1, 0, 0, 0, 0, 0, 0, 0], np.uint8)
    bounds, out = np.array([0, 1], np.int64), np.zeros(1, np.uint32)
    read_position_stream(address_of(data), bounds, GROUP, True, bounds, out)
    offsets, firsts = np.array([0, 4, 8], np.int64), np.array([0, 2], np.int64)
    read_position_lists(address_of(data), offsets, firsts, bounds, out)
