"""Turning queries away while the process holds too much memory."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

from service.api.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Callable

_STATM = Path("/proc/self/statm")
_RESIDENT, _SHARED = 1, 2
_LOOK_EVERY_S = 0.25


def anonymous_bytes() -> int | None:
    """Return the memory that only this process has; None where the system does not tell.

    Files that are mapped do not count: the system takes their pages back when it needs them.
    """
    try:
        pages = _STATM.read_text().split()
    except OSError:
        return None
    return (int(pages[_RESIDENT]) - int(pages[_SHARED])) * os.sysconf("SC_PAGE_SIZE")


def give_back_memory() -> None:
    """Return freed memory to the system, which glibc keeps for later."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


class MemoryGuard:
    """Looks at the memory of the process when queries begin, four times a second at most.

    Parameters
    ----------
    max_bytes
        Beyond this no query begins; None = nobody looks.
    measure
        Tells the memory held.
    now
        The time, in seconds.
    """

    def __init__(
        self,
        max_bytes: int | None,
        *,
        measure: Callable[[], int | None] = anonymous_bytes,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_bytes = max_bytes
        self._measure = measure
        self._now = now
        self._looked_s = -_LOOK_EVERY_S
        self._held = 0

    def require_room(self) -> None:
        """Raise ``BusyError`` while the process holds too much; for the event loop."""
        if self._max_bytes is None:
            return
        now_s = self._now()
        if now_s - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now_s
            self._held = self._look(self._max_bytes)
        if self._held > self._max_bytes:
            raise BusyError(
                f"{self._held} bytes of memory are in use, the limit is {self._max_bytes} (setting"
                " max_resident_bytes)"
            )

    def _look(self, max_bytes: int) -> int:
        held = self._measure()
        if held is not None and held > max_bytes:
            give_back_memory()
            held = self._measure()
        return 0 if held is None else held
