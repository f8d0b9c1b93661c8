"""How a job has its items worked on: the seam between jobs and Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Worker = Callable[[bytes], bytes]
    """Works on one item in whatever process it is called in. A function at the top of a module, or
    a ``functools.partial`` of one, so that it can be pickled. Items and results are small: ids and
    paths, never vectors."""


class Stages(Protocol):
    """Runs stages: one task per item, on as many machines as there are."""

    def run(
        self,
        name: str,
        items: Sequence[bytes],
        worker: Worker,
        *,
        weights: Sequence[int] | None = None,
    ) -> list[bytes]:
        """Work on all items.

        Parameters
        ----------
        name
            What people see.
        items
            One task each; beyond some 20,000 of them tasks take several.
        worker
            May be called several times for one item: after a failure, and when its result was lost.
        weights
            About how many rows each item has, for the display of progress.

        Returns
        -------
        list[bytes]
            Results in the order of the items.

        Raises
        ------
        StageFailedError
            Items failed again and again, or in a way that cannot change (``InvalidRequestError``,
            ``UnsupportedFeatureError``). The others were worked on nevertheless, unless a process
            died of the item each time.
        """
