r"""Classes between brackets in regular expressions of Rust's ``regex`` crate."""

from __future__ import annotations

import re
from typing import NoReturn

from lance_core.errors import TypeMismatchError
from lance_core.expr.regex_escapes import read_character, read_set
from lance_core.expr.regex_sets import BLANKS, code, is_word

_POSIX = re.compile(
    r"\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word"
    r"|xdigit):\]"
)
_MOST_LOOKED_AT = 300
"""Characters of a range that are looked at one by one."""


def read_class(pattern: str, at: int, ignores_blanks: bool) -> tuple[str, bool, int]:
    """Read a class.

    Parameters
    ----------
    pattern, at
        Where its bracket opens.
    ignores_blanks
        Whether blanks mean nothing.

    Returns
    -------
    tuple[str, bool, int]
        The class for RE2, whether it is known to hold nothing but characters of words, and the
        place behind it.

    Raises
    ------
    TypeMismatchError
        It is none, or combines others.
    """
    return _Class(pattern, at + 1, ignores_blanks).read()


def _refuse(what: str) -> NoReturn:
    raise TypeMismatchError(f"Invalid regular expression: {what}")


class _Class:
    def __init__(self, pattern: str, at: int, ignores_blanks: bool) -> None:
        self._pattern = pattern
        self._at = at
        self._ignores_blanks = ignores_blanks
        self._items: list[str] = []
        self._is_in_word = True

    def read(self) -> tuple[str, bool, int]:
        self._skip_blanks()
        is_out = self._next("^")
        while self._next("-"):
            self._add_range("-", "-")
        if len(self._items) == 0 and self._next("]"):
            self._add_range("]", "]")
        while not self._next("]"):
            self._item()
        sign = "^" if is_out else ""
        return f"[{sign}{''.join(self._items)}]", self._is_in_word and not is_out, self._at

    def _skip_blanks(self) -> None:
        blanks = BLANKS.match(self._pattern, self._at)
        if self._ignores_blanks and blanks is not None:
            self._at = blanks.end()

    def _next(self, sign: str) -> bool:
        """Step over a sign, and blanks behind it, if it stands here."""
        if not self._pattern.startswith(sign, self._at):
            return False
        self._at += len(sign)
        if sign != "]" or len(self._items) == 0:
            self._skip_blanks()
        return True

    def _item(self) -> None:
        for sign in ("&&", "--", "~~"):
            if self._pattern.startswith(sign, self._at):
                _refuse(f"{sign} in classes is not supported; write the characters")
        posix = _POSIX.match(self._pattern, self._at)
        if posix is not None:
            self._add(posix[0], posix.end())
            return
        found = read_set(self._pattern, self._at) if self._here() == "\\" else None
        if found is not None:
            self._add(found.inside, found.end, is_in_word=found.is_in_word)
            return
        first = self._character()
        self._skip_blanks()
        is_range = self._here() == "-" and self._pattern[self._at + 1 : self._at + 2] != "-"
        at = self._at
        if is_range:
            self._at += 1
            self._skip_blanks()
        if not is_range or self._here() == "]":
            self._at = at
            self._add_range(first, first)
            return
        last = self._character()
        self._skip_blanks()
        if first > last:
            _refuse("a range of a class has its ends the wrong way round")
        self._add_range(first, last)

    def _here(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _character(self) -> str:
        sign = self._here()
        if sign == "":
            _refuse("a class is not closed")
        if sign == "[":
            _refuse("classes inside classes are not supported; a bracket as such is \\[")
        if sign == "\\":
            if read_set(self._pattern, self._at) is not None:
                _refuse("a range of a class ends with a set")
            character, self._at = read_character(self._pattern, self._at)
            return character
        self._at += 1
        return sign

    def _add(self, text: str, end: int, *, is_in_word: bool = False) -> None:
        self._items.append(text)
        self._is_in_word &= is_in_word
        self._at = end
        self._skip_blanks()

    def _add_range(self, first: str, last: str) -> None:
        points = range(ord(first), ord(last) + 1)
        is_in_word = len(points) < _MOST_LOOKED_AT and all(is_word(chr(each)) for each in points)
        text = code(points[0]) if first == last else f"{code(points[0])}-{code(points[-1])}"
        self._items.append(text)
        self._is_in_word &= is_in_word
