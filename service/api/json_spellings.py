"""Values and types in error texts, spelt as the caller wrote them: in JSON."""

from __future__ import annotations

import orjson

_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "booleans",
    str: "strings",
    list: "arrays",
    dict: "objects",
    int: "numbers",
    float: "numbers",
}
_LONGEST = 80


def as_json(value: object) -> str:
    """Return a value as JSON, cut if it is long.

    Examples
    --------
    >>> as_json([None, True, "a"])
    '[null,true,"a"]'
    """
    text = orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def type_names(types: set[type]) -> str:
    """Return what JSON calls the types of its values.

    Examples
    --------
    >>> type_names({bool, type(None)})
    'booleans, null'
    """
    return ", ".join(sorted({_TYPES[each] for each in types}))


def as_path(place: tuple[int | str, ...]) -> str:
    """Return where in a body a value stands.

    Examples
    --------
    >>> as_path(("columns", 0))
    'columns[0]'
    """
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in place]
    return "".join(steps).removeprefix(".")
