"""Types of values: questions about them, and the one that two of them are compared as."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_UNITS = ("s", "ms", "us", "ns")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_MOST_DIGITS = 38
_MOST_DIGITS_WIDE = 76


def is_text(kind: pa.DataType) -> bool:
    """Whether values are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists, of any or of one length."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether values are whole numbers, floats or decimals."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_moment(kind: pa.DataType) -> bool:
    """Whether values are dates or timestamps."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_clock(kind: pa.DataType) -> bool:
    """Whether values are times of the day."""
    return bool(pa.types.is_time(kind))


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that values of two types are compared as, or computed with.

    None if they have nothing in common. As pylance 14.0.2 has it.
    """
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    for is_kind, common in _COMMON:
        if is_kind(one) and is_kind(other):
            return common(one, other)
    return None


def _common_number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_floating(one) or pa.types.is_floating(other):
        return _common_float(one, other)
    if pa.types.is_decimal(one) or pa.types.is_decimal(other):
        return _common_decimal(as_decimal(one), as_decimal(other))
    return _common_integer(one, other)


def _common_float(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(one) or pa.types.is_decimal(other):
        return pa.float64()
    widths = [each.bit_width for each in (one, other) if pa.types.is_floating(each)]
    widest = max(widths)
    return {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[widest]


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """Return the decimals that hold all whole numbers of a type; decimals as they are."""
    return pa.decimal128(_DIGITS[kind.bit_width], 0) if pa.types.is_integer(kind) else kind


def _common_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return _decimal_type(whole + scale, scale)


def _decimal_type(precision: int, scale: int) -> pa.DataType:
    if precision <= _MOST_DIGITS:
        return pa.decimal128(precision, scale)
    return pa.decimal256(min(precision, _MOST_DIGITS_WIDE), scale)


def _common_integer(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    is_signed = [pa.types.is_signed_integer(each) for each in (one, other)]
    if is_signed[0] == is_signed[1]:
        return max((one, other), key=lambda each: each.bit_width)
    signed, unsigned = (one, other) if is_signed[0] else (other, one)
    width = max(signed.bit_width, 2 * unsigned.bit_width)
    if width > 64:  # noqa: PLR2004  # no integer is wider
        return pa.decimal128(_DIGITS[64], 0)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width]


def _common_moment(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_date(one) and pa.types.is_date(other):
        return pa.date64()
    stamps = [each for each in (one, other) if pa.types.is_timestamp(each)]
    unit = max((each.unit for each in stamps), key=_UNITS.index)
    zone = next((each.tz for each in stamps if each.tz is not None), None)
    return pa.timestamp(unit, zone)


def _common_clock(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    unit = max((one.unit, other.unit), key=_UNITS.index)
    return pa.time32(unit) if unit in {"s", "ms"} else pa.time64(unit)


def _common_duration(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return pa.duration(max((one.unit, other.unit), key=_UNITS.index))


def _common_text(one: pa.DataType, other: pa.DataType) -> pa.DataType:  # they differ
    return pa.large_string()


def _common_binary(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    has_large = pa.types.is_large_binary(one) or pa.types.is_large_binary(other)
    return pa.large_binary() if has_large else pa.binary()


def _common_list(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    item = common_type(one.value_type, other.value_type)
    return None if item is None else pa.large_list(item)


_COMMON: Sequence[
    tuple[
        Callable[[pa.DataType], bool],
        Callable[[pa.DataType, pa.DataType], pa.DataType | None],
    ]
] = (
    (is_number, _common_number),
    (is_text, _common_text),
    (is_binary, _common_binary),
    (is_moment, _common_moment),
    (is_clock, _common_clock),
    (pa.types.is_duration, _common_duration),
    (is_list, _common_list),
)
"""How two types of one kind meet."""
