"""When the vectors of exact scans are coded, and which codes a scan may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.cache.keys import CacheKey
from lance_core.cache.shares import most_bytes_of_codes
from lance_core.kernels.memory import address_of
from lance_core.kernels.vector_codes import MOST_DIMENSIONS
from lance_core.scan.vector_codes import VectorCodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.ids import FragmentId
    from lance_core.index.vector.metric import Metric
    from lance_core.query.deadline import Deadline
    from lance_core.query.searchable_rows import VectorPages
    from lance_core.scan.vector_column import VectorColumn, VectorRuns

# Numbers from which on a scan takes long enough (50 microseconds) to be worth it.
_FEWEST_NUMBERS = 1 << 19
# So many for each fragment too: asking for its codes takes as long as scoring a tenth of that.
_FEWEST_IN_FRAGMENT = 1 << 16


class CodeTable:
    """Codes of some fragments as the scan takes them; keeps their memory alive.

    Parameters
    ----------
    codes
        Those of each fragment, None for one that is scanned without.
    """

    def __init__(self, codes: Sequence[VectorCodes | None]) -> None:
        self._codes = codes
        self._places: NDArray[np.int64] = np.zeros((len(codes), 4), np.int64)
        self.grids: NDArray[np.float64] = np.zeros((len(codes), 4), np.float64)
        for fragment, each in enumerate(codes):
            if each is not None and each.grid is not None:
                places = address_of(each.first), address_of(each.rest)
                self._places[fragment] = (*places, each.first.shape[1], each.rest.shape[1])
                self.grids[fragment] = each.grid

    def of_pages(self, pages: VectorPages) -> NDArray[np.int64]:
        """Return the table of pages that `scan_coded_pages` takes; grids are those of fragments."""
        places = self._places[pages.fragments]
        places[:, :2] += places[:, 2:] * pages.first_offsets[:, np.newaxis]
        found = np.zeros((len(places), 7), np.int64)
        found[:, 0] = pages.addresses
        found[:, 1] = pages.num_rows
        found[:, 2] = pages.first_ordinals
        found[:, 4:6] = places[:, :2]
        found[:, 6] = pages.fragments
        return found


class CodedVectors:
    """Codes of the vectors of one column at one version; shared between threads.

    They belong to the files, so that versions that have these in common share them.
    """

    def __init__(self, cache: ByteCache, column: VectorColumn) -> None:
        self._cache = cache
        self._column = column
        self._most_bytes = most_bytes_of_codes(cache)

    def find(
        self,
        fragment_ids: Sequence[FragmentId],
        runs: Sequence[VectorRuns],
        metric: Metric,
        deadline: Deadline,
    ) -> CodeTable | None:
        """Return the codes of fragments that have some, None when none has.

        What is missing is made, in steps that take as long as the scan.

        Parameters
        ----------
        runs
            The vectors of the fragments.
        """
        coded_for = metric.coded_for
        if coded_for is None or not self._is_worth_it(runs):
            return None
        codes = [
            self._codes(each, its_runs, coded_for, deadline)
            for each, its_runs in zip(fragment_ids, runs, strict=True)
        ]
        return None if all(each is None for each in codes) else CodeTable(codes)

    def _is_worth_it(self, runs: Sequence[VectorRuns]) -> bool:
        column = self._column
        if column.type.is_multi:
            return False
        numbers = sum(each.num_vectors for each in runs) * column.dimension
        is_small = column.dimension <= MOST_DIMENSIONS and numbers <= self._most_bytes
        return is_small and numbers >= max(_FEWEST_NUMBERS, len(runs) * _FEWEST_IN_FRAGMENT)

    def _codes(
        self, fragment_id: FragmentId, runs: VectorRuns, metric: Metric, deadline: Deadline
    ) -> VectorCodes | None:
        _, store, name = self._column.key(fragment_id)
        key = CacheKey("vector codes", store, (name, metric))
        codes = self._cache.get_or_load(
            key, lambda: VectorCodes(runs, self._column.dimension, metric.code)
        )
        if not codes.are_of(runs):
            self._cache.discard([key])
            return None
        codes.advance(lambda: deadline.check("coding vectors"))
        return None if codes.grid is None else codes
