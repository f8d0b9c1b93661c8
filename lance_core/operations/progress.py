"""How long work tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called from the thread that works, now and then; the numbers never fall in one run."""

    def __call__(self, done: int, total: int) -> None:
        """Hear that ``done`` of ``total`` parts are done."""


def no_progress(done: int, total: int) -> None:
    """Stand in where nobody watches."""


def share(progress: Progress, place: int, count: int) -> Progress:
    """Return what hears of one of ``count`` equal parts of some work, in thousandths of all of it.

    ``place`` counts from 0.
    """
    return lambda done, total: progress(
        (1000 * place + 1000 * done // max(total, 1)) // count, 1000
    )


def halves(progress: Progress) -> tuple[Progress, Progress]:
    """Return what hears of the first and of the second half of some work, in thousandths of it."""
    return share(progress, 0, 2), share(progress, 1, 2)
