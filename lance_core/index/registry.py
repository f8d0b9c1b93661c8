"""Which index segments this release can use, told from the manifest alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lance_core.errors import LanceError

if TYPE_CHECKING:
    from lance_core.table.index_metadata import IndexMetadata

_NEWEST_VECTOR_VERSION = 2


class IndexKind(StrEnum):
    """What a segment indexes, and so which reader opens it."""

    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Unusable:
    """A segment that this release cannot use, and why; its fragments are scanned."""

    reason: str


class UnusableSegmentError(LanceError):
    """A segment turned out unusable when its files were opened.

    Never reaches the user: whoever opens a segment catches it and scans its fragments.

    Parameters
    ----------
    reason
        Why.
    metric
        The metric that its files name, None where they do not.
    """

    def __init__(self, reason: str, metric: str | None = None) -> None:
        self.reason = reason
        self.metric = metric
        super().__init__(reason)


_KINDS = {  # in lower case, since writers spell them in more ways than one
    "vectorindexdetails": IndexKind.VECTOR,
    # Older writers say nothing; whether the files hold a vector index is seen when they are opened.
    "": IndexKind.VECTOR,
}


def classify(segment: IndexMetadata) -> IndexKind | Unusable:
    """Tell whether a segment can be used, without reading its files.

    Parameters
    ----------
    segment
        The segment.

    Notes
    -----
    Vector index page, section 1: pylance 14.0.2 uses versions 0 to 2 and skips newer ones.
    """
    if segment.is_system:
        return Unusable("it serves the table itself")
    kind = _KINDS.get(segment.type_name.lower())
    if kind is None:
        return Unusable(f"index type {segment.type_name} is not supported")
    if not 0 <= segment.index_version <= _NEWEST_VECTOR_VERSION:
        return Unusable(
            f"index version {segment.index_version} is newer than {_NEWEST_VECTOR_VERSION}"
        )
    return kind if (reason := _obstacle(segment)) is None else Unusable(reason)


def _obstacle(segment: IndexMetadata) -> str | None:
    if len(segment.field_ids) != 1:
        return f"it is built on {len(segment.field_ids)} columns, a vector index on one"
    if segment.fragment_bitmap is None:
        return "which fragments it covers is not recorded"
    return None
