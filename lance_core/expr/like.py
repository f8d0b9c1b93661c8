r"""LIKE: ``%`` is any text, ``_`` one character, ``\`` takes the next one as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr.lists import as_array

if TYPE_CHECKING:
    from lance_core.expr.convert import Values

_MOST_CHARACTERS = 10_000
"""Of a pattern; larger ones make regular expressions that take whole seconds to prepare."""
_PIECE = re.compile(r"\\(.)|([%_])|([^\\%_]+)|(\\)$", re.DOTALL)


def like(texts: Values, pattern: Values, *, ignores_case: bool) -> Values:
    """Tell which texts match a pattern from begin to end.

    Parameters
    ----------
    texts
        The texts.
    pattern
        One, or one for each text.
    ignores_case
        Capital and small letters are alike, those of all alphabets.

    Returns
    -------
    pa.Array | pa.Scalar
        Booleans; null where the text or the pattern is.

    Raises
    ------
    TypeMismatchError
        A pattern is too long.
    """
    if isinstance(pattern, pa.Scalar):
        return _like(texts, pattern.as_py(), ignores_case=ignores_case)
    texts = as_array(texts, len(pattern))
    coded = pattern.dictionary_encode()
    found = np.zeros(len(pattern), bool)
    is_known = np.zeros(len(pattern), bool)
    codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    for code, each in enumerate(coded.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        matches = _like(texts.take(pa.array(rows)), each, ignores_case=ignores_case)
        is_known[rows] = matches.is_valid().to_numpy(zero_copy_only=False)
        found[rows] = pc.fill_null(matches, fill_value=False).to_numpy(zero_copy_only=False)
    return pa.array(found, mask=~is_known)


def _like(texts: Values, pattern: str | None, *, ignores_case: bool) -> Values:
    if pattern is None:
        nothing = pa.scalar(None, pa.bool_())
        return nothing if isinstance(texts, pa.Scalar) else pa.repeat(nothing, len(texts))
    if len(pattern) > _MOST_CHARACTERS:
        raise TypeMismatchError(
            f"the pattern has {len(pattern)} characters, the limit is {_MOST_CHARACTERS}"
        )
    plain = without_wildcards(pattern)
    if plain is not None and not ignores_case:
        return pc.equal(texts, pa.scalar(plain, texts.type))
    start = prefix(pattern)
    if not ignores_case and start is not None:
        return pc.starts_with(texts, pattern=start)
    return pc.match_substring_regex(texts, pattern=_regex(pattern), ignore_case=ignores_case)


def without_wildcards(pattern: str) -> str | None:
    """Return the one text that a pattern matches; None if there are others."""
    pieces = split(pattern)
    if any(kind != "text" for kind, _ in pieces):
        return None
    return "".join(text for _, text in pieces)


def prefix(pattern: str) -> str | None:
    """Return what texts begin with if a pattern asks for nothing else; else None."""
    pieces = split(pattern)
    if len(pieces) == 0 or pieces[-1][0] != "any" or any(kind != "text" for kind, _ in pieces[:-1]):
        return None
    return "".join(text for _, text in pieces[:-1])


def split(pattern: str) -> list[tuple[str, str]]:
    r"""Return the pieces of a pattern: ``text``, ``any`` or ``one``.

    A ``\`` at the end stands for itself (observed with pylance 14.0.2).
    """
    pieces = []
    for escaped, wildcard, text, lone in _PIECE.findall(pattern):
        if wildcard != "":
            pieces.append(("any" if wildcard == "%" else "one", wildcard))
        else:
            pieces.append(("text", escaped or text or lone))
    return pieces


def _regex(pattern: str) -> str:
    made = {"any": ".*", "one": "."}
    parts = [made.get(kind) or _escaped(text) for kind, text in split(pattern)]
    return "(?s)\\A" + "".join(parts) + "\\z"


def _escaped(text: str) -> str:
    return (
        re.sub(r"([^\w\s]|_)", r"\\\1", text, flags=re.ASCII)
        if text.isascii()
        else "".join(
            each if not each.isascii() or each.isalnum() or each.isspace() else f"\\{each}"
            for each in text
        )
    )
