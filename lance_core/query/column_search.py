"""What all queries on one vector column of one version share: segments, masks and vectors."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.ids import FragmentId
from lance_core.index.vector.metric import Metric
from lance_core.io.metering import current_meter
from lance_core.kernels.exact import score_rows
from lance_core.kernels.memory import address_of
from lance_core.query.flat_search import scan_vectors
from lance_core.query.merge import rank
from lance_core.query.planner import choose_index
from lance_core.query.residency import NotResidentError
from lance_core.query.searchable_rows import SearchableRows, searchable_rows
from lance_core.query.segments import BoundSearch, describe_segments
from lance_core.scan.projection import ProjectedColumn, Projection
from lance_core.scan.take import take_rows
from lance_core.scan.vector_column import VectorColumn, as_vectors
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.candidates import Candidates
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import FlatSearch, IndexChoice, SegmentDescription
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.snapshot import Snapshot


# About 20 ms of work on one core.
_LONG_SCAN_FLOATS = 1 << 27


class ColumnSearch:
    """The searchable side of one vector column at one version; shared between threads.

    Making one opens the header of every index segment on the column.
    """

    def __init__(self, session: Session, snapshot: Snapshot, field: LanceField) -> None:
        self._session = session
        self._snapshot = snapshot
        self._live = BitMap(snapshot.fragments_by_id)
        self.vectors = VectorColumn(session.files, session.cache, snapshot, field)
        self._projection = Projection((ProjectedColumn(field.name, field),))
        opened = describe_segments(session, snapshot, field, self._live)
        self.descriptions: tuple[SegmentDescription, ...] = tuple(d for d, _ in opened)
        self._segments = {d.uuid: segment for d, segment in opened if segment is not None}
        self._bound: dict[str, BoundSearch] = {}
        self._choices: dict[tuple[str | None, bool], IndexChoice] = {}
        self._lock = Lock()
        self._row_ids = (
            row_id_index(session.files, snapshot) if snapshot.has_stable_row_ids else None
        )
        self._check_dimensions(field)

    def _check_dimensions(self, field: LanceField) -> None:
        for segment in self._segments.values():
            if segment.dimension != self.vectors.dimension:
                raise CorruptFileError(
                    segment.storage.reader.path,
                    f'the index has {segment.dimension} dimensions, column "{field.name}" has'
                    f" {self.vectors.dimension}",
                )

    def addresses(self, row_ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return where live rows lie, shape ``(n,)``."""
        return row_ids if self._row_ids is None else self._row_ids.find(row_ids)

    def choice(self, metric: str | None, *, use_index: bool) -> IndexChoice:
        """Return the index that answers a metric; chosen once, since a version never changes."""
        key = (metric, use_index)
        chosen = self._choices.get(key)
        if chosen is None:
            chosen = choose_index(self.descriptions, self._live, metric=metric, use_index=use_index)
            self._choices[key] = chosen
        return chosen

    def bound(self, description: SegmentDescription) -> BoundSearch:
        """Return a segment with the mask of its live rows, reading deletion files on first use."""
        found = self._bound.get(description.uuid)
        if found is None:
            fresh = BoundSearch(
                self._session, self._snapshot, self._segments[description.uuid], description
            )
            with self._lock:
                found = self._bound.setdefault(description.uuid, fresh)
        return found

    def is_bound(self, description: SegmentDescription) -> bool:
        """Tell whether `bound` would read nothing."""
        return description.uuid in self._bound

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
            Shape ``(d,)``, not normalised.
        resident_only
            Raise ``NotResidentError`` unless the vectors are mapped.
        """
        if len(candidates) == 0:
            return candidates
        addresses = self.addresses(candidates.row_ids)
        located = self.vectors.pointers(addresses)
        if located is None:
            if resident_only:
                raise NotResidentError("vectors to re-rank have to be read")
            located = self._taken(addresses)
        else:
            current_meter().bytes_read += len(addresses) * self.vectors.row_bytes
        pointers, owner = located
        distances = score_rows(pointers, np.array(query, np.float32), Metric(metric).code)
        del owner, located  # they kept the vectors alive until here
        return rank(distances, candidates.row_ids)

    def _taken(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.int64], object]:
        """Read vectors of rows; returns where each lies and what keeps them alive."""
        rows = take_rows(self._session.files, self._snapshot, addresses, self._projection)
        vectors, is_valid = as_vectors(rows.column(0).combine_chunks(), self.vectors.dimension)
        if is_valid is not None:
            vectors[~is_valid] = np.nan
        places = np.arange(len(vectors), dtype=np.int64) * self.vectors.row_bytes
        return address_of(vectors) + places, vectors

    def _require_short_scan(self, fragment_ids: Sequence[FragmentId]) -> None:
        if not self.vectors.is_resident(fragment_ids):
            raise NotResidentError("vectors of fragments without index have to be read")
        fragments = self._snapshot.fragments_by_id
        num_rows = sum(fragments[each].physical_rows for each in fragment_ids)
        if num_rows * self.vectors.dimension > _LONG_SCAN_FLOATS:
            # Short queries must not stand behind it.
            raise NotResidentError("a long exact scan has a queue of its own")

    def search_flat(
        self,
        flat: FlatSearch,
        query: NDArray[np.float32],
        metric: str,
        *,
        bounds: tuple[float | None, float | None],
        deadline: Deadline,
        resident_only: bool,
    ) -> tuple[Candidates, int]:
        """Run an exact search; returns the rows found and how many were scored."""
        fragment_ids = [FragmentId(each) for each in flat.fragments]
        if resident_only:
            self._require_short_scan(fragment_ids)
        runs = []
        for fragment_id in fragment_ids:
            runs.append(self.vectors.runs(fragment_id))
            deadline.check("reading vectors")
        rows: SearchableRows = self._session.cache.get_or_load(
            ("searchable rows", self._snapshot.incarnation, self.vectors.field.id, flat.key),
            lambda: searchable_rows(self._session.files, self._snapshot, fragment_ids, runs),
        )
        found = scan_vectors(
            self.vectors,
            runs,
            rows,
            query,
            Metric(metric),
            k=flat.k,
            bounds=bounds,
            deadline=deadline,
        )
        return found, rows.num_rows
