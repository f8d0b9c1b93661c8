"""Functions of numbers, and of values of any type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.compare import compare_bits
from lance_core.expr.functions.rounding import rounding
from lance_core.expr.functions.signature import (
    Function,
    always,
    floating,
    like_first,
    number,
    real,
    takes,
    takes_alike,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.expr.convert import Values


def _absolute(values: pa.Array) -> pa.Array:
    if pa.types.is_unsigned_integer(values.type):
        return values
    if pa.types.is_float16(values.type):
        return pc.abs(values.cast(pa.float32())).cast(values.type)
    return pc.abs_checked(values)


def _chosen(operator: str, values: pa.Array, others: Sequence[Values]) -> pa.Array:
    """Return the largest or smallest of some values, without nulls."""
    for each in others:
        is_kept = compare_bits(operator, values, each)
        values = pc.if_else(pc.fill_null(is_kept, pc.is_valid(values)), values, each)
    return values


def _null_if(values: pa.Array, others: Sequence[Values]) -> pa.Array:
    equal = pc.fill_null(compare_bits("=", values, others[0]), fill_value=False)
    return pc.if_else(equal, pa.scalar(None, values.type), values)


FUNCTIONS = (
    Function("abs", "(number)", takes(number), like_first, lambda values, _: _absolute(values)),
    rounding(None),
    Function(
        "power",
        "(number, number)",
        takes(real, real),
        always(pa.float64()),
        lambda values, others: pc.power(values, *others),
    ),
    Function(
        "isnan",
        "(number)",
        takes(real),
        always(pa.bool_()),
        lambda values, _: pc.is_nan(values),
    ),
    Function("sqrt", "(number)", takes(floating), like_first, lambda values, _: pc.sqrt(values)),
    Function("ln", "(number)", takes(floating), like_first, lambda values, _: pc.ln(values)),
    Function(
        "greatest",
        "(value, value, ...)",
        takes_alike(1),
        like_first,
        lambda values, others: _chosen(">=", values, others),
    ),
    Function(
        "least",
        "(value, value, ...)",
        takes_alike(1),
        like_first,
        lambda values, others: _chosen("<=", values, others),
    ),
    Function(
        "coalesce",
        "(value, value, ...)",
        takes_alike(1),
        like_first,
        lambda values, others: pc.coalesce(values, *others),
    ),
    Function("nullif", "(value, value)", takes_alike(2, 2), like_first, _null_if),
)
"""Functions of this module."""
