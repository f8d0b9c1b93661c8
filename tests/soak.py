"""How long the tests go on that stand for the product: longer where somebody waits for it."""

from __future__ import annotations

import os

from hypothesis import settings


def many_examples() -> int:
    """Return how many files, filters and histories are tried where a number is promised.

    That is 500 in CI, whose laws take fewer, and else what the profile says.
    """
    examples = settings().max_examples
    return max(examples, 500) if settings.get_current_profile_name() == "ci" else examples


def race_seconds() -> float:
    """Return how long writers race: ``RACE_SECONDS``, or by profile: 10 s in CI."""
    return float(os.environ.get("RACE_SECONDS", max(3, many_examples() // 50)))


def num_kills() -> int:
    """Return how many processes are killed: ``CRASH_KILLS``, or by profile: 20 in CI."""
    return int(os.environ.get("CRASH_KILLS", max(8, many_examples() // 25)))
