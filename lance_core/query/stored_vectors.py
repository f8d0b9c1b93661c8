"""Exact distances of chosen rows, from their vectors as the table stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.candidates import Candidates
from lance_core.index.ordinals import OrdinalSpace
from lance_core.index.vector.metric import Metric
from lance_core.io.metering import current_meter
from lance_core.kernels.exact import score_rows
from lance_core.kernels.exact_rank import ExactRanking, OrdinalRuns, rank_stored_rows
from lance_core.kernels.memory import address_of
from lance_core.kernels.multivector import score_lists
from lance_core.kernels.row_addresses import FEW_ROWS
from lance_core.query.merge import rank
from lance_core.query.residency import NotResidentError
from lance_core.scan.projection import ProjectedColumn, Projection
from lance_core.scan.take import take_rows
from lance_core.scan.vector_arrays import as_lists, as_vectors

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from lance_core.index.ordinals import RowSpace
    from lance_core.query.session import Session
    from lance_core.scan.vector_column import MappedRuns, VectorColumn
    from lance_core.table.snapshot import Snapshot

_FEW_FRAGMENTS = 16
"""So few that looking at each of their files costs a query little."""


@dataclass(frozen=True, slots=True, eq=False)
class _TakenVectors:
    """Vectors that were read.

    ``rows`` are what kernels score, ``vectors`` where they lie, the same unless rows hold lists.
    ``is_valid`` has shape ``(n,)``, None = every row has a vector.
    """

    rows: NDArray[np.generic]
    vectors: NDArray[np.generic]
    is_valid: NDArray[np.bool_] | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the vectors."""
        tables = 0 if self.rows is self.vectors else self.rows.nbytes
        masks = 0 if self.is_valid is None else self.is_valid.nbytes
        return int(self.vectors.nbytes) + tables + masks


class StoredVectors:
    """The vectors of one column at one version, to score rows one by one.

    They are read where they are mapped; otherwise just those that are asked for are.
    """

    def __init__(self, session: Session, snapshot: Snapshot, column: VectorColumn) -> None:
        self._session = session
        self._snapshot = snapshot
        self._column = column
        self._projection = Projection((ProjectedColumn(column.field.name, column.field),))
        self._ordinal_runs: dict[Hashable, OrdinalRuns] = {}

    def score(
        self,
        addresses: NDArray[np.uint64],
        query: NDArray[np.float32],
        metric: str,
        *,
        resident_only: bool,
        key: Hashable | None = None,
    ) -> NDArray[np.float32]:
        """Return the exact distance of each row, shape ``(n,)``; NaN where there is none.

        Parameters
        ----------
        addresses
            Shape ``(n,)``, not empty: where live rows lie.
        query
            Shape ``(d,)``, or ``(m, d)`` where rows hold lists of vectors; not normalised.
        resident_only
            Raise ``NotResidentError`` rather than read vectors that a later query would find in
            memory or that are not mapped.
        key
            Under which the cache keeps vectors that are read; None = they are not kept.
        """
        own_query, code = np.array(query, np.float32), Metric(metric).code
        located = self._column.pointers(addresses)
        if located is not None:
            current_meter().bytes_read += len(addresses) * self._column.row_bytes
            pointers, owner = located
            distances = score_rows(pointers, own_query, code)
            del owner, located  # they kept the vectors alive until here
            return distances
        taken = self._read(addresses, key, resident_only=resident_only)
        places = np.arange(len(addresses), dtype=np.int64) * self._column.row_bytes
        score = score_lists if self._column.type.is_multi else score_rows
        distances = score(address_of(taken.rows) + places, own_query, code)
        if taken.is_valid is not None:
            distances[~taken.is_valid] = np.nan
        return distances

    def rank(
        self,
        candidates: Candidates,
        addresses: NDArray[np.uint64],
        query: NDArray[np.float32],
        metric: str,
        *,
        resident_only: bool,
    ) -> Candidates:
        """Score candidates, which lie at ``addresses``, and rank them anew; else like `score`.

        Rows without a distance are dropped.
        """
        mapped = None
        if len(addresses) <= FEW_ROWS and not self._column.type.is_multi:
            mapped = self._column.mapped_runs(addresses)
        if mapped is None:
            distances = self.score(addresses, query, metric, resident_only=resident_only)
            return rank(distances, candidates.row_ids)
        row_bytes = self._column.row_bytes
        current_meter().bytes_read += len(addresses) * row_bytes
        own_query, code = np.array(query, np.float32), Metric(metric).code
        rows = (addresses, candidates.row_ids)
        found = rank_stored_rows(*rows, mapped.table, row_bytes, own_query, code)
        del mapped  # it kept the vectors alive until here
        return Candidates(*found)

    def ranking(
        self, space: RowSpace, query: NDArray[np.float32], metric: str
    ) -> ExactRanking | None:
        """Return what ranks rows of a space like `rank` while they are searched for.

        None where that cannot be known without a look at the rows found: their vectors are not all
        mapped, or lie in many files.
        """
        if not isinstance(space, OrdinalSpace) or len(space.fragment_ids) > _FEW_FRAGMENTS:
            return None
        mapped = self._column.held_runs(space.fragment_ids.tolist())
        if mapped is None:
            return None
        runs = self._ordinal_runs.get(space.key)
        if runs is None or runs.owner is not mapped:
            runs = self._ordinal_runs[space.key] = self._number(space, mapped)
        return ExactRanking(runs, np.array(query, np.float32), Metric(metric).code)

    def _number(self, space: OrdinalSpace, mapped: MappedRuns) -> OrdinalRuns:
        runs = [mapped.runs[each] for each in space.fragment_ids.tolist()]
        starts = space.first_ordinals.tolist()
        return OrdinalRuns(
            np.concatenate(
                [each.first_offsets + at for each, at in zip(runs, starts, strict=False)]
            ),
            np.concatenate([each.addresses for each in runs]),
            self._column.row_bytes,
            mapped,
        )

    def vectors_of(
        self, addresses: NDArray[np.uint64], row_ids: Sequence[int]
    ) -> list[NDArray[np.float32]]:
        """Return what to search by for each row.

        That is its vector, shape ``(d,)``, or where rows hold lists all its vectors, ``(m, d)``.

        Raises
        ------
        InvalidRequestError
            A row is not live, has no vector, or one that holds NaN or infinity.
        """
        taken = self._take(addresses, check_live=True)
        found = self._lists_of(taken) if self._column.type.is_multi else list(taken.vectors)
        is_valid = np.ones(len(found), np.bool_) if taken.is_valid is None else taken.is_valid
        queries = [each.astype(np.float32) for each in found]
        for row_id, query, has_vector in zip(row_ids, queries, is_valid.tolist(), strict=True):
            if not has_vector or query.size == 0 or not np.isfinite(query).all():
                raise InvalidRequestError(
                    f"row {row_id} has no vector of finite numbers in column"
                    f' "{self._column.field.name}": it has no neighbours'
                )
        return queries

    def _lists_of(self, taken: _TakenVectors) -> list[NDArray[np.generic]]:
        starts = (taken.rows[:, 0] - address_of(taken.vectors)) // self._column.type.vector_bytes
        lengths = taken.rows[:, 1].tolist()
        return [taken.vectors[start : start + n] for start, n in zip(starts, lengths, strict=True)]

    def _read(
        self, addresses: NDArray[np.uint64], key: Hashable | None, *, resident_only: bool
    ) -> _TakenVectors:
        cache = self._session.cache
        if resident_only and (key is None or key not in cache):
            raise NotResidentError("vectors to score have to be read")
        if key is None:
            return self._take(addresses)
        return cache.get_or_load(key, lambda: self._take(addresses))

    def _take(self, addresses: NDArray[np.uint64], *, check_live: bool = False) -> _TakenVectors:
        files = self._session.files
        rows = take_rows(files, self._snapshot, addresses, self._projection, check_live=check_live)
        array, vector_type = rows.column(0).combine_chunks(), self._column.type
        if vector_type.is_multi:
            vectors, table = as_lists(array, vector_type)
            return _TakenVectors(table, vectors)
        vectors, is_valid = as_vectors(array, vector_type)
        return _TakenVectors(vectors, vectors, is_valid)
