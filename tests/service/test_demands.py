"""Headers that say how new and how fast an answer has to be."""

from __future__ import annotations

import math

import pytest

from lance_core.errors import InvalidRequestError
from service.api.demands import freshness_of, timeout_s
from service.api.exchange import Dialect, Exchange
from service.catalog.freshness import Freshness
from service.telemetry.request_log import RequestRecord


def exchange(**headers: str) -> Exchange:
    sent = {f"x-{name.replace('_', '-')}".encode(): text.encode() for name, text in headers.items()}
    return Exchange("id", sent, Dialect.LANCEDB, RequestRecord("id", "POST", "/"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:01.500000123+00:00", 1.5),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01T02:00:00+02:00", 0.0),
        ("1970-01-01T00:00:01", 1.0),
    ],
)
def test_timestamps_are_read_with_nine_digits_and_any_zone(text: str, seconds: float) -> None:
    assert freshness_of(exchange(lancedb_min_timestamp=text)).not_before_s == seconds


def test_the_larger_minimum_version_counts() -> None:
    both = exchange(lancedb_min_version="3", lancedb_min_read_version="7")
    assert freshness_of(both).min_version == 7


@pytest.mark.parametrize("text", ["", "soon", "1e3", "2026-13-01T00:00:00Z"])
def test_what_cannot_be_read_asks_for_a_look(text: str) -> None:
    for name in ("lancedb_min_version", "lancedb_min_timestamp"):
        assert freshness_of(exchange(**{name: text})) == Freshness(max_age_s=0)


def test_without_headers_nothing_is_demanded() -> None:
    assert freshness_of(exchange()) == Freshness()
    assert freshness_of(exchange(), 1500).max_age_s == 1.5


def test_the_shorter_timeout_counts() -> None:
    assert timeout_s(exchange()) == math.inf
    assert timeout_s(exchange(request_timeout_ms="1500")) == 1.5
    assert timeout_s(exchange(request_timeout_ms="1500"), 900) == 0.9
    for digits in (400, 5000):  # more than a float, and than Python reads, holds
        assert timeout_s(exchange(request_timeout_ms="9" * digits), 900) == 0.9


@pytest.mark.parametrize("text", ["", "-1", "1.5", "soon", "²"])
def test_a_timeout_must_be_a_whole_number(text: str) -> None:
    bad = Exchange(
        "id",
        {b"x-request-timeout-ms": text.encode("latin-1")},
        Dialect.LANCEDB,
        RequestRecord("id", "POST", "/"),
    )
    with pytest.raises(InvalidRequestError, match="milliseconds"):
        timeout_s(bad)
