"""Removing many objects, by as few requests as their store allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.io.store import DeletesMany
from lance_core.io.waiting import for_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.io.store import ObjectStore

_TOGETHER = 1000
"""Keys of a request to S3 at most (its API reference, DeleteObjects)."""


def delete_all(store: ObjectStore, paths: Sequence[str], num_threads: int | None = None) -> None:
    """Remove objects; those that are not there stay so.

    Parameters
    ----------
    store
        Where they are.
    paths
        Their paths; order means nothing.
    num_threads
        Requests at the same time, see `for_each`.
    """
    if isinstance(store, DeletesMany):
        starts = range(0, len(paths), _TOGETHER)
        groups = [paths[start : start + _TOGETHER] for start in starts]
        for_each(store, store.delete_many, groups, num_threads=num_threads)
    else:
        for_each(store, store.delete, paths, num_threads=num_threads)
