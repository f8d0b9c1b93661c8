"""What the library needs from an object store: ranges, listings, and one conditional write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lance_core.errors import CorruptFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from lance_core.io.sink import ObjectSink


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """One object as the store lists it.

    ``path`` is relative to the root of the store, without a leading slash; ``e_tag`` is None where
    the store has none.
    """

    path: str
    size: int
    e_tag: str | None
    last_modified: datetime


class ObjectStore(Protocol):
    """A tree of immutable objects below one root.

    Paths are relative to the root, with ``/`` between parts. Every method raises
    ``ObjectNotFoundError`` for a path that names no object, ``StoreThrottledError`` or
    ``StoreUnavailableError`` for passing faults and ``StoreError`` for all other failures. Stores
    are safe to share between threads.
    """

    @property
    def uri(self) -> str:
        """The root, as users write it."""

    @property
    def key(self) -> str:
        """Names the store in cache keys: differs from that of others where the bytes may."""

    @property
    def coalesce_gap(self) -> int:
        """Largest gap in bytes worth reading to save one request."""

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        """Return bytes ``[start, end)`` of an object, read-only.

        Raises ``CorruptFileError`` when the range is not wholly inside the object: ranges are
        read from files, and a file that points beyond an end contradicts itself or was cut.
        """

    def head(self, path: str) -> ObjectMeta:
        """Return size, e-tag and time of one object."""

    def list_tree(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield all objects below the folder ``prefix``, at any depth, ordered by path.

        A folder that does not exist is empty.
        """

    def list_folder(self, prefix: str) -> tuple[list[str], list[ObjectMeta]]:
        """Return the sub-folder names and the objects directly inside the folder ``prefix``."""

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing one that exists; readers never see a part of it."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object atomically, or raise ``ObjectExistsError`` and change nothing.

        Raises ``UnsupportedFeatureError`` where the store cannot do that.
        """

    def delete(self, path: str) -> None:
        """Remove an object; one that is not there stays so."""

    def open_sink(self, path: str) -> ObjectSink:
        """Begin an object that is written in pieces, replacing one that exists when finished.

        Memory is bounded whatever the size; only stores that keep objects in memory need as much.
        """

    def map(self, path: str) -> memoryview | None:
        """Return the whole object as mapped memory, or None where the store cannot map.

        The mapping is checked against the file's size at every call, so that a file that shrank
        raises ``CorruptFileError`` instead of faulting.
        """


@runtime_checkable
class DeletesMany(Protocol):
    """A store that removes many objects by one request."""

    def delete_many(self, paths: Sequence[str]) -> None:
        """Remove objects, 1,000 at most; those that are not there stay so."""


@runtime_checkable
class LeavesUnfinished(Protocol):
    """A store whose writers, when they are killed, leave parts of objects that listings hide."""

    def list_unfinished(self, prefix: str) -> list[ObjectMeta]:
        """Return such parts below a folder; those of writes under way are among them."""


@runtime_checkable
class KeepsFolders(Protocol):
    """A store whose folders stay when all objects in them are gone."""

    def remove_folder(self, path: str) -> None:
        """Remove a folder that is empty; one that is not, or is not there, stays so."""


@runtime_checkable
class HoldsRanges(Protocol):
    """A store that has some bytes at hand, so that they need not be fetched."""

    def held_range(self, path: str, start: int, end: int) -> memoryview | None:
        """Return bytes ``[start, end)`` of an object if all of them are at hand, else None."""

    def held_size(self, path: str) -> int | None:
        """Return the size of an object if the store need not be asked for it, else None."""


def check_range(path: str, start: int, end: int, *, size: int) -> None:
    """Raise ``CorruptFileError`` unless an object of ``size`` bytes holds ``[start, end)``."""
    if not 0 <= start <= end <= size:
        raise CorruptFileError(
            path, f"bytes {start} to {end} are referred to, the file has {size}", offset=start
        )
