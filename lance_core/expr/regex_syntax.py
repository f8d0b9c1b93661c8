r"""Regular expressions of Rust's ``regex`` crate, as RE2 understands them.

Whether an expression matches somewhere is all that is asked: groups do not capture, and lazy
repetitions are as good as greedy ones. What RE2 cannot say is refused, never answered otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NoReturn

from lance_core.errors import TypeMismatchError
from lance_core.expr.regex_class import read_class
from lance_core.expr.regex_escapes import read_character, read_set
from lance_core.expr.regex_sets import BLANKS, SETS, code, is_word

_MOST_LEVELS = 250
_MOST_REPETITIONS = 1000
_MOST_CHARACTERS = 400_000
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_NAME = re.compile(r"\(\?P?<([^\W\d][\w.\[\]]*)>")
_TIMES = re.compile(r"\{\s*([0-9]+)\s*(,?)\s*([0-9]*)\s*\}")
_EDGE = re.compile(r"\\(b\{start\}|b\{end\}|[b<>])")
_BEFORE = rf"(?:\A|[^{SETS['w']}])"
_BEHIND = rf"(?:[^{SETS['w']}]|\z)"
_HINT = r"write (^|\W) before and (\W|$) behind a word"


@dataclass(frozen=True, slots=True)
class Regex:
    """An expression, translated.

    Attributes
    ----------
    pattern
        For RE2.
    parts
        Texts that whatever matches contains; empty if none is known.
    """

    pattern: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    r"""Something of a sequence; an edge is ``\b`` and the like, not yet translated."""

    text: str
    literal: str = ""
    is_optional: bool = False
    starts_word: bool = False
    ends_word: bool = False
    is_repeated: bool = False
    edge: str = ""
    levels: int = 0


@dataclass(slots=True)
class _Group:
    opening: str
    ignores_blanks: bool
    choices: list[list[_Piece]] = field(default_factory=lambda: [[]])


def _refuse(what: str, hint: str = "") -> NoReturn:
    raise TypeMismatchError(f"Invalid regular expression: {what}{'; ' if hint else ''}{hint}")


@lru_cache(maxsize=256)
def translated(pattern: str) -> Regex:
    r"""Translate a regular expression.

    Parameters
    ----------
    pattern
        In the syntax of Rust's ``regex`` crate.

    Raises
    ------
    TypeMismatchError
        It is none, or says what RE2 cannot: tells what.

    Examples
    --------
    >>> translated(r"caf\u{e9}").pattern
    'café'
    >>> translated("^error [0-9]+: disk.*full$").parts
    ('error ', ': disk', 'full')
    """
    return _Scanner(pattern).read()


class _Scanner:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._open = [_Group("", ignores_blanks=False)]
        self._names: set[str] = set()
        self._folds = False
        self._made = 0

    def read(self) -> Regex:
        while True:
            self._skip_blanks()
            if self._at >= len(self._pattern):
                break
            self._step(self._pattern[self._at])
        if len(self._open) > 1:
            _refuse("a group is not closed")
        choices = [_with_edges(each) for each in self._open[0].choices]
        pattern = "|".join("".join(piece.text for piece in each) for each in choices)
        is_known = len(choices) == 1 and not self._folds
        return Regex(pattern, _required(choices[0]) if is_known else ())

    def _skip_blanks(self) -> None:
        blanks = BLANKS.match(self._pattern, self._at)
        if self._open[-1].ignores_blanks and blanks is not None:
            self._at = blanks.end()

    def _step(self, sign: str) -> None:
        group = self._open[-1]
        if sign == "(":
            self._open_group()
        elif sign == ")":
            self._close_group()
        elif sign in "*+?{":
            self._repeat(sign)
        elif sign == "|":
            self._at += 1
            group.choices.append([])
        elif sign in "^$":
            self._at += 1
            self._add(_Piece(sign, is_optional=True, starts_word=True, ends_word=True))
        elif sign == ".":
            self._at += 1
            self._add(_Piece(sign))
        elif sign == "[":
            text, is_in_word, self._at = read_class(self._pattern, self._at, group.ignores_blanks)
            self._add(_Piece(text, starts_word=is_in_word, ends_word=is_in_word))
        elif sign == "\\":
            self._escape()
        else:
            self._at += 1
            self._add(_literal(sign))

    def _add(self, piece: _Piece) -> None:
        self._made += len(piece.text)
        if self._made > _MOST_CHARACTERS:
            _refuse("it is too large")
        self._open[-1].choices[-1].append(piece)

    def _open_group(self) -> None:
        named = _NAME.match(self._pattern, self._at)
        flags = _FLAGS.match(self._pattern, self._at)
        opening, ignores_blanks, end = "(?:", self._open[-1].ignores_blanks, self._at + 1
        if named is not None:
            if named[1] in self._names:
                _refuse(f"two groups are named {named[1][:40]}")
            self._names.add(named[1])
            end = named.end()
        elif flags is not None:
            opening, ignores_blanks = self._flags(flags, is_blind=ignores_blanks)
            end = flags.end()
        elif self._pattern.startswith("(?", self._at):
            _refuse("look-around, comments and references in groups are not supported")
        self._at = end
        if flags is not None and flags[3] == ")":
            self._open[-1].ignores_blanks = ignores_blanks
            self._add(_Piece(opening, is_optional=True, edge="flags"))
            return
        if len(self._open) > _MOST_LEVELS:
            _refuse(f"groups are nested deeper than {_MOST_LEVELS} levels")
        self._open.append(_Group(opening, ignores_blanks))

    def _flags(self, found: re.Match[str], *, is_blind: bool) -> tuple[str, bool]:
        on, off, end = found[1], found[2] or "", found[3]
        if len(set(on + off)) < len(on + off):
            _refuse("a flag stands twice")
        if on + off + end == ")":
            _refuse("a repetition without what is repeated")
        if not set(on + off) <= set("imsuxU") or "u" in off:
            _refuse(f"flags are i, m, s, x, U and u (which is always on), not {found[0][:40]!r}")
        self._folds |= "i" in on
        keeps_on, keeps_off = ("".join(each for each in of if each in "ims") for of in (on, off))
        opening = f"(?{keeps_on}{'-' if keeps_off else ''}{keeps_off}{end}"
        opening = "" if opening == "(?)" else opening
        return opening, ("x" in on) or (is_blind and "x" not in off)

    def _close_group(self) -> None:
        if len(self._open) == 1:
            _refuse("a ) without its (")
        self._at += 1
        group = self._open.pop()
        for each in group.choices:
            if any(piece.edge not in {"", "flags"} for piece in each):
                _refuse(r"\b, \B, \< and \> are not supported inside groups", _HINT)
        text = "|".join("".join(piece.text for piece in each) for each in group.choices)
        self._add(
            _Piece(
                f"{group.opening}{text})",
                is_optional=any(all(p.is_optional for p in each) for each in group.choices),
                starts_word=all(_starts_word(each) for each in group.choices),
                ends_word=all(_ends_word(each) for each in group.choices),
                levels=1 + max((p.levels for each in group.choices for p in each), default=0),
            )
        )

    def _repeat(self, sign: str) -> None:
        times, least = sign, 1 if sign == "+" else 0
        end = self._at + 1
        if sign == "{":
            times, least, end = _times(self._pattern, self._at)
        pieces = self._open[-1].choices[-1]
        if len(pieces) == 0 or pieces[-1].edge == "flags":
            _refuse("a repetition without what is repeated", "a brace as such is \\{")
        last = pieces.pop()
        if last.edge != "":
            _refuse("repetitions of \\b, \\B, \\< and \\> are not supported")
        if last.levels > _MOST_LEVELS:
            _refuse(f"repetitions are nested deeper than {_MOST_LEVELS} levels")
        self._at = end
        self._skip_blanks()
        if self._pattern.startswith("?", self._at):
            self._at += 1  # lazy: as good as greedy
        text = f"(?:{last.text})" if last.is_repeated else last.text
        self._add(
            replace(
                last,
                text=text + times,
                is_optional=last.is_optional or least == 0,
                is_repeated=True,
                literal=last.literal if least > 0 else "",
                levels=last.levels + 1,
            )
        )

    def _escape(self) -> None:
        edge = _EDGE.match(self._pattern, self._at)
        if edge is not None:
            self._at = edge.end()
            self._add(_Piece("", edge=edge[1]))
            return
        following = self._pattern[self._at + 1 : self._at + 2]
        if following == "B":
            _refuse(r"\B is not supported", _HINT)
        if following in {"A", "z"}:
            self._at += 2
            whole = _Piece(f"\\{following}", is_optional=True, starts_word=True, ends_word=True)
            self._add(whole)
            return
        found = read_set(self._pattern, self._at)
        if found is None:
            character, self._at = read_character(self._pattern, self._at)
            self._add(_literal(character))
            return
        self._at = found.end
        self._add(_Piece(found.alone, starts_word=found.is_in_word, ends_word=found.is_in_word))


def _literal(character: str) -> _Piece:
    is_plain = character.isalnum() or ord(character) > 127  # noqa: PLR2004  # ASCII signs mean more
    text = character if is_plain else code(ord(character))
    is_in_word = is_word(character)
    return _Piece(text, character, starts_word=is_in_word, ends_word=is_in_word)


def _times(pattern: str, at: int) -> tuple[str, int, int]:
    found = _TIMES.match(pattern, at)
    if found is None or (found[2] == "" and found[3] != ""):
        _refuse("a repetition is {n}, {n,} or {n,m}", "a brace as such is \\{")
    counts = [each for each in (found[1], found[3]) if each != ""]
    if max(map(len, counts)) > 9 or max(map(int, counts)) > _MOST_REPETITIONS:  # noqa: PLR2004
        _refuse(f"more than {_MOST_REPETITIONS} repetitions are not supported")
    numbers = [int(each) for each in counts]
    if numbers[0] > numbers[-1]:
        _refuse("a repetition has its bounds the wrong way round")
    last = numbers[1] if len(numbers) > 1 else ""
    return f"{{{numbers[0]}{found[2]}{last}}}", numbers[0], found.end()


def _starts_word(pieces: list[_Piece]) -> bool:
    """Whether what a sequence matches is empty or begins with a character of a word."""
    for each in pieces:
        if each.edge == "flags":
            continue
        if not each.starts_word:
            return False
        if not each.is_optional:
            return True
    return True


def _ends_word(pieces: list[_Piece]) -> bool:
    for each in reversed(pieces):
        if each.edge == "flags":
            continue
        if not each.ends_word:
            return False
        if not each.is_optional:
            return True
    return True


def _with_edges(pieces: list[_Piece]) -> list[_Piece]:
    r"""Translate ``\b`` before and behind a whole choice; elsewhere it cannot be.

    At an edge, what stands beside the match may as well be part of it.
    """
    places = [at for at, each in enumerate(pieces) if each.edge not in {"", "flags"}]
    if len(places) == 0:
        return pieces
    made = list(pieces)
    inner = [each for each in pieces if each.edge == ""]
    is_some = not all(each.is_optional for each in inner)
    first = next(at for at, each in enumerate(pieces) if each.edge != "flags")
    for at in places:
        edge = pieces[at].edge
        if is_some and at == first and edge in {"b", "b{start}", "<"} and _starts_word(inner):
            made[at] = _Piece(_BEFORE)
        elif (
            is_some and at == len(pieces) - 1 and edge in {"b", "b{end}", ">"} and _ends_word(inner)
        ):
            made[at] = _Piece(_BEHIND)
        else:
            _refuse(rf"\{edge} is supported only before and behind a word", _HINT)
    return made


def _required(pieces: list[_Piece]) -> tuple[str, ...]:
    parts = [""]
    for each in pieces:
        parts[-1] += each.literal
        if each.literal == "" or each.is_repeated:
            parts.append("")
    return tuple(dict.fromkeys(part for part in parts if part != ""))
