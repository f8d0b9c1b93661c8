"""FSST: replacing what occurs often in byte strings by codes of one byte.

A matcher finds the longest symbol at a place in a string. Symbols of three bytes and more lie in
buckets by a hash of their first three, the longest first; shorter ones in a table by two bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.bitpacking import low_bits
from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distinct import word_at
from lance_core.kernels.fsst import ESCAPE
from lance_core.kernels.memory import address_of, bytes_at, pointer_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BYTES = 8
LITERAL = 256
"""Codes from here on count bytes without a symbol, in training."""
NUM_TOKENS = 512

_BUCKETS = 4096
_SINGLES = 1 << 16
_LONG = 3
_PREFIX = np.uint64(0xFFFFFF)
_TWO_BYTES = np.uint64(0xFFFF)
_BYTE = np.uint64(0xFF)
_FACTOR = np.uint64(0x9E3779B1)
_HASH_SHIFT = np.uint64(20)

SHORTS_AT = 0
"""Byte offsets into a matcher: a table of 2 bytes (code, length) for each two bytes, and behind
``_SINGLES`` for each last byte ..."""
BUCKETS_AT = SHORTS_AT + 2 * (_SINGLES + 256)
"""... of 2 bytes for each bucket: where its first entry begins behind the next offset ..."""
ENTRIES_AT = BUCKETS_AT + 2 * _BUCKETS
"""... and entries of 4 words: a long symbol, the bits it covers, its code below its length, and
where the next of its bucket begins. The first entry matches nothing and has none behind it."""
ENTRY_BYTES = 32
MATCHER_BYTES = ENTRIES_AT + 256 * ENTRY_BYTES


@kernel
def short_at(address: int, index: int) -> int:
    """Return entry ``index`` of a table of 2 bytes each."""
    return np.int64(carray(pointer_at(address + 2 * index), 1, np.uint16)[0])  # type: ignore[return-value]  # a scalar


@kernel
def number_at(address: int) -> int:
    """Return the number of 8 bytes at an address."""
    return np.int64(word_at(address))  # type: ignore[return-value]  # `int` keeps it unsigned


@kernel
def bucket_of(word: np.uint64) -> int:
    """Return the bucket of symbols that begin with the first three bytes of ``word``."""
    hashed = ((word & _PREFIX) * _FACTOR) >> _HASH_SHIFT
    return np.int64(hashed & np.uint64(_BUCKETS - 1))  # type: ignore[return-value]  # as above


@kernel
def build_matcher(
    symbols: NDArray[np.uint64], lengths: NDArray[np.uint8], matcher: NDArray[np.uint8]
) -> None:
    """Fill a matcher.

    Parameters
    ----------
    symbols, lengths
        Shape ``(n,)``, at most 255; codes are positions. Longer symbols come first.
    matcher
        Shape ``(MATCHER_BYTES,)``, zeros.
    """
    shorts = matcher[SHORTS_AT:BUCKETS_AT].view(np.uint16)
    buckets = matcher[BUCKETS_AT:ENTRIES_AT].view(np.uint16)
    entries = matcher[ENTRIES_AT:].view(np.uint64)
    entries[0] = 1  # covers no bits, so that no word is like it
    words = ENTRY_BYTES // WORD_BYTES
    for code in range(symbols.shape[0] - 1, -1, -1):  # two bytes go over one, long before short
        symbol = np.int64(symbols[code])
        found = np.int64(lengths[code]) << 8 | code
        if lengths[code] == 1:
            shorts[_SINGLES + symbol] = found
            for second in range(256):
                shorts[second * 256 + symbol] = found
        elif lengths[code] < _LONG:
            shorts[symbol] = found
        else:
            entry = (code + 1) * words
            bucket = bucket_of(symbols[code])
            entries[entry] = symbols[code]
            entries[entry + 1] = low_bits(8 * lengths[code])
            entries[entry + 2] = found
            entries[entry + 3] = buckets[bucket]
            buckets[bucket] = (code + 1) * ENTRY_BYTES


@kernel
def longest_match(matcher: int, word: np.uint64, left: int) -> int:
    """Return the code of the longest symbol that begins ``word``, and its length above 8 bits.

    ``matcher`` is its address, ``word`` holds the next ``left`` bytes, 8 at most, and zeros. The
    result is 0 if no symbol fits.
    """
    entry = short_at(matcher + BUCKETS_AT, bucket_of(word))
    while True:
        address = matcher + ENTRIES_AT + entry
        if word & word_at(address + 8) == word_at(address):
            found = number_at(address + 16)
            if found >> 8 <= left:
                return found
        entry = number_at(address + 24)
        if entry == 0:
            break
    found = short_at(matcher + SHORTS_AT, int(word & _TWO_BYTES))
    if found >> 8 > left:
        found = short_at(matcher + SHORTS_AT, _SINGLES + int(word & _BYTE))
    return found


@kernel
def next_word(address: int, left: int, safe: int) -> np.uint64:
    """Return up to 8 bytes at ``address``, of which ``left`` belong to the string.

    Memory before the address ``safe`` may be read 8 bytes at a time.
    """
    if address < safe:
        word = word_at(address)
        return word if left >= WORD_BYTES else word & low_bits(8 * left)
    word = np.uint64(0)
    for index in range(min(left, WORD_BYTES)):
        word |= np.uint64(bytes_at(address + index, 1)[0]) << np.uint64(8 * index)
    return word


@kernel
def count_tokens(
    matcher: int,
    data: int,
    offsets: NDArray[np.int64],
    singles: NDArray[np.int32],
    pairs: NDArray[np.int32],
    met: NDArray[np.int32],
) -> int:
    """Count what strings are made of.

    Parameters
    ----------
    matcher
        Address of a matcher.
    data, offsets
        Address of the bytes, and shape ``(n + 1,)``.
    singles, pairs
        Shapes ``(512,)`` and ``(512 * 512,)``, zeros; receive how often each token, a code or a
        byte from ``LITERAL`` on, occurs, and behind which other.
    met
        Room for one number per byte; receives the pairs that occur, since they are few.

    Returns
    -------
    int
        How many different pairs occur.
    """
    num_met = 0
    safe = data + offsets[-1] - (WORD_BYTES - 1)
    for value in range(offsets.shape[0] - 1):
        address = data + offsets[value]
        end = data + offsets[value + 1]
        before = -1
        while address < end:
            word = next_word(address, end - address, safe)
            found = longest_match(matcher, word, end - address)
            token = found & 0xFF
            if found == 0:
                token = LITERAL + int(word & _BYTE)
            singles[token] += 1
            if before >= 0:
                pair = before * NUM_TOKENS + token
                if pairs[pair] == 0:
                    met[num_met] = pair
                    num_met += 1
                pairs[pair] += 1
            before = token
            address += max(found >> 8, 1)
    return num_met


@kernel
def compress(
    matcher: int,
    data: int,
    offsets: NDArray[np.int64],
    out_offsets: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Write the codes of all strings.

    Parameters
    ----------
    matcher, data, offsets
        As ``count_tokens``.
    out_offsets
        Shape ``(n + 1,)``; receives the offsets of the compressed strings, from 0.
    out
        Room for twice the bytes of the strings.
    """
    safe = data + offsets[-1] - (WORD_BYTES - 1)
    to = 0
    out_offsets[0] = 0
    for value in range(offsets.shape[0] - 1):
        address = data + offsets[value]
        end = data + offsets[value + 1]
        while address < end:
            word = next_word(address, end - address, safe)
            found = longest_match(matcher, word, end - address)
            if found == 0:
                out[to] = ESCAPE
                out[to + 1] = word & _BYTE
                to += 2
                address += 1
            else:
                out[to] = found & 0xFF
                to += 1
                address += found >> 8
        out_offsets[value + 1] = to


@warmup
def _warm() -> None:
    matcher = np.zeros(MATCHER_BYTES, np.uint8)
    data = np.zeros(1, np.uint8)
    offsets = np.zeros(1, np.int64)
    build_matcher(np.zeros(1, np.uint64), np.ones(1, np.uint8), matcher)
    counts = np.zeros(NUM_TOKENS, np.int32)
    count_tokens(address_of(matcher), address_of(data), offsets, counts, counts, counts)
    compress(address_of(matcher), address_of(data), offsets, offsets.copy(), data)
