"""The values of a JSON document, each with where it is and of which kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from lance_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = "str"
KINDS = (TEXT, "number", "bool", "null")
"""How kinds of values are called in tokens."""

_WORDS = {True: ("bool", "true"), False: ("bool", "false"), None: ("null", "null")}


class JsonValue(NamedTuple):
    """A text, number, truth value or null; a tuple, as documents are made of very many.

    Attributes
    ----------
    path
        Keys that lead to it, with dots between them; places in arrays do not count, nor do empty
        keys at the start.
    kind
        One of `KINDS`.
    value
        The text, or how the document spells the value.
    """

    path: str
    kind: str
    value: str

    @property
    def prefix(self) -> str:
        """What its tokens begin with."""
        return f"{self.path},{self.kind},"


class _Number(str):
    """A number as it is spelt."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number)


def json_values(document: str) -> Iterator[JsonValue]:
    """Yield the values of a document in their order; empty objects and arrays have none.

    Raises
    ------
    UnsupportedFeatureError
        It is nested too deep, or no JSON.

    Notes
    -----
    Observed with pylance 14.0.2.

    Examples
    --------
    >>> [each.prefix + each.value for each in json_values('{"a": {"b": ["x", 1.50, null]}}')]
    ['a.b,str,x', 'a.b,number,1.50', 'a.b,null,null']
    """
    try:
        parsed = _DECODER.decode(document)
    except (ValueError, RecursionError) as error:
        raise UnsupportedFeatureError(f"words of a JSON document: {error}") from error
    left: list[tuple[str, object]] = [("", parsed)]
    while len(left) > 0:
        path, value = left.pop()
        if isinstance(value, dict):
            start = "" if path == "" else f"{path}."
            left += reversed([(start + key, each) for key, each in value.items()])
        elif isinstance(value, list):
            left += [(path, each) for each in reversed(value)]
        else:
            yield _value(path, value)


def _value(path: str, value: object) -> JsonValue:
    if isinstance(value, _Number):
        return JsonValue(path, "number", value)
    if isinstance(value, str):
        return JsonValue(path, TEXT, value)
    kind, spelt = _WORDS[bool(value) if value is not None else None]
    return JsonValue(path, kind, spelt)
