"""Headers that say how new and how fast an answer has to be."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from service.api.json_spellings import as_json
from service.catalog.freshness import Freshness

if TYPE_CHECKING:
    from service.api.exchange import Exchange

_LOOK_NOW = Freshness(max_age_s=0.0)


def freshness_of(exchange: Exchange, max_staleness_ms: int | None = None) -> Freshness:
    """Return what the request demands of the version that answers it.

    Clients send these headers by themselves, so a request never fails because of them: one that
    cannot be read makes the service look for a newer version.
    """
    try:
        return Freshness(
            min_version=max(
                _version(exchange.header(b"x-lancedb-min-version")),
                _version(exchange.header(b"x-lancedb-min-read-version")),
            ),
            not_before_s=_timestamp(exchange.header(b"x-lancedb-min-timestamp")),
            max_age_s=None if max_staleness_ms is None else max_staleness_ms / 1e3,
        )
    except ValueError:
        return _LOOK_NOW


def _version(value: str | None) -> int:
    return 0 if value is None else int(value)


def _timestamp(value: str | None) -> float | None:
    """Return an RFC 3339 time in seconds; digits beyond microseconds are cut off."""
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()


def timeout_s(exchange: Exchange, timeout_ms: int | None = None) -> float:
    """Return how long the caller waits for the whole answer; infinity = it did not say.

    The shorter of the header ``x-request-timeout-ms`` and the body's ``timeout_ms`` counts.
    """
    header = exchange.header(b"x-request-timeout-ms")
    return min(
        math.inf if timeout_ms is None else timeout_ms / 1e3,
        math.inf if header is None else _milliseconds(header) / 1e3,
    )


def _milliseconds(header: str) -> float:
    if not header.isascii() or not header.isdigit():
        raise InvalidRequestError(
            f"x-request-timeout-ms is {as_json(header)}; it must be a whole number of milliseconds"
        )
    return float(header)  # of any length: more digits than Python reads as a whole number
