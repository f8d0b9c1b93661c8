"""Numbers as the reference spells them, where Arrow C++ spells them otherwise."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable


def plain(text: str) -> str:
    """Return a number without an exponent."""
    return f"{Decimal(text):f}"


def written_out(text: str) -> str:
    """Return a number without an exponent, but with a point."""
    number = plain(text)
    return number if "." in number else f"{number}.0"


def scientific(text: str) -> str:
    """Return a number with one digit before the point, and an exponent."""
    return f"{Decimal(text):e}"


def respelled(texts: pa.Array, pattern: str, spell: Callable[[str], str]) -> pa.Array:
    """Return texts, those that match a pattern spelled anew: once per distinct one."""
    is_other = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    if not pc.any(is_other).as_py():
        return texts
    others = texts.filter(is_other).dictionary_encode()
    spelled = pa.array([spell(each) for each in others.dictionary.to_pylist()], texts.type)
    return pc.replace_with_mask(texts, is_other, spelled.take(others.indices))
