"""Checks that requests of all kinds make of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.expr.parameters import plain_parameters

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


def check_columns(columns: object) -> None:
    """Refuse what is no tuple of names, and not None either."""
    if columns is not None and not (
        isinstance(columns, tuple) and all(isinstance(name, str) for name in columns)
    ):
        raise InvalidRequestError(f"columns is {columns!r}; give a list of names")


def check_filter(given: object) -> None:
    """Refuse what is no text, and not None either."""
    if given is not None and not isinstance(given, str):
        raise InvalidRequestError(f'filter is {given!r}; give text such as "id = 3"')


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if value is not True and value is not False and not isinstance(value, (bool, np.bool_)):
        raise InvalidRequestError(f"{name} is {value!r}; it must be True or False")


def check_minimum(name: str, value: object, minimum: int) -> None:
    """Refuse what is no whole number of at least ``minimum``, and not None either."""
    if value is not None:
        check_whole(name, value, minimum)


def check_whole(name: str, value: object, minimum: int) -> None:
    """Refuse what is no whole number of at least ``minimum``."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise InvalidRequestError(f"{name} is {value!r}; it must be a whole number")
    if value < minimum:
        raise InvalidRequestError(f"{name} is {value}; it must be at least {minimum}")


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse what is none of some words."""
    if not isinstance(value, str) or value not in known:
        raise InvalidRequestError(f"{name} is {value!r}; use one of: {', '.join(known)}")


def checked_params(given: object) -> Mapping[str, object] | None:
    """Check values of parameters and make them plain, as arrays show and compare only in part."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidRequestError(f"params is {given!r}; give values by name")
    return plain_parameters(given)


def hashable(value: object) -> Hashable:
    """Return something that is equal for values that mean the same in a filter."""
    if isinstance(value, Mapping):
        return tuple((name, hashable(value[name])) for name in sorted(value))
    if isinstance(value, list | tuple):
        return tuple(hashable(each) for each in value)
    return type(value), repr(value)  # 1, 1.0 and True are equal, and NaN is not even to itself
