"""Trigrams of many texts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.index.folding import fold_to_ascii

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUM_CODES = 0x110000
_ASCII = 128
_LENGTH = 3
_BASE = 37
_FIRST_LETTER = 11
_BYTE = 0xFF
_TOKEN_BITS = np.uint64(32)


def trigrams_of_texts(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the trigrams of texts, none of which is null.

    Parameters
    ----------
    texts
        Of type ``string`` or ``large_string``.

    Returns
    -------
    tuple[NDArray[np.int64], NDArray[np.uint32]]
        Shape ``(t,)`` each: which text, and the number of a trigram in it, each pair once.

    Notes
    -----
    Scalar index page, section 5, and observed with pylance 14.0.2 on all of Unicode: texts are
    made lower case and folded, and what has become a capital letter then has a number of its own.
    `lance_core.index.scalar.trigrams` makes those of what is searched for.
    """
    digits, lengths = _digits_of(texts)
    if len(digits) < _LENGTH:
        return np.zeros(0, np.int64), np.zeros(0, np.uint32)
    rows = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    first, second, third = digits[:-2], digits[1:-1], digits[2:]
    is_whole = (first > 0) & (second > 0) & (third > 0) & (rows[:-2] == rows[2:])
    places = np.flatnonzero(is_whole)
    a, b, c = (each[places].astype(np.uint64) for each in (first, second, third))
    pairs = rows[places] << _TOKEN_BITS | (a * _BASE + b) * _BASE + c
    pairs.sort()  # many times as quick as numpy.unique, which hashes
    is_first = np.ones(len(pairs), np.bool_)
    np.not_equal(pairs[1:], pairs[:-1], out=is_first[1:])
    distinct = pairs[is_first]
    return (distinct >> _TOKEN_BITS).astype(np.int64), distinct.astype(np.uint32)


def _digits_of(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the digits of all characters, 0 for those in no trigram, and how many each text has.

    Each character is folded by itself, so a table of those that occur does for all texts.
    """
    wide = texts.cast(pa.large_string())
    _, stored, data = wide.buffers()
    offsets = np.frombuffer(stored, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return np.zeros(0, np.uint8), np.zeros(len(texts), np.int64)
    characters = np.frombuffer(data, np.uint8)[first:last]
    if characters.max() < _ASCII:
        return _ASCII_DIGITS[characters], np.diff(offsets)
    text = characters.tobytes().decode()
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
    counts = pc.utf8_length(wide).to_numpy()
    return _folded_digits(codes, counts)


def _folded_digits(
    codes: NDArray[np.uint32], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return digits as `_digits_of`, of texts of ``counts`` characters that follow one another."""
    occurs = np.zeros(_NUM_CODES, np.bool_)
    occurs[codes] = True
    (known,) = np.nonzero(occurs)
    folded = [fold_to_ascii(chr(code).lower()) for code in known.tolist()]
    place = np.empty(_NUM_CODES, np.int32)
    place[known] = np.arange(len(known))
    sizes = np.array([len(each) for each in folded], np.int64)
    starts = np.cumsum(sizes) - sizes
    table = np.array([_digit(character) for each in folded for character in each], np.uint8)
    which = place[codes]
    widths = sizes[which]
    ends = np.cumsum(widths)
    within = np.arange(ends[-1]) - np.repeat(ends - widths, widths)
    digits = table[np.repeat(starts[which], widths) + within]
    text_ends = np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(counts)])]
    return digits, np.diff(text_ends)


def _digit(character: str) -> int:
    if not character.isascii() or not character.isalnum():
        return 0
    if character.isdigit():
        return int(character) + 1
    return (ord(character) - ord("a") + _FIRST_LETTER) & _BYTE


_ASCII_DIGITS = np.array([_digit(chr(code).lower()) for code in range(_ASCII)], np.uint8)
