"""Words of a text, as ``contains_tokens`` takes them."""

from __future__ import annotations

import re
from functools import cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.functions.per_value import per_value
from lance_core.expr.token_characters import token_characters

_FEW_WORDS = 8
"""So many are looked for one by one, which takes a millisecond each to prepare; more by Python."""

_FEW_TEXTS = 64
"""So many are looked through by Python, as each row may ask for words of its own."""


def words(text: str) -> frozenset[str]:
    """Return the distinct words of a text: runs of letters, digits and vowel signs as they are.

    Notes
    -----
    Scalar index page, 8.10: those of the tokenizer ``simple`` without any further step.
    """
    return frozenset(_runs().findall(text))


def have_words(texts: pa.Array, wanted: frozenset[str]) -> pa.Array:
    """Tell which texts have all of some words; null for nulls."""
    if len(texts) <= _FEW_TEXTS:
        return per_value(texts, lambda text: wanted <= words(text), pa.bool_())
    if len(wanted) <= _FEW_WORDS:
        return _all_of([_have_word(texts, word) for word in wanted], texts)
    maybe = _all_of([pc.match_substring(texts, pattern=word) for word in wanted], texts)
    candidates = texts.filter(maybe)
    has = pa.array([wanted <= words(each) for each in candidates.to_pylist()], pa.bool_())
    return pc.replace_with_mask(maybe, maybe.fill_null(False), has)


def _all_of(tests: list[pa.Array], texts: pa.Array) -> pa.Array:
    return reduce(pc.and_, tests, pc.if_else(texts.is_valid(), True, None))


def _have_word(texts: pa.Array, word: str) -> pa.Array:
    """Tell which texts have a word; it needs no escapes, as it has no signs."""
    around = f"[^{_ranges('x{{{:x}}}')}]"
    return pc.match_substring_regex(texts, pattern=f"(?:^|{around}){word}(?:{around}|$)")


@cache
def _runs() -> re.Pattern[str]:
    return re.compile(f"[{_ranges('U{:08x}')}]+")


@cache
def _ranges(code: str) -> str:
    """Return the characters of words as in brackets of an expression; ``code`` spells one."""
    ends = np.flatnonzero(np.diff(token_characters().astype(np.int8), prepend=0, append=0))
    pairs = zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True)
    return "".join(rf"\{code.format(a)}-\{code.format(b - 1)}" for a, b in pairs)
