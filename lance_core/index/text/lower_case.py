"""Small letters, character by character."""

from __future__ import annotations

# Pairs of letters that Unicode 16 and 17 added, unknown to the Python versions that we run on:
# the first capital, the first small letter, and how many follow one another.
_LATER_RANGES = ((0x10D50, 0x10D70, 22), (0x16EA0, 0x16EBB, 25))
_LATER_LETTERS = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x264,
    0xA7CC: 0xA7CD,
    0xA7CE: 0xA7CF,
    0xA7D2: 0xA7D3,
    0xA7D4: 0xA7D5,
    0xA7DA: 0xA7DB,
    0xA7DC: 0x19B,
}
_LOWER = {
    **_LATER_LETTERS,
    **{capital + i: small + i for capital, small, count in _LATER_RANGES for i in range(count)},
    0x3A3: 0x3C3,  # at the end of a word too, where Python takes another letter
}


def lower(text: str) -> str:
    """Return ``text`` in small letters, each character by itself.

    Notes
    -----
    Scalar index page, section 8.3, and observed with pylance 14.0.2 on all of Unicode.

    Examples
    --------
    >>> lower("ΣΟΦΟΣ Ab")
    'σοφοσ ab'
    """
    return text.lower() if text.isascii() else text.translate(_LOWER).lower()
