"""Which index segments this release can use, told from the manifest alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lance_core.errors import LanceError

if TYPE_CHECKING:
    from lance_core.table.index_metadata import IndexMetadata


class IndexKind(StrEnum):
    """What a segment indexes, and so which reader opens it."""

    VECTOR = "vector"
    BTREE = "BTREE"
    BITMAP = "BITMAP"
    LABEL_LIST = "LABEL_LIST"
    NGRAM = "NGRAM"
    ZONEMAP = "ZONEMAP"
    BLOOMFILTER = "BLOOMFILTER"
    INVERTED = "INVERTED"
    UNTOLD = "untold"
    """Its writer did not say: its files tell when they are opened."""

    @property
    def may_be_vector(self) -> bool:
        """Whether the segment may find neighbours of vectors."""
        return self in {IndexKind.VECTOR, IndexKind.UNTOLD}

    @property
    def may_be_scalar(self) -> bool:
        """Whether the segment may answer conditions."""
        return self is not IndexKind.VECTOR


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
    "btreeindexdetails": IndexKind.BTREE,
    "bitmapindexdetails": IndexKind.BITMAP,
    "labellistindexdetails": IndexKind.LABEL_LIST,
    "ngramindexdetails": IndexKind.NGRAM,
    "zonemapindexdetails": IndexKind.ZONEMAP,
    "bloomfilterindexdetails": IndexKind.BLOOMFILTER,
    "invertedindexdetails": IndexKind.INVERTED,
    "": IndexKind.UNTOLD,
}

_NEWEST_VERSION = {
    IndexKind.VECTOR: 2,
    IndexKind.BTREE: 1,
    IndexKind.BITMAP: 0,
    IndexKind.LABEL_LIST: 1,
    IndexKind.NGRAM: 0,
    IndexKind.ZONEMAP: 0,
    IndexKind.BLOOMFILTER: 0,
    IndexKind.INVERTED: 3,
    IndexKind.UNTOLD: 2,
}


def classify(segment: IndexMetadata) -> IndexKind | Unusable:
    """Tell whether a segment can be used, without reading its files.

    Parameters
    ----------
    segment
        The segment.

    Notes
    -----
    Vector index page, section 1: pylance 14.0.2 uses versions 0 to 2 and skips newer ones. Scalar
    index page, sections 1.1 and 8.1: the versions that it writes; a newer one may name rows
    otherwise.
    """
    if segment.is_system:
        return Unusable("it serves the table itself")
    kind = _KINDS.get(segment.type_name.lower())
    if kind is None:
        return Unusable(f"index type {segment.type_name} is not supported")
    newest = _NEWEST_VERSION[kind]
    if not 0 <= segment.index_version <= newest:
        return Unusable(f"index version {segment.index_version} is newer than {newest}")
    return kind if (reason := _obstacle(segment)) is None else Unusable(reason)


def _obstacle(segment: IndexMetadata) -> str | None:
    if len(segment.field_ids) != 1:
        return f"it is built on {len(segment.field_ids)} columns, an index that is read on one"
    if segment.fragment_bitmap is None:
        return "which fragments it covers is not recorded"
    return None
