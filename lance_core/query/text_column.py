"""What the text queries on one column share at one version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.cache.keys import CacheKey
from lance_core.errors import InvalidRequestError
from lance_core.index.text.parameters import given_parameters
from lance_core.index.text.positions import NEEDS_POSITIONS
from lance_core.query.planner import choose_index
from lance_core.query.text_documents import TextDocuments
from lance_core.query.text_rows import text_projection
from lance_core.query.text_segments import (
    TextManner,
    describe_text_segments,
    open_text_segment_of,
)

if TYPE_CHECKING:
    from lance_core.index.text.segment import TextSegment
    from lance_core.query.plan import IndexChoice, SegmentDescription
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.snapshot import Snapshot

UNINDEXED = TextManner(
    given_parameters(
        dict.fromkeys(("lower_case", "stem", "remove_stop_words", "ascii_folding"), False)
        | {"max_token_length": None}
    ),
    by_element=False,
)
"""How texts of a column are searched that has no index (scalar index page, 8.7)."""


class TextColumn:
    """The inverted indices of a column, and the one of them that is searched.

    Making one opens every segment on the column.

    Parameters
    ----------
    session, snapshot
        Cache and opened files, and the version.
    path
        The column.
    field
        Its field.

    Raises
    ------
    TypeMismatchError
        It holds no texts.
    CorruptFileError
        A segment is damaged, or a file of it is missing.
    """

    def __init__(self, session: Session, snapshot: Snapshot, path: str, field: LanceField) -> None:
        self.path = path
        self.projection = text_projection(snapshot, path)
        self._session = session
        self._snapshot = snapshot
        self._live = BitMap(snapshot.fragments_by_id)
        self._opened = describe_text_segments(session, snapshot, field, self._live)
        self._metadata = {metadata.uuid: metadata for metadata in snapshot.indices}
        self._choices: dict[bool, IndexChoice] = {}
        self.manner = self._find_manner()

    @property
    def is_indexed(self) -> bool:
        """Whether there is an inverted index on the column, usable or not."""
        return any(each.manner is not None for each in self._opened)

    def choice(self, *, use_index: bool) -> IndexChoice:
        """Return the index that is searched, and the fragments that it leaves to be read.

        It is chosen once: a version never changes.
        """
        known = self._choices.get(use_index)
        if known is None:
            descriptions = [each.description for each in self._opened]
            known = choose_index(descriptions, self._live, metric=None, use_index=use_index)
            self._choices[use_index] = known
        return known

    def require_positions(self, *, use_index: bool) -> None:
        """Raise ``InvalidRequestError`` if the index that is searched cannot answer a phrase."""
        used = {each.uuid for each in self.choice(use_index=use_index).segments}
        if any(each.description.uuid in used and not each.has_positions for each in self._opened):
            raise InvalidRequestError(NEEDS_POSITIONS)

    def segment(self, description: SegmentDescription) -> TextSegment:
        """Return an opened segment."""
        metadata = self._metadata[description.uuid]
        return open_text_segment_of(self._session, self._snapshot, metadata)

    def documents(self, description: SegmentDescription) -> TextDocuments:
        """Return a segment with its rows; reads deletion files on first use."""
        return self._session.cache.get_or_load(
            self._documents_key(description), lambda: self._bind(description)
        )

    def has_documents(self, description: SegmentDescription) -> bool:
        """Tell whether `documents` would read nothing."""
        return self._documents_key(description) in self._session.cache

    def _documents_key(self, description: SegmentDescription) -> CacheKey:
        snapshot = self._snapshot
        name = (snapshot.incarnation, description.uuid)
        return CacheKey("bound text segment", snapshot.scheduler.store.key, name)

    def _bind(self, description: SegmentDescription) -> TextDocuments:
        segment = self.segment(description)
        return TextDocuments(self._session, self._snapshot, segment, description)

    def _find_manner(self) -> TextManner:
        """Return how tokens are made: as in the index that is searched, or any that there is."""
        used = {each.uuid for each in self.choice(use_index=True).segments}
        manners = [each.manner for each in self._opened if each.description.uuid in used]
        manners += [each.manner for each in self._opened]
        return next((each for each in manners if each is not None), UNINDEXED)
