"""How long tests of races and crashes go on: longer where somebody waits for it."""

from __future__ import annotations

import os

from hypothesis import settings


def race_seconds() -> float:
    """Return how long writers race: ``RACE_SECONDS``, or by profile: 10 s in CI."""
    return float(os.environ.get("RACE_SECONDS", max(3, settings().max_examples // 50)))


def num_kills() -> int:
    """Return how many processes are killed: ``CRASH_KILLS``, or by profile: 20 in CI."""
    return int(os.environ.get("CRASH_KILLS", max(8, settings().max_examples // 25)))
