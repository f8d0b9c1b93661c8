"""ASCII folding of n-gram and full-text indices: letters without their marks."""

from __future__ import annotations

import string
import unicodedata
from functools import lru_cache

# fmt: off
_SPECIAL_LETTERS = {  # which Unicode does not take apart
    "Æ": "AE", "Ð": "D", "Ø": "O", "Þ": "TH", "ß": "ss", "æ": "ae", "ð": "d", "ø": "o",
    "þ": "th", "Đ": "D", "đ": "d", "Ħ": "H", "ħ": "h", "ı": "i", "ĸ": "k", "Ł": "L",  # noqa: RUF001
    "ł": "l", "Ŋ": "N", "ŋ": "n", "Œ": "OE", "œ": "oe", "Ŧ": "T", "ŧ": "t", "ẞ": "SS",
}
# fmt: on
_OUTLINED_A = 0x1CCD6
_OUTLINED_ALPHANUMERICS = enumerate(string.ascii_uppercase + string.digits, _OUTLINED_A)
_MODIFIER_CAPITAL_S = 0xA7F1

_REPLACED = {
    **{ord(letter): folded for letter, folded in _SPECIAL_LETTERS.items()},
    # What Unicode 16 and 17 added is unknown to the Python versions that we run on.
    **dict(_OUTLINED_ALPHANUMERICS),
    _MODIFIER_CAPITAL_S: "S",
}
_KEPT_CHARACTERS = 4096


def fold_to_ascii(text: str) -> str:
    """Write characters that are ASCII characters with marks, or in disguise, as these.

    Notes
    -----
    Scalar index page, section 8.3, and observed with pylance 14.0.2 on all of Unicode: each
    character is decomposed (NFKD) by itself, and ASCII and some special letters stay. One of which
    nothing would stay is left as it is, so that Greek, Cyrillic and ideographs do not change.

    Examples
    --------
    >>> fold_to_ascii("Crème brûlée, ½ ﬁne Ærø, Ωμέγα")
    'Creme brulee, 12 fine AEro, Ωμέγα'
    """
    return text if text.isascii() else "".join(map(_folded, text))


@lru_cache(_KEPT_CHARACTERS)
def _folded(character: str) -> str:
    parts = unicodedata.normalize("NFKD", character)
    return "".join([p if p.isascii() else _REPLACED.get(ord(p), "") for p in parts]) or character
