"""Mapped local files, kept so that reading a range of one costs a single ``stat``.

The ``stat`` of the path sees both a file that shrank (touching pages beyond its end kills the
process) and one that was replaced under its name. pyarrow makes the mappings because it can close
the descriptor and keep the memory: a thousand open fragments must not use up the process's
descriptors.

A file that shrinks while a kernel reads it still faults. Files never change once written (a rule
of the format), so truncating or rewriting one in place is out of scope.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass
from stat import S_ISREG

import pyarrow as pa

from lance_core.errors import CorruptFileError, ObjectNotFoundError, StoreUnavailableError
from lance_core.io.local_files import os_error_to_store_error, os_errors_translated
from lance_core.io.paths import check_path


@dataclass(frozen=True, slots=True, eq=False)
class _FileMap:
    """One mapped file; the mapping lives as long as any view of it."""

    location: str
    device: int
    inode: int
    size: int
    view: memoryview


_checked: ContextVar[set[_FileMap] | None] = ContextVar("lance_core_checked_maps", default=None)


class checked_once:  # noqa: N801 - used like the functions of contextlib
    """Look at each file at its first use in this block only.

    A file that shrinks after its first use goes unseen until the block ends, as it would while a
    kernel reads it.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _checked.set(set())

    def __exit__(self, *_: object) -> None:
        _checked.reset(self._token)


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

    def view(self, path: str) -> memoryview:
        """Return the whole file as it is now, read-only and without a copy.

        Raises ``ObjectNotFoundError`` if ``path`` names no file (any more), and
        ``CorruptFileError`` if the file is shorter than it was when first mapped.
        """
        found = self._maps.get(path)
        if found is None:
            return self._map(path)
        checked = _checked.get()
        if checked is not None and found in checked:
            return found.view
        try:
            now = os.stat(found.location)  # noqa: PTH116 - a Path costs more than the call
        except OSError as error:
            raise os_error_to_store_error(found.location, error) from error
        if now.st_size == found.size and now.st_ino == found.inode and now.st_dev == found.device:
            self._keep(path, found)
            if checked is not None:
                checked.add(found)
            return found.view
        if now.st_size < found.size and now.st_ino == found.inode and now.st_dev == found.device:
            raise CorruptFileError(
                path, f"the file had {found.size} bytes when it was opened and has {now.st_size}"
            )
        return self._map(path)

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
    with os_errors_translated(location):
        before = os.stat(location)  # noqa: PTH116 - as in view()
        if not S_ISREG(before.st_mode):
            raise ObjectNotFoundError(f"{location} is no file")
        view = _map_whole(location)
        after = os.stat(location)  # noqa: PTH116 - as in view()
    if (before.st_dev, before.st_ino, len(view)) != (after.st_dev, after.st_ino, after.st_size):
        raise StoreUnavailableError(f"{location} was replaced while it was opened; try again")
    return _FileMap(location, after.st_dev, after.st_ino, after.st_size, view)


def _map_whole(location: str) -> memoryview:
    with pa.memory_map(location) as file:
        if file.size() == 0:
            return memoryview(b"")
        # pyarrow's buffers call their bytes signed.
        return memoryview(file.read_buffer()).cast("B")
