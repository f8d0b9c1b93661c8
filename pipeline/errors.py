"""What can go wrong with jobs, as branches of the tree in `lance_core.errors`.

::

    LanceError
      NoJavaError          there is no Java that Spark runs on; what to install
      JobRunningError      another driver is at work on the job
      StageFailedError     tasks failed for good: which items, and why
      SparkFailedError     Spark gave up a stage, for no reason that lies in an item
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import LanceError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_TOLD = 5


class NoJavaError(LanceError):
    """No Java was found that Spark runs on."""


class JobRunningError(LanceError):
    """Another driver holds the lease of the job."""


class StageFailedError(LanceError):
    """Some items of a stage failed for good; all others were done, as far as Spark let them.

    Parameters
    ----------
    stage
        Its name.
    failures
        What went wrong, by the place of the item among those that were given.
    names
        What people call the items, by their places; numbers where there is no name.
    """

    def __init__(
        self, stage: str, failures: Mapping[int, str], names: Mapping[int, str] | None = None
    ) -> None:
        self.stage = stage
        self.failures = dict(sorted(failures.items()))
        known = {} if names is None else names
        told = [
            f"{known.get(item, f'item {item}')}: {self.failures[item]}"
            for item in list(self.failures)[:_MAX_TOLD]
        ]
        more = len(self.failures) - len(told)
        rest = f"; and {more} more" if more > 0 else ""
        super().__init__(f"stage {stage!r} failed: {'; '.join(told)}{rest}")

    def __reduce__(self) -> tuple[type[StageFailedError], tuple[str, dict[int, str]]]:
        return StageFailedError, (self.stage, self.failures)


class SparkFailedError(LanceError):
    """Spark gave up a stage, for no reason that lies in one of its items."""
