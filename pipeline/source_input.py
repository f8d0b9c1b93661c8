"""Files of rows as pyarrow reads them: of local folders and of object stores alike."""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError, ObjectNotFoundError
from lance_core.table.dataset_stores import open_file_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lance_core.io.store import ObjectStore

    Options = Mapping[str, str] | None

_BLOCK_BYTES = 4 << 20
_LONGEST_LINE = 256 << 20
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class SourceFile:
    """A file that is read by ranges.

    Parameters
    ----------
    path
        Path or URI.
    storage_options
        Of the store.

    Raises
    ------
    InvalidRequestError
        There is none.
    """

    def __init__(self, path: str, storage_options: Options) -> None:
        self.path = path
        self._store, self._name = open_file_beside(path, storage_options)
        try:
            self.size = self._store.head(self._name).size
        except ObjectNotFoundError as error:
            raise InvalidRequestError(f"there is no file {path}") from error

    @property
    def is_mapped(self) -> bool:
        """Whether reading it takes no memory."""
        return self._store.coalesce_gap == 0

    def open(self, start: int = 0, end: int | None = None) -> pa.NativeFile:
        """Open a range of bytes as a file of its own."""
        stop = self.size if end is None else end
        if self.is_mapped:
            return pa.BufferReader(pa.py_buffer(self._store.get_range(self._name, start, stop)))
        return pa.PythonFile(_Range(self._store, self._name, start, stop), mode="r")

    def open_whole(self) -> pa.NativeFile:
        """Open all of it, uncompressed where the name says that it is compressed."""
        for ending, codec in COMPRESSIONS.items():
            if self.path.lower().endswith(ending):
                return pa.CompressedInputStream(self.open(), codec)
        return self.open()

    def line_start(self, at: int) -> int:
        """Return where the first line begins that begins at a byte or after it."""
        if at <= 0:
            return 0
        place = at - 1
        while place < self.size:
            block = self.read(place, min(place + _BLOCK_BYTES, self.size))
            found = block.find(b"\n")
            if found >= 0:
                return place + found + 1
            place += len(block)
            if place - at > _LONGEST_LINE:
                raise InvalidRequestError(
                    f"{self.path}: a line has over {_LONGEST_LINE} bytes, from byte {at} on"
                )
        return self.size

    def read(self, start: int, end: int) -> bytes:
        """Return some bytes."""
        return bytes(self._store.get_range(self._name, start, end))


class _Range(io.RawIOBase):
    """Bytes of an object as a file of Python."""

    def __init__(self, store: ObjectStore, name: str, start: int, end: int) -> None:
        super().__init__()
        self._store = store
        self._name = name
        self._start = start
        self._size = end - start
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        count = left if size is None or size < 0 else min(size, left)
        if count == 0:
            return b""
        begin = self._start + self._at
        self._at += count
        return bytes(self._store.get_range(self._name, begin, begin + count))


@contextmanager
def reading(path: str, advice: Callable[[Exception], str] | None = None) -> Iterator[None]:
    """Say which file it is that cannot be read, and what helps.

    Errors of the store pass as they are: they may be gone at the next attempt.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        more = "" if advice is None else advice(error)
        raise InvalidRequestError(f"{path} cannot be read: {error}{more}") from error
