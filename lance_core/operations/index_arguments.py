"""What callers hand over to build and maintain indices, checked; wrong ones say what would work."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, cast

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_list, checked_number
from lance_core.operations.arguments import checked_names
from lance_core.proto import table_pb2
from lance_core.table.index_metadata import SYSTEM_PREFIX

if TYPE_CHECKING:
    from lance_core.operations.progress import Progress

_LEAST_MEMORY = 1
_MOST_FRAGMENT = 2**32 - 1
_CONTROLS = frozenset(("Cc", "Zl", "Zp"))
"""Unicode categories of characters that end lines or steer terminals."""


def checked_memory(memory_bytes: object) -> int:
    """Return how much memory may be taken, in bytes."""
    return checked_number("memory_bytes", memory_bytes, _LEAST_MEMORY)


def checked_progress(progress: object) -> Progress:
    """Return what is called with how far work is."""
    if not callable(progress):
        raise InvalidRequestError(
            f"progress is {progress!r}; give a function of what is done and of how much"
        )
    return cast("Progress", progress)


def checked_index_names(names: object) -> tuple[str, ...] | None:
    """Return the names of indices that are meant; None = all."""
    return None if names is None else checked_names("names", names)


def checked_fragment_ids(fragment_ids: object) -> frozenset[int]:
    """Return ids that fragments may have."""
    return frozenset(
        checked_number("a fragment id", each, 0, _MOST_FRAGMENT)
        for each in checked_list("fragment_ids", fragment_ids, example="[0, 1]")
    )


def checked_segments(segments: object) -> tuple[table_pb2.IndexMetadata, ...]:
    """Return segments, of which there is at least one."""
    found = tuple(checked_list("segments", segments, example="[segment]"))
    for each in found:
        if not isinstance(each, table_pb2.IndexMetadata):
            raise InvalidRequestError(
                f"a segment is what build_segment, merge_segments or segments_of returned, not"
                f" {each!r}"
            )
    if len(found) == 0:
        raise InvalidRequestError("give at least one segment")
    return cast("tuple[table_pb2.IndexMetadata, ...]", found)


def check_new_name(name: str) -> None:
    """Check what an index is going to be called.

    Raises
    ------
    InvalidRequestError
        It is reserved, or nobody could read or type it.

    Notes
    -----
    pylance 14.0.2 takes every text, and can no longer list indices where one has the name of an
    entry that serves the table itself.
    """
    if name.startswith(SYSTEM_PREFIX):
        raise InvalidRequestError(
            f"{name!r} is no name for an index: {SYSTEM_PREFIX} begins those that serve the table"
            " itself; take another one"
        )
    if name.strip() == "" or any(unicodedata.category(each) in _CONTROLS for each in name):
        raise InvalidRequestError(
            f"{name!r} is no name for an index; take one that can be seen, in one line"
        )
