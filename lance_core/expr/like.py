r"""LIKE: ``%`` is any text, ``_`` one character, ``\`` takes the next one as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr.functions.per_value import with_constants
from lance_core.expr.lists import as_array
from lance_core.expr.substring import contains

if TYPE_CHECKING:
    from lance_core.expr.convert import Values
    from lance_core.expr.limits import Check

_MOST_CHARACTERS = 10_000
"""Of a pattern; larger ones make regular expressions that take whole seconds to prepare."""
_PIECE = re.compile(r"\\(.)|([%_])|([^\\%_]+)|(\\)$", re.DOTALL)


def like(texts: Values, pattern: Values, *, ignores_case: bool, check: Check) -> Values:
    """Tell which texts match a pattern from begin to end.

    Parameters
    ----------
    texts
        The texts.
    pattern
        One, or one for each text.
    ignores_case
        Capital and small letters are alike, those of all alphabets.
    check
        Called before each of many patterns; raises when the work has to stop.

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

    def matches(some: pa.Array, each: str) -> pa.Array:
        check()
        return _like(some, each, ignores_case=ignores_case)

    return with_constants(matches, as_array(texts, len(pattern)), [pattern], pa.bool_())


def _like(texts: Values, pattern: str | None, *, ignores_case: bool) -> Values:
    if pattern is None:
        nothing = pa.scalar(None, pa.bool_())
        return nothing if isinstance(texts, pa.Scalar) else pa.repeat(nothing, len(texts))
    if len(pattern) > _MOST_CHARACTERS:
        raise TypeMismatchError(
            f"the pattern has {len(pattern)} characters, the limit is {_MOST_CHARACTERS}"
        )
    found = None if ignores_case else _without_regex(texts, split(pattern))
    if found is not None:
        return found
    return pc.match_substring_regex(texts, pattern=_regex(pattern), ignore_case=ignores_case)


def _without_regex(texts: Values, pieces: list[tuple[str, str]]) -> Values | None:
    """Match patterns such as ``abc``, ``a%``, ``%b``, ``a%b`` and ``%b%``, ten times as fast.

    None for others.
    """
    shape = [kind for kind, _ in pieces]
    if "any" not in shape and "one" not in shape:
        return pc.equal(texts, pa.scalar("".join(text for _, text in pieces), texts.type))
    if shape == ["any", "text", "any"]:
        if isinstance(texts, pa.Array):
            return contains(texts, pieces[1][1])
        return pc.match_substring(texts, pattern=pieces[1][1])
    if shape.count("any") != 1 or "one" in shape:
        return None
    middle = shape.index("any")
    start = "".join(text for _, text in pieces[:middle])
    end = "".join(text for _, text in pieces[middle + 1 :])
    found = pc.starts_with(texts, pattern=start)
    if end == "":
        return found
    shortest = len(start.encode()) + len(end.encode())
    found = pc.and_(found, pc.ends_with(texts, pattern=end))
    return pc.and_(found, pc.greater_equal(pc.binary_length(texts), shortest))


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
