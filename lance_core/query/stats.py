"""What a query did: the facts that every answer carries."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lance_core.io.metering import QueryMeter

PlanKind = Literal["ann", "exact", "text", "hybrid", "scan"]
StopReason = Literal["complete", "probe_limit", "no_more_rows"]


@dataclass(frozen=True, slots=True)
class QueryStats:
    """Facts of one query run.

    ``exact`` is True when every distance in the answer was computed from the stored vectors and
    False when some come from a quantiser. ``stop_reason`` says why the answer ends: ``complete``
    (as many rows as asked for), ``probe_limit`` (fewer, and partitions were left unprobed) or
    ``no_more_rows``. ``rows_left_out`` are live rows, passing the filter, that the index does not
    hold and that were not scored either; they are looked for when a search that may probe all
    partitions finds too few rows. Counts are summed over query vectors and segments; bytes and
    requests are those that the object store delivered during the run.
    """

    version: int
    plan: PlanKind
    exact: bool
    partitions_probed: int
    partitions_total: int
    rows_scanned_flat: int
    rows_refined: int
    bytes_read: int
    store_requests: int
    cache_hits: int
    cache_misses: int
    stop_reason: StopReason
    elapsed_ms: float
    rows_left_out: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the members under their own names."""
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = tuple(each.name for each in fields(QueryStats))


@dataclass(slots=True)
class SearchTally:
    """What a run has done so far, summed over query vectors and segments."""

    partitions_probed: int = 0
    partitions_total: int = 0
    rows_scanned_flat: int = 0
    rows_refined: int = 0
    rows_left_out: int = 0

    def stats(
        self,
        meter: QueryMeter,
        started: float,
        version: int,
        *,
        plan: PlanKind,
        exact: bool,
        stop_reason: StopReason,
    ) -> QueryStats:
        """Return the facts of a run that began at ``started``, by ``time.perf_counter``."""
        return QueryStats(
            version=version,
            plan=plan,
            exact=exact,
            partitions_probed=self.partitions_probed,
            partitions_total=self.partitions_total,
            rows_scanned_flat=self.rows_scanned_flat,
            rows_refined=self.rows_refined,
            rows_left_out=self.rows_left_out,
            bytes_read=meter.bytes_read,
            store_requests=meter.store_requests,
            cache_hits=meter.cache_hits,
            cache_misses=meter.cache_misses,
            stop_reason=stop_reason,
            elapsed_ms=round((time.perf_counter() - started) * 1000, 3),
        )
