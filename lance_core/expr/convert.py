"""Values as another type: what a cast does, and what comparisons of two types do first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr.kinds import is_binary, is_list, is_text
from lance_core.expr.limits import python_value, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Values: TypeAlias = pa.Array | pa.Scalar

_UTC = "UTC"
_UNITS = ("s", "ms", "us", "ns")
_DIGITS_OF_INT64 = 20
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
        if gives_null and isinstance(values, pa.Scalar):
            return pa.scalar(None, kind)
        if gives_null and not isinstance(error, pa.ArrowNotImplementedError):
            return _each(values, kind)
        is_unknown = isinstance(error, pa.ArrowNotImplementedError)
        culprit = "" if is_unknown else _culprit(values, kind)
        raise TypeMismatchError(f"{values.type} cannot be made {kind}{culprit}") from None


def _converted(values: Values, kind: pa.DataType) -> Values:
    if pa.types.is_null(values.type):
        is_one = isinstance(values, pa.Scalar)
        return pa.scalar(None, kind) if is_one else pa.nulls(len(values), kind)
    for is_kind, make in _MAKERS:
        if is_kind(kind):
            return make(values, kind)
    return values.cast(kind)


def _as_float(values: Values, kind: pa.DataType) -> Values:
    if is_text(values.type):
        values = _unpadded(values)
    if pa.types.is_float16(values.type) or pa.types.is_float16(kind):
        values = values.cast(pa.float32(), safe=False)
    return values.cast(kind, safe=False)


def _as_date(values: Values, kind: pa.DataType) -> Values:
    if pa.types.is_timestamp(values.type):
        return _local(values).cast(kind, safe=False)
    if is_text(values.type):
        return _days(values).cast(kind)
    if pa.types.is_integer(values.type):
        return values.cast(pa.int32()).cast(pa.date32()).cast(kind)
    return values.cast(kind)


def _days(texts: Values) -> Values:
    try:
        return texts.cast(pa.date32())
    except pa.ArrowInvalid:  # a time of the day follows
        return _parsed_times(texts, "s").cast(pa.date32())


def _as_binary(values: Values, kind: pa.DataType) -> Values:
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    return values.cast(kind)


def _as_timestamp(values: Values, kind: pa.DataType) -> Values:
    given = values.type
    if is_text(given):
        stamps = _parsed_times(values, kind.unit)
    elif pa.types.is_date(given):
        return values.cast(pa.timestamp("ms")).cast(kind)  # midnight in UTC
    elif pa.types.is_timestamp(given) and given.tz is not None:
        if kind.tz is not None:
            in_utc = values.cast(pa.timestamp(given.unit))
            return _as_timestamp(in_utc, pa.timestamp(kind.unit)).cast(kind)
        stamps = values.cast(pa.timestamp(given.unit))
    elif pa.types.is_timestamp(given):
        stamps = values
    else:
        return values.cast(pa.int64(), safe=False).cast(pa.timestamp(kind.unit)).cast(kind)
    # Digits are cut off, but no time may come to lie outside of what the unit reaches.
    is_coarser = _UNITS.index(kind.unit) < _UNITS.index(stamps.type.unit)
    stamps = stamps.cast(pa.timestamp(kind.unit), safe=not is_coarser)
    if kind.tz is None:
        return stamps
    return pc.assume_timezone(stamps, kind.tz, ambiguous="earliest", nonexistent="latest")


_OFFSET = r":.*([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)$"
_WITHOUT_SECONDS = r"^[^:]*:[0-9]{2}([^:0-9].*)?$"


def _parsed_times(values: Values, unit: str) -> Values:
    """Return texts as times without a zone; an offset is converted to UTC and dropped."""
    if isinstance(values, pa.Scalar):
        return _parsed_times(pa.array([values], values.type), unit)[0]
    texts = values
    if pc.any(pc.match_substring_regex(texts, _WITHOUT_SECONDS)).as_py():
        raise ValueError("no seconds")  # as pylance 14.0.2 has it
    kind, nothing = pa.timestamp(unit), pa.scalar(None, texts.type)
    has_offset = pc.match_substring_regex(texts, _OFFSET)
    plain = pc.if_else(has_offset, nothing, texts).cast(kind)
    if not pc.any(has_offset).as_py():
        return plain
    zoned = pc.if_else(has_offset, texts, nothing).cast(pa.timestamp(unit, _UTC))
    return pc.coalesce(plain, zoned.cast(kind))


def _local(values: Values) -> Values:
    return pc.local_timestamp(values) if values.type.tz is not None else values


def _as_truth(values: Values, kind: pa.DataType) -> Values:
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
    if pa.types.is_timestamp(given):
        return _stamp_text(values).cast(kind)
    if pa.types.is_floating(given):
        return _float_text(values).cast(kind)
    return values.cast(kind)


def _stamp_text(values: Values) -> Values:
    """Return times as ISO texts, with ``T``, ``Z`` or an offset, and no more digits than needed."""
    zone = values.type.tz
    text = pc.strftime(_local(values), format="%Y-%m-%dT%H:%M:%S")
    text = pc.replace_substring_regex(text, r"\.0+$", "")
    if zone is None:
        return text
    if zone == _UTC:
        return pc.binary_join_element_wise(text, "Z", "")
    offset = pc.replace_substring_regex(pc.strftime(values, format="%z"), r"^(...)(..)$", r"\1:\2")
    return pc.binary_join_element_wise(text, offset, "")


def _float_text(values: Values) -> Values:
    """Return floats as texts that have a point; those of Arrow C++ have none behind whole ones."""
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    text = values.cast(pa.string())
    text = pc.replace_substring_regex(text, r"^(-?[0-9]+)$", r"\1.0")
    text = pc.replace_substring_regex(text, r"^(-?)nan$", "NaN")
    return pc.replace_substring_regex(text, r"e\+?(-?)0*", r"e\1")


def _as_integer(values: Values, kind: pa.DataType) -> Values:
    given = values.type
    if is_text(given):
        values = pc.replace_substring_regex(_unpadded(values), r"^\+([0-9])", r"\1")
    elif pa.types.is_float16(given):
        values = pc.trunc(values.cast(pa.float32()))
    elif pa.types.is_floating(given):
        values = pc.trunc(values)
    elif pa.types.is_decimal(given):
        return pc.cast(values, options=pc.CastOptions(kind, allow_decimal_truncate=True))
    elif pa.types.is_temporal(given):
        values = values.cast(pa.int32() if given.bit_width == pa.int32().bit_width else pa.int64())
    return values.cast(kind)


def _as_decimal(values: Values, kind: pa.DataType) -> Values:
    given = values.type
    if pa.types.is_boolean(given):
        return values.cast(pa.int8()).cast(kind)
    if pa.types.is_integer(given):
        values = values.cast(pa.decimal256(_DIGITS_OF_INT64 + max(kind.scale, 0), kind.scale))
    elif is_text(given):
        values = _rounded(_unpadded(values).cast(pa.decimal256(76, 38)), kind)
    elif pa.types.is_floating(given):
        values = _rounded(values.cast(pa.float64()), kind)
    elif kind.scale < given.scale:
        values = _rounded(values, kind)
    return values.cast(kind)


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
    (pa.types.is_timestamp, _as_timestamp),
    (pa.types.is_date, _as_date),
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
