"""How many bytes a folder of files may take, whichever process writes them.

What is used is written down in a file of its own, which is changed under a lock, so that nobody
has to look through the folder before each write. Room is taken before a file is written: a process
that dies leaves the count too high, never too low, and so do files that others remove. The count is
put right when a folder is opened, when room has to be made, and now and then after files were found
to be missing or shorter than they should be, as all files are looked at then.
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
_RECOUNT_S = 60
"""So long a count is good at least: where many files are gone, not each of them has all counted."""
_ABANDONED_S = 600
"""A file that has been under way for so long belongs to a process that died."""


def bytes_on_disk(size: int) -> int:
    """Return what a file takes, as disks give out whole blocks."""
    return -(-size // _BLOCK_BYTES) * _BLOCK_BYTES


class DiskBudget:
    """The room below a folder; safe to share between threads and processes.

    What is there already is counted, and brought down to the budget.

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
        self._counted_s = time.monotonic()
        with suppress(OSError):  # a folder that cannot be written to cannot be read from either
            self._count_anew()

    @property
    def used_bytes(self) -> int:
        """Bytes that are taken, or that writers are about to take."""
        with self.locked():
            return self._count()

    def take(self, size: int, temporary: Path) -> bool:
        """Take room for a file, making it by removing those that were not used for longest.

        The file is made at once, as long as it is going to be, under the name that it has until it
        is complete: whoever counts files meanwhile counts it. Returns False if it can never fit.
        """
        needed = bytes_on_disk(size)
        if needed > self.budget_bytes:
            return False
        with self.locked():
            used = self._count()
            if used + needed > self.budget_bytes:
                used = self._make_room(needed)
            with temporary.open("xb") as file:
                file.truncate(size)
            self._note(used + needed)
        return True

    def note_loss(self) -> None:
        """Count anew, unless that was done a moment ago: files are not as they were counted."""
        with suppress(OSError):
            if time.monotonic() - self._counted_s >= _RECOUNT_S:
                self._count_anew()

    def remove(self, file: Path) -> None:
        """Remove a file and give its room back, unless another has done so."""
        with self.locked(), suppress(OSError):
            size = file.stat().st_size
            file.unlink()
            self._note(max(0, self._count() - bytes_on_disk(size)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other threads and processes out of such blocks."""
        with (self.root / _LOCK_NAME).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _count_anew(self) -> None:
        self._counted_s = time.monotonic()
        with self.locked():
            used = self._count_files()
            self._note(used if used <= self.budget_bytes else self._make_room(0))

    def _count(self) -> int:
        try:
            (used,) = _COUNT.unpack((self.root / _COUNT_NAME).read_bytes())
        except (OSError, struct.error):
            return self._count_files()
        return int(used)

    def _count_files(self) -> int:
        return sum(size for _, size, _ in self._files())

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
            if _is_temporary(path):  # another thread is writing it
                continue
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - there may be very many
                used -= size
        return used

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Yield time of the last use, bytes and path of all files, those being written among them.

        Drops what was abandoned.
        """
        long_ago = time.time() - _ABANDONED_S
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = f"{folder}/{name}"
                try:
                    stat = os.stat(path)  # noqa: PTH116 - there may be very many
                    if _is_temporary(path) and stat.st_mtime < long_ago:
                        os.unlink(path)  # noqa: PTH108 - same
                        continue
                except OSError:  # another process has removed it meanwhile
                    continue
                if not name.startswith(".") or _is_temporary(path):
                    yield stat.st_mtime, bytes_on_disk(stat.st_size), path
            if not names and folder != str(self.root):
                with suppress(OSError):
                    os.rmdir(folder)  # noqa: PTH106 - same


def _is_temporary(path: str) -> bool:
    return path.rpartition("/")[2].startswith(TEMPORARY_PREFIX)
