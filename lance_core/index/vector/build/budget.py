"""What the memory of a build is for, and giving back to the system what is no longer used."""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.file.writer import MAX_PAGE_BYTES

LEAST_BYTES = 96 << 20
"""What builds of vectors of some hundred coordinates keep; see `Budget`."""

LEAST_GRAPH_BYTES = 160 << 20
"""The same where partitions have graphs: a third file is written beside, by threads of its own."""

_ALWAYS_BYTES = 32 << 20
"""Taken whatever is asked: rows that are read ahead, pages under way to files."""

_SAMPLE_PART = 2
_WAITING_PART = 2
_GROUP_PART = 16
_GRAPH_PART = 4
_BLOCK_PART = 16
_PAGE_PART = 64
_BLOCK_BYTES = 16 << 20
_TRIM_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Budget:
    """How the memory of a build is shared out.

    Training comes first, with a sample and as much again for what it makes of it. Then rows wait
    until they are put in order: they take a half; those that are read together a sixteenth, twice
    while they are put in order, and what the files that are written have not let go of: pages are
    small, as a dozen of each are under way. Graphs take a quarter, and rows that wait go to disk
    where one graph needs more.

    Parameters
    ----------
    memory_bytes
        What the whole build may take.

    Notes
    -----
    A partition is held whole, and a graph needs some 360 bytes a row beside it (``m`` 20): with
    256 MiB a partition may have 160,000 rows that have one, with the least 90,000. A larger one is
    built all the same, in more memory: ask for more partitions. What is always taken grows with
    centroids and rows of many kilobytes.
    """

    memory_bytes: int

    def check(self, *, has_graphs: bool) -> None:
        """Raise ``InvalidRequestError`` if no build can keep to it."""
        least = LEAST_GRAPH_BYTES if has_graphs else LEAST_BYTES
        if self.memory_bytes < least:
            what = "of vectors with graphs (HNSW)" if has_graphs else "of vectors"
            raise InvalidRequestError(
                f"memory_bytes {self.memory_bytes} is too little to build an index {what}:"
                f" give at least {least}"
            )

    @property
    def sample_bytes(self) -> int:
        """For the vectors that training is given."""
        return self._room // _SAMPLE_PART

    @property
    def block_bytes(self) -> int:
        """For vectors as float32 that are coded at once: codes take several times that."""
        return min(_BLOCK_BYTES, self._room // _BLOCK_PART)

    @property
    def waiting_bytes(self) -> int:
        """For coded rows that wait."""
        return self._room // _WAITING_PART

    @property
    def group_bytes(self) -> int:
        """For the rows of partitions that are read together."""
        return self._room // _GROUP_PART

    @property
    def page_bytes(self) -> int:
        """For a page of a file that is written: several of each column are under way."""
        return min(MAX_PAGE_BYTES, self._room // _PAGE_PART)

    @property
    def graph_bytes(self) -> int:
        """For graphs under way."""
        return self._room // _GRAPH_PART

    @property
    def _room(self) -> int:
        return max(self.memory_bytes - _ALWAYS_BYTES, self.memory_bytes // 2)


class Trimmer:
    """Gives back free memory now and then.

    The C library keeps what is freed between pieces in use, and Arrow keeps its own: a build that
    had 60 MB in use took 116.
    """

    def __init__(self) -> None:
        self._num_bytes = 0

    def count(self, num_bytes: int) -> None:
        """Note that about so many bytes were taken and freed."""
        self._num_bytes += num_bytes
        if self._num_bytes >= _TRIM_BYTES:
            self._num_bytes = 0
            trim_heaps()


def trim_heaps() -> None:
    """Give free memory back, where the C library is glibc also that between pieces in use."""
    pa.default_memory_pool().release_unused()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
