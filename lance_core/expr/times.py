"""Dates, timestamps, times of the day and durations, made of values of other types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.kinds import is_text
from lance_core.expr.zones import instants, seconds_ahead, wall_clock

if TYPE_CHECKING:
    from lance_core.expr.convert import Values

_UTC = "UTC"
_UNITS = ("s", "ms", "us", "ns")
_SHORT_MONTH = r"^([0-9]{4})-([0-9]-[0-9]{1,2})$"
_SHORT_DAY = r"^([0-9]{4}-[0-9]{2})-([0-9])$"
_PLAIN_DAY = r"^([0-9]{4})([0-9]{2})([0-9]{2})$"
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def is_coarser(unit: str, other: str) -> bool:
    """Whether a unit of time is longer than another."""
    return _UNITS.index(unit) < _UNITS.index(other)


def as_numbers(values: Values) -> Values:
    """Return dates and times as the whole numbers that they are stored as."""
    is_short = values.type.bit_width == pa.int32().bit_width
    return values.cast(pa.int32() if is_short else pa.int64())


def as_date(values: Values, kind: pa.DataType) -> Values:
    """Return values as dates."""
    if pa.types.is_timestamp(values.type):
        return wall_clock(values).cast(kind, safe=False)
    if is_text(values.type):
        return _days(values).cast(kind)
    if pa.types.is_integer(values.type):
        return values.cast(pa.int32()).cast(pa.date32()).cast(kind)
    return values.cast(kind)


def _days(texts: Values) -> Values:
    """Return texts as days; months and days may be one digit, and dashes may be left out."""
    plain = pc.replace_substring_regex(texts, _SHORT_MONTH, r"\1-0\2")
    plain = pc.replace_substring_regex(plain, _SHORT_DAY, r"\1-0\2")
    plain = pc.replace_substring_regex(plain, _PLAIN_DAY, r"\1-\2-\3")
    try:
        return plain.cast(pa.date32())
    except pa.ArrowInvalid:  # a time of the day follows
        return _parsed_times(texts, "s").cast(pa.date32())


def as_timestamp(values: Values, kind: pa.DataType) -> Values:
    """Return values as timestamps; digits of texts that the unit has not are cut off."""
    given = values.type
    if is_text(given):
        stamps = _parsed_times(values, kind.unit)
    elif pa.types.is_date(given):
        return values.cast(pa.timestamp("ms")).cast(kind)  # midnight in UTC
    elif pa.types.is_timestamp(given) and given.tz is not None:
        if kind.tz is not None:
            in_utc = values.cast(pa.timestamp(given.unit))
            return as_timestamp(in_utc, pa.timestamp(kind.unit)).cast(kind)
        stamps = values.cast(pa.timestamp(given.unit))
    elif pa.types.is_timestamp(given):
        stamps = values
    else:
        return _whole(values).cast(pa.int64()).cast(pa.timestamp(kind.unit)).cast(kind)
    # Digits are cut off, but no time may come to lie outside of what the unit reaches.
    stamps = stamps.cast(pa.timestamp(kind.unit), safe=not is_coarser(kind.unit, stamps.type.unit))
    return stamps if kind.tz is None else instants(stamps, kind.tz)


_OFFSET = r":.*([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)$"
_WITHOUT_SECONDS = r"^[^:]*:[0-9]{2}([^:0-9].*)?$"


def _parsed_times(values: Values, unit: str) -> Values:
    """Return texts as times without a zone; an offset is converted to UTC and dropped."""
    if isinstance(values, pa.Scalar):
        return _parsed_times(pa.array([values], values.type), unit)[0]
    texts = _without_digits(values, unit)
    if pc.any(pc.match_substring_regex(texts, _WITHOUT_SECONDS)).as_py():
        raise ValueError("no seconds")  # as pylance 14.0.2 has it
    kind, nothing = pa.timestamp(unit), pa.scalar(None, texts.type)
    has_offset = pc.match_substring_regex(texts, _OFFSET)
    plain = pc.if_else(has_offset, nothing, texts).cast(kind)
    if not pc.any(has_offset).as_py():
        return plain
    zoned = pc.if_else(has_offset, texts, nothing).cast(pa.timestamp(unit, _UTC))
    return pc.coalesce(plain, zoned.cast(kind))


def as_time(values: Values, kind: pa.DataType) -> Values:
    """Return values as times of the day; digits that the unit has not are cut off."""
    given = values.type
    if is_text(given):
        if isinstance(values, pa.Scalar):
            return as_time(pa.array([values], given), kind)[0]
        return _parsed_clock(values, kind.unit).cast(kind)
    if pa.types.is_integer(given):
        return values.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(kind)
    if pa.types.is_timestamp(given):
        values = wall_clock(values)
    return values.cast(kind, safe=False)


_CLOCK = r"^[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?$"


def _parsed_clock(texts: pa.Array, unit: str) -> pa.Array:
    """Return texts as times of the first day of all."""
    if not pc.all(pc.match_substring_regex(texts, _CLOCK), min_count=0).as_py():
        raise ValueError("no time of the day")
    texts = _without_digits(texts, unit)
    day = pa.scalar("1970-01-01 ", texts.type)
    nothing = pa.scalar("", texts.type)
    return pc.binary_join_element_wise(day, texts, nothing).cast(pa.timestamp(unit))


def as_duration(values: Values, kind: pa.DataType) -> Values:
    """Return numbers and durations as durations; digits that the unit has not are cut off."""
    given = values.type
    if pa.types.is_duration(given):
        return values.cast(kind, safe=not is_coarser(kind.unit, given.unit))
    if not any(is_kind(given) for is_kind in _NUMBERS):
        raise pa.ArrowNotImplementedError("no duration")
    return _whole(values).cast(pa.int64()).cast(kind)


_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


def _whole(values: Values) -> Values:
    """Return numbers without what is behind the point."""
    given = values.type
    if pa.types.is_decimal(given):
        return pc.cast(values, options=pc.CastOptions(pa.int64(), allow_decimal_truncate=True))
    if pa.types.is_float16(given):
        values = values.cast(pa.float32())
    return pc.trunc(values) if pa.types.is_floating(given) else values


def _without_digits(texts: Values, unit: str) -> Values:
    """Return texts of times without the digits behind the point that a unit has not."""
    number = _DIGITS[unit]
    pattern = rf"(:[0-9]+\.[0-9]{{{number}}})[0-9]+" if number > 0 else r"(:[0-9]+)\.[0-9]+"
    return pc.replace_substring_regex(texts, pattern, r"\1")


def is_finer(texts: pa.Array, unit: str) -> bool:
    """Whether texts of times have other digits than zeros that a unit has not."""
    behind = rf"\.[0-9]{{{_DIGITS[unit]}}}[0-9]*[1-9]"
    return bool(pc.any(pc.match_substring_regex(texts, behind)).as_py())


def time_text(values: Values) -> Values:
    """Return dates and times as ISO texts; digits behind the point in threes, if not all zero.

    Timestamps have a ``T`` and, with a zone, ``Z`` or an offset.

    Raises
    ------
    pa.ArrowNotImplementedError
        They are durations.
    """
    given = values.type
    if pa.types.is_timestamp(given):
        return _stamp_text(values)
    if pa.types.is_date64(given):
        return _stamp_text(values.cast(pa.timestamp("ms")))
    if pa.types.is_duration(given):
        raise pa.ArrowNotImplementedError("no text")
    return _with_threes(values.cast(pa.string()))


def _with_threes(text: Values) -> Values:
    text = pc.replace_substring_regex(text, r"\.0+$", "")
    return pc.replace_substring_regex(text, r"(\.(?:[0-9]{3})*?)(?:000)+$", r"\1")


def _stamp_text(values: Values) -> Values:
    text = _with_threes(pc.strftime(wall_clock(values), format="%Y-%m-%dT%H:%M:%S"))
    if values.type.tz is None:
        return text
    return pc.binary_join_element_wise(text, _offset_text(values), "")


def _offset_text(stamps: Values) -> Values:
    """Return how far clocks are ahead of UTC, rounded to minutes: ``-05:00``, ``Z`` for nothing."""
    if isinstance(stamps, pa.Scalar):
        return _offset_text(pa.array([stamps], stamps.type))[0]
    distinct, at = np.unique(seconds_ahead(stamps), return_inverse=True)
    texts = []
    for ahead in distinct.tolist():
        hours, minutes = divmod((abs(ahead) + 30) // 60, 60)
        sign = "-" if ahead < 0 else "+"
        texts.append("Z" if ahead == 0 else f"{sign}{hours:02}:{minutes:02}")
    return pa.array(texts, pa.string()).take(pa.array(at))
