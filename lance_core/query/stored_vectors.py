"""Exact distances of chosen rows, from their vectors as the table stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.metric import Metric
from lance_core.io.metering import current_meter
from lance_core.kernels.exact import score_rows
from lance_core.kernels.memory import address_of
from lance_core.query.residency import NotResidentError
from lance_core.scan.projection import ProjectedColumn, Projection
from lance_core.scan.take import take_rows
from lance_core.scan.vector_column import as_vectors

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from lance_core.query.session import Session
    from lance_core.scan.vector_column import VectorColumn
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class _TakenVectors:
    """Vectors that were read, shape ``(n, d)``; a row without one is NaN."""

    vectors: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """Memory of the vectors."""
        return int(self.vectors.nbytes)


class StoredVectors:
    """The vectors of one column at one version, to score rows one by one.

    They are read where they are mapped; otherwise just those that are asked for are.
    """

    def __init__(self, session: Session, snapshot: Snapshot, column: VectorColumn) -> None:
        self._session = session
        self._snapshot = snapshot
        self._column = column
        self._projection = Projection((ProjectedColumn(column.field.name, column.field),))

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
            Shape ``(d,)``, not normalised.
        resident_only
            Raise ``NotResidentError`` rather than read vectors that a later query would find in
            memory or that are not mapped.
        key
            Under which the cache keeps vectors that are read; None = they are not kept.
        """
        located = self._column.pointers(addresses)
        if located is None:
            located = self._read_and_locate(addresses, key, resident_only=resident_only)
        else:
            current_meter().bytes_read += len(addresses) * self._column.row_bytes
        pointers, owner = located
        distances = score_rows(pointers, np.array(query, np.float32), Metric(metric).code)
        del owner, located  # they kept the vectors alive until here
        return distances

    def vectors_of(
        self, addresses: NDArray[np.uint64], row_ids: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return the vectors of rows, shape ``(n, d)``, as vectors to search by.

        Raises
        ------
        InvalidRequestError
            A row is not live, has no vector, or one that holds NaN or infinity.
        """
        vectors = self._take(addresses, check_live=True).vectors
        unfit = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(unfit) > 0:
            raise InvalidRequestError(
                f"row {row_ids[int(unfit[0])]} has no vector of finite numbers in column"
                f' "{self._column.field.name}": it has no neighbours'
            )
        return vectors

    def _read_and_locate(
        self, addresses: NDArray[np.uint64], key: Hashable | None, *, resident_only: bool
    ) -> tuple[NDArray[np.int64], object]:
        cache = self._session.cache
        if resident_only and (key is None or key not in cache):
            raise NotResidentError("vectors to score have to be read")
        if key is None:
            taken = self._take(addresses)
        else:
            taken = cache.get_or_load(key, lambda: self._take(addresses))
        places = np.arange(len(addresses), dtype=np.int64) * self._column.row_bytes
        return address_of(taken.vectors) + places, taken

    def _take(self, addresses: NDArray[np.uint64], *, check_live: bool = False) -> _TakenVectors:
        files = self._session.files
        rows = take_rows(files, self._snapshot, addresses, self._projection, check_live=check_live)
        vectors, is_valid = as_vectors(rows.column(0).combine_chunks(), self._column.dimension)
        if is_valid is not None:
            vectors[~is_valid] = np.nan
        return _TakenVectors(vectors)
