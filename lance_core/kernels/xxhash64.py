"""xxHash64 with seed 0 of many short byte strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at, uint32_at, uint64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_P1 = np.uint64(11400714785074694791)
_P2 = np.uint64(14029467366897019727)
_P3 = np.uint64(1609587929392839161)
_P4 = np.uint64(9650029242287828579)
_P5 = np.uint64(2870177450012600261)
_ZERO = np.uint64(0)
_STRIPE = 32
_WORD = 8
_HALF_WORD = 4


@kernel
def hash_byte_strings(base: int, offsets: NDArray[np.int64], hashes: NDArray[np.uint64]) -> None:
    """Hash byte strings that follow one another.

    Parameters
    ----------
    base
        Address of the bytes.
    offsets
        Shape ``(n + 1,)``: where strings begin and end behind ``base``.
    hashes
        Shape ``(n,)``, written.
    """
    for number in range(len(hashes)):
        start = offsets[number]
        hashes[number] = _hash(base + start, offsets[number + 1] - start)


@kernel
def _hash(address: int, length: int) -> np.uint64:
    done = 0
    if length >= _STRIPE:
        a, b, c, d = _P1 + _P2, _P2, _ZERO, _ZERO - _P1
        while done + _STRIPE <= length:
            words = uint64_at(address + done, 4)
            a, b = _round(a, words[0]), _round(b, words[1])
            c, d = _round(c, words[2]), _round(d, words[3])
            done += _STRIPE
        state = _turned(a, 1) + _turned(b, 7) + _turned(c, 12) + _turned(d, 18)
        state = _merged(_merged(_merged(_merged(state, a), b), c), d)
    else:
        state = _P5
    state += np.uint64(length)
    while done + _WORD <= length:
        state ^= _round(_ZERO, uint64_at(address + done, 1)[0])
        state = _turned(state, 27) * _P1 + _P4
        done += _WORD
    if done + _HALF_WORD <= length:
        state ^= np.uint64(uint32_at(address + done, 1)[0]) * _P1
        state = _turned(state, 23) * _P2 + _P3
        done += _HALF_WORD
    rest = bytes_at(address + done, length - done)
    for place in range(length - done):
        state ^= np.uint64(rest[place]) * _P5
        state = _turned(state, 11) * _P1
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    return state ^ (state >> np.uint64(32))


@kernel
def _turned(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@kernel
def _round(state: np.uint64, word: np.uint64) -> np.uint64:
    return _turned(state + word * _P2, 31) * _P1


@kernel
def _merged(state: np.uint64, lane: np.uint64) -> np.uint64:
    return (state ^ _round(_ZERO, lane)) * _P1 + _P4


@warmup
def _warm() -> None:
    data = np.zeros(8, np.uint8)
    hash_byte_strings(address_of(data), np.array([0, 8], np.int64), np.empty(1, np.uint64))
