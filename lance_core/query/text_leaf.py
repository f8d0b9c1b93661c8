"""Searching the tokens of one text: in the segments of an index, and in texts that none covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.ids import FragmentId
from lance_core.index.text.combined_fields import (
    Field,
    IndexedTexts,
    ReadTexts,
    distinct_tokens,
    score_fields,
)
from lance_core.index.text.flat_scorer import FlatScorer
from lance_core.index.text.held import is_held
from lance_core.index.text.queries import CombinedFieldsQuery, MatchQuery
from lance_core.index.text.search import search_match, search_phrase
from lance_core.index.text.statistics import NO_MORE
from lance_core.index.text.text_hits import DocumentRows, TextHits, merged
from lance_core.query.residency import NotResidentError
from lance_core.query.text_elements import ListElements, elements_of
from lance_core.query.text_rows import passing_rows, texts_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.index.text.combined_fields import FieldTexts
    from lance_core.index.text.queries import PhraseQuery
    from lance_core.index.text.search import Part
    from lance_core.index.text.statistics import MoreTexts
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import SegmentDescription, TextLeaf
    from lance_core.query.row_filter import RowFilter
    from lance_core.query.session import Session
    from lance_core.query.stats import SearchTally
    from lance_core.query.text_prepare import PreparedText
    from lance_core.table.snapshot import Snapshot


class LeafSearch:
    """Answers the searches of one run of a plan; belongs to one thread.

    Parameters
    ----------
    session, snapshot
        Cache and opened files, and the version.
    prepared
        The plan, its columns, and which rows may be found.
    deadline
        Looked at between pieces of work.
    tally
        Receives what is done.
    resident_only
        Raise ``NotResidentError`` rather than read.

    Attributes
    ----------
    elements
        What row ids in hits stand for where each element of a list is found by itself.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        prepared: PreparedText,
        *,
        deadline: Deadline,
        tally: SearchTally,
        resident_only: bool,
    ) -> None:
        self.elements = ListElements()
        self._session = session
        self._snapshot = snapshot
        self._columns = prepared.columns
        self._row_filter = prepared.parts.row_filter
        self._sources = {each.column: each for each in prepared.plan.sources}
        self._deadline = deadline
        self._tally = tally
        self._resident_only = resident_only
        self._by_element = prepared.plan.by_element
        self._numbers_read: dict[int, NDArray[np.uint64]] = {}
        self._bound: dict[tuple[str, bool], list[Part]] = {}

    def find(self, leaf: TextLeaf, k: int | None) -> TextHits:
        """Return the best ``k`` rows of a search, best first, ties by row id; None = all."""
        query = leaf.query
        if isinstance(query, CombinedFieldsQuery):
            return self._combined(query, k)
        (name,) = leaf.columns
        if not self._sources[name].flat:
            return self._search(query, name, k, NO_MORE)
        scorer = self._read(query, name)
        # Observed with pylance 14.0.2: only where elements are documents the statistics of those
        # that an index holds change with others.
        more = scorer.counts if self._by_element else NO_MORE
        indexed = self._search(query, name, k, more)
        partitions = [partition for partition, _ in self._parts(name, self._row_filter)]
        return merged([indexed, scorer.hits(partitions, k, self._check)], k)

    def _combined(self, query: CombinedFieldsQuery, k: int | None) -> TextHits:
        """Search several columns taken as one."""
        if self._resident_only:
            raise NotResidentError("posting lists of several columns take long to put together")
        tokens = {
            name: distinct_tokens(query.text, self._columns[name].manner.parameters)
            for name in query.columns
        }
        if len({len(each) for each in tokens.values()}) > 1:
            raise InvalidRequestError(
                f"columns {', '.join(query.columns)} are indexed with other tokens each: they"
                " cannot be taken as one"
            )
        boosts = [1.0] * len(query.columns) if query.boosts is None else query.boosts
        fields = [
            Field(boost, self._field_texts(name, tokens[name]))
            for name, boost in zip(query.columns, boosts, strict=True)
        ]
        hits = score_fields(fields, needs_all=query.operator == "and", check=self._check)
        searched = BitMap.intersection(*(self._searched(name) for name in query.columns))
        kept = passing_rows(
            self._session.files,
            self._snapshot,
            hits.row_ids,
            searched,
            self._row_filter,
            self._deadline,
        )
        num_postings = sum(
            int(texts.document_frequencies.sum()) for field in fields for texts in field.texts
        )
        return TextHits(hits.row_ids[kept][:k], hits.scores[kept][:k], num_postings)

    def _field_texts(self, name: str, tokens: Sequence[str]) -> list[FieldTexts]:
        """Return the texts of a column, all of them: a prefilter does not change statistics."""
        found: list[FieldTexts] = [IndexedTexts(self._parts(name, None), tokens, self._check)]
        if self._sources[name].flat:
            read = ReadTexts(self._columns[name].manner.parameters, tokens)
            for texts, row_ids in self._texts(name, None):
                read.add(texts, row_ids)
            found.append(read)
        return found

    def _searched(self, name: str) -> BitMap:
        """Return the fragments in which a column is looked at."""
        source = self._sources[name]
        return BitMap.union(source.flat, *(each.coverage for each in source.segments))

    def _search(
        self, query: MatchQuery | PhraseQuery, name: str, k: int | None, more: MoreTexts
    ) -> TextHits:
        """Search the index on a column."""
        parts = self._parts(name, self._row_filter)
        self._tally.partitions_probed += len(parts)
        self._tally.partitions_total += len(parts)
        parameters = self._columns[name].manner.parameters
        partitions = [partition for partition, _ in parts]
        if self._resident_only and not is_held(partitions, parameters, query):
            raise NotResidentError("posting lists have to be read")
        if isinstance(query, MatchQuery):
            return search_match(parts, parameters, query, k, self._check, more)
        return search_phrase(parts, parameters, query, k, self._check, more)

    def _read(self, query: MatchQuery | PhraseQuery, name: str) -> FlatScorer:
        """Look through the texts that the index on a column does not cover."""
        parameters = self._columns[name].manner.parameters
        scorer = FlatScorer(parameters, query, counts_empty=self._by_element)
        for place, (texts, row_ids) in enumerate(self._texts(name, self._row_filter)):
            if self._by_element:
                scorer.add(*self._elements_read(place, texts, row_ids))
            else:
                scorer.add(texts, row_ids)
        return scorer

    def _elements_read(
        self, place: int, lists: pa.Array, row_ids: NDArray[np.uint64]
    ) -> tuple[pa.Array, NDArray[np.uint64]]:
        """Return the elements of some lists, and the numbers that they have in all searches."""
        texts, owners, elements = elements_of(lists, row_ids)
        known = self._numbers_read.get(place)
        if known is None:
            known = self._numbers_read[place] = self.elements.numbered(owners, elements)
        return texts, known

    def _texts(
        self, name: str, row_filter: RowFilter | None
    ) -> Iterator[tuple[pa.Array, NDArray[np.uint64]]]:
        """Read the texts of a column that no index covers, and the ids of their rows."""
        if self._resident_only:
            raise NotResidentError("texts without index have to be read")
        for texts, row_ids in texts_of_rows(
            self._session.files,
            self._snapshot,
            self._columns[name].projection,
            [FragmentId(each) for each in self._sources[name].flat],
            row_filter,
            self._deadline,
        ):
            self._tally.rows_scanned_flat += len(row_ids)
            yield texts, row_ids

    def _check(self) -> None:
        self._deadline.check("searching texts")

    def _parts(self, name: str, row_filter: RowFilter | None) -> Sequence[Part]:
        """Return the partitions of the index on a column, and which of their rows may be found."""
        key = (name, row_filter is None)
        known = self._bound.get(key)
        if known is None:
            known = self._bound[key] = [
                part
                for segment in self._sources[name].segments
                for part in self._parts_of(name, segment, row_filter)
            ]
        return known

    def _parts_of(
        self, name: str, segment: SegmentDescription, row_filter: RowFilter | None
    ) -> Iterator[Part]:
        column = self._columns[name]
        if self._resident_only and not column.has_documents(segment):
            raise NotResidentError("deletion files have to be read")
        documents = column.documents(segment)
        for partition in column.segment(segment).partitions:
            if self._resident_only and not documents.holds(partition):
                raise NotResidentError("rows of documents have to be read")
            rows = documents.rows(
                partition, row_filter, self._deadline, resident_only=self._resident_only
            )
            if self._by_element:
                elements = partition.documents.elements()
                rows = DocumentRows(self.elements.numbered(rows.row_ids, elements), rows.live)
            yield partition, rows
