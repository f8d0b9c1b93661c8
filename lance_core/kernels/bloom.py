"""Split-block Bloom filters: blocks of 256 bits, of which a value sets one in each 32-bit word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, uint32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_BYTES = 32
"""A filter has a whole number of blocks, of which there is at least one."""

_WORDS = 8
_SALTS = (  # of the eight words, as in Parquet
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)
_SHIFT = np.uint32(27)
_HALF = np.uint64(32)


@kernel
def may_hold_any(
    addresses: NDArray[np.int64],
    lengths: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    found: NDArray[np.bool_],
) -> None:
    """Say of each filter whether it may have been given any of some values.

    Parameters
    ----------
    addresses, lengths
        Shape ``(n,)``: where each filter lies, and its bytes, a positive multiple of `BLOCK_BYTES`
        below 2**37.
    hashes
        Shape ``(v,)``: xxHash64 of the values, seed 0.
    found
        Shape ``(n,)``, written.

    Notes
    -----
    Scalar index page, section 7. Filters are in order of memory and a value is looked for in all
    of them, so that it is one miss of the cache per filter and value whatever the order.
    """
    masks = np.empty((len(hashes), _WORDS), np.uint32)
    for value in range(len(hashes)):
        low = np.uint32(hashes[value])
        for word in range(_WORDS):
            bit = np.uint32(low * np.uint32(_SALTS[word])) >> _SHIFT
            masks[value, word] = np.uint32(1) << bit
    for number in range(len(addresses)):
        found[number] = _holds_any(addresses[number], lengths[number], hashes, masks)


@kernel
def insert_all(words: NDArray[np.uint32], hashes: NDArray[np.uint64]) -> None:
    """Give values to a filter.

    Parameters
    ----------
    words
        Shape ``(8 * b,)``: the words of its ``b`` blocks; changed.
    hashes
        Shape ``(v,)``: xxHash64 of the values, seed 0.
    """
    num_blocks = np.uint64(len(words) // _WORDS)
    for value in range(len(hashes)):
        start = int(((hashes[value] >> _HALF) * num_blocks) >> _HALF) * _WORDS
        low = np.uint32(hashes[value])
        for word in range(_WORDS):
            bit = np.uint32(low * np.uint32(_SALTS[word])) >> _SHIFT
            words[start + word] |= np.uint32(1) << bit


@kernel
def _holds_any(
    address: int, length: int, hashes: NDArray[np.uint64], masks: NDArray[np.uint32]
) -> bool:
    num_blocks = np.uint64(length // BLOCK_BYTES)
    for value in range(len(hashes)):
        block = ((hashes[value] >> _HALF) * num_blocks) >> _HALF
        words = uint32_at(address + int(block) * BLOCK_BYTES, _WORDS)
        missing = np.uint32(0)
        for word in range(_WORDS):
            missing |= masks[value, word] & ~words[word]
        if missing == 0:
            return True
    return False


@warmup
def _warm() -> None:
    block = np.zeros(BLOCK_BYTES, np.uint8)
    addresses = np.array([address_of(block)], np.int64)
    lengths = np.array([BLOCK_BYTES], np.int64)
    may_hold_any(addresses, lengths, np.zeros(1, np.uint64), np.empty(1, np.bool_))
    insert_all(block.view(np.uint32), np.zeros(1, np.uint64))
