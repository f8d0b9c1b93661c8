"""What all queries on one vector column of one version share: segments, masks and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
from pyroaring import BitMap

from lance_core.cache.keys import CacheKey
from lance_core.errors import InvalidRequestError
from lance_core.ids import FragmentId
from lance_core.index.candidates import Candidates
from lance_core.index.vector.metric import Metric
from lance_core.io.metering import current_meter
from lance_core.query.coded_vectors import CodedVectors
from lance_core.query.flat_search import scan_vectors
from lance_core.query.listed_rows import ListedRows, list_rows
from lance_core.query.merge import rank_first, within
from lance_core.query.planner import choose_index
from lance_core.query.residency import NotResidentError
from lance_core.query.row_masks import RowMask
from lance_core.query.searchable_rows import SearchableRows, searchable_rows
from lance_core.query.segments import BoundSearch, describe_segments, open_segment
from lance_core.query.stored_vectors import StoredVectors
from lance_core.row_address import ROW_ADDRESS_TOMBSTONE
from lance_core.scan.vector_column import VectorColumn
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import (
        FlatSearch,
        IndexChoice,
        ListedSearch,
        SegmentDescription,
        VectorPlan,
    )
    from lance_core.query.row_filter import RowFilter
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.row_id_index import RowIdIndex
    from lance_core.table.snapshot import Snapshot


# About 20 ms of work on one core.
_LONG_SCAN_FLOATS = 1 << 27
# Rows scored one by one between two looks at the deadline.
_LISTED_FLOATS = 1 << 24


class ColumnSearch:
    """The searchable side of one vector column at one version; shared between threads.

    Making one opens the header of every index segment on the column.

    Parameters
    ----------
    session, snapshot
        Cache and opened files, and the version.
    field
        The column.
    skips_damage
        Take segments whose headers are damaged or missing for such that cannot be used, for queries
        that search no index: their rows are all there.

    Raises
    ------
    CorruptFileError
        A header is damaged or missing.
    """

    def __init__(
        self, session: Session, snapshot: Snapshot, field: LanceField, *, skips_damage: bool = False
    ) -> None:
        self._session = session
        self._snapshot = snapshot
        self._live = BitMap(snapshot.fragments_by_id)
        self.vectors = VectorColumn(session.files, session.cache, snapshot, field)
        self.stored = StoredVectors(session, snapshot, self.vectors)
        self._coded = CodedVectors(session.cache, self.vectors)
        opened = describe_segments(session, snapshot, field, self._live)
        # Segments stay in the cache, not here: what is open must not grow beyond the budget.
        self.descriptions: tuple[SegmentDescription, ...] = tuple(o.description for o in opened)
        self._damage = next((each.damage for each in opened if each.damage is not None), None)
        if self._damage is not None and not skips_damage:
            raise self._damage
        self._metadata = {metadata.uuid: metadata for metadata in snapshot.indices}
        self._choices: dict[tuple[str | None, bool], IndexChoice] = {}
        self._bound: dict[str, ref[BoundSearch]] = {}

    @property
    def is_damaged(self) -> bool:
        """Whether segments were left out because of damage."""
        return self._damage is not None

    def addresses(self, row_ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return where live rows lie, shape ``(n,)``."""
        index = self._row_ids
        return row_ids if index is None else index.find(row_ids)

    @property
    def _row_ids(self) -> RowIdIndex | None:
        if not self._snapshot.has_stable_row_ids:
            return None
        return row_id_index(self._session.files, self._snapshot)

    def choice(self, metric: str | None, *, use_index: bool) -> IndexChoice:
        """Return the index that answers a metric; chosen once, since a version never changes."""
        key = (metric, use_index)
        chosen = self._choices.get(key)
        if chosen is None:
            if self._damage is not None and metric is None and not self._is_metric_known:
                raise self._damage  # by another metric than that of the index would be wrong
            chosen = choose_index(self.descriptions, self._live, metric=metric, use_index=use_index)
            self._choices[key] = chosen
        return chosen

    @property
    def _is_metric_known(self) -> bool:
        return any(each.metric != "" for each in self.descriptions)

    def bound(self, description: SegmentDescription) -> BoundSearch:
        """Return a segment with the mask of its live rows, reading deletion files on first use."""
        known = self._known(description)
        if known is not None:
            current_meter().cache_hits += 1
            return known
        bound = self._session.cache.get_or_load(
            self._bound_key(description), lambda: self._bind(description)
        )
        self._bound[description.uuid] = ref(bound)
        return bound

    def is_bound(self, description: SegmentDescription) -> bool:
        """Tell whether `bound` would read nothing."""
        known = self._known(description)
        return known is not None or self._bound_key(description) in self._session.cache

    def _known(self, description: SegmentDescription) -> BoundSearch | None:
        """Return a segment that is still in memory, without asking the cache.

        Only while the cache is not half full: what it has used last does not matter then.
        """
        known = self._bound.get(description.uuid)
        return None if known is None or self._session.cache.is_half_full else known()

    def _bound_key(self, description: SegmentDescription) -> CacheKey:
        snapshot = self._snapshot
        name = (snapshot.incarnation, description.uuid)
        return CacheKey("bound segment", snapshot.scheduler.store.key, name)

    def _bind(self, description: SegmentDescription) -> BoundSearch:
        metadata = self._metadata[description.uuid]
        segment = open_segment(self._session, self._snapshot, metadata)
        return BoundSearch(self._session, self._snapshot, segment, description)

    def rescore(
        self,
        candidates: Candidates,
        query: NDArray[np.float32],
        metric: str,
        *,
        resident_only: bool,
    ) -> Candidates:
        """Replace distances by exact ones and rank anew; rows without a distance are dropped.

        Parameters
        ----------
        candidates
            Live rows.
        query
            Shape ``(d,)``, or ``(m, d)`` where rows hold lists of vectors; not normalised.
        resident_only
            Raise ``NotResidentError`` unless the vectors are mapped.
        """
        if len(candidates) == 0:
            return candidates
        addresses = self.addresses(candidates.row_ids)
        return self.stored.rank(candidates, addresses, query, metric, resident_only=resident_only)

    def vectors_of(self, row_ids: Sequence[int]) -> list[NDArray[np.float32]]:
        """Return what to search by for each row that a caller names by its id.

        Raises
        ------
        InvalidRequestError
            There is no live row of that id, or it has no vector of finite numbers.
        """
        addresses = self.addresses(np.array(row_ids, np.uint64))
        unknown = np.flatnonzero(addresses == np.uint64(ROW_ADDRESS_TOMBSTONE))
        if len(unknown) > 0:
            raise InvalidRequestError(
                f"version {self._snapshot.version} has no row {row_ids[int(unknown[0])]}"
            )
        return self.stored.vectors_of(addresses, row_ids)

    def search_listed(
        self,
        plan: VectorPlan,
        listed: ListedSearch,
        row_filter: RowFilter,
        query: NDArray[np.float32],
        *,
        deadline: Deadline,
        resident_only: bool,
    ) -> tuple[Candidates, int]:
        """Score the rows that pass a filter one by one; returns those found and how many these are.

        Parameters as `search_flat`.
        """
        cache = self._session.cache
        key = row_filter.key("listed rows", listed.key)
        if resident_only and key not in cache:
            row_filter.require_resident([FragmentId(each) for each in listed.fragments])
        rows: ListedRows = cache.get_or_load(
            key, lambda: list_rows(row_filter, listed, self._row_ids, deadline)
        )
        if resident_only:
            self._require_short(len(rows.addresses), query.size)
        field_id, is_long = self.vectors.field.id, len(rows.addresses) > plan.few_rows
        step = max(1, _LISTED_FLOATS // self.vectors.dimension)  # the same for all queries
        parts = [np.empty(0, np.float32)]
        for start in range(0, len(rows.addresses), step):
            deadline.check("scoring rows")
            scored = self.stored.score(
                rows.addresses[start : start + step],
                query,
                plan.metric,
                resident_only=resident_only,
                key=None
                if is_long
                else CacheKey("listed vectors", key.store, (field_id, key, start)),
            )
            parts.append(scored)
        inside = within(
            Candidates(np.concatenate(parts), rows.row_ids), plan.lower_bound, plan.upper_bound
        )
        return rank_first(inside.distances, inside.row_ids, listed.k), len(rows.addresses)

    def _require_short_scan(self, fragment_ids: Sequence[FragmentId], query_size: int) -> None:
        if not self.vectors.is_resident(fragment_ids):
            raise NotResidentError("vectors of fragments without index have to be read")
        fragments = self._snapshot.fragments_by_id
        num_rows = sum(fragments[each].physical_rows for each in fragment_ids)
        self._require_short(num_rows, query_size)

    def _require_short(self, num_rows: int, query_size: int) -> None:
        if num_rows * query_size > _LONG_SCAN_FLOATS:
            # Short queries must not stand behind it.
            raise NotResidentError("a long exact scan has a queue of its own")

    def search_flat(
        self,
        plan: VectorPlan,
        flat: FlatSearch,
        row_filter: RowFilter | None,
        queries: Sequence[NDArray[np.float32]],
        bounds: Sequence[tuple[float | None, float | None]],
        *,
        deadline: Deadline,
        resident_only: bool,
    ) -> tuple[list[Candidates], int]:
        """Run an exact search; returns the rows found and how many were looked at.

        Parameters
        ----------
        plan
            Metric.
        flat
            What to search.
        row_filter
            Which rows may be found; None = all.
        queries
            Shape ``(d,)`` each, or ``(m, d)`` where rows hold lists of vectors; not normalised.
            There is one result for each.
        bounds
            Of each query: rows are found with ``lower <= distance < upper``, None = no bound.
        deadline
            Looked at between pieces of work.
        resident_only
            Raise ``NotResidentError`` rather than read, or work for long.
        """
        fragment_ids = [FragmentId(each) for each in flat.fragments]
        if resident_only:
            self._require_short_scan(fragment_ids, sum(query.size for query in queries))
        runs = []
        for fragment_id in fragment_ids:
            runs.append(self.vectors.runs(fragment_id))
            deadline.check("reading vectors")
        name = (self._snapshot.incarnation, self.vectors.field.id, flat.key)
        rows: SearchableRows = self._session.cache.get_or_load(
            CacheKey("searchable rows", self._snapshot.scheduler.store.key, name),
            lambda: searchable_rows(self._session.files, self._snapshot, fragment_ids, runs),
        )
        metric = Metric(plan.metric)
        codes = self._coded.find(fragment_ids, runs, metric, deadline)
        found = scan_vectors(
            self.vectors,
            runs,
            rows,
            self._flat_mask(flat, rows, row_filter, deadline, resident_only=resident_only),
            queries,
            metric,
            k=flat.k,
            bounds=bounds,
            codes=codes,
            deadline=deadline,
        )
        return found, rows.num_rows

    def _flat_mask(
        self,
        flat: FlatSearch,
        rows: SearchableRows,
        row_filter: RowFilter | None,
        deadline: Deadline,
        *,
        resident_only: bool,
    ) -> RowMask:
        all_rows = RowMask(rows.words, rows.num_rows)
        if row_filter is None:
            return all_rows
        return row_filter.mask(
            (self.vectors.field.id, flat.key),
            all_rows,
            rows.address_runs,
            [FragmentId(each) for each in flat.fragments],
            deadline,
            resident_only=resident_only,
        )
