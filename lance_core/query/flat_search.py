"""Exact search over the fragments that no index segment covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.candidates import Candidates
from lance_core.kernels.exact import scan_pages
from lance_core.kernels.topk import TopRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.metric import Metric
    from lance_core.query.deadline import Deadline
    from lance_core.query.searchable_rows import SearchableRows
    from lance_core.scan.vector_column import VectorColumn, VectorRuns

# About 10 ms of work on one core: 20 ns per row of 128 dimensions.
_PIECE_FLOATS = 1 << 26


def scan_vectors(
    column: VectorColumn,
    runs: Sequence[VectorRuns],
    rows: SearchableRows,
    query: NDArray[np.float32],
    metric: Metric,
    *,
    k: int,
    bounds: tuple[float | None, float | None],
    deadline: Deadline,
) -> Candidates:
    """Score all searchable rows and return the nearest ``k`` inside ``bounds``.

    Parameters
    ----------
    runs
        The vectors of the fragments of ``rows``, in their order.
    query
        Shape ``(d,)``, not normalised.
    """
    pages = rows.pages(runs, column.row_bytes)
    top = TopRows(k, rows.num_rows, *bounds)
    own_query = np.array(query, np.float32)
    for piece in _pieces(pages.num_rows, max(1, _PIECE_FLOATS // column.dimension)):
        deadline.check("scanning vectors")
        part, skip, take = piece
        scan_pages(
            pages.addresses[part] + skip * column.row_bytes,
            take,
            pages.first_ordinals[part] + skip,
            own_query,
            metric.code,
            rows.words,
            top,
        )
    distances, ordinals = top.nearest()
    return Candidates(distances, rows.to_row_ids(ordinals))


def _pieces(
    num_rows: NDArray[np.int64], max_rows: int
) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.int64]]]:
    """Cut runs of rows into pieces of at most ``max_rows`` rows.

    Yields which runs a piece takes part of, how many of their rows it skips, how many it takes.
    """
    ends = np.cumsum(num_rows)
    starts = ends - num_rows
    total = int(ends[-1]) if len(ends) > 0 else 0
    for start in range(0, total, max_rows):
        stop = min(start + max_rows, total)
        part = slice(
            int(np.searchsorted(ends, start, side="right")),
            int(np.searchsorted(starts, stop, side="left")),
        )
        skip = np.maximum(start - starts[part], 0)
        take = np.minimum(ends[part], stop) - starts[part] - skip
        yield part, skip, take
