"""Parts of identifiers in source code."""

from __future__ import annotations

import re

_PARTS = re.compile(r"[^_]+")
_DIGITS = frozenset("0123456789")


def identifier_parts(identifier: str, *, split_on_numerics: bool) -> list[str]:
    """Return the parts of an identifier in their order.

    Parts end at underscores, before a capital that follows a small letter, before the last of
    several capitals that a small letter follows and, if asked for, where ASCII digits begin or end.

    Notes
    -----
    Observed with pylance 14.0.2, base tokenizer ``code``.

    Examples
    --------
    >>> identifier_parts("parse_XMLHttp2", split_on_numerics=True)
    ['parse', 'XML', 'Http', '2']
    """
    return [
        part
        for whole in _PARTS.findall(identifier)
        for part in _parts(whole, split_on_numerics=split_on_numerics)
    ]


def _parts(whole: str, *, split_on_numerics: bool) -> list[str]:
    begins = [
        place
        for place in range(1, len(whole))
        if (split_on_numerics and (whole[place - 1] in _DIGITS) != (whole[place] in _DIGITS))
        or _is_hump(whole, place)
    ]
    return [whole[a:b] for a, b in zip([0, *begins], [*begins, len(whole)], strict=True)]


def _is_hump(whole: str, place: int) -> bool:
    if not whole[place].isupper():
        return False
    before = whole[place - 1]
    return before.islower() or (before.isupper() and whole[place + 1 : place + 2].islower())
