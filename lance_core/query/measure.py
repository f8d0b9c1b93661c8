"""What each step of a plan did: rows, reads and time, for ``analyze``."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_core.io.metering import QueryMeter


@dataclass(slots=True)
class StepFacts:
    """Totals of one step over all query vectors.

    ``rows`` are those it handed on, ``partitions`` those of an index that it searched, ``postings``
    how many documents the index has of the tokens that it looked for.
    """

    rows: int = 0
    partitions: int = 0
    bytes_read: int = 0
    store_requests: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    elapsed_ms: float = 0.0
    postings: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the members under their own names."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class _Step:
    """Adds what a block reads and takes to the facts of a step.

    A class of its own, because a generator would cost more than most steps.
    """

    __slots__ = ("_before", "_facts", "_meter", "_started")

    def __init__(self, facts: StepFacts, meter: QueryMeter) -> None:
        self._facts = facts
        self._meter = meter

    def __enter__(self) -> StepFacts:
        meter = self._meter
        self._before = (
            meter.bytes_read,
            meter.store_requests,
            meter.cache_hits,
            meter.cache_misses,
        )
        self._started = time.perf_counter()
        return self._facts

    def __exit__(self, *_: object) -> None:
        facts, meter, before = self._facts, self._meter, self._before
        facts.elapsed_ms += (time.perf_counter() - self._started) * 1000
        facts.bytes_read += meter.bytes_read - before[0]
        facts.store_requests += meter.store_requests - before[1]
        facts.cache_hits += meter.cache_hits - before[2]
        facts.cache_misses += meter.cache_misses - before[3]


class _Unwatched:
    """Stands for every step of a run whose facts nobody asks for."""

    __slots__ = ("_facts",)

    def __init__(self) -> None:
        self._facts = StepFacts()

    def __enter__(self) -> StepFacts:
        return self._facts

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


_UNWATCHED = _Unwatched()


class Measures:
    """Facts of the steps of one run; belongs to one thread.

    Parameters
    ----------
    meter
        Counts the reads of the run; None = nobody asks for facts, so none are kept.
    """

    def __init__(self, meter: QueryMeter | None) -> None:
        self._meter = meter
        self._steps: dict[str, StepFacts] = {}

    @property
    def are_kept(self) -> bool:
        """Whether somebody asks for facts."""
        return self._meter is not None

    def of(self, step: str) -> StepFacts | None:
        """Return what a step did, None if it did not run."""
        return self._steps.get(step)

    def adopt(self, prefix: str, other: Measures) -> None:
        """Take over what was kept of another run, its steps under names with a prefix."""
        if self.are_kept:
            self._steps |= {prefix + step: facts for step, facts in other._steps.items()}

    def measure(self, step: str) -> _Step | _Unwatched:
        """Return a context that adds its reads and its time to a step; the block adds its rows."""
        if self._meter is None:
            return _UNWATCHED
        facts = self._steps.get(step)
        if facts is None:
            facts = self._steps[step] = StepFacts()
        return _Step(facts, self._meter)


UNMEASURED = Measures(None)
"""Of runs whose facts nobody asks for."""
