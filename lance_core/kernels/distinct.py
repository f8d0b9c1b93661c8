"""Numbering distinct values: by their hashes, and then a look at whether those were enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, pointer_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOO_MANY = -1
"""What kernels return when there are more distinct values than allowed."""

_FREE = -1
_FIRST_SLOTS = 1024
_WORD = 8
_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


@kernel
def mixed(hashed: np.uint64, word: np.uint64) -> np.uint64:
    """Take another word into a hash."""
    both = (hashed ^ word) * _FACTOR
    return (both ^ (both >> _HALF)) * _SEED


@kernel
def word_at(address: int) -> np.uint64:
    """Return 8 bytes at an address."""
    return carray(pointer_at(address), 1, np.uint64)[0]  # type: ignore[no-any-return]  # a scalar


@kernel
def rest_at(address: int, length: int) -> np.uint64:
    """Return fewer than 8 bytes at an address as one word."""
    word = np.uint64(0)
    for byte in carray(pointer_at(address), length, np.uint8):
        word = (word << np.uint64(8)) | np.uint64(byte)
    return word


@kernel
def hash_bytes(address: int, length: int) -> np.uint64:
    """Hash ``length`` bytes at ``address``."""
    hashed = _SEED ^ np.uint64(length)
    whole = length // _WORD * _WORD
    for start in range(0, whole, _WORD):
        hashed = mixed(hashed, word_at(address + start))
    if whole < length:
        hashed = mixed(hashed, rest_at(address + whole, length - whole))
    return hashed ^ (hashed >> _HALF)


@kernel
def same_bytes(left: int, right: int, length: int) -> bool:
    """Whether ``length`` bytes at two addresses are the same."""
    whole = length // _WORD * _WORD
    for start in range(0, whole, _WORD):
        if word_at(left + start) != word_at(right + start):
            return False
    rest = length - whole
    return bool(rest_at(left + whole, rest) == rest_at(right + whole, rest))


@kernel
def grown_slots(
    slots: NDArray[np.int32], keys: NDArray[np.uint64], num_items: int
) -> NDArray[np.int32]:
    """Return twice as many slots with the same items."""
    size = slots.shape[0] * 2
    grown = np.full(size, _FREE, np.int32)
    for item in range(num_items):
        slot = np.int64(keys[item]) & (size - 1)
        while grown[slot] != _FREE:
            slot = (slot + 1) & (size - 1)
        grown[slot] = item
    return grown


@kernel
def hash_strings(
    base: int,
    offsets: NDArray[np.int64],
    positions: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> None:
    """Hash the byte strings at ``positions``; ``offsets`` from the address ``base``."""
    for index in range(positions.shape[0]):
        start = offsets[positions[index]]
        out[index] = hash_bytes(base + start, offsets[positions[index] + 1] - start)


@kernel
def hash_fixed(
    base: int, width: int, positions: NDArray[np.int64], out: NDArray[np.uint64]
) -> None:
    """Hash the values of ``width`` bytes at ``positions``."""
    for index in range(positions.shape[0]):
        out[index] = hash_bytes(base + positions[index] * width, width)


@kernel
def number_hashes(
    hashes: NDArray[np.uint64], indices: NDArray[np.uint32], firsts: NDArray[np.int64]
) -> int:
    """Give equal hashes the same number, in the order of their first occurrence.

    Parameters
    ----------
    hashes, indices
        Shape ``(n,)``; ``indices`` receives the numbers.
    firsts
        Shape ``(max_items,)``; receives where each number occurs first.

    Returns
    -------
    int
        How many differ, or ``TOO_MANY`` if ``firsts`` has no room for them.
    """
    slots = np.full(_FIRST_SLOTS, _FREE, np.int32)
    keys = np.empty(firsts.shape[0], np.uint64)
    num_items = 0
    for index in range(hashes.shape[0]):
        slot = np.int64(hashes[index]) & (slots.shape[0] - 1)
        item = slots[slot]
        while item != _FREE and keys[item] != hashes[index]:
            slot = (slot + 1) & (slots.shape[0] - 1)
            item = slots[slot]
        if item == _FREE:
            if num_items == firsts.shape[0]:
                return TOO_MANY
            item = np.int32(num_items)
            firsts[item] = index
            keys[item] = hashes[index]
            slots[slot] = item
            num_items += 1
            if num_items * 2 > slots.shape[0]:
                slots = grown_slots(slots, keys, num_items)
        indices[index] = item
    return num_items


@kernel
def strings_equal_items(
    base: int,
    offsets: NDArray[np.int64],
    indices: NDArray[np.uint32],
    firsts: NDArray[np.int64],
) -> bool:
    """Whether every byte string is the one that its number stands for."""
    for value in range(indices.shape[0]):
        start = offsets[value]
        length = offsets[value + 1] - start
        first = firsts[indices[value]]
        if offsets[first + 1] - offsets[first] != length:
            return False
        if not same_bytes(base + start, base + offsets[first], length):
            return False
    return True


@kernel
def fixed_equal_items(
    base: int, width: int, indices: NDArray[np.uint32], firsts: NDArray[np.int64]
) -> bool:
    """Whether every value of ``width`` bytes is the one that its number stands for."""
    for value in range(indices.shape[0]):
        first = firsts[indices[value]]
        if not same_bytes(base + value * width, base + first * width, width):
            return False
    return True


@warmup
def _warm() -> None:
    base = address_of(np.zeros(8, np.uint8))
    none = np.empty(0, np.int64)
    hashes = np.empty(0, np.uint64)
    indices = np.empty(0, np.uint32)
    hash_strings(base, none, none, hashes)
    hash_fixed(base, 8, none, hashes)
    number_hashes(hashes, indices, none)
    strings_equal_items(base, none, indices, none)
    fixed_equal_items(base, 8, indices, none)
