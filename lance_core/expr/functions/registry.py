"""All functions by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.expr.functions.signature import Function

FUNCTIONS: Mapping[str, Function] = {}
"""Functions by their names in small letters."""
