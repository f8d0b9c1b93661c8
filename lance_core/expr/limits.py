"""How large filters may be, how work on them is stopped, and how errors show what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[], object]
    """Called again and again while work goes on; raises when it has to stop."""

MAX_DEPTH = 50
"""Levels of brackets, NOTs and signs inside one another; the reference stops at 46."""

MAX_TREE_DEPTH = 100
"""Operators and functions inside one another, brackets or not."""

_SHOWN_CHARACTERS = 100


def go_on() -> None:
    """Let work go on, whatever time it takes."""


@dataclass(frozen=True, slots=True)
class FilterLimits:
    """How large a filter may be.

    Attributes
    ----------
    characters
        Of its text.
    comparisons
        Comparisons, operators and values of lists; a list of more than some hundred plain values
        is one.
    list_values
        Values of all such lists together.
    """

    characters: int
    comparisons: int
    list_values: int = 5_000_000


def shown(value: object) -> str:
    """Return how a value or a token is told to a reader: what is long only begins."""
    text = value[: _SHOWN_CHARACTERS + 1] if isinstance(value, str) else value
    told = repr(text)
    return told if len(told) <= _SHOWN_CHARACTERS else f"{told[:_SHOWN_CHARACTERS]}..."


def python_value(value: pa.Scalar) -> object:
    """Return the Python value of a scalar to be shown; as text what Python has no value for."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # nanoseconds, and years beyond 9999
        return str(value.cast(pa.string()))
