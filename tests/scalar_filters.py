"""Random filters for indices of one kind, over the columns of `scalar_tables`."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from tests.scalar_tables import DAWN, INDICES, TESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    Write = Callable[[Random], str]

_OPERATORS = ("=", "=", "<>", "!=", "<", "<=", ">", ">=")
_MIRRORED = ("=", "<>", "<", ">=")
_REALS = ("0", "-0.0", "1.5", "-2.25", "2", "1e400", "-1e400", "CAST('NaN' AS DOUBLE)")
_NAMES = ("amber", "basil", "cedar", "delta", "ember", "Fjord")
_PARTS = ("edar", "amb", "mber del", "fjord", "Fjo", "asil a", "sil", "am", "zzz", "r e")
_NOTE_PARTS = ("no. 00", "STRASSE", "traße", "ïve", "naive", "cafe", "a-b", "日本語", "x_y", "7: ")
_PATTERNS = ("Straße", "STRAS+E", "0[0-3]1: ", "na.ve café", "x_y|a-b", "(?i)strasse", "ber .*dar")
_TAGS = ("'amber'", "'basil'", "'cedar'", "'delta'", "'zzz'", "NULL")


def random_filter(random: Random, kind: str, depth: int = 6) -> str:
    """Return tests joined by AND, OR and NOT; most of them are for indices of one kind."""
    form = random.random()
    if depth == 0 or form < 0.45:
        return random_test(random, kind) if random.random() < 0.75 else random.choice(TESTS)
    if form < 0.6:
        return f"NOT ({random_filter(random, kind, depth - 1)})"
    join = random.choice([" AND ", " OR "])
    parts = [random_filter(random, kind, depth - 1) for _ in range(random.choice([2, 2, 2, 3]))]
    return join.join(f"({each})" for each in parts)


def random_test(random: Random, kind: str) -> str:
    """Return a test of a column that has an index of one kind."""
    column = random.choice([name for name, own, _ in INDICES if own == kind])
    if kind == "LABEL_LIST":
        return _listed(random, column)
    if kind == "NGRAM":
        return _matched(random, column, _PARTS if column == "text" else _NOTE_PARTS)
    if column == "ok":
        return random.choice(
            ["ok", "NOT ok", "ok = true", "ok IS TRUE", "ok IS NULL", "ok <> false"]
        )
    if column in {"name", "zoned_name"} and random.random() < 0.4:
        return _prefixed(random, column)
    return _compared(random, column)


def _compared(random: Random, column: str) -> str:
    literal = _LITERALS[column]
    form = random.choice(["right", "right", "left", "in", "between", "null"])
    not_ = random.choice(["", "", "NOT "])
    if form == "right":
        return f"{column} {random.choice(_OPERATORS)} {literal(random)}"
    if form == "left":
        return f"{literal(random)} {random.choice(_MIRRORED)} {column}"
    if form == "in":
        listed = ", ".join(literal(random) for _ in range(random.randint(1, 6)))
        return f"{column} {not_}IN ({listed})"
    if form == "between":
        return f"{column} {not_}BETWEEN {literal(random)} AND {literal(random)}"
    return f"{column} IS {not_}NULL"


def _prefixed(random: Random, column: str) -> str:
    text = random.choice(_NAMES) if column == "name" else f"k{random.randrange(100):03d}"
    prefix = text[: random.randint(0, len(text))]
    not_ = random.choice(["", "", "NOT "])
    pattern = random.choice(["{}%", "{}%3", "{}", "{}_", r"{}\_0%", "%{}%"]).format(prefix)
    call = f"starts_with({column}, '{prefix}')"
    return call if random.random() < 0.3 else f"{column} {not_}LIKE '{pattern}'"


def _listed(random: Random, column: str) -> str:
    def item() -> str:
        return random.choice(_TAGS) if column == "tags" else str(random.randrange(9))

    call = random.choice(["array_has", "array_contains", "array_has_any", "array_has_all"])
    if call.endswith(("has", "contains")):
        return f"{call}({column}, {item()})"
    items = [item() for _ in range(random.randint(1, 3))]
    known = [each for each in items if each != "NULL"] or ["'amber'"]
    return f"{call}({column}, [{', '.join(known)}])"


def _matched(random: Random, column: str, parts: tuple[str, ...]) -> str:
    part = random.choice(parts)
    form = random.choice(["contains", "contains", "LIKE", "LIKE", "regexp", "starts"])
    not_ = random.choice(["", "", "NOT "])
    if form == "LIKE":
        pattern = random.choice(["%{}%", "%{}", "{}%", "%{}%r%", "%{}_%"]).format(part)
        return f"{column} {not_}LIKE '{pattern}'"
    if form == "regexp":
        return f"regexp_like({column}, '{random.choice((part, *_PATTERNS))}')"
    if form == "starts":
        return f"starts_with({column}, '{part}')"
    return f"{not_}contains({column}, '{part}')"


def _number(below: int, least: int = 0) -> Write:
    return lambda random: str(random.randrange(least, below))


def _text(template: str, below: int) -> Write:
    return lambda random: "'" + template.format(random.randrange(below)) + "'"


def _one_of(*literals: str) -> Write:
    return lambda random: random.choice(literals)


def _name(random: Random) -> str:
    return f"'{random.choice(_NAMES)}_{random.randrange(42):02d}'"


def _day(days: int) -> Write:
    return lambda random: f"date '{date(2024, 1, 1) + timedelta(random.randrange(days))}'"


def _stamp(step: timedelta, below: int) -> Write:
    return lambda random: f"timestamp '{DAWN + step * random.randrange(below)}'"


def _money(random: Random) -> str:
    return f"decimal(8,2) '{random.randrange(130)}.{random.choice(['00', '25', '50', '10'])}'"


def _eighth(random: Random) -> str:
    return random.choice([*_REALS, str(random.randrange(1_700) / 8)])


_LITERALS: Mapping[str, Write] = {
    "id": _number(2_000, -5),
    "small": _number(12, -1),
    "real": _one_of(*_REALS, "0.5", "-3", "2.9"),
    "name": _name,
    "day": _day(190),
    "part.x": _number(12, -1),
    "money": _money,
    "bytes": _one_of("X''", "X'00FF'", "X'01FE'", "X'03'", "X'04C0'", "X'FF'"),
    "stamp": _stamp(timedelta(hours=1), 32),
    "label": _one_of("''", "'a'", "'ab'", "'a%'", "'é'", "'zz'"),
    "zoned": _number(560),
    "zoned_real": _eighth,
    "zoned_name": _text("k{:03d}", 90),
    "zoned_day": _day(80),
    "bloomed": _number(260),
    "bloomed_name": _text("b{}", 200),
    "bloomed_stamp": _stamp(timedelta(minutes=1), 420),
    "bloomed_real": _eighth,
}
"""Literals for comparisons with a column."""
