"""The grammar of filters: sqlglot's parser, narrowed to the operators of Lance and their ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

from sqlglot import exp, parser
from sqlglot.errors import ParseError
from sqlglot.parser import IsPredicatePrecedence
from sqlglot.tokenizer_core import TokenType

from lance_core.errors import InvalidRequestError
from lance_core.expr.foreign import foreign_word
from lance_core.expr.limits import MAX_DEPTH, go_on, shown
from lance_core.expr.tokens import fail

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sqlglot._typing import E
    from sqlglot.tokenizer_core import Token

    from lance_core.expr.limits import Check

_NODES_BETWEEN_CHECKS = 1024
_OPERAND = "a number, a text between single quotes, TRUE, FALSE, NULL, a column or ("
_EXPECTED = {
    "Expecting )": ")",
    "Expected ]": "]",
    "Expected AS after CAST": "AS",
    "Expected TYPE after CAST": "a type",
    "Expected type": "a type",
    "Invalid expression / Unexpected token": "AND, OR or the end",
}


class _RefusedError(ParseError):
    """The parser expected something else; knows the token that it stopped at."""

    def __init__(self, description: str, token: Token) -> None:
        super().__init__(description, [{}])  # sqlglot writes into what is listed
        self.description = description
        self.token = token


class FilterParser(parser.Parser):
    """Parses tokens of `lance_core.expr.tokens`.

    Every function stays ``Anonymous``, brackets hold one expression, and nodes know the character
    that they begin at, in ``meta["start"]``.
    """

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {}
    EQUALITY: ClassVar[dict[TokenType, Any]] = {}
    COMPARISON: ClassVar[dict[TokenType, Any]] = {
        TokenType.EQ: exp.EQ,
        TokenType.NEQ: exp.NEQ,
        TokenType.LT: exp.LT,
        TokenType.LTE: exp.LTE,
        TokenType.GT: exp.GT,
        TokenType.GTE: exp.GTE,
    }
    BITWISE: ClassVar[dict[TokenType, Any]] = {}
    TERM: ClassVar[dict[TokenType, Any]] = {TokenType.DASH: exp.Sub, TokenType.PLUS: exp.Add}
    FACTOR: ClassVar[dict[TokenType, Any]] = {
        TokenType.STAR: exp.Mul,
        TokenType.SLASH: exp.Div,
        TokenType.MOD: exp.Mod,
        TokenType.DPIPE: exp.DPipe,
    }
    RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = {
        kind: parser.Parser.RANGE_PARSERS[kind]
        for kind in (
            *(TokenType.BETWEEN, TokenType.IN, TokenType.IS),
            *(TokenType.LIKE, TokenType.ILIKE),
        )
    }
    IS_PREDICATE_PRECEDENCE = IsPredicatePrecedence.LOW

    check: Check = staticmethod(go_on)
    """Called every thousand nodes."""

    _num_made = 0

    def expression(
        self, instance: E, token: Token | None = None, comments: list[str] | None = None
    ) -> E:
        """Make a node, which knows where it begins if it is a leaf."""
        self._num_made += 1
        if self._num_made % _NODES_BETWEEN_CHECKS == 0:
            self.check()
        made = super().expression(instance, token, comments)
        if token is None and "start" not in made.meta:
            made.meta["start"] = self._prev.start
        return made

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """Stop at a token, the next one if none is given."""
        raise _RefusedError(message, self._curr if token is None else token)

    def _parse_paren(self) -> exp.Expr | None:
        if not self._match(TokenType.L_PAREN):
            return None
        start = self._prev.start
        inner = self._parse_disjunction()
        if inner is None:
            raise _RefusedError("", self._curr)
        if self._match(TokenType.COMMA, advance=False):
            raise _RefusedError("Expecting )", self._curr)
        self._match_r_paren()
        made = exp.Paren(this=inner)
        made.meta["start"] = start
        return made

    def _parse_csv(
        self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA
    ) -> list[Any]:
        """Parse what stands between commas; after one, something has to."""
        first = parse_method()
        found = [] if first is None else [first]
        while self._match(sep):
            another = parse_method()
            if another is None or first is None:
                raise _RefusedError("", self._curr)
            found.append(another)
        return found

    def _parse_function_args(self, alias: bool = False) -> list[exp.Expr]:
        return self._parse_csv(self._parse_disjunction)

    def _parse_select_or_expression(self, alias: bool = False) -> exp.Expr | None:
        return self._parse_disjunction()

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        return this

    def _build_predicate(
        self,
        klass: Callable[..., exp.Expr],
        this: exp.Expr | None,
        expression: exp.Expr | None,
        comments: list[str] | None = None,
        negate: bool = False,
    ) -> exp.Expr:
        """Make a comparison without the brackets that sqlglot adds on its own."""
        made: exp.Expr = self.expression(klass(this=this, expression=expression))
        if negate:
            made.set("negate", True)
        return made


def parse_tokens(tokens: list[Token], text: str, check: Check) -> exp.Expr:
    """Parse a whole filter.

    Parameters
    ----------
    tokens
        Of the text.
    text
        Told in errors.
    check
        Called now and then.

    Raises
    ------
    InvalidRequestError
        It is none; tells the character, what was expected and what was found.
    """
    parser_of_text = FilterParser()
    parser_of_text.check = check
    try:
        trees = parser_of_text.parse_into(exp.Condition, tokens) if len(tokens) > 0 else [None]
    except ParseError as error:
        _tell(error, text, tokens)
    except RecursionError:
        raise InvalidRequestError(
            f"the filter is nested too deeply; {MAX_DEPTH} levels are the most"
        ) from None
    (tree,) = trees
    if tree is None:
        fail(1, "a column, NOT or (", "the end" if len(tokens) == 0 else shown(tokens[0].text))
    return tree


def _tell(error: ParseError, text: str, tokens: list[Token]) -> NoReturn:
    refused = error.__cause__ if isinstance(error.__cause__, _RefusedError) else error
    if not isinstance(refused, _RefusedError):  # a rule of sqlglot's that names no token
        fail(1, "a filter", shown(text), str(refused))
    token = refused.token
    at = next((n for n, each in enumerate(tokens) if each is token), len(tokens))
    word = foreign_word(tokens, at)
    if word is not None:
        raise InvalidRequestError(f"the filter at character {word[0]}: {word[1]}")
    place = token.start + 1 if token else len(text) + 1
    found = shown(token.text) if token else "the end"
    fail(place, _EXPECTED.get(refused.description, _OPERAND), found)
