"""Identifiers in paths: ``a$b$t`` is table ``t`` in namespace ``a/b``, ``$`` the root namespace."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from lance_core.errors import InvalidRequestError
from service.api.json_spellings import as_json
from service.catalog.names import Namespace, TableName

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_DELIMITER = "$"

_KNOWN_NAMES = 1024


def parse_name(raw_segment: str) -> str:
    """Return what a path segment spells, as it came over the wire.

    A ``+`` is a blank: pylance's ``RestNamespace`` writes one so, and ``+`` itself as ``%2B``, as
    all clients do (observed).

    Examples
    --------
    >>> parse_name("my+idx"), parse_name("my%20idx"), parse_name("a%2Bb")
    ('my idx', 'my idx', 'a+b')

    Raises
    ------
    InvalidRequestError
        It is not UTF-8.
    """
    try:
        return unquote_to_bytes(raw_segment.replace("+", " ")).decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"the identifier {as_json(raw_segment)} is not UTF-8") from error


@lru_cache(_KNOWN_NAMES)
def parse_parts(raw_segment: str, delimiter: str = DEFAULT_DELIMITER) -> tuple[str, ...]:
    """Return the parts of an identifier.

    Parameters
    ----------
    raw_segment
        One path segment as it came over the wire, still percent-encoded. (Decoding a whole path
        first would turn an encoded slash inside a name into a separator.)
    delimiter
        What stands between parts, not empty; clients may choose another one by query parameter.

    Examples
    --------
    >>> parse_parts("a%24b$t")
    ('a', 'b', 't')
    >>> parse_parts("$")
    ()
    """
    text = parse_name(raw_segment)
    if text == delimiter:
        return ()
    parts = tuple(text.split(delimiter))
    if "" in parts:
        raise InvalidRequestError(f"the identifier {as_json(text)} has an empty part")
    return parts


def to_namespace(parts: Sequence[str], prefix: Sequence[str] = ()) -> Namespace:
    """Return the namespace that an identifier names below ``prefix``."""
    return Namespace((*prefix, *parts))


@lru_cache(_KNOWN_NAMES)
def to_table(parts: tuple[str, ...], prefix: tuple[str, ...] = ()) -> TableName:
    """Return the table that an identifier names below ``prefix``."""
    if len(parts) == 0:
        raise InvalidRequestError("the root namespace is no table")
    return TableName(Namespace((*prefix, *parts[:-1])), parts[-1])


def require_same(parts: Sequence[str], body_id: Sequence[str] | None) -> None:
    """Refuse a body whose ``id`` disagrees with the path."""
    if body_id is not None and tuple(body_id) != tuple(parts):
        raise InvalidRequestError(
            f"the id in the body is {as_json(list(body_id))}, the path names {as_json(list(parts))}"
        )
