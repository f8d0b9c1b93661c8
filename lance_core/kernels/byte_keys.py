"""Binary search in byte strings, ordered by their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distinct import same_bytes, word_at
from lance_core.kernels.memory import address_of, bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = 8
_LOW_PAIRS = np.uint64(0x0000_FFFF_0000_FFFF)
_LOW_BYTES = np.uint64(0x00FF_00FF_00FF_00FF)


@kernel
def big_endian(word: np.uint64) -> np.uint64:
    """Return a word with its first byte as the highest, so that words compare like bytes."""
    halves = (word << np.uint64(32)) | (word >> np.uint64(32))
    pairs = ((halves & _LOW_PAIRS) << np.uint64(16)) | ((halves >> np.uint64(16)) & _LOW_PAIRS)
    return ((pairs & _LOW_BYTES) << np.uint64(8)) | ((pairs >> np.uint64(8)) & _LOW_BYTES)


@kernel
def compare_bytes(left: int, left_length: int, right: int, right_length: int) -> int:
    """Return a number below, at or above 0 as the bytes at ``left`` are less, equal or greater."""
    both = min(left_length, right_length)
    same = 0
    while same + _WORD <= both:
        left_word, right_word = word_at(left + same), word_at(right + same)
        if left_word != right_word:
            return -1 if big_endian(left_word) < big_endian(right_word) else 1
        same += _WORD
    left_rest, right_rest = bytes_at(left + same, both - same), bytes_at(right + same, both - same)
    for byte in range(both - same):
        if left_rest[byte] != right_rest[byte]:
            return -1 if left_rest[byte] < right_rest[byte] else 1
    return left_length - right_length


@kernel
def search_byte_keys(
    base: int,
    offsets: NDArray[np.int64],
    needle_base: int,
    needle_offsets: NDArray[np.int64],
    is_behind_equals: bool,
    out: NDArray[np.int64],
) -> None:
    """Find for each needle how many keys stand before it.

    Parameters
    ----------
    base, offsets
        ``n`` keys in ascending order: key ``i`` is the bytes ``[offsets[i], offsets[i + 1])`` from
        the address ``base``. Shape ``(n + 1,)``.
    needle_base, needle_offsets
        The needles likewise, in any order.
    is_behind_equals
        Whether keys that equal a needle stand before it.
    out
        Receives the numbers, one for each needle.
    """
    largest = 0 if is_behind_equals else -1
    for needle in range(out.shape[0]):
        start = needle_offsets[needle]
        length = needle_offsets[needle + 1] - start
        low, high = 0, offsets.shape[0] - 1
        while low < high:
            middle = (low + high) // 2
            key = offsets[middle]
            order = compare_bytes(
                base + key, offsets[middle + 1] - key, needle_base + start, length
            )
            if order <= largest:
                low = middle + 1
            else:
                high = middle
        out[needle] = low


@kernel
def find_byte_keys(
    base: int,
    offsets: NDArray[np.int64],
    needle_base: int,
    needle_offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
) -> None:
    """Find the keys that equal each needle: those ``[starts[i], stops[i])``.

    Keys and needles are given as for `search_byte_keys`.
    """
    search_byte_keys(base, offsets, needle_base, needle_offsets, False, starts)
    num_keys = offsets.shape[0] - 1
    for needle in range(starts.shape[0]):
        start = needle_base + needle_offsets[needle]
        length = needle_offsets[needle + 1] - needle_offsets[needle]
        key = starts[needle]
        while key < num_keys and offsets[key + 1] - offsets[key] == length:
            if not same_bytes(base + offsets[key], start, length):
                break
            key += 1
        stops[needle] = key


@kernel
def are_ascending(base: int, offsets: NDArray[np.int64]) -> bool:
    """Tell whether no key is less than the one before it; keys as for `search_byte_keys`."""
    for key in range(1, offsets.shape[0] - 1):
        start, middle, end = offsets[key - 1], offsets[key], offsets[key + 1]
        if compare_bytes(base + start, middle - start, base + middle, end - middle) > 0:
            return False
    return True


@warmup
def warm() -> None:
    """Compile or load the kernels of this module."""
    data = np.zeros(_WORD, np.uint8)
    offsets = np.array([0, 1, 2], np.int64)
    base = address_of(data)
    are_ascending(base, offsets)
    search_byte_keys(base, offsets, base, offsets, True, np.empty(2, np.int64))
    find_byte_keys(base, offsets, base, offsets, np.empty(2, np.int64), np.empty(2, np.int64))
