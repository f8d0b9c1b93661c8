"""The words of a filter, as tokens of sqlglot.

Read here and not by sqlglot's own tokenizer: only words and signs of our dialect come out, so that
no other SQL can be written; every token knows its character; long lists and parameters are one
token; and what is nested too deeply is refused before anything recurses into it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from lance_core.errors import InvalidRequestError
from lance_core.expr.limits import MAX_DEPTH, shown
from lance_core.expr.literal_lists import cut_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.expr.limits import Check, FilterLimits

_TOKENS_BETWEEN_CHECKS = 1024
_TOKEN = re.compile(
    r"""(?:\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*
    (?:
        (?P<binary>0x[0-9A-Za-z]*|[xX]'[^']*')
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
      | (?P<text>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")
      | (?P<name>`[^`]+(?:``[^`]+)*`)
      | (?P<word>[^\W\d]\w*)
      | (?P<parameter>\$[^\W\d]\w*)
      | (?P<sign><=>|<=|>=|<>|!=|==|::|\|\||<<|>>|//|->|[=<>(),.\[\]*/%+-])
      | (?P<end>(?:;(?:\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*)?\Z)
    )""",
    re.VERBOSE,
)
_KEYWORDS = {
    word.name: word
    for word in (
        *(TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IN, TokenType.IS),
        *(TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.BETWEEN),
        *(TokenType.LIKE, TokenType.ILIKE, TokenType.ESCAPE),
    )
}
_SHOWN_AS_WRITTEN = frozenset(("text", "name", "number", "binary"))
TYPES: Mapping[str, TokenType] = {
    **dict.fromkeys(("INT", "INTEGER"), TokenType.INT),
    **{name: TokenType[name] for name in ("TINYINT", "SMALLINT", "BIGINT", "FLOAT", "DOUBLE")},
    **{name: TokenType[name] for name in ("BINARY", "BOOLEAN", "DATE", "DATETIME", "TIMESTAMP")},
    "STRING": TokenType.TEXT,
    "DECIMAL": TokenType.DECIMAL,
}
"""Names of types and what sqlglot calls them."""

_SIGNS: Mapping[str, tuple[TokenType, ...]] = {
    "=": (TokenType.EQ,),
    "==": (TokenType.EQ,),
    "!=": (TokenType.NEQ,),
    "<>": (TokenType.NEQ,),
    "<": (TokenType.LT,),
    "<=": (TokenType.LTE,),
    ">": (TokenType.GT,),
    ">=": (TokenType.GTE,),
    "<<": (TokenType.LT, TokenType.LT),
    ">>": (TokenType.GT, TokenType.GT),
    "(": (TokenType.L_PAREN,),
    ")": (TokenType.R_PAREN,),
    "[": (TokenType.L_BRACKET,),
    "]": (TokenType.R_BRACKET,),
    ",": (TokenType.COMMA,),
    ".": (TokenType.DOT,),
    "::": (TokenType.DCOLON,),
    "||": (TokenType.DPIPE,),
    "+": (TokenType.PLUS,),
    "-": (TokenType.DASH,),
    "*": (TokenType.STAR,),
    "/": (TokenType.SLASH,),
    "%": (TokenType.MOD,),
}
_COUNTED_SIGNS = frozenset(_SIGNS) - frozenset(("(", ")", "]", "-"))
_COUNTED_WORDS = frozenset(("IN", "IS", "BETWEEN", "LIKE", "ILIKE"))
_JOINING_WORDS = frozenset(("AND", "OR", "NOT"))
_HINTS = {
    "<=>": "write IS NOT DISTINCT FROM",
    "//": "write /, which cuts whole numbers",
    "->": "write name.part",
}
_OTHER_SIGNS = {
    "&&": "write AND",
    "!": "write NOT",
    "~": "write regexp_like(text, pattern)",
    **dict.fromkeys(("&", "|", "^"), "operations on bits are not supported"),
}
"""Signs of other languages, and what to write instead."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A value that the text refers to: of a parameter, or a long list cut out of the text."""

    value: object
    place: int


@dataclass(slots=True, eq=False)
class Tokens:
    """The tokens of a filter.

    Attributes
    ----------
    tokens
        For sqlglot; ``start`` is a character of the text, counted from 0.
    given
        What the numbers after tokens of type ``PARAMETER`` refer to.
    words
        The tokens without needless blanks, keywords in capitals: equal words mean the same.
    double_quoted
        Where texts begin that stand between double quotes.
    """

    tokens: list[Token] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    double_quoted: set[int] = field(default_factory=set)


def fail(place: int, expected: str, found: str, hint: str = "") -> NoReturn:
    """Refuse a filter, telling the character (from 1), what was expected and what stands there."""
    advice = "" if hint == "" else f"; {hint}"
    raise InvalidRequestError(
        f"the filter at character {place}: expected {expected}, found {found}{advice}"
    )


def read_tokens(
    text: str, params: Mapping[str, object], limits: FilterLimits | None, check: Check
) -> Tokens:
    """Read the words of a filter.

    Parameters
    ----------
    text
        The filter.
    params
        Values of parameters; a value that is a list stands for a list in brackets.
    limits
        None = as large as it likes.
    check
        Called every few thousand characters.

    Raises
    ------
    InvalidRequestError
        Something is no word of the dialect, nested too deeply or too much; tells the character or
        the limit.
    """
    return _Scanner(text, params, limits, check).read()


class _Scanner:
    """Goes once through a text."""

    def __init__(
        self, text: str, params: Mapping[str, object], limits: FilterLimits | None, check: Check
    ) -> None:
        self._text = text
        self._params = params
        self._limits = limits
        self._check = check
        self._found = Tokens()
        self._num_comparisons = self._num_joined = self._num_values = 0
        self._open: list[int] = []
        self._items_of_items = [0]  # as `nums[1][2]`, of each level that is open
        self._prefixes = 0

    def read(self) -> Tokens:
        at = 0
        while True:
            match = _TOKEN.match(self._text, at)
            if match is None:
                self._refuse(at)
            kind = str(match.lastgroup)
            if kind == "end":
                return self._found
            start, at = match.start(kind), match.end()
            at = self._take(kind, match[kind], start, at)
            if len(self._found.words) % _TOKENS_BETWEEN_CHECKS == 0:
                self._check()

    def _take(self, kind: str, token: str, start: int, end: int) -> int:
        """Add a token and return where the next one begins."""
        if kind == "sign":
            self._add_sign(token, start)
        elif kind == "word":
            end = self._add_word(token, start, end)
        elif kind == "parameter":
            self._add_parameter(token[1:], start)
        else:
            self._operand()
            self._add_literal(kind, token, start)
        return end

    def _add(self, kind: TokenType, text: str, start: int) -> None:
        token = Token(kind, text, 1, start + 1, start, start + max(len(text), 1) - 1)
        self._found.tokens.append(token)

    def _add_literal(self, kind: str, token: str, start: int) -> None:
        self._found.words.append(token)
        if kind == "number":
            if self._last() is TokenType.DOT:
                fail(start + 1, "the name of a part", shown(token))
            self._add(TokenType.NUMBER, token, start)
        elif kind == "binary":
            digits = token[2:] if token.startswith("0x") else token[2:-1]
            self._add(TokenType.HEX_STRING, digits, start)
        else:
            sign = token[0]
            is_name = kind == "name"
            if not is_name and self._last() is TokenType.STRING:
                fail(start + 1, "AND, OR or the end", shown(token), "join texts with ||")
            if sign == '"':
                self._found.double_quoted.add(start)
            name = TokenType.IDENTIFIER if is_name else TokenType.STRING
            self._add(name, token[1:-1].replace(sign * 2, sign), start)

    def _add_sign(self, sign: str, start: int) -> None:
        kinds = _SIGNS.get(sign)
        if kinds is None:
            fail(start + 1, "an operator", shown(sign), _HINTS[sign])
        if sign in {"(", "["}:
            self._add_item(sign)
            self._open.append(self._prefixes)
            self._prefixes = 0
            self._measure_depth()
            self._items_of_items.append(0)
        elif sign in {")", "]"} and len(self._open) > 0:
            self._open.pop()
            self._items_of_items.pop()
            self._prefixes = 0
        elif sign == "-":
            self._prefixes += 1
            self._measure_depth()
        elif sign == "+" and self._expects_operand():
            fail(start + 1, "a number", "'+'", "leave the sign out")
        if sign in _COUNTED_SIGNS:
            self._count_comparison()
        self._found.words.append(sign)
        for kind in kinds:
            self._add(kind, sign, start)

    def _add_item(self, sign: str) -> None:
        follows = sign == "[" and self._last() is TokenType.R_BRACKET
        self._items_of_items[-1] = self._items_of_items[-1] + 1 if follows else 0

    def _expects_operand(self) -> bool:
        closing = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING}
        closing |= {TokenType.VAR, TokenType.IDENTIFIER, TokenType.HEX_STRING, TokenType.NULL}
        return self._last() not in closing | set(TYPES.values())

    def _last(self) -> TokenType | None:
        return self._found.tokens[-1].token_type if len(self._found.tokens) > 0 else None

    def _add_word(self, word: str, start: int, end: int) -> int:
        upper = word.upper()
        keyword = _KEYWORDS.get(upper)
        last = self._last()
        if last is TokenType.DOT:
            keyword = None
        if keyword is not None:
            self._count_word(upper)
            self._found.words.append(upper)
            self._add(keyword, word, start)
            return self._cut(end) if keyword is TokenType.IN else end
        self._operand()
        self._found.words.append(word)
        if upper == "AS":
            self._add(TokenType.ALIAS, word, start)
            return end
        is_type = upper in TYPES and last is not TokenType.DOT
        if last in {TokenType.ALIAS, TokenType.DCOLON} and not is_type:
            fail(start + 1, f"a type ({', '.join(TYPES).lower()})", shown(word))
        self._add(TYPES[upper] if is_type else TokenType.VAR, word, start)
        return end

    def _count_word(self, upper: str) -> None:
        if upper in _JOINING_WORDS:
            self._num_joined += 1
            self._refuse_too_many(self._num_joined)
        if upper in _COUNTED_WORDS:
            self._count_comparison()
        if upper == "NOT":
            self._prefixes += 1
            self._measure_depth()
        else:
            self._operand()

    def _operand(self) -> None:
        self._prefixes = 0

    def _measure_depth(self) -> None:
        depth = sum(self._open) + len(self._open) + self._prefixes
        if max(depth, self._items_of_items[-1]) > MAX_DEPTH:
            raise InvalidRequestError(f"the filter is nested deeper than {MAX_DEPTH} levels")

    def _count_comparison(self) -> None:
        self._num_comparisons += 1
        self._refuse_too_many(self._num_comparisons)

    def _refuse_too_many(self, number: int) -> None:
        if self._limits is not None and number > self._limits.comparisons:
            raise InvalidRequestError(
                f"the filter has more than {self._limits.comparisons} comparisons, which is the"
                " limit; every operator and every value of a short list is one, a long list behind"
                " IN is one as a whole"
            )

    def _cut(self, end: int) -> int:
        """Cut out the list behind IN if it is a long one."""
        opening = self._text.find("(", end, end + 100)
        if opening < 0 or self._text[end:opening].strip() != "":
            return end
        found = cut_list(self._text, opening)
        if found is None:
            return end
        self._check()
        self._found.words.append(self._text[opening : found.end])
        self._refer(found.values, opening, len(found.values))
        return found.end

    def _refer(self, value: object, start: int, num_values: int) -> None:
        self._num_values += num_values
        most = None if self._limits is None else self._limits.list_values
        if most is not None and self._num_values > most:
            raise InvalidRequestError(
                f"the lists of the filter have more than {most} values, which is the limit"
            )
        self._add(TokenType.PARAMETER, "$", start)
        self._add(TokenType.NUMBER, str(len(self._found.given)), start)
        self._found.given.append(Given(value, start + 1))

    def _add_parameter(self, name: str, start: int) -> None:
        self._operand()
        if name not in self._params:
            names = ", ".join(f"${each}" for each in self._params) or "none"
            fail(start + 1, "a parameter that has a value", f"${name}", f"given: {names}")
        value = self._params[name]
        num_values = len(value) if isinstance(value, list | tuple) else 0
        self._found.words.append(f"${type(value).__name__}:{value!r}")
        self._refer(value, start, num_values)

    def _refuse(self, at: int) -> NoReturn:
        rest = self._text[at:]
        blanks = re.match(r"(?:\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*", rest)
        skipped = 0 if blanks is None else blanks.end()
        found = rest[skipped:]
        others = "names with other characters stand between backticks, texts between single quotes"
        hint = next((told for sign, told in _OTHER_SIGNS.items() if found.startswith(sign)), others)
        fail(at + skipped + 1, "a column, a literal or an operator", shown(found), hint)
