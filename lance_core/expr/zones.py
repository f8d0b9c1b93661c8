"""Wall-clock times of time zones, for all times: Arrow knows daylight saving until 2037 only.

The changes of a zone are read from the system's time zone database (RFC 9636). What its last rule
says goes on for ever: it is asked once for 400 years, after which days and weekdays repeat.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zoneinfo import TZPATH, ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr.limits import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lance_core.expr.convert import Values

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Of each unit of time."""

_PERIOD_YEARS = 400
_PERIOD = 146_097 * 86_400
_NAME = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_FIXED = re.compile(r"([+-])([0-9]{2})(?::?([0-9]{2}))?")
_MOST_ZONES = 600
_DAY = 86_400
_LARGEST = np.iinfo(np.int64).max
_HEADER = struct.Struct(">4s16x6I")
_TYPE = np.dtype([("ahead", ">i4"), ("saves", "u1"), ("name", "u1")])


@dataclass(frozen=True, slots=True, eq=False)
class _Zone:
    """How far clocks of a zone are ahead of UTC.

    Attributes
    ----------
    changes
        int64, shape ``(n,)``: seconds since 1970 in UTC at which clocks were changed, in order.
    offsets
        int64, shape ``(n + 1,)``: seconds ahead before the first change, then from each on.
    end
        Seconds from which on all repeats what was 400 years before; None = no change comes.
    """

    changes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    end: int | None = None


def wall_clock(stamps: Values) -> Values:
    """Return times with a zone as its clocks show them, times without a zone as they are.

    Raises
    ------
    TypeMismatchError
        The zone is not known.
    """
    zone = stamps.type.tz
    if zone is None:
        return stamps
    return _moved(stamps, _ahead, zone).cast(pa.timestamp(stamps.type.unit))


def instants(stamps: Values, zone: str) -> Values:
    """Return times without a zone as the times at which clocks of a zone show them.

    Of two such times the first is taken; for one that clocks skip, the time at which they do.

    Raises
    ------
    TypeMismatchError
        The zone is not known.
    """
    return _moved(stamps, _behind, zone).cast(pa.timestamp(stamps.type.unit, zone))


def seconds_ahead(stamps: pa.Array) -> NDArray[np.int64]:
    """Return how far clocks of their zone are ahead of UTC at times; any number for nulls."""
    numbers, kind = _numbers(stamps), stamps.type
    size = PER_SECOND[kind.unit]
    return _ahead(numbers, _zone_until(kind.tz, numbers, size), size) // size


def _moved(
    stamps: Values,
    shift: Callable[[NDArray[np.int64], _Zone, int], NDArray[np.int64]],
    zone: str,
) -> Values:
    """Return times as int64, moved between UTC and what clocks show."""
    if isinstance(stamps, pa.Scalar):
        return _moved(pa.array([stamps], stamps.type), shift, zone)[0]
    numbers, size = _numbers(stamps), PER_SECOND[stamps.type.unit]
    known = _zone_until(zone, numbers, size)
    if len(known.changes) == 0 and known.offsets[0] == 0:
        return stamps.cast(pa.int64())
    return pc.add(stamps.cast(pa.int64()), pa.array(shift(numbers, known, size)))


def _numbers(stamps: pa.Array) -> NDArray[np.int64]:
    numbers = pc.fill_null(stamps.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return cast("NDArray[np.int64]", numbers)


def _ahead(times: NDArray[np.int64], zone: _Zone, size: int) -> NDArray[np.int64]:
    """Return what is to be added to times in UTC; all in units of ``size`` per second."""
    at = np.searchsorted(_scaled(zone.changes, size), _folded(times, zone, size), "right")
    return zone.offsets[at] * size


def _behind(shown: NDArray[np.int64], zone: _Zone, size: int) -> NDArray[np.int64]:
    """Return what is to be added to times that clocks show; all in units of ``size`` per second."""
    shown = _folded(shown, zone, size)
    # What clocks would show at each change if they were not changed.
    limits = np.maximum.accumulate(zone.changes + zone.offsets[:-1])
    at = np.searchsorted(_scaled(limits, size), shown, "right")
    begins = _scaled(np.concatenate([[-_LARGEST], zone.changes]), size)
    found: NDArray[np.int64] = np.maximum(shown - zone.offsets[at] * size, begins[at])
    return found - shown


def _folded(times: NDArray[np.int64], zone: _Zone, size: int) -> NDArray[np.int64]:
    """Return times behind the last year that is known as the same times one period before."""
    if zone.end is None or zone.end > _LARGEST // size:
        return times
    end, period = zone.end * size, _PERIOD * size
    return np.where(times < end, times, (times - end) % period + end - period)


def _scaled(seconds: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return seconds in another unit, those that it cannot reach as its first or last."""
    most = _LARGEST // size
    return np.clip(seconds, -most, most) * size


def _zone_until(name: str, times: NDArray[np.int64], size: int) -> _Zone:
    """Return what is to be known of a zone for some times."""
    zone = _known(name)
    last = zone.changes[-1] - _DAY if len(zone.changes) > 0 else 0
    return _known_for_ever(name) if len(times) > 0 and times.max() // size >= last else zone


@lru_cache(maxsize=_MOST_ZONES)
def _known(name: str) -> _Zone:
    """Return a zone as far as its changes are listed."""
    fixed = _FIXED.fullmatch(name)
    if fixed is not None:
        sign = -1 if fixed[1] == "-" else 1
        ahead = sign * (int(fixed[2]) * 60 + int(fixed[3] or 0)) * 60
        return _Zone(np.array([], np.int64), np.array([ahead]))
    return _listed(_file(name))


@lru_cache(maxsize=_MOST_ZONES)
def _known_for_ever(name: str) -> _Zone:
    """Return a zone with the changes of 400 years behind the last that is listed, which repeat."""
    zone = _known(name)
    if _FIXED.fullmatch(name) is not None or b"," not in _file(name).rsplit(b"\n", 2)[1]:
        return zone  # its last line is a rule without daylight saving
    clock = ZoneInfo.from_file(BytesIO(_file(name)))

    def ahead(second: int) -> int:
        shift = dt.datetime.fromtimestamp(second, clock).utcoffset()
        return 0 if shift is None else int(shift.total_seconds())

    last = int(zone.changes[-1]) if len(zone.changes) > 0 else 0
    first_year = dt.datetime.fromtimestamp(last, dt.UTC).year + 1
    end = int(dt.datetime(first_year + _PERIOD_YEARS, 1, 1, tzinfo=dt.UTC).timestamp())
    changes = _changes(ahead, last, end + 366 * _DAY)
    return _Zone(
        np.array([*zone.changes, *changes], np.int64),
        np.array([*zone.offsets, *map(ahead, changes)], np.int64),
        end,
    )


def _changes(ahead: Callable[[int], int], start: int, end: int) -> list[int]:
    """Return the seconds at which an offset changes, at most once in four weeks."""
    found = []
    was = ahead(start)
    for high in range(start + 28 * _DAY, end, 28 * _DAY):
        if ahead(high) == was:
            continue
        before, after = high - 28 * _DAY, high
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if ahead(middle) == was else (before, middle)
        found.append(after)
        was = ahead(after)
    return found


def _file(name: str) -> bytes:
    """Return the file of a zone of the system's database."""
    if _NAME.fullmatch(name) is not None:
        for folder in TZPATH:
            path = Path(folder, name)
            if path.is_file():
                return path.read_bytes()
    raise TypeMismatchError(
        f"the time zone {shown(name)} is not known here; known are names such as Europe/Paris,"
        " offsets such as +02:00, and UTC"
    )


def _listed(data: bytes) -> _Zone:
    """Return the changes that a file lists: those of its second part, whose times have 64 bits."""
    start = _HEADER.size
    _, utc, std, leap, times, types, chars = _HEADER.unpack_from(data)
    start += 5 * times + 6 * types + chars + 8 * leap + std + utc
    _, _, _, _, times, types, _ = _HEADER.unpack_from(data, start)
    start += _HEADER.size
    changes = np.frombuffer(data, ">i8", times, start).astype(np.int64)
    kinds = np.frombuffer(data, np.uint8, times, start + 8 * times)
    of_kinds = np.frombuffer(data, _TYPE, types, start + 9 * times)["ahead"].astype(np.int64)
    return _Zone(changes, of_kinds[np.concatenate([[0], kinds])])
