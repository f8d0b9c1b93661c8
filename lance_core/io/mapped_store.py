"""A local directory as a store that maps files instead of reading them."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lance_core.errors import ObjectNotFoundError
from lance_core.io.file_maps import FileMaps
from lance_core.io.local_files import (
    LocalUpload,
    create_file,
    is_temporary,
    meta_of,
    os_errors_translated,
    replace_file,
    temporary_files,
)
from lance_core.io.paths import check_folder, check_path
from lance_core.io.sink import ObjectSink
from lance_core.io.store import ObjectMeta, check_range

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_MAPS = 4096
"""Mappings kept per store; the kernel allows a process about 65,000."""
_LEADS_NOWHERE = frozenset(
    (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES)
)
"""What the kernel says of names and links at whose end is nothing that could be read."""
_STAY = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST))
"""What it says of folders that are not empty, and of what is no folder."""


class MappedStore:
    """Files below a folder, handed out as slices of mapped memory.

    A slice costs nothing, so nothing is coalesced. Paths cannot leave the folder by ``..``;
    symbolic links are followed, they are the operator's decision, but listings do not descend
    into linked folders, which may form a circle. Listings leave out what leads nowhere (links to
    themselves, to nothing, or to what may not be read) and names that are not UTF-8.

    Parameters
    ----------
    root
        The folder. It may be missing: it then holds nothing, and the first ``put`` makes it.
    max_maps
        Number of files that stay mapped between calls.
    """

    coalesce_gap = 0

    def __init__(self, root: str | Path, *, max_maps: int = _MAX_MAPS) -> None:
        self.uri = os.path.abspath(root)  # noqa: PTH100 - Path.resolve would follow links
        self.key = self.uri
        self._root = Path(self.uri)
        self._maps = FileMaps(self.uri, max_maps=max_maps)

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        """Return a slice of the mapped file: a ``stat``, no copy."""
        whole = self._maps.view(path)
        if not 0 <= start <= end <= len(whole):
            check_range(path, start, end, size=len(whole))
        return whole[start:end]

    def head(self, path: str) -> ObjectMeta:
        """Return size, e-tag and time of one file."""
        file = self._file(path)
        with os_errors_translated(str(file)):
            stat = file.stat()
        if not file.is_file():
            raise ObjectNotFoundError(f"{file} is no file")
        return meta_of(path, stat)

    def list_tree(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield all files below ``prefix``, ordered by path."""
        found: list[ObjectMeta] = []
        folders = [check_folder(prefix)]
        while folders:
            folder = folders.pop()
            for entry in self._entries(folder):
                path = _join(folder, entry.name)
                with os_errors_translated(path):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    else:
                        found += _files_of(path, entry)
        return iter(sorted(found, key=lambda meta: meta.path))

    def list_folder(self, prefix: str) -> tuple[list[str], list[ObjectMeta]]:
        """Return the names of the folders and the files directly inside ``prefix``, ordered."""
        folder = check_folder(prefix)
        entries = sorted(self._entries(folder), key=lambda entry: entry.name)
        with os_errors_translated(str(self._root / folder)):
            names = [entry.name for entry in entries if _is_folder(entry)]
            files = [
                meta for entry in entries for meta in _files_of(_join(folder, entry.name), entry)
            ]
        return names, files

    def list_unfinished(self, prefix: str) -> list[ObjectMeta]:
        """Return files that are being written below ``prefix``, or that killed writers left."""
        found = []
        for file in temporary_files(self._root / check_folder(prefix)):
            with suppress(ObjectNotFoundError), os_errors_translated(str(file)):
                found.append(meta_of(str(file.relative_to(self._root)), file.stat()))
        return found

    def put(self, path: str, data: bytes) -> None:
        """Write a file beside the target, sync it and rename it into place."""
        file = self._file(path)
        with os_errors_translated(str(file)):
            replace_file(file, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write a file beside the target, sync it and link it into place."""
        file = self._file(path)
        with os_errors_translated(str(file)):
            create_file(file, data)

    def delete(self, path: str) -> None:
        """Remove a file; views of it stay readable. Its folder stays, even if it is empty."""
        file = self._file(path)
        with suppress(ObjectNotFoundError), os_errors_translated(str(file)):
            file.unlink()

    def remove_folder(self, path: str) -> None:
        """Remove a folder if nothing is in it, also no file under way."""
        folder = self._file(path)
        with os_errors_translated(str(folder)):
            try:
                folder.rmdir()
            except OSError as error:
                if error.errno not in _STAY:
                    raise

    def open_sink(self, path: str) -> ObjectSink:
        """Write a file beside the target; sync it and rename it into place at the end."""
        file = self._file(path)
        return ObjectSink(str(file), LocalUpload(file))

    def map(self, path: str) -> memoryview | None:
        """Return the whole file as mapped memory."""
        return self._maps.view(path)

    def _file(self, path: str) -> Path:
        return self._root / check_path(path)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        """Return what lies in ``folder``; one that vanished or cannot exist is empty."""
        place = self._root / folder
        with os_errors_translated(str(place)):
            try:
                with os.scandir(place) as entries:
                    return [entry for entry in entries if _is_object_name(entry.name)]
            except OSError as error:
                if error.errno not in _LEADS_NOWHERE or error.errno == errno.EACCES:
                    raise
                return []


def _is_object_name(name: str) -> bool:
    """Tell names of objects from those of writes under way and from bytes that are no text."""
    if is_temporary(name):
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno not in _LEADS_NOWHERE:
            raise
        return False


def _files_of(path: str, entry: os.DirEntry[str]) -> list[ObjectMeta]:
    """Describe a file; nothing for anything else, and for one that vanished since it was listed.

    (The staging file of a writer that has committed meanwhile, for one.)
    """
    try:
        return [meta_of(path, entry.stat())] if entry.is_file() else []
    except OSError as error:
        if error.errno not in _LEADS_NOWHERE:
            raise
        return []


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
