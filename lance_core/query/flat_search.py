"""Exact search over the fragments that no index segment covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.candidates import Candidates
from lance_core.kernels.coded_scan import scan_coded_pages
from lance_core.kernels.exact import scan_pages
from lance_core.kernels.exact_batch import scan_pages_for_all
from lance_core.kernels.multivector import scan_lists
from lance_core.kernels.topk import TopRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.metric import Metric
    from lance_core.query.coded_vectors import CodeTable
    from lance_core.query.deadline import Deadline
    from lance_core.query.row_masks import RowMask
    from lance_core.query.searchable_rows import SearchableRows
    from lance_core.scan.vector_column import VectorColumn, VectorRuns

# About 10 ms of work on one core: 20 ns per row of 128 dimensions.
_PIECE_FLOATS = 1 << 26
_QUERIES_PER_PASS = 16
# Best rows of all queries of a pass, for the memory that they take.
_KEPT_ROWS = 1 << 20


def scan_vectors(
    column: VectorColumn,
    runs: Sequence[VectorRuns],
    rows: SearchableRows,
    mask: RowMask,
    queries: Sequence[NDArray[np.float32]],
    metric: Metric,
    *,
    k: int,
    bounds: Sequence[tuple[float | None, float | None]],
    codes: CodeTable | None,
    deadline: Deadline,
) -> list[Candidates]:
    """Find the nearest ``k`` of searchable rows inside the bounds, for each query.

    Parameters
    ----------
    runs
        The vectors of the fragments of ``rows``, in their order.
    mask
        Those of ``rows`` that may be found.
    queries
        Shape ``(d,)`` each, or ``(m, d)`` where rows hold lists; not normalised. Some at a time
        share one pass over the vectors.
    bounds
        The range of distances of each query, see `TopRows`.
    codes
        What tells which vectors have to be scored, of the fragments of ``runs``; None = all have.
    """
    pages = rows.pages(runs, column.row_bytes)
    num_vectors = sum(each.num_vectors for each in runs)
    vectors_per_row = max(1, num_vectors // max(1, sum(int(each.num_rows.sum()) for each in runs)))
    found = []
    at_once = max(1, min(_QUERIES_PER_PASS, _KEPT_ROWS // max(k, 1)))
    if column.type.is_multi:
        at_once = 1  # their vectors share the pass
    for start in range(0, len(queries), at_once):
        some = np.array(queries[start : start + at_once], np.float32)
        its_bounds = bounds[start : start + at_once]
        tops = [TopRows(k, mask.num_rows, lower, upper) for lower, upper in its_bounds]
        max_rows = max(1, _PIECE_FLOATS // (some.size * vectors_per_row))
        for piece in pages.pieces(max_rows, column.row_bytes):
            deadline.check("scanning vectors")
            where = (piece.addresses, piece.num_rows, piece.first_ordinals)
            if codes is not None:
                coded = codes.of_pages(piece)
                scan_coded_pages(coded, codes.grids, some, metric.code, mask.words, tops)
            elif column.type.is_multi:
                scan_lists(*where, some[0], metric.code, mask.words, tops[0])
            elif len(some) == 1:
                scan_pages(*where, some[0], metric.code, mask.words, tops[0])
            else:
                scan_pages_for_all(*where, some, metric.code, mask.words, tops)
        for top in tops:
            distances, ordinals = top.nearest()
            found.append(Candidates(distances, rows.to_row_ids(ordinals)))
    return found
