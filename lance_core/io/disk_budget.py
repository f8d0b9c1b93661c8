"""How many bytes a folder of files may take, whichever process writes them.

What is used is written down in a file of its own, which is changed under a lock, so that nobody
has to look through the folder before each write. Room is taken before a file is written: a process
that dies leaves the count too high, never too low. The count is put right whenever room has to be
made, as all files are looked at then.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEMPORARY_PREFIX = ".new-"
_LOCK_NAME, _COUNT_NAME = ".lock", ".used"
_COUNT = struct.Struct("<Q")
_BLOCK_BYTES = 4096
_ABANDONED_S = 600
"""A file that has been under way for so long belongs to a process that died."""


def bytes_on_disk(size: int) -> int:
    """Return what a file takes, as disks give out whole blocks."""
    return -(-size // _BLOCK_BYTES) * _BLOCK_BYTES


class DiskBudget:
    """The room below a folder; safe to share between threads and processes.

    Parameters
    ----------
    root
        The folder, made if it is missing.
    budget_bytes
        Bytes that files below it may take, folders and names aside.
    """

    def __init__(self, root: Path, budget_bytes: int) -> None:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.root = root
        self.budget_bytes = budget_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes that are taken, or that writers are about to take."""
        with self.locked():
            return self._count()

    def take(self, size: int) -> bool:
        """Take room for a file, making it by removing those that were not used for longest.

        Returns False if it can never fit.
        """
        needed = bytes_on_disk(size)
        if needed > self.budget_bytes:
            return False
        with self.locked():
            used = self._count()
            if used + needed > self.budget_bytes:
                used = self._make_room(needed)
            self._note(used + needed)
        return True

    def give_back(self, size: int) -> None:
        """Give room back, of a file that was not written or is no more."""
        with self.locked():
            self._note(max(0, self._count() - bytes_on_disk(size)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other threads and processes out of such blocks."""
        with (self.root / _LOCK_NAME).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _count(self) -> int:
        try:
            (used,) = _COUNT.unpack((self.root / _COUNT_NAME).read_bytes())
        except (OSError, struct.error):
            return sum(size for _, size, _ in self._files())
        return int(used)

    def _note(self, used: int) -> None:
        (self.root / _COUNT_NAME).write_bytes(_COUNT.pack(used))

    def _make_room(self, needed: int) -> int:
        """Remove files until an eighth is free beside what is needed; returns what is used then."""
        target = max(0, self.budget_bytes - self.budget_bytes // 8 - needed)
        files = sorted(self._files())
        used = sum(size for _, size, _ in files)
        for _, size, path in files:
            if used <= target:
                break
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - there may be very many
                used -= size
        return used

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Yield time of the last use, bytes and path of all files; drops what was abandoned."""
        long_ago = time.time() - _ABANDONED_S
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = f"{folder}/{name}"
                try:
                    stat = os.stat(path)  # noqa: PTH116 - there may be very many
                    if name.startswith(TEMPORARY_PREFIX) and stat.st_mtime < long_ago:
                        os.unlink(path)  # noqa: PTH108 - same
                        continue
                except OSError:  # another process has removed it meanwhile
                    continue
                if not name.startswith("."):
                    yield stat.st_mtime, bytes_on_disk(stat.st_size), path
            if not names and folder != str(self.root):
                with suppress(OSError):
                    os.rmdir(folder)  # noqa: PTH106 - same
