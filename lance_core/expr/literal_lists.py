"""Long lists of plain literals, cut out of a text before it is parsed.

A parser of SQL takes seconds for what this reads in milliseconds. Shorter lists, and those that
hold anything else, are left to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

LONG = 200
"""Values from which on a list is cut out."""

_NUMBERS = re.compile(r"\(([-+0-9.eE,\s]*[0-9.])\s*\)")
_WHOLE = re.compile(r"[-0-9,\s]*")
_TEXTS = re.compile(r"\(\s*((?:'[^']*(?:''[^']*)*'\s*,\s*)+'[^']*(?:''[^']*)*')\s*\)")
_TEXT = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True, slots=True, eq=False)
class LiteralList:
    """The values of a list and the characters that it takes.

    Attributes
    ----------
    values
        int64, float64 or strings; no nulls.
    end
        The character after its closing bracket.
    """

    values: pa.Array
    end: int


def cut_list(text: str, start: int) -> LiteralList | None:
    """Read a long list of plain literals, all numbers or all texts.

    Parameters
    ----------
    text
        A filter.
    start
        Where a list opens.

    Returns
    -------
    LiteralList | None
        None if what stands there is short or something else.
    """
    numbers = _NUMBERS.match(text, start)
    if numbers is not None:
        return _long(_numbers(numbers[1]), numbers)
    texts = (
        _TEXTS.match(text, start) if text.count(",", start, start + (1 << 20)) >= LONG - 1 else None
    )
    if texts is None:
        return None
    found = _TEXT.findall(texts[1])
    return _long(pa.array(each.replace("''", "'") for each in found), texts)


def _long(values: pa.Array | None, match: re.Match[str]) -> LiteralList | None:
    if values is None or len(values) < LONG:
        return None
    return LiteralList(values, match.end())


def _numbers(text: str) -> pa.Array | None:
    """Return numbers between commas; None where one is not written as numbers are."""
    if text.count(",") < LONG - 1:
        return None
    parts = pc.utf8_trim_whitespace(pa.array(text.split(","), pa.string()))
    kind = pa.int64() if _WHOLE.fullmatch(text) is not None else pa.float64()
    try:
        return parts.cast(kind)
    except pa.ArrowInvalid:  # the parser tells what is wrong
        return None
