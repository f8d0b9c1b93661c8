"""How long work tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called from the thread that works, now and then; the numbers never fall in one run."""

    def __call__(self, done: int, total: int) -> None:
        """Hear that ``done`` of ``total`` parts are done."""


def no_progress(done: int, total: int) -> None:
    """Stand in where nobody watches."""


def halves(progress: Progress) -> tuple[Progress, Progress]:
    """Return what hears of the first and of the second half of some work, in thousandths of it."""

    def half(first: int) -> Progress:
        return lambda done, total: progress(first + 500 * done // max(total, 1), 1000)

    return half(0), half(500)
