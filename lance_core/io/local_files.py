"""Local files: their errors in our words, and writes that a reader never sees half done."""

from __future__ import annotations

import errno
import os
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lance_core.errors import (
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreUnavailableError,
)
from lance_core.io.store import ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedWriter
    from pathlib import Path

_TEMPORARY_PREFIX = ".lance-serve-"
_NO_OBJECT = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG))
_PASSING = frozenset(
    (
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ESTALE,
        errno.ETIMEDOUT,
    )
)


def os_error_to_store_error(location: str, error: OSError) -> LanceError:
    """Return the error of our tree that tells a caller what ``error`` means for the object."""
    if error.errno in _NO_OBJECT:
        return ObjectNotFoundError(f"no object at {location}")
    if error.errno == errno.EEXIST:
        return ObjectExistsError(f"{location} exists already")
    if error.errno in _PASSING:
        return StoreUnavailableError(f"{location}: {error.strerror}")
    return StoreError(f"{location}: {error.strerror if error.strerror is not None else error}")


@contextmanager
def os_errors_translated(location: str) -> Iterator[None]:
    """Raise every ``OSError`` of the block as one of our tree."""
    try:
        yield
    except OSError as error:
        raise os_error_to_store_error(location, error) from error


def meta_of(path: str, stat: os.stat_result) -> ObjectMeta:
    """Return what a listing says about a file.

    The e-tag changes with every replacement: inode, time in nanoseconds and size, in hexadecimal.
    """
    e_tag = f"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{stat.st_size:x}"
    return ObjectMeta(path, stat.st_size, e_tag, datetime.fromtimestamp(stat.st_mtime, UTC))


def is_temporary(name: str) -> bool:
    """Tell whether a file is a write under way, or what a crash left of one."""
    return name.startswith(_TEMPORARY_PREFIX)


def temporary_files(folder: Path) -> Iterator[Path]:
    """Yield the temporary files below a folder, at any depth; links are not followed."""
    return folder.rglob(f"{_TEMPORARY_PREFIX}*")


def replace_file(target: Path, data: bytes) -> None:
    """Write ``target``, old or new content but nothing between, even if the machine stops."""
    with _temporary_beside(target, data) as temporary:
        temporary.replace(target)


def create_file(target: Path, data: bytes) -> None:
    """Write ``target`` atomically, or raise ``FileExistsError`` and change nothing.

    A hard link is the one local operation that both publishes a complete file and refuses to
    replace; a rename replaces silently, an exclusive open shows an unfinished file.
    """
    with _temporary_beside(target, data) as temporary:
        os.link(temporary, target)


@contextmanager
def _temporary_beside(target: Path, data: bytes) -> Iterator[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary_name(target)
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


class LocalUpload:
    """A file beside the target, synced and renamed into place when it is complete.

    The file is made at the first byte, so that an upload that is dropped unused leaves none.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._temporary = _temporary_name(target)
        self._file: BufferedWriter | None = None

    def write(self, piece: memoryview) -> None:
        """Append bytes."""
        try:
            self._opened().write(piece)
        except OSError as error:
            raise os_error_to_store_error(str(self._target), error) from error

    def publish(self) -> None:
        """Rename the file into place; it outlives a power cut."""
        with os_errors_translated(str(self._target)):
            file = self._opened()
            file.flush()
            os.fsync(file.fileno())
            file.close()
            self._temporary.replace(self._target)
            _sync_folder(self._target.parent)

    def discard(self) -> None:
        """Remove the file."""
        if self._file is not None:
            with suppress(OSError):  # flushing the rest to a full disk fails, and no longer matters
                self._file.close()
            with os_errors_translated(str(self._target)):
                self._temporary.unlink(missing_ok=True)

    def _opened(self) -> BufferedWriter:
        if self._file is None:
            try:
                if self._target.exists() and not self._target.is_file():
                    raise StoreError(f"cannot write {self._target}: a folder or device is there")
                self._target.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._temporary.open("xb")
            except OSError as error:
                raise StoreError(f"cannot write {self._target}: {error.strerror}") from error
        return self._file


def _temporary_name(target: Path) -> Path:
    return target.parent / f"{_TEMPORARY_PREFIX}{uuid.uuid4().hex}"


def _sync_folder(folder: Path) -> None:
    """Make a new name in ``folder`` survive a power cut, which syncing the file does not."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
