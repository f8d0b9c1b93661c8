"""What people and programs see of a job while it runs.

On a terminal a line per stage, painted anew twice a second; elsewhere a line every ten seconds; or
one JSON object per event, each with its ``event`` and the seconds since the job began, ``at_s``:

============== ============================================================================
``phase_start`` ``phase``, ``items``, ``rows`` (null if unknown)
``progress``    ``phase``, ``done``, ``items``, ``active``, ``retried``, ``rows``, ``rows_per_s``,
                ``eta_s``
``task_failed`` ``phase``, ``item``, ``message``
``phase_end``   ``phase``, ``done``, ``items``, ``seconds``
``commit``      ``version``
``summary``     ``kind``, ``version``, ``seconds``, and whatever the kind of job adds
============== ============================================================================

Other events have the names that jobs give them, such as ``plan`` and ``warning``.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self, TextIO

    Mode = Literal["auto", "plain", "json", "none"]
    Event = Mapping[str, object]

_REPAINT_S, _LINE_S, _BEATS_S = 0.5, 10.0, 5.0
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_MINUTE_S, _HOUR_S = 60, 3600


class Sink(Protocol):
    """Shows events."""

    every_s: float
    """Least seconds between two ``progress`` events."""

    def show(self, event: Event) -> None:
        """Show one event."""


@dataclass(slots=True)
class Phase:
    """A stage under way; what the runner of stages knows goes in, events come out.

    ``weight`` is the rows of all items, None where nobody knows.
    """

    name: str
    num_items: int
    weight: int | None
    _progress: Progress
    _started_at: float = field(init=False)
    _shown_at: float = field(init=False)
    _beaten_at: float = field(init=False)
    _under_way: int = field(init=False, default=0)
    _done: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._started_at = self._beaten_at = self._progress.clock()
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        self._progress.event("phase_start", phase=self.name, items=self.num_items, rows=self.weight)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.event(
            "phase_end",
            phase=self.name,
            done=self._done,
            items=self.num_items,
            seconds=round(self._progress.clock() - self._started_at, 3),
        )

    def update(self, done: int, *, active: int = 0, retried: int = 0, rows: int = 0) -> None:
        """Say how far the stage is; call it as often as you like.

        Parameters
        ----------
        done, active
            Items that are done, and under way.
        retried
            Attempts that failed.
        rows
            Rows of the items that are done.
        """
        now = self._progress.clock()
        if done == self._done == self.num_items:
            return  # the end was shown
        self._done = done
        if now - self._shown_at < self._progress.sink.every_s and done < self.num_items:
            return
        self._shown_at = now
        if now - self._beaten_at >= _BEATS_S:
            self._beaten_at = now
            self._under_way = self._progress.rows_under_way()
        passed = now - self._started_at
        whole = rows if self.weight is None else min(max(rows, self._under_way), self.weight)
        rate = whole / passed if passed > 0 and whole > 0 else None
        self._progress.event(
            "progress",
            phase=self.name,
            done=done,
            items=self.num_items,
            active=active,
            retried=retried,
            rows=whole,
            rows_per_s=None if rate is None else round(rate),
            eta_s=self._time_left(done, whole, passed),
        )

    def failed(self, item: int, message: str) -> None:
        """Say that an item failed for good."""
        self._progress.event("task_failed", phase=self.name, item=item, message=message)

    def _time_left(self, done: int, rows: int, passed: float) -> float | None:
        whole, part = (self.num_items, done) if self.weight is None else (self.weight, rows)
        return None if part == 0 else round(passed * (whole - part) / part, 1)


class Progress:
    """Where jobs say what they do.

    Parameters
    ----------
    sink
        Shows it.
    clock
        Seconds, of any beginning.
    """

    def __init__(self, sink: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self.sink = sink
        self.clock = clock
        self._started_at = clock()
        self._beats: Callable[[], Mapping[int, int]] | None = None

    def phase(self, name: str, num_items: int, weight: int | None = None) -> Phase:
        """Begin a stage; use it as a context."""
        return Phase(name, num_items, weight, self)

    def event(self, name: str, **facts: object) -> None:
        """Tell of anything."""
        at_s = round(self.clock() - self._started_at, 3)
        self.sink.show({"event": name, "at_s": at_s, **facts})

    def listen(self, beats: Callable[[], Mapping[int, int]] | None) -> None:
        """Ask for rows done by item, every five seconds: what `Journal.beats` returns."""
        self._beats = beats

    def rows_under_way(self) -> int:
        """Return how many rows workers say are done, of all items."""
        return 0 if self._beats is None else sum(self._beats().values())


def make_progress(mode: Mode, stream: TextIO | None = None) -> Progress:
    """Return progress that is shown on standard error, or in another stream.

    Parameters
    ----------
    mode
        ``auto`` paints a line on a terminal and is ``plain`` elsewhere.
    stream
        None = standard error.
    """
    target = sys.stderr if stream is None else stream
    if mode == "none":
        return Progress(_Silence())
    if mode == "json":
        return Progress(_JsonLines(target))
    paints = mode == "auto" and target.isatty()
    return Progress(_Painted(target) if paints else _Lines(target))


class _Silence:
    every_s = _LINE_S

    def show(self, event: Event) -> None:
        """Do nothing."""


class _JsonLines:
    every_s = _REPAINT_S

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, event: Event) -> None:
        self._stream.write(json.dumps(event, default=str) + "\n")
        self._stream.flush()


class _Lines:
    """A line per event."""

    every_s = _LINE_S

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, event: Event) -> None:
        text = line_of(event)
        if text is not None:
            self._stream.write(text + "\n")
            self._stream.flush()


class _Painted:
    """One line that changes, under lines that stay."""

    every_s = _REPAINT_S

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_open = False

    def show(self, event: Event) -> None:
        text = line_of(event)
        if text is None:
            return
        stays = event["event"] != "progress"
        begin = "\r\x1b[2K" if self._is_open else ""
        self._stream.write(f"{begin}{text}" + ("\n" if stays else ""))
        self._stream.flush()
        self._is_open = not stays


def line_of(event: Event) -> str | None:
    """Return an event as people read it, None where they need not know.

    Examples
    --------
    >>> line_of({"event": "progress", "phase": "build", "done": 37, "items": 60, "active": 8,
    ...          "retried": 1, "rows": 620_800_000, "rows_per_s": 1_900_000, "eta_s": 190})
    'build  37/60 | 8 active | 1 retried | 620.8M rows | 1.9M rows/s | eta 3m10s'
    """
    name = event["event"]
    if name == "progress":
        return _progress_line(event)
    if name == "phase_start":
        return None
    if name == "phase_end":
        seconds = event["seconds"]
        return f"{event['phase']}  {event['done']}/{event['items']} in {_time_text(seconds)}"
    if name == "task_failed":
        return f"{event['phase']}  item {event['item']} failed: {event['message']}"
    facts = [f"{key} {value}" for key, value in event.items() if key not in {"event", "at_s"}]
    return f"{name}  {', '.join(facts)}"


def _progress_line(event: Event) -> str:
    parts = [f"{event['phase']}  {event['done']}/{event['items']}", f"{event['active']} active"]
    if event["retried"] != 0:
        parts.append(f"{event['retried']} retried")
    if event["rows_per_s"] is not None:
        parts += [f"{_short(event['rows'])} rows", f"{_short(event['rows_per_s'])} rows/s"]
    if event["eta_s"] is not None:
        parts.append(f"eta {_time_text(event['eta_s'])}")
    return " | ".join(parts)


def _short(number: object) -> str:
    """Write a number with its unit.

    Examples
    --------
    >>> _short(620_800_000), _short(12)
    ('620.8M', '12')
    """
    if not isinstance(number, int | float):
        return str(number)
    for size, unit in _UNITS:
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


def _time_text(seconds: object) -> str:
    """Write a time.

    Examples
    --------
    >>> _time_text(190), _time_text(4.2), _time_text(7300)
    ('3m10s', '4.2s', '2h01m')
    """
    if not isinstance(seconds, int | float):
        return str(seconds)
    if seconds < _MINUTE_S:
        return f"{seconds:.1f}s"
    if seconds < _HOUR_S:
        return f"{int(seconds) // _MINUTE_S}m{int(seconds) % _MINUTE_S:02d}s"
    return f"{int(seconds) // _HOUR_S}h{int(seconds) % _HOUR_S // _MINUTE_S:02d}m"
