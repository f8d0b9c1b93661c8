"""What holds for all tests: Hypothesis's profiles, a wide terminal, and which of them run where.

Profiles are chosen by the environment variable HYPOTHESIS_PROFILE. Laws take 200 examples in CI,
and as many as one likes by ``make laws``; what a number is promised for takes it (`tests.soak`).
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# Errors stand in boxes: what a test looks for in one must not be broken where a long path ends.
os.environ["COLUMNS"] = "300"

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, print_blob=True)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "20000")),
    deadline=None,
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(tryfirst=True)  # xdist looks at the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file on one worker, which makes what they share once; Spark's run first.

    These take longest, and the last tests of a run may keep but one worker busy.
    """
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
