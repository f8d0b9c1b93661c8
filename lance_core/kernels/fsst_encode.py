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
from lance_core.kernels.fsst import ESCAPE
from lance_core.kernels.memory import address_of, bytes_at, pointer_at, uint64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BYTES = 8
LITERAL = 256
"""Codes from here on count bytes without a symbol, in training."""
NUM_TOKENS = 512

_BUCKETS = 4096
_SINGLES = 1 << 16
_ENTRY_WORDS = 3
"""Of a long symbol: the symbol, the bits it covers, its code below its length."""
_LONG = 3
_PREFIX = np.uint64(0xFFFFFF)
_TWO_BYTES = np.uint64(0xFFFF)
_BYTE = np.uint64(0xFF)
_FACTOR = np.uint64(0x9E3779B1)

SHORTS_AT = 0
"""Byte offsets into a matcher: a table of 2 bytes (code, length) for each two bytes, and behind
``_SINGLES`` for each last byte ..."""
BUCKETS_AT = SHORTS_AT + 2 * (_SINGLES + 256)
"""... where buckets begin, of 2 bytes, with one more for the end ..."""
ENTRIES_AT = BUCKETS_AT + 2 * _BUCKETS + 8
"""... and the long symbols, bucket by bucket."""
MATCHER_BYTES = ENTRIES_AT + 8 * _ENTRY_WORDS * 256


@kernel
def short_at(address: int, index: int) -> int:
    """Return entry ``index`` of a table of 2 bytes each."""
    return np.int64(carray(pointer_at(address + 2 * index), 1, np.uint16)[0])  # type: ignore[return-value]  # a scalar


@kernel
def bucket_of(word: np.uint64) -> int:
    """Return the bucket of symbols that begin with the first three bytes of ``word``."""
    hashed = ((word & _PREFIX) * _FACTOR) >> np.uint64(20)
    return np.int64(hashed & np.uint64(_BUCKETS - 1))  # type: ignore[return-value]  # a scalar


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
    for code in range(symbols.shape[0] - 1, -1, -1):  # two bytes go over one
        symbol = np.int64(symbols[code])
        if lengths[code] == 1:
            for second in range(256):
                shorts[second * 256 + symbol] = 1 << 8 | code
            shorts[_SINGLES + symbol] = 1 << 8 | code
    for code in range(symbols.shape[0]):
        if lengths[code] == 2:  # noqa: PLR2004
            shorts[np.int64(symbols[code])] = 2 << 8 | code
        elif lengths[code] >= _LONG:
            buckets[bucket_of(symbols[code]) + 1] += 1
    for bucket in range(_BUCKETS):
        buckets[bucket + 1] += buckets[bucket]
    filled = np.zeros(_BUCKETS, np.int64)
    for code in range(symbols.shape[0]):
        if lengths[code] >= _LONG:
            bucket = bucket_of(symbols[code])
            entry = (buckets[bucket] + filled[bucket]) * _ENTRY_WORDS
            filled[bucket] += 1
            entries[entry] = symbols[code]
            entries[entry + 1] = low_bits(8 * lengths[code])
            entries[entry + 2] = np.int64(lengths[code]) << 8 | code


@kernel
def longest_match(matcher: int, word: np.uint64, left: int) -> int:
    """Return the code of the longest symbol that begins ``word``, and its length above 8 bits.

    ``matcher`` is its address, ``word`` holds the next ``left`` bytes, 8 at most, and zeros. The
    result is 0 if no symbol fits.
    """
    if left >= _LONG:
        bucket = bucket_of(word)
        first = short_at(matcher + BUCKETS_AT, bucket)
        stop = short_at(matcher + BUCKETS_AT, bucket + 1)
        for number in range(first, stop):
            entry = uint64_at(matcher + ENTRIES_AT + 8 * _ENTRY_WORDS * number, _ENTRY_WORDS)
            if word & entry[1] == entry[0] and np.int64(entry[2]) >> 8 <= left:
                return np.int64(entry[2])  # type: ignore[return-value]  # a scalar
    if left == 1:
        return short_at(matcher + SHORTS_AT, _SINGLES + int(word & _BYTE))
    return short_at(matcher + SHORTS_AT, int(word & _TWO_BYTES))


@kernel
def next_word(address: int, left: int, safe: int) -> np.uint64:
    """Return up to 8 bytes at ``address``, of which ``left`` belong to the string.

    Memory before the address ``safe`` may be read 8 bytes at a time.
    """
    if address < safe:
        word = uint64_at(address, 1)[0]
        return word if left >= WORD_BYTES else word & low_bits(8 * left)  # type: ignore[no-any-return]  # a scalar
    word = np.uint64(0)
    for index in range(min(left, WORD_BYTES)):
        word |= np.uint64(bytes_at(address + index, 1)[0]) << np.uint64(8 * index)
    return word


@kernel
def count_tokens(
    matcher: int,
    data: int,
    offsets: NDArray[np.int64],
    singles: NDArray[np.int64],
    pairs: NDArray[np.int64],
) -> None:
    """Count what strings are made of.

    Parameters
    ----------
    matcher
        Address of a matcher.
    data, offsets
        Address of the bytes, and shape ``(n + 1,)``.
    singles, pairs
        Shapes ``(512,)`` and ``(512 * 512,)``; receive how often each token, a code or a byte from
        ``LITERAL`` on, occurs, and behind which other.
    """
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
                pairs[before * NUM_TOKENS + token] += 1
            before = token
            address += max(found >> 8, 1)


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
    counts = np.zeros(NUM_TOKENS, np.int64)
    count_tokens(address_of(matcher), address_of(data), offsets, counts, counts)
    compress(address_of(matcher), address_of(data), offsets, offsets.copy(), data)
