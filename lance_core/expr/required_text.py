"""Texts that whatever matches a regular expression has to contain."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""
      (?P<hard>[()|]|\\[QCpPxk0-9])       # groups and choices: nothing is known
    | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\]|\\[A-Za-z]|[.^$])
    | (?P<many>[*?]|\{[0-9,]*\})
    | (?P<plus>\+)
    | \\(?P<escaped>.)
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def required_parts(pattern: str) -> tuple[str, ...]:
    """Return texts that every match of a regular expression contains.

    Parameters
    ----------
    pattern
        Of RE2.

    Returns
    -------
    tuple[str, ...]
        Empty if nothing is known.

    Examples
    --------
    >>> required_parts("^error [0-9]+: disk.*full$")
    ('error ', ': disk', 'full')
    >>> required_parts("colou?r")
    ('colo', 'r')
    """
    parts = [""]
    for match in _PIECE.finditer(pattern):
        kind = match.lastgroup
        if kind == "hard":
            return ()
        if kind in {"escaped", "plain"}:
            parts[-1] += match[str(kind)]
            continue
        if kind == "many":  # the character before it may be missing
            parts[-1] = parts[-1][:-1]
        parts.append("")
    return tuple(dict.fromkeys(part for part in parts if part != ""))
