"""Operators on numbers and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.decimals import divided, multiplied, remainders
from lance_core.expr.kinds import as_decimal, common_type, is_number, is_text
from lance_core.expr.lists import as_array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.expr.convert import Values

_DIGITS_BEHIND_DIVISION = 4
_MOST_DIGITS = 76


def operand_types(
    operator: str, left: pa.DataType, right: pa.DataType
) -> tuple[pa.DataType, pa.DataType] | None:
    """Return the types that operands are converted to; None if the operator takes no such.

    They are one, but for decimals, each of which keeps its digits.
    """
    if operator == "||":
        return _twice(_text_type(left, right))
    if not all(is_number(each) or pa.types.is_null(each) for each in (left, right)):
        return None
    common = common_type(left, right)
    if common is not None and pa.types.is_null(common):
        return _twice(pa.int64())
    if operator in {"<<", ">>"}:
        return _twice(_shifted_type(left, right))
    if common is not None and pa.types.is_decimal(common):
        return _decimal_types(left, right, common)
    return _twice(common)


def _twice(kind: pa.DataType | None) -> tuple[pa.DataType, pa.DataType] | None:
    return None if kind is None else (kind, kind)


def _decimal_types(
    left: pa.DataType, right: pa.DataType, common: pa.DataType
) -> tuple[pa.DataType, pa.DataType]:
    """Return the types of decimals and whole numbers, all of 128 or all of 256 bits."""
    if not any(map(pa.types.is_decimal, (left, right))):  # uint64 beside another
        return common, common
    kinds = [common if pa.types.is_null(each) else as_decimal(each) for each in (left, right)]
    if pa.types.is_decimal256(left) and pa.types.is_integer(right):
        kinds[1] = pa.decimal256(kinds[1].precision, 0)
    elif pa.types.is_decimal256(right) and pa.types.is_integer(left):
        kinds[0] = pa.decimal256(kinds[0].precision, 0)
    elif any(map(pa.types.is_decimal256, (left, right))):
        return common, common
    return kinds[0], kinds[1]


def _shifted_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type of whole numbers that are shifted: beside uint64 all are that."""
    if pa.uint64() in {left, right}:
        is_whole = all(
            pa.types.is_integer(each) or pa.types.is_null(each) for each in (left, right)
        )
        return pa.uint64() if is_whole else None
    common = common_type(left, right)
    return common if common is not None and pa.types.is_integer(common) else None


def _text_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    texts = [each for each in (left, right) if is_text(each)]
    others = (each for each in (left, right) if not is_text(each))
    if len(texts) == 0 or not all(is_number(each) or pa.types.is_null(each) for each in others):
        return None
    return pa.large_string() if any(map(pa.types.is_large_string, texts)) else pa.string()


def result_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of the result for operands of the types that they are converted to."""
    if not pa.types.is_decimal(left):
        return left
    scale = max(left.scale, right.scale)
    whole = [left.precision - left.scale, right.precision - right.scale]
    if operator in {"+", "-"}:
        precision = max(whole) + scale + 1
    elif operator == "%":
        precision = min(whole) + scale
    elif operator == "*":
        scale = left.scale + right.scale
        precision = left.precision + right.precision + 1
    else:
        scale = left.scale + _DIGITS_BEHIND_DIVISION
        precision = left.precision + right.scale + _DIGITS_BEHIND_DIVISION
    make, most = (
        (pa.decimal128, _MOST_DIGITS // 2)
        if pa.types.is_decimal128(left)
        else (pa.decimal256, _MOST_DIGITS)
    )
    return make(min(precision, most), min(scale, most))


def compute(operator: str, left: Values, right: Values, kind: pa.DataType) -> Values:
    """Apply an operator to values of the types it takes; ``kind`` is the type of the result.

    Notes
    -----
    Whole numbers wrap around, and are cut towards zero when divided, as decimals are behind their
    last digit. They are shifted by what is left when they have been shifted by their width.

    Raises
    ------
    pa.ArrowInvalid
        A whole number or decimal is divided by zero.
    """
    if pa.types.is_float16(kind):
        return compute(
            operator, left.cast(pa.float32()), right.cast(pa.float32()), pa.float32()
        ).cast(kind)
    if pa.types.is_decimal(kind):
        return _of_decimals(operator, left, right, kind)
    return _COMPUTE[operator](left, right)


def negate(values: Values) -> Values:
    """Return numbers with the other sign."""
    if pa.types.is_float16(values.type):
        return pc.negate(values.cast(pa.float32())).cast(pa.float16())
    return pc.negate(values)


def _remainder(left: Values, right: Values) -> Values:
    divisors = pc.fill_null(right, pa.scalar(1, right.type))
    is_whole = not pa.types.is_floating(right.type)
    if is_whole and _any(pc.equal(divisors, pa.scalar(0, right.type))):
        raise pa.ArrowInvalid("divide by zero")
    return _by_numpy(np.fmod, left, right)


def _within_width(counts: Values) -> Values:
    """Return by how many bits is left to shift when whole widths have been shifted by."""
    return pc.bit_wise_and(counts, pa.scalar(counts.type.bit_width - 1, counts.type))


def _by_numpy(compute: np.ufunc, left: Values, right: Values) -> Values:
    """Apply a function of numpy to numbers of one type; null where either is."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _by_numpy(compute, pa.array([left], left.type), right)[0]
    kind = left.type
    numbers = (_plain(pc.fill_null(each, pa.scalar(1, kind))) for each in (left, right))
    with np.errstate(invalid="ignore"):
        found = compute(*numbers)
    is_known = pc.and_(pc.is_valid(left), pc.is_valid(right))
    return pc.if_else(is_known, pa.array(found, kind), pa.scalar(None, kind))


def _any(found: Values) -> bool:
    return bool(pc.any(found).as_py() if isinstance(found, pa.Array) else found.as_py())


def _plain(values: Values) -> np.ndarray | np.generic:
    """Return values without nulls for numpy, one value as such of its type."""
    if isinstance(values, pa.Scalar):
        return values.type.to_pandas_dtype()(values.as_py())  # type: ignore[no-any-return]  # pyarrow has no types
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # as above


def _of_decimals(operator: str, left: Values, right: Values, kind: pa.DataType) -> Values:
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _of_decimals(operator, pa.array([left], left.type), right, kind)[0]
    if operator in _BY_ROW:
        num_rows = len(left) if isinstance(left, pa.Array) else len(right)
        return _BY_ROW[operator](as_array(left, num_rows), as_array(right, num_rows), kind)
    wide = pa.decimal256(_MOST_DIGITS - 1, kind.scale)
    return _COMPUTE[operator](left.cast(wide), right.cast(wide)).cast(kind)


_BY_ROW: Mapping[str, Callable[[pa.Array, pa.Array, pa.DataType], pa.Array]] = {
    "*": multiplied,
    "/": divided,
    "%": remainders,
}
_COMPUTE: Mapping[str, Callable[[Values, Values], Values]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "%": _remainder,
    "<<": lambda left, right: _by_numpy(np.left_shift, left, _within_width(right)),
    ">>": lambda left, right: _by_numpy(np.right_shift, left, _within_width(right)),
    "||": lambda left, right: pc.binary_join_element_wise(left, right, pa.scalar("", left.type)),
}
