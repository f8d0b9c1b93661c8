"""When work has to stop: a point in time, or nobody waiting any more."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import CancelledByClientError, DeadlineExceededError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Deadline:
    """Looked at between pieces of work of at most about 20 ms.

    ``at_s`` is a time of ``time.monotonic``, None = never; ``is_cancelled`` asks whether the caller
    went away.
    """

    at_s: float | None = None
    is_cancelled: Callable[[], bool] | None = None

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline that lies ``seconds`` from now."""
        return cls(time.monotonic() + seconds)

    def check(self, doing: str) -> None:
        """Raise when the work has to stop; ``doing`` says what was going on."""
        if self.at_s is not None and time.monotonic() >= self.at_s:
            raise DeadlineExceededError(f"the time allowed ran out while {doing}")
        if self.is_cancelled is not None and self.is_cancelled():
            raise CancelledByClientError(f"the caller went away while {doing}")


NO_DEADLINE = Deadline()
