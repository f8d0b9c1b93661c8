"""Functions of dates and timestamps; those with a zone count in that zone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr.convert import convert
from lance_core.expr.functions.per_value import with_constants
from lance_core.expr.functions.signature import Function, always, moment, takes, text
from lance_core.expr.kinds import is_moment, is_text
from lance_core.expr.lists import as_array
from lance_core.expr.zones import PER_SECOND, instants, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lance_core.expr.convert import Values
    from lance_core.expr.functions.signature import Types

_SHORT_UNITS = ("microsecond", "millisecond", "second", "minute")
_UNITS = (*_SHORT_UNITS, "hour", "day", "week", "month", "quarter", "year")


def _truncated(units: pa.Array, others: Sequence[Values]) -> pa.Array:
    moments = as_array(others[0], len(units))
    return with_constants(_truncate, moments, [_one(units)], moments.type)


def _one(units: pa.Array) -> Values:
    """Return what is the same for all rows as one value."""
    distinct = units.unique()
    return distinct[0] if len(distinct) == 1 else units


def _truncate(moments: pa.Array, unit: str) -> pa.Array:
    name = unit.lower()
    if name not in _UNITS:
        raise TypeMismatchError(f"date_trunc knows {', '.join(_UNITS)}, not {unit[:40]!r}")
    kind = moments.type
    is_short = name in _SHORT_UNITS  # as long, and beginning together, in all zones
    local = moments.cast(pa.timestamp(kind.unit)) if is_short else wall_clock(moments)
    floor = pc.floor_temporal(local, unit=name, week_starts_monday=True)
    if is_short or kind.tz is None:
        return floor.cast(kind)
    if name == "hour":  # one that comes twice stays the one that it is
        return pc.subtract(moments, pc.subtract(local, floor))
    return instants(floor, kind.tz)


def _epochs(units: pa.Array, others: Sequence[Values]) -> pa.Array:
    """Return seconds since 1970, with those behind the point."""
    moments = as_array(others[0], len(units))
    return pc.divide(convert(moments, pa.float64()), float(PER_SECOND[moments.type.unit]))


_PARTS: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "doy": pc.day_of_year,
    "dow": lambda moments: pc.day_of_week(moments, count_from_zero=True, week_start=7),
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}


def _parts(units: pa.Array, others: Sequence[Values]) -> pa.Array:
    moments = as_array(others[0], len(units))
    return with_constants(_take_part, moments, [_one(units)], pa.int32())


def _take_part(moments: pa.Array, unit: str) -> pa.Array:
    take = _PARTS.get(unit.lower())
    if take is None:
        raise TypeMismatchError(
            f"date_part knows {', '.join(_PARTS)} and, as a literal, epoch, not {unit[:40]!r}"
        )
    return take(wall_clock(moments)).cast(pa.int32())


def _readable(types: Types) -> Types | None:
    """Take a text, a date or time, or a number of seconds."""
    if len(types) != 1:
        return None
    (kind,) = types
    if is_text(kind) or is_moment(kind) or pa.types.is_integer(kind):
        return types
    return [pa.string()] if pa.types.is_null(kind) else None


def _stamps(values: pa.Array, others: Sequence[Values]) -> pa.Array:  # one of many
    return _stamps_in(values, "ns")


def _stamps_in(values: pa.Array, unit: str) -> pa.Array:
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
    return convert(values, pa.timestamp(unit))


def _days(values: pa.Array, others: Sequence[Values]) -> pa.Array:
    if pa.types.is_integer(values.type):
        values = _stamps_in(values, "us")
    return convert(values, pa.date32())


EPOCH = Function(
    "date_part", "(unit, date or timestamp)", takes(text, moment), always(pa.float64()), _epochs
)
"""The part of that name, alone of them no whole number."""

FUNCTIONS = (
    Function(
        "date_trunc",
        "(unit, date or timestamp)",
        takes(text, moment),
        lambda types: types[1],
        _truncated,
    ),
    Function(
        "date_part", "(unit, date or timestamp)", takes(text, moment), always(pa.int32()), _parts
    ),
    Function("to_timestamp", "(text or seconds)", _readable, always(pa.timestamp("ns")), _stamps),
    Function("to_date", "(text)", _readable, always(pa.date32()), _days),
)
"""Functions of this module."""
