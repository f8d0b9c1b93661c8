"""Operators on numbers and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.kinds import common_type, decimal_type, is_number, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.expr.convert import Values

_DIGITS_BEHIND_DIVISION = 4


def operand_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type that both operands are converted to; None if the operator takes no such."""
    if operator == "||":
        return _text_type(left, right)
    are_numbers = all(is_number(each) or pa.types.is_null(each) for each in (left, right))
    common = common_type(left, right) if are_numbers else None
    if common is not None and pa.types.is_null(common):
        return pa.int64()
    if operator in {"<<", ">>"} and common is not None and not pa.types.is_integer(common):
        return None
    return common


def _text_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    texts = [each for each in (left, right) if is_text(each)]
    others = (each for each in (left, right) if not is_text(each))
    if len(texts) == 0 or not all(is_number(each) or pa.types.is_null(each) for each in others):
        return None
    return pa.large_string() if any(map(pa.types.is_large_string, texts)) else pa.string()


def result_type(operator: str, operand: pa.DataType) -> pa.DataType:
    """Return the type of the result for operands of one type."""
    if not pa.types.is_decimal(operand) or operator == "%":
        return operand
    if operator in {"+", "-"}:
        return decimal_type(operand.precision + 1, operand.scale)
    if operator == "*":
        return decimal_type(2 * operand.precision + 1, 2 * operand.scale)
    scale = operand.scale + _DIGITS_BEHIND_DIVISION
    return decimal_type(operand.precision + operand.scale + _DIGITS_BEHIND_DIVISION, scale)


def compute(operator: str, left: Values, right: Values, kind: pa.DataType) -> Values:
    """Apply an operator to values of one type, one by one; ``kind`` is the type of the result.

    Notes
    -----
    Whole numbers wrap around, and are cut towards zero when divided.

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
    if pa.types.is_decimal(left.type):
        return pc.subtract(left, pc.multiply(pc.trunc(pc.divide(left, right)), right))
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _remainder(pa.array([left], left.type), right)[0]
    divisors = pc.fill_null(right, pa.scalar(1, right.type))
    is_whole = not pa.types.is_floating(right.type)
    if is_whole and _any(pc.equal(divisors, pa.scalar(0, right.type))):
        raise pa.ArrowInvalid("divide by zero")
    with np.errstate(invalid="ignore"):
        found = np.fmod(_plain(pc.fill_null(left, pa.scalar(0, left.type))), _plain(divisors))
    is_known = pc.and_(pc.is_valid(left), pc.is_valid(right))
    return pc.if_else(is_known, pa.array(found, left.type), pa.scalar(None, left.type))


def _any(found: Values) -> bool:
    return bool(pc.any(found).as_py() if isinstance(found, pa.Array) else found.as_py())


def _plain(values: Values) -> np.ndarray | np.generic:
    """Return values without nulls for numpy, one value as such of its type."""
    if isinstance(values, pa.Scalar):
        return values.type.to_pandas_dtype()(values.as_py())  # type: ignore[no-any-return]  # pyarrow has no types
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # as above


def _of_decimals(operator: str, left: Values, right: Values, kind: pa.DataType) -> Values:
    exact = pa.decimal256(kind.precision, left.type.scale)
    if operator == "%":
        wide = pa.decimal256(left.type.precision, left.type.scale)
        return _remainder(left.cast(wide), right.cast(wide)).cast(kind)
    if operator == "/":
        wide = pa.decimal256(left.type.precision, left.type.scale)
        return pc.round(pc.divide(left.cast(wide), right.cast(wide)), kind.scale).cast(kind)
    if operator == "*":
        left, right = left.cast(_narrow(left.type)), right.cast(_narrow(right.type))
        return pc.multiply(left, right).cast(kind)
    return _COMPUTE[operator](left.cast(exact), right.cast(exact)).cast(kind)


def _narrow(kind: pa.DataType) -> pa.DataType:
    """Return a wide decimal type whose product with itself Arrow can still hold."""
    return pa.decimal256(min(kind.precision, 37), kind.scale)


_COMPUTE: Mapping[str, Callable[[Values, Values], Values]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "%": _remainder,
    "<<": pc.shift_left,
    ">>": pc.shift_right,
    "||": lambda left, right: pc.binary_join_element_wise(left, right, pa.scalar("", left.type)),
}
