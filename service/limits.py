"""Everything that is bounded, in one list, and the bounds of a single query.

Each bound is a setting, which the error names that it causes. The README shows this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lance_core.errors import LimitExceededError

if TYPE_CHECKING:
    from service.settings import Settings

Outcome = Literal["400", "408", "413", "429", "closed", "waits"]
"""What happens beyond a limit: the status answered, or what becomes of connection or request."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound: the setting, what it bounds, and what happens beyond it."""

    setting: str
    bounds: str
    outcome: Outcome


LIMITS = (
    Limit("max_body_bytes", "bytes of a request body", "413"),
    Limit("max_k", "k of a ranking; vectors x (k + offset) of a batch", "400"),
    Limit("max_probes", "nprobes, minimum_nprobes, maximum_nprobes", "400"),
    Limit("max_ef", "ef", "400"),
    Limit("max_batch", "query vectors, or row_ids, of a request", "400"),
    Limit("max_filter_bytes", "bytes of a filter", "400"),
    Limit("max_answer_bytes", "bytes of rows in an answer that is made as a whole", "400"),
    Limit("query_timeout_s", "seconds until an answer begins", "408"),
    Limit("search_threads", "queries of resident data at one time", "waits"),
    Limit("io_threads", "requests at one time that read or take long", "waits"),
    Limit("max_queued_requests", "requests that wait for such a thread", "429"),
    Limit("max_resident_bytes", "memory of a worker while a query begins", "429"),
    Limit("max_connections", "open connections of a worker", "closed"),
    Limit("stall_timeout_s", "seconds without progress on a connection", "closed"),
)
"""All limits that can be set. Not to be set: 64 KiB of request head (431), 5000 comparisons of a
filter (400)."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryLimits:
    """What one query may ask for; the defaults bound nothing.

    Compared by identity, as it is part of the key of what is remembered of bodies.
    """

    max_k: int = 2**62
    max_probes: int = 2**62
    max_ef: int = 2**62
    max_batch: int = 2**62
    max_filter_bytes: int = 2**62
    max_answer_bytes: int = 2**62

    @classmethod
    def of(cls, settings: Settings) -> QueryLimits:
        """Return what the settings say."""
        return cls(
            settings.max_k,
            settings.max_probes,
            settings.max_ef,
            settings.max_batch,
            settings.max_filter_bytes,
            settings.max_answer_bytes,
        )

    def require(
        self,
        setting: Literal["max_k", "max_probes", "max_ef", "max_batch", "max_answer_bytes"],
        given: int | None,
        asked: str,
    ) -> None:
        """Raise ``LimitExceededError`` when a number is too large; ``asked`` is its name."""
        allowed: int = getattr(self, setting)
        if given is not None and given > allowed:
            raise LimitExceededError(setting, allowed, given, asked=asked)

    def require_short_filter(self, text: str | None) -> None:
        """Raise ``LimitExceededError`` when a filter is too long."""
        if text is None or 4 * len(text) <= self.max_filter_bytes:
            return
        given = len(text.encode(errors="surrogatepass"))
        if given > self.max_filter_bytes:
            raise LimitExceededError(
                "max_filter_bytes",
                self.max_filter_bytes,
                given,
                asked="the number of bytes in the filter",
            )


NO_LIMITS = QueryLimits()
"""Bounds nothing: for commands on one's own machine."""
