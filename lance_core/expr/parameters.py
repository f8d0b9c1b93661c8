"""Values given beside a text, for its ``$name``s."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.expr.limits import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.expr.convert import Values

_KINDS = (bool, int, float, str, bytes, dt.date, dt.time, dt.timedelta, Decimal)


def plain_parameters(params: Mapping[str, object]) -> dict[str, object]:
    """Return values of parameters without those of numpy and Arrow, which show only in part.

    Arrays of one dimension become lists. What cannot be had as plain values stays, to be refused.
    """
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        is_plain = not any(isinstance(each, np.generic | pa.Scalar) for each in value)
        return value if is_plain else [_plain(each) for each in value]
    try:
        return _python_value(value)
    except (ValueError, OverflowError, pa.ArrowException):  # such as nanoseconds
        return value


def _python_value(value: object) -> object:
    if isinstance(value, np.generic):
        return pa.array(np.array([value])).to_pylist()[0]
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return pa.array(value).to_pylist()
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value.to_pylist()
    return value.as_py() if isinstance(value, pa.Scalar) else value


def parameter_values(value: object, place: int) -> Values:
    """Return the value of a parameter as a scalar, or as an array if it is a list.

    Parameters
    ----------
    value
        Text, number, truth value, None, date, time, duration, bytes, or a list of such.
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
                return _inferred([_in_utc(each) for each in value])
        elif value is None or isinstance(value, _KINDS):
            return _inferred([_in_utc(value)])[0]
    except (pa.ArrowException, OverflowError, ValueError):
        pass
    raise InvalidRequestError(
        f"the filter at character {place}: {shown(value)} is no value of a parameter; give a text,"
        " a number from -2^63 to 2^64 - 1, a truth value, null, a date, a time, a duration, bytes,"
        " or a list of one of these, also an array of one dimension"
    )


def _inferred(values: list[object]) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:  # beyond int64
        return pa.array(values, pa.uint64())


def _in_utc(value: object) -> object:
    """Return times with a zone in UTC: the same instants, read so beside columns without one."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value
