"""The inverted indices of a column: opened and described, to choose which of them is searched."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import CorruptFileError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.index.coverage import doubtful_coverage, effective_coverage
from lance_core.index.registry import IndexKind, Unusable, UnusableSegmentError, classify
from lance_core.index.segment_source import SegmentSource
from lance_core.index.text.segment import open_text_segment
from lance_core.query.plan import SegmentDescription
from lance_core.query.row_spaces import row_id_space
from lance_core.query.text_plan import NOT_KEPT_UP
from lance_core.table.frag_reuse import load_frag_reuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.index.text.parameters import TextParameters
    from lance_core.index.text.segment import TextSegment
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.reuse_history import ReuseHistory
    from lance_core.table.snapshot import Snapshot

_KIND = str(IndexKind.INVERTED)
_NO_COVERAGE = "it covers no fragment of this version"
_OTHER_TOKENS = "it makes tokens in another way than another segment of the index"


@dataclass(frozen=True, slots=True, eq=False)
class TextManner:
    """How a segment makes documents of rows and tokens of these; all of an index must agree."""

    parameters: TextParameters
    by_element: bool

    @classmethod
    def of(cls, segment: TextSegment) -> TextManner:
        """Return that of a segment."""
        by_element = any(each.documents.has_elements for each in segment.partitions)
        return cls(segment.parameters, by_element)

    def agrees(self, other: TextManner) -> bool:
        """Tell whether the same texts become the same tokens; blocks and positions may differ."""
        first, second = (
            replace(each.parameters, with_position=False, block_size=128) for each in (self, other)
        )
        return first == second and self.by_element == other.by_element


@dataclass(frozen=True, slots=True)
class OpenedTextSegment:
    """A segment as it is chosen; without ``manner`` if nobody can tell how it makes tokens."""

    description: SegmentDescription
    manner: TextManner | None = None
    has_positions: bool = False


def open_text_segment_of(
    session: Session, snapshot: Snapshot, metadata: IndexMetadata
) -> TextSegment:
    """Open a segment, which all versions that have it share; errors as `open_text_segment`."""
    return open_text_segment(snapshot.index_place(metadata), metadata, session.cache)


def describe_text_segments(
    session: Session, snapshot: Snapshot, field: LanceField, live: BitMap
) -> list[OpenedTextSegment]:
    """Open the segments on a field, and describe those too that cannot be used.

    Parameters
    ----------
    session, snapshot
        Cache, and the version.
    field
        The column.
    live
        Fragments of the version.

    Raises
    ------
    CorruptFileError
        A segment is damaged, or a file of it is missing.
    """
    segments = [
        each for each in snapshot.indices if field.id in each.field_ids and not each.is_system
    ]
    try:
        reuse = load_frag_reuse(session.cache, snapshot) if segments else None
    except UnsupportedFeatureError as error:
        # Nobody can tell where the rows are that their files name.
        return [_unusable(each, str(error)) for each in segments]
    history = None if reuse is None else reuse.history
    found = [_describe(session, snapshot, each, live, history) for each in segments]
    return _agreeing(found)


def _describe(
    session: Session,
    snapshot: Snapshot,
    metadata: IndexMetadata,
    live: BitMap,
    history: ReuseHistory | None,
) -> OpenedTextSegment:
    reason = _obstacle(session, snapshot, metadata)
    if reason is not None:
        return _unusable(metadata, reason)
    coverage = effective_coverage(metadata, live, history)
    coverage -= doubtful_coverage(metadata, live, history)
    try:
        if snapshot.has_stable_row_ids:
            row_id_space(snapshot, coverage)
        segment = open_text_segment_of(session, snapshot, metadata)
    except UnusableSegmentError as error:
        return _unusable(metadata, error.reason)
    except UnsupportedFeatureError as error:
        return _unusable(metadata, str(error))
    except CorruptFileError:
        if coverage:
            raise
        return _unusable(metadata, _NO_COVERAGE)  # it may have no files
    manner = TextManner.of(segment)
    if not coverage:
        reason = f"{_NO_COVERAGE}; {NOT_KEPT_UP}" if manner.by_element else _NO_COVERAGE
        return _unusable(metadata, reason, manner)
    description = SegmentDescription(
        index_name=metadata.name,
        uuid=metadata.uuid,
        kind=_KIND,
        metric="",
        coverage=coverage,
        num_partitions=len(segment.partitions),
        created_at_ms=metadata.created_at_ms,
    )
    has_positions = all(each.has_positions for each in segment.partitions)
    return OpenedTextSegment(description, manner, has_positions)


def _obstacle(session: Session, snapshot: Snapshot, metadata: IndexMetadata) -> str | None:
    kind = classify(metadata)
    if isinstance(kind, Unusable):
        return kind.reason
    if kind is IndexKind.UNTOLD:
        source = SegmentSource(snapshot.index_place(metadata), metadata, session.cache)
        return None if _has_tokens(source) else "its files are of no index of texts"
    return None if kind is IndexKind.INVERTED else f"a {kind} index finds no words"


def _has_tokens(source: SegmentSource) -> bool:
    """Tell whether a segment whose writer did not say what it is looks like an inverted index.

    Releases that left that out wrote no partitions.
    """
    with suppress(ObjectNotFoundError):
        source.open_if_present("tokens.lance")
        return True
    return False


def _agreeing(found: Sequence[OpenedTextSegment]) -> list[OpenedTextSegment]:
    """Leave out segments of an index that differ from its first one in how tokens are made."""
    first: dict[str, TextManner] = {}
    kept = []
    for each in found:
        name = each.description.index_name
        if each.manner is None or each.manner.agrees(first.setdefault(name, each.manner)):
            kept.append(each)
        else:
            kept.append(OpenedTextSegment(replace(each.description, reason=_OTHER_TOKENS)))
    return kept


def _unusable(
    metadata: IndexMetadata, reason: str, manner: TextManner | None = None
) -> OpenedTextSegment:
    description = SegmentDescription(
        index_name=metadata.name,
        uuid=metadata.uuid,
        kind="",
        metric="",
        coverage=BitMap(),
        num_partitions=0,
        created_at_ms=metadata.created_at_ms,
        reason=reason,
    )
    return OpenedTextSegment(description, manner)
