"""Ranking rows that hold lists of vectors by what an index finds for each vector of a query.

An index holds every vector of a list by itself. The nearest vectors of each query vector say how
similar the rows are that they belong to; of a row that they leave out no more is known than that it
is at most as similar as the last of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.candidates import Candidates
from lance_core.query.merge import NO_CANDIDATES, rank_first

if TYPE_CHECKING:
    from collections.abc import Sequence

HITS_PER_ROW = 10
"""Nearest vectors looked at for each row wanted, as many as pylance 14.0.2 does."""


def nearest_hits(hits: Candidates) -> Candidates:
    """Keep the nearest hit of each row; the order stays."""
    _, first = np.unique(hits.row_ids, return_index=True)
    first.sort()
    return Candidates(hits.distances[first], hits.row_ids[first])


def rank_by_hits(hits: Sequence[Candidates], k: int) -> Candidates:
    """Rank rows by the hits of all vectors of a query.

    Parameters
    ----------
    hits
        Of each query vector the nearest vectors, nearest first; a row occurs once for each of its
        vectors among them. Distances are those of a cosine index.
    k
        Rows to keep.

    Returns
    -------
    Candidates
        The number of query vectors less the sum of the similarities ``1 - distance``. A query
        vector whose hits leave a row out adds the similarity of its last hit.

    Notes
    -----
    Vector index page, section 7.7. Quantised cosine distances are twice as large as exact ones, and
    so are these, as in pylance 14.0.2.
    """
    found = np.concatenate([np.empty(0, np.uint64), *(each.row_ids for each in hits)])
    if len(found) == 0:
        return NO_CANDIDATES
    row_ids = np.unique(found)
    total = np.zeros(len(row_ids), np.float64)
    for of_vector in hits:
        if len(of_vector) > 0:
            missed = 1 - np.float64(of_vector.distances[-1])
            own = nearest_hits(of_vector)
            total += missed
            total[np.searchsorted(row_ids, own.row_ids)] += 1 - own.distances - missed
    return rank_first((len(hits) - total).astype(np.float32), row_ids, k)
