"""Mapped local files, kept so that reading a range of one costs a single ``stat``, or none.

The ``stat`` of the path sees both a file that shrank (touching pages beyond its end kills the
process) and one that was replaced under its name. pyarrow makes the mappings because it can close
the descriptor and keep the memory: a thousand open fragments must not use up the process's
descriptors.

A file that shrinks while a kernel reads it still faults. Files never change once written (a rule
of the format), so truncating or rewriting one in place is out of scope.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import threading
import time
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass
from stat import S_ISREG
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError, ObjectNotFoundError, StoreUnavailableError
from lance_core.io.local_files import os_error_to_store_error, os_errors_translated
from lance_core.io.paths import check_path

_madvise = ctypes.CDLL(None).madvise  # Python's own is for the mappings that it made

LOOK_AGAIN_MS = 20.0
"""How long a query takes for granted that a file is as it was."""


@dataclass(slots=True, eq=False)
class _FileMap:
    """One mapped file; the mapping lives as long as any view of it.

    ``looked_at`` is when the file was last seen to be as it was mapped, by ``time.monotonic``.
    """

    location: str
    device: int
    inode: int
    size: int
    view: memoryview
    looked_at: float


_every: WeakSet[FileMaps] = WeakSet()


def give_back_pages() -> None:
    """Take the pages of all mapped files out of the memory of this process.

    They stay in the kernel's cache, and each comes back when it is touched. Without this a process
    that reads file after file seems to be as large as all of them, and may be killed for it.
    """
    for maps in list(_every):
        maps.give_back_pages()


_good_since: ContextVar[float] = ContextVar("lance_core_good_since", default=math.inf)


class seldom_checked:  # noqa: N801 - used like the functions of contextlib
    """Take files for unchanged in this block that were looked at a moment before it, or in it.

    A look lets go of the GIL, which another thread then takes: that costs more than the look. A
    file that shrinks or is replaced goes unseen until ``look_again_ms`` after the last look, and
    until the block ends, as it would while a kernel reads it.

    Parameters
    ----------
    look_again_ms
        Milliseconds before the block in which a look counts; 0 = none does.
    """

    __slots__ = ("_look_again_ms", "_token")

    def __init__(self, look_again_ms: float = LOOK_AGAIN_MS) -> None:
        self._look_again_ms = look_again_ms

    def __enter__(self) -> None:
        self._token = _good_since.set(time.monotonic() - self._look_again_ms / 1000)

    def __exit__(self, *_: object) -> None:
        _good_since.reset(self._token)


class FileMaps:
    """The most recently used mappings of files below one folder, safe to share between threads.

    Parameters
    ----------
    root
        Folder that the paths are relative to.
    max_maps
        Number of mappings kept for the next call. A dropped one lives on while views of it do.
    """

    def __init__(self, root: str, *, max_maps: int) -> None:
        self._root = root
        self._max_maps = max_maps
        self._lock = threading.Lock()
        self._maps: OrderedDict[str, _FileMap] = OrderedDict()
        _every.add(self)

    def view(self, path: str) -> memoryview:
        """Return the whole file as it is now, read-only and without a copy.

        Inside `seldom_checked` as it was a moment ago.

        Raises ``ObjectNotFoundError`` if ``path`` names no file (any more), and
        ``CorruptFileError`` if the file is shorter than it was when first mapped.
        """
        found = self._maps.get(path)
        if found is None:
            return self._map(path)
        if found.looked_at >= _good_since.get():
            return found.view
        looked_at = time.monotonic()
        found.looked_at = -math.inf  # until the file turns out to be as it was
        try:
            now = os.stat(found.location)  # noqa: PTH116 - a Path costs more than the call
        except OSError as error:
            raise os_error_to_store_error(found.location, error) from error
        if now.st_size == found.size and now.st_ino == found.inode and now.st_dev == found.device:
            self._keep(path, found)
            found.looked_at = looked_at
            return found.view
        if now.st_size < found.size and now.st_ino == found.inode and now.st_dev == found.device:
            raise CorruptFileError(
                path, f"the file had {found.size} bytes when it was opened and has {now.st_size}"
            )
        return self._map(path)

    def give_back_pages(self) -> None:
        """Do what the function does, for the mappings that are kept here."""
        with self._lock:
            views = [each.view for each in self._maps.values() if each.size > 0]
        for view in views:
            address = np.frombuffer(view, np.uint8).ctypes.data
            _madvise(ctypes.c_void_p(address), ctypes.c_size_t(len(view)), mmap.MADV_DONTNEED)

    def _map(self, path: str) -> memoryview:
        opened = _open_map(f"{self._root}/{check_path(path)}")
        self._keep(path, opened)
        return opened.view

    def _keep(self, path: str, mapped: _FileMap) -> None:
        with self._lock:
            self._maps[path] = mapped
            self._maps.move_to_end(path)
            if len(self._maps) > self._max_maps:
                self._maps.popitem(last=False)


def _open_map(location: str) -> _FileMap:
    looked_at = time.monotonic()
    with os_errors_translated(location):
        before = os.stat(location)  # noqa: PTH116 - as in view()
        if not S_ISREG(before.st_mode):
            raise ObjectNotFoundError(f"{location} is no file")
        view = _map_whole(location)
        after = os.stat(location)  # noqa: PTH116 - as in view()
    if (before.st_dev, before.st_ino, len(view)) != (after.st_dev, after.st_ino, after.st_size):
        raise StoreUnavailableError(f"{location} was replaced while it was opened; try again")
    return _FileMap(location, after.st_dev, after.st_ino, after.st_size, view, looked_at)


def _map_whole(location: str) -> memoryview:
    with pa.memory_map(location) as file:
        if file.size() == 0:
            return memoryview(b"")
        # pyarrow's buffers call their bytes signed.
        return memoryview(file.read_buffer()).cast("B")
