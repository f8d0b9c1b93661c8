"""What is read of a file, read anew when the file changes."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

_LOGGER = logging.getLogger(__name__)
_LOOK_EVERY_S = 1.0


class WatchedFile(Generic[T]):
    """The value that a file holds; safe to share between threads.

    A file that is wrong once the service runs leaves the value as it was, and is told of in the
    log: a slip of the pen must not lock everybody out, nor let everybody in.

    Parameters
    ----------
    path
        Where it lies. It is looked at once a second at most, when the value is asked for.
    load
        Reads it; raises ``ValueError`` if it is wrong, which the first reading passes on.
    now
        The time, in seconds.
    """

    def __init__(
        self, path: Path, load: Callable[[Path], T], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._load = load
        self._now = now
        self._lock = threading.Lock()
        self._state = self._look()
        self._looked_s = now()
        self._value = load(path)
        self.generation = 0
        """Counts the values there have been."""

    def value(self) -> T:
        """Return the value, of the file as it is now or was a second ago."""
        now_s = self._now()
        if now_s - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now_s
            if self._look() != self._state:
                self.reload()
        return self._value

    def reload(self) -> None:
        """Read the file now."""
        with self._lock:
            self._state = self._look()
            try:
                self._value = self._load(self._path)
            except ValueError as error:
                _LOGGER.error("kept what was read before: %s", error)  # noqa: TRY400 - a text
                return
            self.generation += 1
        _LOGGER.info("read %s anew", self._path)

    def _look(self) -> tuple[int, int, int] | None:
        """Return what changes with the file; None where there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
