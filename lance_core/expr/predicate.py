"""Simple predicates over rows: comparisons joined by AND, OR and NOT, in three-valued logic.

::

    predicate   = conjunction { OR conjunction }
    conjunction = term { AND term }
    term        = NOT term | "(" predicate ")" | TRUE | FALSE | column [ test ]
    test        = op literal | IS [NOT] NULL | [NOT] IN "(" literal { "," literal } ")"
                | [NOT] BETWEEN literal AND literal
    op          = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="
    literal     = number | 'text' | TRUE | FALSE | NULL | DATE 'text' | TIMESTAMP 'text'

A column alone is one of booleans. Names with other characters than letters, digits and ``_`` stand
between backticks; parts of structs follow dots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.expr.comparisons import LiteralSet, compare, is_in, shown
from lance_core.file.arguments import checked_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.expr.comparisons import Literal

    Check = Callable[[], object]
    """Called again and again while work goes on; raises when it has to stop."""

    Condition = Callable[[pa.RecordBatch, Check], pa.Array]
    """Returns true, false or null for each row of a batch that has the columns."""

_MAX_DEPTH = 100
_TOKENS_BETWEEN_CHECKS = 1024
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<text>'(?:[^']|'')*')
      | (?P<word>(?:`(?:[^`]|``)+`|[^\W\d]\w*)(?:\.(?:`(?:[^`]|``)+`|\w+))*)
      | (?P<sign><=|>=|<>|!=|==|[=<>(),-])
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_LARGEST_EXPONENT = 400
"""Beyond all numbers that columns hold, so that larger ones, and smaller ones, are all alike."""

_OPERATORS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">"}
_OPERATORS |= {">=": ">="}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_TIMES = frozenset(("DATE", "TIMESTAMP"))
_RESERVED = frozenset((*_CONSTANTS, "AND", "OR", "NOT", "IN", "IS", "BETWEEN"))


def go_on() -> None:
    """Let work go on, whatever time it takes."""


@dataclass(frozen=True, slots=True)
class PredicateLimits:
    """How large a predicate may be.

    Attributes
    ----------
    characters
        Of its text.
    comparisons
        Tests of columns, where every value of an ``IN`` list is a test of its own.
    """

    characters: int
    comparisons: int


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """A parsed predicate.

    Attributes
    ----------
    text
        The predicate as it is spelled without needless blanks, keywords in capitals: equal texts
        mean the same.
    columns
        What it looks at, as paths, each once; batches to be judged have columns of these names.
    places
        Where each is named first: a character of the text as it was given, counted from 1.
    condition
        Judges the rows of a batch.
    """

    text: str
    columns: tuple[str, ...]
    places: tuple[int, ...]
    condition: Condition

    def holds(self, batch: pa.RecordBatch, check: Check = go_on) -> pa.BooleanArray:
        """Tell for each row whether the predicate is true; one that is unknown does not hold.

        Parameters
        ----------
        batch
            Rows that have the columns.
        check
            Called between comparisons.

        Raises
        ------
        InvalidRequestError, TypeMismatchError
            A literal does not fit the type of its column.
        """
        return pc.fill_null(self.condition(batch, check), fill_value=False)


def parse_predicate(
    text: str, limits: PredicateLimits | None = None, check: Check = go_on
) -> Predicate:
    """Parse a predicate.

    Parameters
    ----------
    text
        The predicate.
    limits
        How large it may be; None = as it likes.
    check
        Called every few thousand characters.

    Raises
    ------
    InvalidRequestError
        It is none; tells at which character. Or it is too large; tells the limit.

    Examples
    --------
    >>> predicate = parse_predicate("x > 1.5 AND NOT name IN ('a', 'b')")
    >>> predicate.columns
    ('x', 'name')
    >>> predicate.holds(pa.record_batch({"x": [2, 3, 3], "name": ["c", "a", None]})).to_pylist()
    [True, False, False]
    """
    if not isinstance(text, str):
        raise InvalidRequestError(f'the predicate is {text!r}; give text such as "id = 3"')
    if limits is not None and len(text) > limits.characters:
        raise InvalidRequestError(
            f"the filter has {len(text)} characters, the limit is {limits.characters}"
        )
    parser = _Parser(checked_text("the predicate", text), limits, check)
    condition = parser.whole()
    return Predicate(
        " ".join(parser.words), tuple(parser.columns), tuple(parser.columns.values()), condition
    )


class _Parser:
    """Descends through one predicate."""

    def __init__(self, text: str, limits: PredicateLimits | None, check: Check) -> None:
        self._text = text
        self._most = None if limits is None else limits.comparisons
        self._check = check
        self._num_comparisons = 0
        self._at = 0
        self._depth = 0
        self._kind = self._token = ""
        self._start = 0
        self.columns: dict[str, int] = {}
        self.words: list[str] = []
        self._next()

    def whole(self) -> Condition:
        condition = self._predicate()
        if self._kind != "end":
            self._fail("AND, OR or the end")
        return condition

    def _predicate(self) -> Condition:
        return self._joined("OR", pc.or_kleene, self._conjunction)

    def _conjunction(self) -> Condition:
        return self._joined("AND", pc.and_kleene, self._term)

    def _joined(
        self,
        word: str,
        join: Callable[[pa.Array, pa.Array], pa.Array],
        part: Callable[[], Condition],
    ) -> Condition:
        parts = [part()]
        while self._takes(word):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        first, *others = parts

        def judged(batch: pa.RecordBatch, check: Check) -> pa.Array:
            found = first(batch, check)
            for each in others:
                check()
                found = join(found, each(batch, check))
            return found

        return judged

    def _term(self) -> Condition:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InvalidRequestError(f"the predicate is nested deeper than {_MAX_DEPTH} levels")
        condition = self._term_inside()
        self._depth -= 1
        return condition

    def _term_inside(self) -> Condition:
        if self._takes("NOT"):
            inner = self._term()
            return lambda batch, check: pc.invert(inner(batch, check))
        if self._takes("("):
            inner = self._predicate()
            self._expect(")")
            return inner
        self._count_comparison()
        for word in ("TRUE", "FALSE"):
            if self._takes(word):
                value = _CONSTANTS[word]
                return lambda batch, _: pa.repeat(pa.scalar(value), batch.num_rows)
        place = self._start + 1
        return _placed(place, self._test(self._column()))

    def _column(self) -> str:
        is_name = self._kind == "word" and self._token.upper() not in _RESERVED
        if not is_name:
            self._fail("a column, NOT or (")
        name = self._token
        self.columns.setdefault(name, self._start + 1)
        self._next()
        return name

    def _test(self, column: str) -> Condition:
        operator = _OPERATORS.get(self._token) if self._kind == "sign" else None
        if operator is not None:
            self._next()
            literal = self._literal()
            return lambda batch, _: compare(column, batch[column], operator, literal)
        if self._takes("IS"):
            is_negated = self._takes("NOT")
            self._expect("NULL")
            test = pc.is_valid if is_negated else pc.is_null
            return lambda batch, _: test(batch[column])
        is_negated = self._takes("NOT")
        condition = self._set_or_range(column, is_negated=is_negated)
        if not is_negated:
            return condition
        return lambda batch, check: pc.invert(condition(batch, check))

    def _set_or_range(self, column: str, *, is_negated: bool) -> Condition:
        if self._takes("IN"):
            literals = LiteralSet(self._literals())
            return lambda batch, _: is_in(column, batch[column], literals)
        if self._takes("BETWEEN"):
            low = self._literal()
            self._expect("AND")
            high = self._literal()
            return lambda batch, _: pc.and_kleene(
                compare(column, batch[column], ">=", low),
                compare(column, batch[column], "<=", high),
            )
        if is_negated:
            self._fail("IN or BETWEEN")
        return lambda batch, _: compare(column, batch[column], "=", True)

    def _literals(self) -> list[Literal]:
        self._expect("(")
        found = [self._literal()]
        while self._takes(","):
            self._count_comparison()
            found.append(self._literal())
        self._expect(")")
        return found

    def _count_comparison(self) -> None:
        self._num_comparisons += 1
        if self._most is not None and self._num_comparisons > self._most:
            raise InvalidRequestError(
                f"the filter has more than {self._most} comparisons, which is the limit; every"
                " value of an IN list is one"
            )

    def _literal(self) -> Literal:
        is_negative = self._takes("-")
        kind, token = self._kind, self._token
        if kind == "number":
            self._next()
            return _number(token, is_negative=is_negative)
        if is_negative:
            self._fail("a number")
        if kind == "word" and token.upper() in _TIMES:
            self._next()
            kind, token = self._kind, self._token
        elif kind == "word" and token.upper() in _CONSTANTS:
            self._next()
            return _CONSTANTS[token.upper()]
        if kind != "text":
            self._fail("a number, a text between single quotes, TRUE, FALSE or NULL")
        self._next()
        return token[1:-1].replace("''", "'")

    def _takes(self, word: str) -> bool:
        """Step over a keyword or sign if it comes next."""
        if self._kind not in {"word", "sign"} or self._token.upper() != word:
            return False
        self._next()
        return True

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            self._fail(word)

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            self._start, self._kind = self._at, "unknown"
            self._token = self._text[self._at :].lstrip()
            self._fail(
                "a column, a literal or an operator; names with other characters stand"
                " between backticks, texts between single quotes"
            )
        self._kind = str(match.lastgroup)
        self._token = match[self._kind]
        self._start, self._at = match.start(self._kind), match.end()
        if self._kind == "end":
            return
        is_keyword = self._kind == "word" and self._token.upper() in _RESERVED
        self.words.append(self._token.upper() if is_keyword else self._token)
        if len(self.words) % _TOKENS_BETWEEN_CHECKS == 0:
            self._check()

    def _fail(self, expected: str) -> NoReturn:
        found = "the end" if self._kind == "end" else shown(self._token)
        raise InvalidRequestError(
            f"predicate at character {self._start + 1}: expected {expected}, found {found}"
        )


def _placed(place: int, condition: Condition) -> Condition:
    """Let errors of a condition tell the character at which it begins."""

    def judged(batch: pa.RecordBatch, check: Check) -> pa.Array:
        try:
            return condition(batch, check)
        except TypeMismatchError as error:
            raise TypeMismatchError(f"predicate at character {place}: {error}") from error

    return judged


def _number(token: str, *, is_negative: bool) -> int | Decimal:
    """Return a number; one too large or too small for any column as the limit of those."""
    if token.isdigit() and len(token) <= _LARGEST_EXPONENT:
        return -int(token) if is_negative else int(token)
    sign = "-" if is_negative else ""
    try:
        number = Decimal(sign + token)
    except InvalidOperation:
        raise InvalidRequestError(f"{token[:40]} has too large an exponent") from None
    if number.is_zero():
        return Decimal(f"{sign}0")
    if number.adjusted() > _LARGEST_EXPONENT:
        return Decimal(f"{sign}1e{_LARGEST_EXPONENT}")
    if number.adjusted() < -_LARGEST_EXPONENT:
        return Decimal(f"{sign}1e-{_LARGEST_EXPONENT}")
    return number
