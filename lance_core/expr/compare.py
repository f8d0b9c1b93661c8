"""Comparisons of values of one type; floats are in total order.

-NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN, each equal only to itself; except that both zeros are
equal to a zero that is a literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.kinds import is_list
from lance_core.expr.lists import as_array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.expr.convert import Values

_MANY = 1000
_TABLE_PER_VALUE = 16
_COMPARE: Mapping[str, Callable[[Values, Values], Values]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
MIRRORED: Mapping[str, str] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operator for operands that have changed sides."""


def compare(operator: str, left: Values, right: Values) -> Values:
    """Compare values of one type, one by one.

    Parameters
    ----------
    operator
        One of ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``; lists know the first two.
    left, right
        Arrays of one length, or scalars, which are literals.

    Returns
    -------
    pa.Array | pa.Scalar
        Booleans; null where a value is.
    """
    left, right = _wide(left), _wide(right)
    if pa.types.is_floating(left.type):
        return _compare_floats(operator, left, right)
    if is_list(left.type):
        found = _lists_equal(left, right)
        return found if operator == "=" else pc.invert(found)
    return _COMPARE[operator](left, right)


def compare_bits(operator: str, left: Values, right: Values) -> Values:
    """Compare values as `compare` does, but zeros by their sign also where one is a literal."""
    left, right = _wide(left), _wide(right)
    if not pa.types.is_floating(left.type):
        return compare(operator, left, right)
    return _COMPARE[operator](total_order(left), total_order(right))


def is_distinct(left: Values, right: Values) -> Values:
    """Tell whether values differ, where null equals null."""
    differ = compare("!=", left, right)
    nulls = pc.xor(pc.is_null(left), pc.is_null(right))
    return pc.if_else(pc.is_valid(differ), differ, nulls)


def is_in(values: Values, asked: pa.Array, *, has_null: bool) -> Values:
    """Tell for each value whether it is one of those asked for.

    Null where a value is; and where it is none of them while one of them is null.
    """
    values, asked = _wide(values), _wide(asked)
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(asked)).as_py():
        values, asked = total_order(values), total_order(asked)
    if pa.types.is_fixed_size_binary(values.type):
        values, asked = values.cast(pa.binary()), asked.cast(pa.binary())
    found = _in_table(values, asked)
    if found is None:
        found = pc.is_in(values, value_set=asked)
    is_known = pc.is_valid(values)
    if has_null:
        is_known = pc.and_(is_known, found)
    return pc.if_else(is_known, found, pa.scalar(None, pa.bool_()))


def _in_table(values: Values, asked: pa.Array) -> pa.Array | None:
    """Look values up in a table of all whole numbers between the least and the largest asked for.

    None where that is no faster than hashing.
    """
    if isinstance(values, pa.Scalar) or not pa.types.is_integer(values.type):
        return None
    if len(asked) < _MANY:
        return None
    low, high = (int(each) for each in pc.min_max(asked).as_py().values())
    if high - low > _TABLE_PER_VALUE * (len(asked) + len(values)):
        return None
    table = np.zeros(high - low + 1, bool)
    table[asked.to_numpy() - low] = True
    numbers = pc.fill_null(values, low).to_numpy(zero_copy_only=False)
    inside = (numbers >= low) & (numbers <= high)
    return pa.array(table[np.where(inside, numbers, low) - low] & inside)


def _wide(values: Values) -> Values:
    """Return halves as floats and bytes of one length as bytes: Arrow does not order those."""
    if pa.types.is_float16(values.type):
        return values.cast(pa.float32())
    if pa.types.is_fixed_size_binary(values.type):
        return values.cast(pa.binary())
    return values


def _compare_floats(operator: str, left: Values, right: Values) -> Values:
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Array):
        return _compare_floats(MIRRORED[operator], right, left)
    if isinstance(right, pa.Scalar) and right.is_valid and not _has_nan(left, right):
        return _with_nans(left, operator, _COMPARE[operator](left, right))
    return _COMPARE[operator](total_order(left), total_order(right))


def _has_nan(left: Values, right: pa.Scalar) -> bool:
    """Whether a scalar is NaN; that of an array is looked for later."""
    scalars = [each for each in (left, right) if isinstance(each, pa.Scalar)]
    return any(pc.is_nan(each).as_py() is True for each in scalars)


def _with_nans(column: Values, operator: str, compared: Values) -> Values:
    """Let NaN be above, and negative NaN below all numbers, where an order was asked for."""
    if operator in {"=", "!="} or isinstance(column, pa.Scalar):
        return compared
    is_nan = pc.is_nan(column)
    if not pc.any(is_nan).as_py():
        return compared
    is_low = np.signbit(column.to_numpy(zero_copy_only=False))
    return pc.if_else(is_nan, pa.array(is_low == operator.startswith("<")), compared)


def total_order(values: Values) -> Values:
    """Return whole numbers in the order of floats; float32 or float64, nulls stay."""
    if isinstance(values, pa.Scalar):
        return total_order(pa.array([values], values.type))[0]
    number, mask = (
        (np.int32, 0x7FFFFFFF)
        if pa.types.is_float32(values.type)
        else (
            np.int64,
            0x7FFFFFFFFFFFFFFF,
        )
    )
    bits = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False).view(number)
    ordered = bits ^ ((bits >> (bits.itemsize * 8 - 1)) & number(mask))
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count > 0 else None
    return pa.array(ordered, mask=nulls)


def _lists_equal(left: Values, right: Values) -> Values:
    """Compare lists item by item, where a null item equals a null item."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return pa.scalar(
            left.as_py() == right.as_py() if left.is_valid and right.is_valid else None
        )
    num_rows = len(left) if isinstance(left, pa.Array) else len(right)
    left, right = as_array(left, num_rows), as_array(right, num_rows)
    is_known = pc.and_(left.is_valid(), right.is_valid())
    same_length = pc.equal(pc.list_value_length(left), pc.list_value_length(right))
    rows = np.flatnonzero(
        pc.fill_null(same_length, fill_value=False).to_numpy(zero_copy_only=False)
    )
    differs = is_distinct(left.take(pa.array(rows)).flatten(), right.take(pa.array(rows)).flatten())
    lengths = pc.list_value_length(left).take(pa.array(rows)).to_numpy(zero_copy_only=False)
    equal = np.zeros(num_rows, bool)
    owners = np.repeat(np.arange(len(rows)), lengths)
    wrong = np.bincount(owners, differs.to_numpy(zero_copy_only=False), minlength=len(rows))
    equal[rows] = wrong == 0
    return pc.if_else(is_known, pa.array(equal), pa.scalar(None, pa.bool_()))
