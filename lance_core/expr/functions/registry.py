"""All functions by name."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from lance_core.expr.functions import arrays, numbers, strings, times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.expr.functions.signature import Function

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        each.name: each
        for each in (
            *strings.FUNCTIONS,
            *arrays.FUNCTIONS,
            *numbers.FUNCTIONS,
            *times.FUNCTIONS,
        )
    }
    | {"array_contains": arrays.HAS, "list_contains": arrays.HAS}
)
"""Functions by their names in small letters."""
