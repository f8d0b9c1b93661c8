"""Values given beside a text, for its ``$name``s."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.expr.limits import shown

if TYPE_CHECKING:
    from lance_core.expr.convert import Values

_KINDS = (bool, int, float, str, bytes, dt.date, Decimal)


def parameter_values(value: object, place: int) -> Values:
    """Return the value of a parameter as a scalar, or as an array if it is a list.

    Parameters
    ----------
    value
        Text, number, truth value, None, date, time, bytes, or a list of such.
    place
        Of the name in the text.

    Raises
    ------
    InvalidRequestError
        It is something else, a list of different things, or a number that no column can hold.
    """
    if isinstance(value, pa.Array):  # a list that was cut out of the text
        return value
    try:
        if isinstance(value, list | tuple):
            kinds = {type(each) for each in value if each is not None}
            if all(issubclass(each, _KINDS) for each in kinds):
                return pa.array([_in_utc(each) for each in value])
        elif value is None or isinstance(value, _KINDS):
            return pa.scalar(_in_utc(value))
    except (pa.ArrowException, OverflowError, ValueError):
        pass
    raise InvalidRequestError(
        f"the filter at character {place}: {shown(value)} is no value of a parameter; give a text,"
        " a number, a truth value, null, a date or time, bytes, or a list of one of these"
    )


def _in_utc(value: object) -> object:
    """Return times with a zone in UTC: the same instants, read so beside columns without one."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value
