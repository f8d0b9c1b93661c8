"""Values as another type: what a cast does, and what comparisons of two types do first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr.decimals import as_floats
from lance_core.expr.kinds import is_binary, is_clock, is_list, is_text
from lance_core.expr.limits import python_value, shown
from lance_core.expr.lists import as_array
from lance_core.expr.spelling import plain, respelled, scientific, written_out
from lance_core.expr.times import (
    as_date,
    as_duration,
    as_numbers,
    as_time,
    as_timestamp,
    time_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Values: TypeAlias = pa.Array | pa.Scalar

_DIGITS_OF_INT64 = 20
_MOST_DIGITS = 76
_TRUE = pa.array(["true", "t", "yes", "y", "on", "1"])
_FALSE = pa.array(["false", "f", "no", "n", "off", "0"])


def convert(values: Values, kind: pa.DataType, *, gives_null: bool = False) -> Values:
    """Return values as another type.

    Parameters
    ----------
    values
        An array or a scalar.
    kind
        The other type.
    gives_null
        Null where a value cannot be had as that type; else that is an error.

    Raises
    ------
    TypeMismatchError
        A value, or no value of this type, can be had as that type.

    Notes
    -----
    Floats are cut to whole numbers; times without a zone are the wall-clock time of the zone that
    they get; days begin at midnight, in UTC where the other type has a zone.
    """
    if values.type == kind:
        return values
    try:
        return _converted(values, kind)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        is_unknown = isinstance(error, pa.ArrowNotImplementedError)
        if gives_null and not is_unknown:
            is_one = isinstance(values, pa.Scalar)
            return pa.scalar(None, kind) if is_one else _each(values, kind)
        culprit = "" if is_unknown else _culprit(values, kind)
        raise TypeMismatchError(f"{values.type} cannot be made {kind}{culprit}") from None


def _converted(values: Values, kind: pa.DataType) -> Values:
    if pa.types.is_null(values.type):
        is_one = isinstance(values, pa.Scalar)
        return pa.scalar(None, kind) if is_one else pa.nulls(len(values), kind)
    if is_binary(values.type) and not (is_binary(kind) or is_text(kind)):
        raise pa.ArrowNotImplementedError("bytes are only texts")
    for is_kind, make in _MAKERS:
        if is_kind(kind):
            return make(values, kind)
    return values.cast(kind)


def _as_float(values: Values, kind: pa.DataType) -> Values:
    if is_text(values.type):
        values = _unpadded(values)
    elif pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        values = as_numbers(values)
    elif pa.types.is_decimal(values.type):
        values = _decimal_floats(values)
    if pa.types.is_float16(values.type) or pa.types.is_float16(kind):
        values = values.cast(pa.float32(), safe=False)
    return values.cast(kind, safe=False)


def _decimal_floats(values: Values) -> Values:
    if isinstance(values, pa.Scalar):
        return _decimal_floats(pa.array([values], values.type))[0]
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count > 0 else None
    return pa.array(as_floats(values), mask=mask)


def _as_binary(values: Values, kind: pa.DataType) -> Values:
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    return values.cast(kind)


def _as_truth(values: Values, kind: pa.DataType) -> Values:
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    if not is_text(values.type):
        return values.cast(kind)
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(values.cast(pa.string())))
    is_true = pc.is_in(texts, value_set=_TRUE)
    is_known = pc.or_(is_true, pc.is_in(texts, value_set=_FALSE))
    is_wrong = pc.and_(pc.is_valid(texts), pc.invert(is_known))
    if pc.any(is_wrong).as_py() if isinstance(is_wrong, pa.Array) else is_wrong.as_py():
        raise ValueError("no truth value")
    return pc.if_else(is_known, is_true, pa.scalar(None, pa.bool_()))


def _as_text(values: Values, kind: pa.DataType) -> Values:
    given = values.type
    if pa.types.is_temporal(given):
        return time_text(values).cast(kind)
    if pa.types.is_floating(given):
        return _float_text(values).cast(kind)
    if pa.types.is_decimal(given):
        return _decimal_text(values).cast(kind)
    return values.cast(kind)


def _decimal_text(values: Values) -> Values:
    """Return decimals as texts with all their digits; those of Arrow C++ may have exponents."""
    if isinstance(values, pa.Scalar):
        return _decimal_text(pa.array([values], values.type))[0]
    return respelled(values.cast(pa.string()), "E", plain)


def _float_text(values: Values) -> Values:
    """Return floats as texts that have a point; those of Arrow C++ have none behind whole ones."""
    if isinstance(values, pa.Scalar):
        return _float_text(pa.array([values], values.type))[0]
    if pa.types.is_float16(values.type):  # whole ones of these have none, and none an exponent
        text = respelled(_float_text(values.cast(pa.float32())), r"e-[0-9]+$", written_out)
        return pc.replace_substring_regex(text, r"\.0$", "")
    text = values.cast(pa.string())
    text = pc.replace_substring_regex(text, r"^(-?[0-9]+)$", r"\1.0")
    text = pc.replace_substring_regex(text, r"^(-?)nan$", "NaN")
    text = pc.replace_substring_regex(text, r"e\+?(-?)0*", r"e\1")
    if pa.types.is_float32(values.type):
        return respelled(text, r"e1[0-2]$", written_out)
    return respelled(respelled(text, r"e1[0-5]$", written_out), r"^-?0\.00000", scientific)


def _as_integer(values: Values, kind: pa.DataType) -> Values:
    given = values.type
    if is_text(given):
        return _whole_numbers(_unpadded(values)).cast(kind)
    if pa.types.is_float16(given):
        values = pc.trunc(values.cast(pa.float32()))
    elif pa.types.is_floating(given):
        values = pc.trunc(values)
    elif pa.types.is_decimal(given):
        return pc.cast(values, options=pc.CastOptions(kind, allow_decimal_truncate=True))
    elif pa.types.is_temporal(given):
        values = as_numbers(values)
    return values.cast(kind)


def _whole_numbers(texts: Values) -> Values:
    """Return texts of whole numbers as Arrow C++ reads them."""
    is_hex = pc.match_substring_regex(texts, r"^[+-]?0[xX]")
    if pc.any(as_array(is_hex, 1)).as_py():
        raise ValueError("hexadecimal digits")
    return pc.replace_substring_regex(texts, r"^(?:\+([0-9])|-(0+)$)", r"\1\2")


def _as_decimal(values: Values, kind: pa.DataType) -> Values:
    if pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        values = as_numbers(values)
    given = values.type
    if pa.types.is_boolean(given):
        return values.cast(pa.int8()).cast(kind)
    if pa.types.is_integer(given):
        values = values.cast(pa.decimal256(_DIGITS_OF_INT64 + max(kind.scale, 0), kind.scale))
    elif is_text(given):
        values = _rounded(_decimal_texts(values, kind.scale), kind)
    elif pa.types.is_floating(given):
        values = _rounded(values.cast(pa.float64()), kind)
    elif pa.types.is_decimal(given) and kind.scale < given.scale:
        values = _rounded(values, kind)
    return values.cast(kind)


def _decimal_texts(texts: Values, scale: int) -> Values:
    """Return texts as decimals of one digit more than a scale; without any digit they are 0."""
    texts = pc.utf8_trim_whitespace(texts)
    digits = min(max(scale, 0) + 1, _MOST_DIGITS)
    at_least_one = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"
    number = r"^[+-]?[0-9]*\.?[0-9]*$" if scale > 0 else at_least_one
    is_number = pc.match_substring_regex(texts, number)
    if not pc.all(as_array(is_number, 1), min_count=0).as_py():
        raise ValueError("no decimal")
    texts = pc.replace_substring_regex(texts, rf"(\.[0-9]{{{digits}}})[0-9]*$", r"\1")
    texts = pc.replace_substring_regex(texts, r"^([+-]?)([0-9]*)\.?([0-9]*)$", r"\10\2.\30")
    return texts.cast(pa.decimal256(_MOST_DIGITS, min(digits + 1, _MOST_DIGITS)))


def _unpadded(texts: Values) -> Values:
    """Refuse blanks around numbers, which Arrow C++ steps over and the reference does not."""
    padded = pc.match_substring_regex(texts, r"^\s|\s$")
    if padded.as_py() is True if isinstance(padded, pa.Scalar) else pc.any(padded).as_py():
        raise ValueError("blanks")
    return texts


def _rounded(values: Values, kind: pa.DataType) -> Values:
    return pc.round(values, kind.scale, "half_towards_infinity")


def _as_list(values: Values, kind: pa.DataType) -> Values:
    if not is_list(values.type) or pa.types.is_fixed_size_list(kind):
        return values.cast(kind)
    if isinstance(values, pa.Scalar):
        one = pa.array([values], values.type) if values.is_valid else pa.nulls(1, values.type)
        return _as_list(one, kind)[0]
    if pa.types.is_fixed_size_list(values.type):
        values = values.cast(pa.large_list(values.type.value_type))
    items = convert(values.values, kind.value_type)
    made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    offsets = values.offsets.cast(pa.int64() if pa.types.is_large_list(kind) else pa.int32())
    mask = values.is_null() if values.null_count > 0 else None
    if offsets.offset > 0:  # a mask is only taken for offsets that begin at their buffer's begin
        offsets = pa.array(offsets.to_numpy())
    return made.from_arrays(offsets, items, mask=mask)


_MAKERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Values, pa.DataType], Values]]] = (
    (pa.types.is_timestamp, as_timestamp),
    (pa.types.is_date, as_date),
    (is_clock, as_time),
    (pa.types.is_duration, as_duration),
    (pa.types.is_boolean, _as_truth),
    (is_text, _as_text),
    (pa.types.is_integer, _as_integer),
    (pa.types.is_decimal, _as_decimal),
    (pa.types.is_floating, _as_float),
    (is_binary, _as_binary),
    (is_list, _as_list),
)
"""How values are made of a type: the first that knows it."""


def _each(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert every distinct value by itself: null where that fails."""
    coded = values.dictionary_encode()
    made = [convert(each, kind, gives_null=True) for each in coded.dictionary]
    return (
        pa.array(made, kind).take(coded.indices) if len(made) > 0 else pa.nulls(len(values), kind)
    )


def _culprit(values: Values, kind: pa.DataType) -> str:
    """Tell the first value that cannot be had as a type."""
    if isinstance(values, pa.Scalar):
        return f": {shown(python_value(values))}"
    nulls = pc.and_(convert(values, kind, gives_null=True).is_null(), values.is_valid())
    at = np.flatnonzero(nulls.to_numpy(zero_copy_only=False))
    return f": {shown(python_value(values[int(at[0])]))}" if len(at) > 0 else ""
