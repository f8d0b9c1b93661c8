"""What workers share within their process: opened datasets, and how to say how far they are."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

from lance_core.dataset import Dataset, open_dataset
from lance_core.errors import LanceError
from lance_core.query.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_CACHE_BYTES = 256 << 20
_BEAT_S = 5.0


def dataset_at(
    uri: str,
    version: int | str | None,
    storage_options: Mapping[str, str] | None = None,
    *,
    branch: str | None = None,
) -> Dataset:
    """Open a dataset at one version, with a cache of 256 MiB that all of this process share.

    The manifest is read each time: a dataset may have been deleted, and another made at its place.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        As `open_dataset`.
    """
    return open_dataset(
        uri, version, branch=branch, session=_session(), storage_options=storage_options
    )


@lru_cache(maxsize=1)
def _session() -> Session:
    return Session(_CACHE_BYTES)


class _Beat:
    """Passes on how many rows are done, now and then."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._told_at = time.monotonic()

    def __call__(self, num_rows: int) -> None:
        now = time.monotonic()
        if now - self._told_at < _BEAT_S:
            return
        self._told_at = now
        try:
            self._tell(num_rows)
        except LanceError:  # nothing depends on it
            return


_beat: ContextVar[_Beat | None] = ContextVar("pipeline_beat", default=None)


@contextmanager
def beating(tell: Callable[[int], None]) -> Iterator[None]:
    """Let `report` call ``tell`` every five seconds in this block."""
    token = _beat.set(_Beat(tell))
    try:
        yield
    finally:
        _beat.reset(token)


def report(num_rows: int) -> None:
    """Say how many rows of the item at hand are done; costs nothing, call it per batch."""
    beat = _beat.get()
    if beat is not None:
        beat(num_rows)
