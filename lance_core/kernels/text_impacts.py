"""Impacts: for each block the best that its documents can have (scalar index page, 8.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at
from lance_core.kernels.text_bits import TOO_SHORT, varint_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNREADABLE = -1

_EXACT = 8
"""Lengths below are their own codes; of others three bits follow the highest."""

_MOST_CODE = 239
"""Of lengths of 32 bits."""


@kernel
def length_of(code: int) -> int:
    """Return the least document length that a code stands for."""
    if code < _EXACT:
        return code
    return ((code & 7) | _EXACT) << ((code >> 3) - 1)


@kernel
def count_pairs(base: int, offsets: NDArray[np.int64]) -> int:
    """Count the pairs in entries of impacts, ``UNREADABLE`` if there are more than bytes.

    Entry ``i`` is the bytes ``[offsets[i], offsets[i + 1])`` from the address ``base``.
    """
    total = 0
    for entry in range(offsets.shape[0] - 1):
        view = bytes_at(base + offsets[entry], offsets[entry + 1] - offsets[entry])
        _, at = varint_at(view, 0, view.shape[0])
        if at == TOO_SHORT:
            return UNREADABLE
        pairs, at = varint_at(view, at, view.shape[0])
        if at == TOO_SHORT or pairs > view.shape[0] - at:
            return UNREADABLE
        total += pairs
    return total


@kernel
def read_pair(view: NDArray[np.uint8], at: int, frequency: int, code: int) -> tuple[int, int, int]:
    """Return the next pair and the position behind it, which is told by what it adds."""
    added, at = varint_at(view, at, view.shape[0])
    step = 1
    if at != TOO_SHORT and added & 1 == 1:
        step, at = varint_at(view, at, view.shape[0])
    return frequency + (added >> 1) + 1, code + step, at


@kernel
def read_impacts(
    base: int,
    offsets: NDArray[np.int64],
    bounds: NDArray[np.int64],
    frequencies: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
) -> bool:
    """Decode entries of which `count_pairs` has told how many pairs they have.

    Parameters
    ----------
    base, offsets
        As in `count_pairs`.
    bounds
        Receives where the pairs of each entry begin, shape ``(n + 1,)``.
    frequencies, lengths
        Receive the pairs.

    Returns
    -------
    bool
        Whether every entry could be read.
    """
    filled = 0
    for entry in range(offsets.shape[0] - 1):
        view = bytes_at(base + offsets[entry], offsets[entry + 1] - offsets[entry])
        _, at = varint_at(view, 0, view.shape[0])
        pairs, at = varint_at(view, at, view.shape[0])
        bounds[entry] = filled
        frequency, code = 0, 0
        for _ in range(pairs):
            frequency, code, at = read_pair(view, at, frequency, code)
            if at == TOO_SHORT or code > _MOST_CODE:
                return False
            frequencies[filled] = frequency
            lengths[filled] = length_of(code)
            filled += 1
        if at != view.shape[0]:
            return False
    bounds[offsets.shape[0] - 1] = filled
    return True


@warmup
def warm() -> None:
    """Compile or load the kernels of this module."""
    entry = np.array([0, 1, 0], np.uint8)
    offsets, bounds = np.array([0, len(entry)], np.int64), np.zeros(2, np.int64)
    count_pairs(address_of(entry), offsets)
    number = np.zeros(1, np.uint32)
    read_impacts(address_of(entry), offsets, bounds, number, number.copy())
