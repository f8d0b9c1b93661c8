"""What a text is looked for with: trees of queries over columns, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_number, checked_text

if TYPE_CHECKING:
    from collections.abc import Iterator

Operator: TypeAlias = Literal["or", "and"]

MOST_NODES = 1024
"""Nodes of one tree."""

MOST_DEPTH = 64
"""Nodes that are nested."""

_OPERATORS = get_args(Operator)
_MOST = (1 << 32) - 1
_MOST_FLOAT = float(np.finfo(np.float32).max)
_MOST_FIELD_BOOST = 1 << 20


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """Documents that have tokens of a text.

    Parameters
    ----------
    text
        What the index's tokenizer makes tokens of; a token that occurs twice counts twice.
    column
        The column; None = all columns with an index, of which the best counts.
    boost
        What scores are multiplied with; finite and not negative.
    fuzziness
        How many characters tokens may differ in. None is 0 (scalar index page, 8.8).
    max_expansions
        How many tokens near those of the text are looked for at most, of all together; 0 finds
        nothing. Where tokens may not differ it does not count (observed with pylance 14.0.2).
    operator
        ``or``: one of the tokens is enough; ``and``: all are needed. In any case.
    prefix_length
        So many first characters of tokens that are near must be the same.
    """

    text: str
    column: str | None = None
    boost: float = 1.0
    fuzziness: int | None = 0
    max_expansions: int = 50
    operator: Operator = "or"
    prefix_length: int = 0

    def __post_init__(self) -> None:
        checked_text("text of a match query", self.text)
        _check_column("a match query", self.column)
        _check_boost("boost of a match query", self.boost)
        if self.fuzziness is not None:
            checked_number("fuzziness", self.fuzziness, 0, _MOST)
        checked_number("max_expansions", self.max_expansions, 0, _MOST)
        checked_number("prefix_length", self.prefix_length, 0, _MOST)
        # how a frozen value is finished
        object.__setattr__(self, "operator", _plain_operator(self.operator))

    @property
    def distance(self) -> int:
        """How many characters tokens may differ in."""
        return 0 if self.fuzziness is None else self.fuzziness


@dataclass(frozen=True, slots=True)
class PhraseQuery:
    """Documents that have the tokens of a text one after the other.

    Parameters
    ----------
    text
        As of `MatchQuery`; what the tokenizer leaves out leaves a gap.
    column
        As of `MatchQuery`.
    slop
        How many positions more may be between two tokens.
    """

    text: str
    column: str | None = None
    slop: int = 0

    def __post_init__(self) -> None:
        checked_text("text of a phrase query", self.text)
        _check_column("a phrase query", self.column)
        checked_number("slop", self.slop, 0, _MOST)


@dataclass(frozen=True, slots=True)
class BooleanQuery:
    """Documents that all of ``must`` find and none of ``must_not``.

    Where ``must`` is empty, one of ``should`` has to find them. Scores of both are added up.
    """

    must: tuple[TextNode, ...] = ()
    should: tuple[TextNode, ...] = ()
    must_not: tuple[TextNode, ...] = ()

    def __post_init__(self) -> None:
        for name in ("must", "should", "must_not"):
            object.__setattr__(
                self, name, _nodes(f"{name} of a boolean query", getattr(self, name))
            )
        if len(self.must) + len(self.should) == 0:
            raise InvalidRequestError(
                "a boolean query needs must or should: must_not only takes documents away"
            )
        _check_size(self)


@dataclass(frozen=True, slots=True)
class BoostQuery:
    """Documents of ``positive``; those of ``negative`` among them rank lower.

    The score is that of ``positive`` less ``negative_boost`` times that of ``negative``, which is
    finite and not negative.
    """

    positive: TextNode
    negative: TextNode
    negative_boost: float = 0.5

    def __post_init__(self) -> None:
        _nodes("positive of a boost query", (self.positive,))
        _nodes("negative of a boost query", (self.negative,))
        _check_boost("negative_boost of a boost query", self.negative_boost)
        _check_size(self)


@dataclass(frozen=True, slots=True)
class MultiMatchQuery:
    """Documents that any of ``matches`` finds, with the best score of these."""

    matches: tuple[MatchQuery, ...]

    def __post_init__(self) -> None:
        matches = _nodes("matches of a multi_match query", self.matches)
        if len(matches) == 0 or not all(isinstance(each, MatchQuery) for each in matches):
            raise InvalidRequestError("a multi_match query needs one or more match queries")
        object.__setattr__(self, "matches", matches)
        _check_size(self)


@dataclass(frozen=True, slots=True)
class CombinedFieldsQuery:
    """Documents that have tokens of a text, several columns being taken as one.

    Parameters
    ----------
    text, operator
        As of `MatchQuery`.
    columns
        Two or more, or one.
    boosts
        How often each column counts, 1 to 2**20; None = once each.
    """

    text: str
    columns: tuple[str, ...]
    boosts: tuple[float, ...] | None = None
    operator: Operator = "or"

    def __post_init__(self) -> None:
        checked_text("text of a combined_fields query", self.text)
        columns = _items(self.columns)
        if columns is None or len(columns) == 0:
            raise InvalidRequestError("columns of a combined_fields query: give one or more names")
        object.__setattr__(self, "columns", columns)
        for column in self.columns:
            checked_text("a column of a combined_fields query", column)
        if len(set(self.columns)) < len(self.columns):
            raise InvalidRequestError("columns of a combined_fields query: one is named twice")
        object.__setattr__(self, "boosts", self._checked_boosts())
        object.__setattr__(self, "operator", _plain_operator(self.operator))

    def _checked_boosts(self) -> tuple[float, ...] | None:
        if self.boosts is None:
            return None
        boosts = _items(self.boosts)
        if boosts is None or len(boosts) != len(self.columns):
            raise InvalidRequestError(
                f"boosts of a combined_fields query: give one for each of {len(self.columns)}"
                " columns"
            )
        for boost in boosts:
            _check_float("a boost of a combined_fields query", boost)
            if not 1 <= cast("float", boost) <= _MOST_FIELD_BOOST:
                raise InvalidRequestError(
                    f"a boost of a combined_fields query is {boost}; it may be 1 to"
                    f" {_MOST_FIELD_BOOST}"
                )
        return cast("tuple[float, ...]", boosts)


TextNode: TypeAlias = (
    MatchQuery | PhraseQuery | BooleanQuery | BoostQuery | MultiMatchQuery | CombinedFieldsQuery
)
"""A query, or a part of one."""


def text_query(text: str) -> MatchQuery | PhraseQuery:
    """Return the query that a text stands for, over all columns with an index.

    Examples
    --------
    >>> text_query('"red fox"')
    PhraseQuery(text='red fox', column=None, slop=0)
    """
    plain = checked_text("a text query", text).strip()
    if len(plain) > 1 and plain[0] == plain[-1] == '"':
        return PhraseQuery(plain[1:-1])
    return MatchQuery(text)


def parts_of(node: TextNode) -> tuple[TextNode, ...]:
    """Return the queries that a query is directly made of."""
    match node:
        case BooleanQuery():
            return (*node.must, *node.should, *node.must_not)
        case BoostQuery():
            return (node.positive, node.negative)
        case MultiMatchQuery():
            return node.matches
        case _:
            return ()


def leaves_of(node: TextNode) -> Iterator[MatchQuery | PhraseQuery | CombinedFieldsQuery]:
    """Yield the queries of a tree that are made of no others, from left to right."""
    if isinstance(node, MatchQuery | PhraseQuery | CombinedFieldsQuery):
        yield node
    for part in parts_of(node):
        yield from leaves_of(part)


def _size(node: TextNode) -> tuple[int, int]:
    """Return how many nodes a tree has, and how many are nested."""
    count, depth = 1, 1
    for part in parts_of(node):
        part_count, part_depth = _size(part)
        count, depth = count + part_count, max(depth, 1 + part_depth)
    return count, depth


def _check_size(node: TextNode) -> None:
    """Refuse trees that are too large; as parts are checked first, looking is no trouble."""
    count, depth = _size(node)
    if count > MOST_NODES or depth > MOST_DEPTH:
        raise InvalidRequestError(
            f"a text query of {count} queries, {depth} of them nested; at most {MOST_NODES} and"
            f" {MOST_DEPTH} are answered"
        )


def _nodes(what: str, nodes: object) -> tuple[TextNode, ...]:
    items = _items(nodes)
    if items is None:
        raise InvalidRequestError(f"{what}: give a list of text queries")
    for node in items:
        if not isinstance(node, TextNode):
            raise InvalidRequestError(f"{what}: {type(node).__name__} is no text query")
    return cast("tuple[TextNode, ...]", items)


def _items(given: object) -> tuple[object, ...] | None:
    """Return the items of a tuple or list, None if it is neither."""
    return tuple(given) if isinstance(given, tuple | list) else None


def _check_column(what: str, column: object) -> None:
    if column is not None:
        checked_text(f"column of {what}", column)


def _check_boost(what: str, boost: object) -> None:
    _check_float(what, boost)
    if cast("float", boost) < 0:
        raise InvalidRequestError(f"{what} is {boost}; it may not be negative")


def _check_float(what: str, number: object) -> None:
    is_number = isinstance(number, int | float | np.number) and not isinstance(number, bool)
    if not is_number or not abs(cast("float", number)) <= _MOST_FLOAT:
        raise InvalidRequestError(f"{what} is {number!r}; give a finite number of float32")


def _plain_operator(operator: object) -> Operator:
    plain = operator.lower() if isinstance(operator, str) else operator
    if plain not in _OPERATORS:
        raise InvalidRequestError(f"operator is {operator!r}; use one of: or, and")
    return cast("Operator", plain)
