"""Rounding of numbers, half away from zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.functions.per_value import with_constants
from lance_core.expr.functions.signature import Function, floating, takes, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.expr.convert import Values

_MOST_DIGITS = 75
_MOST_DIGITS_OF_128 = 38
_HALF = 0.5


def rounding(digits: int | None) -> Function:
    """Return ``round`` to some digits behind the point; None = others in every row.

    Notes
    -----
    Decimals keep as many digits behind the point as are asked for, and all where that differs;
    whole numbers become floats.
    """
    return Function(
        "round",
        "(number[, digits])",
        takes(_roundable, whole, optional=1),
        lambda types: _result(types[0], digits),
        lambda values, others: _rounded(values, others, _result(values.type, digits)),
    )


def _roundable(kind: pa.DataType) -> pa.DataType | None:
    return kind if pa.types.is_decimal(kind) else floating(kind)


def _result(kind: pa.DataType, digits: int | None) -> pa.DataType:
    if not pa.types.is_decimal(kind):
        return kind
    make, most = (
        (pa.decimal128, _MOST_DIGITS_OF_128)
        if pa.types.is_decimal128(kind)
        else (pa.decimal256, _MOST_DIGITS)
    )
    scale = kind.scale if digits is None else min(max(digits, 0), kind.scale)
    may_grow = scale == kind.scale and (  # 99 to 100
        digits is None or kind.scale - kind.precision <= digits < kind.scale
    )
    return make(min(kind.precision + may_grow, most), scale)


def _rounded(values: pa.Array, others: Sequence[Values], kind: pa.DataType) -> pa.Array:
    digits = others if len(others) > 0 else [pa.scalar(0, pa.int64())]
    round_to = _round_decimals if pa.types.is_decimal(kind) else _round_floats
    return with_constants(round_to, values, digits, kind)


def _round_decimals(values: pa.Array, digits: int) -> pa.Array:
    kind = values.type
    digits = max(digits, kind.scale - kind.precision - 1)  # beyond, all is 0
    wide = values.cast(pa.decimal256(_MOST_DIGITS, kind.scale))
    return pc.round(wide, min(digits, kind.scale), "half_towards_infinity")


def _round_floats(values: pa.Array, digits: int) -> pa.Array:
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    power = _power_of_ten(numbers.dtype.type, digits)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = numbers * power
        cut = np.trunc(moved)
        away = np.where(np.abs(moved - cut) >= _HALF, cut + np.sign(moved), cut)
        found = np.copysign(away, moved) / power
    # A number that cannot be moved has no digits there, or no others.
    kept = numbers if digits > 0 else np.where(np.isfinite(numbers), 0.0, numbers)
    found = np.where(np.isfinite(found), found, kept)
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count > 0 else None
    return pa.array(found.astype(numbers.dtype), mask=mask)


def _power_of_ten(kind: type[np.floating], digits: int) -> np.floating:
    """Return a power of ten as squaring and multiplying makes it, as pylance 14.0.2 has it."""
    made, factor, left = kind(1), kind(10), abs(digits)
    with np.errstate(over="ignore"):
        while left > 0:
            if left % 2 == 1:
                made = made * factor
            factor, left = factor * factor, left // 2
        return made if digits >= 0 else kind(1) / made
