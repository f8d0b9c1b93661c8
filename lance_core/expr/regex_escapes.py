r"""What begins with a backslash in regular expressions of Rust's ``regex`` crate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from lance_core.errors import TypeMismatchError
from lance_core.expr.regex_sets import SETS, all_but, is_word_set, named_set

_CODE = re.compile(r"\\(?:[xuU]\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U(.{8}))")
_PROPERTY = re.compile(r"\\[pP](?:\{([^}]*)\}|(.))", re.DOTALL)
_NAMED = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class FoundSet:
    r"""A set of characters such as ``\d``.

    Attributes
    ----------
    kind
        Its letter.
    alone
        For RE2, outside of brackets.
    is_in_word
        Whether it is known to hold nothing but characters of words.
    end
        The place behind it.
    """

    kind: str
    alone: str
    is_in_word: bool
    end: int

    @property
    def inside(self) -> str:
        """For RE2, between brackets."""
        if self.kind.lower() == "p":
            return self.alone
        return SETS[self.kind] if self.kind in SETS else all_but(self.kind.lower())


def _refuse(what: str) -> NoReturn:
    raise TypeMismatchError(f"Invalid regular expression: {what}")


def read_set(pattern: str, at: int) -> FoundSet | None:
    """Read a set at a backslash; None if there stands something else.

    Raises
    ------
    TypeMismatchError
        RE2 does not know the set.
    """
    kind = pattern[at + 1 : at + 2]
    if kind.lower() in SETS:
        is_out = kind not in SETS
        alone = f"[{'^' if is_out else ''}{SETS[kind.lower()]}]"
        return FoundSet(kind, alone, not is_out and kind != "s", at + 2)
    if kind not in {"p", "P"}:
        return None
    found = _PROPERTY.match(pattern, at)
    if found is None:
        _refuse(f"\\{kind} without a name")
    given = found[2] if found[1] is None else found[1]
    name = named_set(given)
    if name is None:
        _refuse(
            f"the set {found[0][:40]} is not supported; known are general categories, such as"
            r" \p{Lu}, and scripts, such as \p{Greek}"
        )
    return FoundSet(kind, f"\\{kind}{{{name}}}", kind == "p" and is_word_set(name), found.end())


def read_character(pattern: str, at: int) -> tuple[str, int]:
    """Read the character that an escape stands for; return it and the place behind.

    Raises
    ------
    TypeMismatchError
        It stands for none.
    """
    following = pattern[at + 1 : at + 2]
    if following == "":
        _refuse("it ends with a backslash")
    if following in "xuU":
        return _of_code(pattern, at)
    if following in _NAMED:
        return _NAMED[following], at + 2
    if not following.isascii() or following.isalnum() or following in "<>":
        _refuse(f"\\{following} is not supported")
    return following, at + 2


def _of_code(pattern: str, at: int) -> tuple[str, int]:
    found = _CODE.match(pattern, at)
    digits = "" if found is None else next(each for each in found.groups() if each is not None)
    if found is None or re.fullmatch("[0-9A-Fa-f]{1,8}", digits) is None:
        _refuse(f"{pattern[at : at + 10]!r} is no code of a character")
    point = int(digits, 16)
    if point > 0x10FFFF or point in _SURROGATES:  # noqa: PLR2004  # the last of Unicode
        _refuse(f"{found[0]} is no character of Unicode")
    return chr(point), found.end()
