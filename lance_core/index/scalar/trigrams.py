"""Trigrams of texts, numbered as an n-gram index numbers them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.folding import fold_to_ascii

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENGTH = 3
_BASE = 37
_BYTE_VALUES = 256
_CHARACTERS = b"0123456789abcdefghijklmnopqrstuvwxyz"
_FOLDED_DIFFERENTLY = re.compile(r"[^\x00-\x7f\xc0-\u0137\u0139-\u017f\u1e00-\u1e9a\u1e9c-\u1eff]")


def trigrams(text: str) -> NDArray[np.uint32]:
    """Return trigrams that stand with every text in which this one occurs.

    Only three ASCII letters and digits in a row are a trigram, so that a text of any length may
    have none. Of characters that not all releases fold alike none is made.

    Returns
    -------
    NDArray[np.uint32]
        Shape ``(n,)``: their numbers, ascending, each once.

    Notes
    -----
    Scalar index page, section 5: the text is made lower case and folded. Observed with pylance
    0.39, 1.0, 4.0, 7.0 and 14.0.2 on all of Unicode: up to 4.0 another table was used, which agrees
    in Latin letters with marks. Since then some characters become capital letters, which have
    numbers of their own.

    Examples
    --------
    >>> trigrams("Qui").tolist(), trigrams("a-b c").tolist()
    ([38129], [])
    """
    known = _FOLDED_DIFFERENTLY.sub(" ", text)
    characters = np.frombuffer(fold_to_ascii(known.lower()).encode("ascii", "replace"), np.uint8)
    missing = max(0, _LENGTH - len(characters))
    padded = np.pad(_DIGITS[characters], (0, missing))
    windows = np.lib.stride_tricks.sliding_window_view(padded, _LENGTH)
    return np.unique(windows[windows.all(axis=1)] @ _WEIGHTS)


def _digits() -> NDArray[np.uint32]:
    """Return the digit of each byte, 0 for those that are in no trigram."""
    table = np.zeros(_BYTE_VALUES, np.uint32)
    table[np.frombuffer(_CHARACTERS, np.uint8)] = np.arange(1, _BASE)
    return table


_DIGITS = _digits()
_WEIGHTS = np.array([_BASE * _BASE, _BASE, 1], np.uint32)
