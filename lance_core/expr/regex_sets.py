r"""Sets of characters that regular expressions name, in the syntax of RE2.

``\w``, ``\d`` and ``\s`` are those of Rust's ``regex`` crate, for every character (measured with
pylance 14.0.2): the categories as RE2 counts them and the characters that Unicode 16 added.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NEW_DIGITS = (
    r"\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{16130}-\x{16139}"
    r"\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1E5F1}-\x{1E5FA}"
)
_NEW_WORD = (
    r"\x{897}\x{1C89}-\x{1C8A}\x{A7CB}-\x{A7CD}\x{A7DA}-\x{A7DC}\x{105C0}-\x{105F3}"
    r"\x{10D40}-\x{10D65}\x{10D69}-\x{10D6D}\x{10D6F}-\x{10D85}\x{10EC2}-\x{10EC4}\x{10EFC}"
    r"\x{11380}-\x{11389}\x{1138B}\x{1138E}\x{11390}-\x{113B5}\x{113B7}-\x{113C0}\x{113C2}"
    r"\x{113C5}\x{113C7}-\x{113CA}\x{113CC}-\x{113D3}\x{113E1}-\x{113E2}\x{116D0}-\x{116E3}"
    r"\x{11BC0}-\x{11BE0}\x{11BF0}-\x{11BF9}\x{11F5A}\x{13460}-\x{143FA}\x{16100}-\x{16139}"
    r"\x{16D40}-\x{16D6C}\x{16D70}-\x{16D79}\x{18CFF}\x{1CCF0}-\x{1CCF9}\x{1E5D0}-\x{1E5FA}"
)
SETS = {
    "w": (
        r"\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}"
        rf"\x{{1F150}}-\x{{1F169}}\x{{1F170}}-\x{{1F189}}{_NEW_WORD}"
    ),
    "d": rf"\p{{Nd}}{_NEW_DIGITS}",
    "s": (
        r"\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}"
        r"\x{3000}"
    ),
}
"""What stands between the brackets of a class for ``\\w``, ``\\d`` and ``\\s``."""

BLANKS = re.compile(
    r"(?:[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|#[^\n]*)*"
)
"""What means nothing under the flag ``x``."""

_CATEGORIES = {
    **{name: name for name in ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N")},
    **{name: name for name in ("Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po")},
    **{name: name for name in ("S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf")},
    "Co": "Co",
    "Any": "Any",
    "Letter": "L",
    "Mark": "M",
    "Number": "N",
    "Symbol": "S",
    "Punctuation": "P",
    "Separator": "Z",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
}
_SCRIPT = re.compile(r"[A-Z][a-z]{2,}(?:_[A-Z][a-z]+)*")
_NOT_SCRIPTS = frozenset(("Alphabetic", "Uppercase", "Lowercase", "Cased", "Assigned", "Ascii"))
_WORD_CATEGORIES = frozenset(("Nd", "Nl", "Pc"))


def named_set(name: str) -> str | None:
    r"""Return the name that RE2 has for the set ``\p{name}``, None if it has none."""
    is_script = _SCRIPT.fullmatch(name) is not None and name not in _NOT_SCRIPTS
    return _CATEGORIES.get(name, name if is_script else None)


def is_word_set(name: str) -> bool:
    r"""Whether a set of RE2 is known to hold nothing but characters of ``\w``."""
    return (name[0] in "LM" and len(name) <= 2) or name in _WORD_CATEGORIES  # noqa: PLR2004


def is_word(character: str) -> bool:
    r"""Whether a character is known to be one of ``\w``."""
    return is_word_set(unicodedata.category(character))


def code(point: int) -> str:
    """Return a character as RE2 spells any."""
    return f"\\x{{{point:X}}}"


@lru_cache(maxsize=3)
def all_but(kind: str) -> str:
    r"""Return what stands between the brackets of a class for ``\W``, ``\D`` or ``\S``.

    Parameters
    ----------
    kind
        ``w``, ``d`` or ``s``.
    """
    points = np.concatenate([np.arange(0xD800), np.arange(0xE000, 0x110000)])
    texts = pa.array(map(chr, points.tolist()), pa.string())
    is_out = pc.match_substring_regex(texts, pattern=f"[^{SETS[kind]}]")
    left = points[is_out.to_numpy(zero_copy_only=False)]
    ends = np.flatnonzero(np.diff(left) != 1)
    firsts, lasts = left[np.r_[0, ends + 1]], left[np.r_[ends, len(left) - 1]]
    return "".join(f"{code(first)}-{code(last)}" for first, last in zip(firsts, lasts, strict=True))
