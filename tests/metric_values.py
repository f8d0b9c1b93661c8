"""Values in what the service shows to Prometheus."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


def values(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return all values by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(text: str, name: str, **labels: str) -> float:
    return values(text).get((name, frozenset(labels.items())), 0.0)
