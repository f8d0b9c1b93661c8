"""A segment of an inverted index at one version: which of its documents are rows to be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.cache.keys import CacheKey
from lance_core.ids import FragmentId
from lance_core.index.text.text_hits import DocumentRows
from lance_core.kernels.masks import copy_bits
from lance_core.query.row_masks import RowMask
from lance_core.query.row_spaces import live_rows
from lance_core.row_address import fragment_of
from lance_core.row_set import count, empty_words
from lance_core.table.frag_reuse import load_frag_reuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.ordinals import RowSpace
    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.segment import TextSegment
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import SegmentDescription
    from lance_core.query.row_filter import RowFilter
    from lance_core.query.session import Session
    from lance_core.table.frag_reuse import FragmentReuse
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class DocumentRuns:
    """Documents whose numbers and whose rows' ordinals both count up by one, in runs.

    All have shape ``(r,)`` and dtype int64. Documents of rows outside the space are in none.
    """

    first_docs: NDArray[np.int64]
    lengths: NDArray[np.int64]
    first_ordinals: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Memory of the runs."""
        arrays = (self.first_docs, self.lengths, self.first_ordinals)
        return sum(int(each.nbytes) for each in arrays)

    @classmethod
    def of(cls, row_ids: NDArray[np.uint64], space: RowSpace) -> DocumentRuns:
        """Return the runs of documents by the current ids of their rows, shape ``(n,)``."""
        ordinals = space.to_ordinals(row_ids).astype(np.int64)
        starts = np.flatnonzero(np.diff(ordinals, prepend=-2) != 1)
        lengths = np.diff(starts, append=len(ordinals))
        # The ordinal behind the last one stands for rows outside; no mask has its bit set.
        inside = ordinals[starts] < space.size
        return cls(starts[inside], lengths[inside], ordinals[starts[inside]])

    def of_rows(self, rows: NDArray[np.uint64], num_docs: int) -> RowMask:
        """Return the documents of some rows, these as a dense bitset over ordinals."""
        words = empty_words(num_docs)
        copy_bits(rows, self.first_ordinals, self.lengths, self.first_docs, words)
        return RowMask(words, count(words))


class TextDocuments:
    """A segment with the rows that it may find at one version; kept in the cache.

    Parameters
    ----------
    session, snapshot
        Cache and opened files, and the version.
    segment
        The segment.
    description
        Its coverage.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        segment: TextSegment,
        description: SegmentDescription,
    ) -> None:
        self._cache = session.cache
        self._fragment_ids = [FragmentId(each) for each in description.coverage]
        self._uuid = description.uuid
        self._name = (snapshot.incarnation, description.uuid)
        self._store = snapshot.scheduler.store.key
        self._deleted = None if snapshot.has_stable_row_ids else segment.deleted_fragments
        self._space, words, self._runs = live_rows(session.files, snapshot, self._fragment_ids)
        self._live = RowMask(words, count(words))
        self._reuse = load_frag_reuse(session.cache, snapshot)

    @property
    def nbytes(self) -> int:
        """Memory of the bitset of live rows, and of where they lie."""
        return self._live.nbytes + self._runs.nbytes

    def rows(
        self,
        partition: TextPartition,
        row_filter: RowFilter | None,
        deadline: Deadline,
        *,
        resident_only: bool,
    ) -> DocumentRows:
        """Return the rows of a partition's documents, and which of these may be found.

        Parameters
        ----------
        partition
            Of the segment.
        row_filter
            The prefilter; None = all live rows may be found.
        deadline
            Looked at while rows are judged.
        resident_only
            Raise ``NotResidentError`` rather than judge rows.
        """
        row_ids = self._row_ids(partition)
        documents = self._live_documents(partition)
        if row_filter is not None:
            rows = row_filter.mask(
                self._uuid,
                self._live,
                self._runs,
                self._fragment_ids,
                deadline,
                resident_only=resident_only,
            )
            documents = self._cache.get_or_load(
                row_filter.key("documents", self._uuid, partition.partition_id),
                lambda: self._documents_of(partition, rows),
            )
        is_whole = documents.num_rows == partition.num_docs
        return DocumentRows(row_ids, None if is_whole else documents.words)

    def holds(self, partition: TextPartition) -> bool:
        """Tell whether `rows` would read nothing of files."""
        reuse = self._reuse
        if self._live_key(partition) not in self._cache:
            return False
        if reuse is None:
            return partition.documents.holds_row_ids
        return self._moved_key(partition, reuse) in self._cache

    def _row_ids(self, partition: TextPartition) -> NDArray[np.uint64]:
        """Return the current ids of the rows of documents, shape ``(n,)``."""
        stored = partition.documents.row_ids
        reuse = self._reuse
        if reuse is None:
            return stored()
        return self._cache.get_or_load(
            self._moved_key(partition, reuse),
            lambda: reuse.addresses.map_addresses(stored()),
        )

    @staticmethod
    def _moved_key(partition: TextPartition, reuse: FragmentReuse) -> CacheKey:
        return partition.source.key("text rows", partition.partition_id, reuse.uuid)

    def _live_key(self, partition: TextPartition) -> CacheKey:
        return CacheKey("live documents", self._store, (*self._name, partition.partition_id))

    def _live_documents(self, partition: TextPartition) -> RowMask:
        return self._cache.get_or_load(
            self._live_key(partition), lambda: self._documents_of(partition, self._live)
        )

    def _documents_of(self, partition: TextPartition, rows: RowMask) -> RowMask:
        return self._document_runs(partition).of_rows(rows.words, partition.num_docs)

    def _document_runs(self, partition: TextPartition) -> DocumentRuns:
        reuse_key = None if self._reuse is None else self._reuse.uuid
        key = partition.source.key(
            "document runs", partition.partition_id, self._space.key, reuse_key
        )
        return self._cache.get_or_load(key, lambda: self._find_runs(partition))

    def _find_runs(self, partition: TextPartition) -> DocumentRuns:
        row_ids = self._row_ids(partition)
        if self._deleted is not None and len(self._deleted) > 0:
            # These were taken out of the index; what their files still say counts no more.
            fragments = fragment_of(partition.documents.row_ids())
            gone = np.isin(fragments, np.array(list(self._deleted), np.uint32))
            row_ids = np.where(gone, np.uint64(2**64 - 1), row_ids)
        return DocumentRuns.of(row_ids, self._space)
