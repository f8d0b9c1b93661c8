"""The trigrams of a text, numbered as an n-gram index numbers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.folding import fold_to_ascii

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENGTH = 3
_BASE = 37
_BYTE_VALUES = 256


def trigrams(text: str) -> NDArray[np.uint32]:
    """Return the numbers of the trigrams of a text, ascending, each once.

    All of them stand with a text in which this one occurs. Only windows of three ASCII letters and
    digits count, so that a text of any length may have none.

    Notes
    -----
    Scalar index page, section 5, and observed with pylance 14.0.2 on all of Unicode: the text is
    made lower case, then folded, which may bring forth capital letters; these are numbered like
    the others, in the arithmetic of bytes.

    Examples
    --------
    >>> trigrams("Qui").tolist(), trigrams("a-b c").tolist()
    ([38129], [])
    """
    characters = np.frombuffer(fold_to_ascii(text.lower()).encode("ascii", "replace"), np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(_pad(characters), _LENGTH)
    whole = windows[_COUNTS[windows].all(axis=1)]
    return np.unique(_DIGITS[whole] @ _WEIGHTS)


def _pad(characters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Lengthen a text that is shorter than a window; the padding is in no trigram."""
    missing = max(0, _LENGTH - len(characters))
    return np.pad(characters, (0, missing))


def _digit_table() -> NDArray[np.uint32]:
    """Return the digit of each byte that may be in a trigram."""
    table = np.zeros(_BYTE_VALUES, np.uint32)
    for digit, character in enumerate(_LOWER_CASE, 1):
        table[character] = digit
    for character in _CAPITALS:
        table[character] = (character - ord("a") + len(b" 0123456789")) % _BYTE_VALUES
    return table


_LOWER_CASE = b"0123456789abcdefghijklmnopqrstuvwxyz"
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_COUNTS = np.isin(np.arange(_BYTE_VALUES), np.frombuffer(_LOWER_CASE + _CAPITALS, np.uint8))
_DIGITS = _digit_table()
_WEIGHTS = np.array([_BASE * _BASE, _BASE, 1], np.uint32)
