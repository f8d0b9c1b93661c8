"""The ``full_text_query`` of a query body, in all its forms (rest-api section 6)."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from lance_core.errors import InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
from lance_core.index.text.queries import (
    MOST_DEPTH,
    MOST_NODES,
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
    text_query,
)
from service.api.bodies import check, given_or
from service.api.json_spellings import as_json, type_names
from service.api.models.text_queries import (
    BooleanBody,
    BoostBody,
    CombinedFieldsBody,
    MatchBody,
    MultiMatchBody,
    PhraseBody,
    StringTextQuery,
    StructuredTextQuery,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lance_core.index.text.queries import Operator, TextNode
    from service.api.models.text_queries import TextNodeBody

    Kind = MatchBody | PhraseBody | BoostBody | MultiMatchBody | CombinedFieldsBody | BooleanBody

V = TypeVar("V")

_MEMBER = "full_text_query"
_FORMS = ("query", "string_query", "structured_query")
_MOST_CHARACTERS = 1 << 20
_MOST_VALUES = 16 * MOST_NODES
"""JSON values of a tree: a query has a dozen members at most."""
_MOST_LEVELS = 3 * MOST_DEPTH + 8
"""JSON values inside one another: a boolean query is an object in a list in an object."""


def parse_text(given: object) -> TextNode | None:
    """Return the text query that a member describes; None for null: no text search.

    Parameters
    ----------
    given
        Words; ``{"query": words, "columns": [..]}``, ``{"query": {node}}``, or one of these as
        ``string_query`` and ``structured_query``.

    Raises
    ------
    TypeMismatchError, InvalidRequestError
        It is none of the forms, or a part of it is wrong, which the text names.
    """
    if given is None:
        return None
    if not isinstance(given, str | dict):
        raise TypeMismatchError(
            f"{_MEMBER}: must be words or an object, not {type_names({type(given)})}"
        )
    _require_small(given)
    if isinstance(given, str):
        return _words(given, None, _MEMBER)
    form, inner = _only({name: given.get(name) for name in _FORMS}, _MEMBER)
    is_words = form == "string_query" or (form == "query" and not isinstance(inner, dict))
    place = _MEMBER
    if form != "query":
        place = f"{_MEMBER}.{form}"
        given = _as_object(inner, place)
    if is_words:
        words = check(StringTextQuery, given, place)
        return _words(words.query, words.columns, place)
    return _node(check(StructuredTextQuery, given, place).query, f"{place}.query")


def _as_object(given: object, place: str) -> Mapping[str, object]:
    if not isinstance(given, dict):
        raise TypeMismatchError(f"{place}: must be an object, not {type_names({type(given)})}")
    return given


def _only(given: Mapping[str, V | None], place: str) -> tuple[str, V]:
    """Return the only one of some members that is there."""
    found = [(name, value) for name, value in given.items() if value is not None]
    if len(found) != 1:
        told = " and ".join(name for name, _ in found) if found else "none of them"
        raise InvalidRequestError(f"{place}: give one of {', '.join(given)}; this has {told}")
    return found[0]


def _words(words: str, columns: Sequence[str] | None, place: str) -> TextNode:
    """Return the query for words in some columns, of which the best counts; in none: in all."""
    names = list(dict.fromkeys(given_or(columns, ())))
    with _told_at(place):
        query = text_query(words)
        if len(names) > 1 and isinstance(query, PhraseQuery):
            raise InvalidRequestError(
                f"a phrase is looked for in one column, not in {len(names)}; combine phrase"
                " queries of each in a boolean query"
            )
        found = [replace(query, column=name) for name in names]
        matches = tuple(each for each in found if isinstance(each, MatchQuery))
        if len(names) > 1:
            return MultiMatchQuery(matches)
        return found[0] if found else query


def _node(body: TextNodeBody, place: str) -> TextNode:
    kinds: Mapping[str, Kind | None] = {
        "match": body.match,
        "phrase": body.phrase,
        "boost": body.boost,
        "multi_match": body.multi_match,
        "combined_fields": body.combined_fields,
        "boolean": body.boolean,
    }
    name, inner = _only(kinds, place)
    place = f"{place}.{name}"
    made: TextNode
    match inner:
        case MatchBody():
            made = _match(inner, place)
        case PhraseBody():
            made = _phrase(inner, place)
        case BoostBody():
            made = _boost(inner, place)
        case MultiMatchBody():
            made = _multi_match(inner, place)
        case CombinedFieldsBody():
            made = _combined_fields(inner, place)
        case BooleanBody():
            made = _boolean(inner, place)
    return made


def _match(body: MatchBody, place: str) -> MatchQuery:
    _require_rows(body.document_granularity, place)
    with _told_at(place):
        return MatchQuery(
            body.terms,
            body.column,
            boost=given_or(body.boost, 1.0),
            fuzziness=given_or(body.fuzziness, 0),
            max_expansions=given_or(body.max_expansions, 50),
            operator=_operator(body.operator),
            prefix_length=given_or(body.prefix_length, 0),
        )


def _phrase(body: PhraseBody, place: str) -> PhraseQuery:
    _require_rows(body.document_granularity, place)
    with _told_at(place):
        return PhraseQuery(body.terms, body.column, given_or(body.slop, 0))


def _boost(body: BoostBody, place: str) -> BoostQuery:
    positive = _node(body.positive, f"{place}.positive")
    negative = _node(body.negative, f"{place}.negative")
    with _told_at(place):
        return BoostQuery(positive, negative, given_or(body.negative_boost, 0.5))


def _boolean(body: BooleanBody, place: str) -> BooleanQuery:
    must, should, must_not = (
        tuple(_node(each, f"{place}.{name}[{at}]") for at, each in enumerate(given_or(nodes, [])))
        for name, nodes in [
            ("must", body.must),
            ("should", body.should),
            ("must_not", body.must_not),
        ]
    )
    with _told_at(place):
        return BooleanQuery(must, should, must_not)


def _multi_match(body: MultiMatchBody, place: str) -> MultiMatchQuery:
    form, _ = _only({"match_queries": body.match_queries, "query": body.query}, place)
    if form == "match_queries":
        listed = given_or(body.match_queries, [])
        matches = [_match(each, f"{place}.match_queries[{at}]") for at, each in enumerate(listed)]
    else:
        matches = _matches_of_words(body, place)
    with _told_at(place):
        return MultiMatchQuery(tuple(matches))


def _matches_of_words(body: MultiMatchBody, place: str) -> list[MatchQuery]:
    words, columns = given_or(body.query, ""), given_or(body.columns, [])
    boosts = given_or(body.boost, [1.0] * len(columns))
    if len(boosts) != len(columns):
        raise InvalidRequestError(
            f"{place}: boost has {len(boosts)} numbers for {len(columns)} columns"
        )
    with _told_at(place):
        return [
            MatchQuery(words, column, boost=boost, operator=_operator(body.operator))
            for column, boost in zip(columns, boosts, strict=True)
        ]


def _combined_fields(body: CombinedFieldsBody, place: str) -> CombinedFieldsQuery:
    boosts = None if body.boost is None else tuple(body.boost)
    with _told_at(place):
        return CombinedFieldsQuery(
            body.query, tuple(body.columns), boosts, _operator(body.operator)
        )


def _require_rows(granularity: str | None, place: str) -> None:
    """Refuse to find elements of lists by themselves, unless the index does so anyway."""
    if given_or(granularity, "row") != "row":
        raise UnsupportedFeatureError(
            f"{place}.document_granularity: this release supports row only, not"
            f" {as_json(granularity)}"
        )


def _operator(given: str | None) -> Operator:
    return cast("Operator", given_or(given, "or"))  # queries check it, and take it in any case


@contextmanager
def _told_at(place: str) -> Iterator[None]:
    """Say in errors where in the body the query stands that they are about."""
    try:
        yield
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{place}: {error}") from error


def _require_small(given: object) -> None:
    """Refuse what is too large to be looked at; only what is left is read by recursion."""
    level: list[object] = [given]
    num_values, num_characters = 0, 0
    for _ in range(_MOST_LEVELS):
        num_values += len(level)
        num_characters += sum(len(each) for each in level if isinstance(each, str))
        if num_values > _MOST_VALUES:
            raise InvalidRequestError(
                f"{_MEMBER}: has too many parts; at most {MOST_NODES} queries are answered"
            )
        if num_characters > _MOST_CHARACTERS:
            raise InvalidRequestError(
                f"{_MEMBER}: has {num_characters} characters and more; at most"
                f" {_MOST_CHARACTERS} are read"
            )
        level = [part for each in level for part in _parts(each)]
        if len(level) == 0:
            return
    raise InvalidRequestError(
        f"{_MEMBER}: is nested too deeply; at most {MOST_DEPTH} queries may be inside one another"
    )


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
