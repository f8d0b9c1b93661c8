"""Byte ranges of objects as files: written at once, checked when read, forgotten when wrong."""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import uuid
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachetools import LRUCache

from lance_core.io.disk_budget import TEMPORARY_PREFIX, DiskBudget
from lance_core.io.spans import Span, Spans

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEADER = struct.Struct("<4sIQ")
_MAGIC = b"LSR1"
_PIECE_BYTES = 1 << 20
"""Longer ranges are cut, as a file is read whole to check it."""
_SIZE_MARK = "size"
_KNOWN_OBJECTS = 4096
"""Objects of which it is remembered what is there; of others the folder is looked at again."""


@dataclass(slots=True)
class RangeCounts:
    """How often all bytes of a range were there, how often not, and files that were damaged."""

    hits: int = 0
    misses: int = 0
    damaged: int = 0


class DiskRanges:
    """Ranges of many objects below one folder; safe to share between threads and processes.

    A power cut may leave files that are torn or empty; their length or checksum tells. Whatever
    goes wrong with the disk, the answer is that the bytes are not there.

    Parameters
    ----------
    root
        The folder.
    budget_bytes
        Bytes of files below it; the least recently read leave.
    """

    def __init__(self, root: Path, budget_bytes: int) -> None:
        self.budget = DiskBudget(root, budget_bytes)
        self.counts = RangeCounts()
        self._root = root
        self._lock = threading.Lock()
        self._spans: LRUCache[str, Spans] = LRUCache(_KNOWN_OBJECTS)

    def read(self, name: str, start: int, end: int) -> memoryview | None:
        """Return bytes ``[start, end)`` of an object if all of them are there.

        Parameters
        ----------
        name
            Names the object, and its bytes: another one for other bytes.
        """
        view = self._read(name, start, end)
        with self._lock:
            if view is None:
                self.counts.misses += 1
            else:
                self.counts.hits += 1
        return view

    def missing(self, name: str, start: int, end: int) -> Span | None:
        """Return the smallest range that has all bytes that are not there, None if all are."""
        with self._lock:
            return self._known(name).missing(start, end)

    def keep(self, name: str, start: int, data: memoryview) -> None:
        """Write bytes that begin at ``start``, as far as they fit into the budget."""
        for at in range(0, len(data), _PIECE_BYTES):
            piece = data[at : at + _PIECE_BYTES]
            span = Span(start + at, start + at + len(piece))
            try:
                is_kept = self._write(self._file(name, span), piece)
            except OSError:
                return
            if is_kept:
                with self._lock:
                    self._known(name).add(span)

    def size(self, name: str) -> int | None:
        """Return the size of an object, None where it is not known."""
        for file in _names_in(self._folder(name)):
            mark, _, size = file.partition("-")
            if mark == _SIZE_MARK and size.isdecimal():
                return int(size)
        return None

    def keep_size(self, name: str, size: int) -> None:
        """Write down the size of an object: the name of an empty file, which needs no room."""
        folder = self._folder(name)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{_SIZE_MARK}-{size}").touch()

    def forget(self, name: str) -> None:
        """Remove everything of an object."""
        with self._lock:
            self._spans.pop(name, None)
        for file in _names_in(self._folder(name)):
            if file.startswith(_SIZE_MARK):
                self._remove(self._folder(name) / file)
        for span in _spans_in(self._folder(name)):
            self._remove(self._file(name, span))

    def _read(self, name: str, start: int, end: int) -> memoryview | None:
        with self._lock:
            found = self._known(name)
            if found.missing(start, end) is not None:  # other processes write too
                found = self._spans[name] = Spans(_spans_in(self._folder(name)))
            if found.missing(start, end) is not None:
                return None
            over = found.over(start, end)
        parts = []
        at = start
        for span in over:
            view = self._load(name, span)
            if view is None:
                return None
            parts.append(view[max(at - span.start, 0) : end - span.start])
            at = span.end
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _load(self, name: str, span: Span) -> memoryview | None:
        """Return the bytes of a file; one that is gone or damaged is forgotten."""
        file = self._file(name, span)
        try:
            data = file.read_bytes()
            if _is_whole(data, span):
                os.utime(file)
                return memoryview(data)[_HEADER.size :]
        except OSError:
            is_damaged = False
        else:
            is_damaged = True
            self._remove(file)
        with self._lock:
            self._known(name).discard(span)
            self.counts.damaged += is_damaged
        self.budget.note_loss()  # it may have been shorter than it was counted
        return None

    def _write(self, file: Path, piece: memoryview) -> bool:
        size = _HEADER.size + len(piece)
        if file.exists():
            return True
        temporary = file.parent / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not self.budget.take(size, temporary):
            return False
        try:
            with temporary.open("r+b") as target:
                target.write(_HEADER.pack(_MAGIC, zlib.crc32(piece), len(piece)))
                target.write(piece)
            temporary.replace(file)
        except OSError:
            self.budget.remove(temporary)
            raise
        return True

    def _remove(self, file: Path) -> None:
        with suppress(OSError):  # a folder that cannot be locked
            self.budget.remove(file)

    def _known(self, name: str) -> Spans:
        """Return what is known to be there of an object; needs the lock."""
        found = self._spans.get(name)
        if found is None:
            found = self._spans[name] = Spans(_spans_in(self._folder(name)))
        return found

    def _folder(self, name: str) -> Path:
        digest = hashlib.sha256(name.encode()).hexdigest()
        return self._root / digest[:2] / digest[2:40]

    def _file(self, name: str, span: Span) -> Path:
        return self._folder(name) / f"{span.start}-{span.end}"


def _is_whole(data: bytes, span: Span) -> bool:
    if len(data) != _HEADER.size + span.end - span.start:
        return False
    checksum = zlib.crc32(memoryview(data)[_HEADER.size :])
    return data[: _HEADER.size] == _HEADER.pack(_MAGIC, checksum, span.end - span.start)


def _spans_in(folder: Path) -> Iterator[Span]:
    """Yield the ranges that lie in a folder, by the names of the files."""
    for name in _names_in(folder):
        start, dash, end = name.partition("-")
        if dash and start.isdecimal() and end.isdecimal() and int(start) < int(end):
            yield Span(int(start), int(end))


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - a Path per file costs more than the listing
    except OSError:
        return []
