"""Paths of columns as users write them: names joined by dots, quoted by backticks where needed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def split_path(path: str) -> tuple[str, ...]:
    """Split a path into the names it consists of.

    A name between backticks may hold dots, and backticks that are written twice.

    Raises
    ------
    InvalidRequestError
        A part is empty, or a backtick has no partner.

    Examples
    --------
    >>> split_path("point.x")
    ('point', 'x')
    >>> split_path("st.`a.b`")
    ('st', 'a.b')
    """
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(path, at)
        if match is None or (match.end() < len(path) and path[match.end()] != "."):
            raise InvalidRequestError(
                f"{path!r} is no path of a column at character {at + 1}: join names by dots, and"
                " put names that hold dots or backticks between backticks"
            )
        quoted, bare = match.groups()
        parts.append(bare if quoted is None else quoted.replace("``", "`"))
        if match.end() == len(path):
            return tuple(parts)
        at = match.end() + 1


def join_path(parts: Iterable[str]) -> str:
    """Join names to a path that `split_path` splits again.

    Examples
    --------
    >>> join_path(["st", "a.b", "x"])
    'st.`a.b`.x'
    """
    return ".".join(_quoted(part) for part in parts)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if "." in name or "`" in name else name
