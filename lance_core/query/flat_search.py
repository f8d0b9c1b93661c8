"""Exact search over the fragments that no index segment covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.index.candidates import Candidates
from lance_core.index.ordinals import OrdinalSpace, live_words
from lance_core.kernels.exact import scan_pages
from lance_core.kernels.topk import TopRows
from lance_core.row_set import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.ids import FragmentId
    from lance_core.index.vector.metric import Metric
    from lance_core.query.deadline import Deadline
    from lance_core.scan.vector_column import VectorColumn, VectorRuns
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

# About 10 ms of work on one core: 20 ns per row of 128 dimensions.
_PIECE_FLOATS = 1 << 26


@dataclass(frozen=True, slots=True, eq=False)
class SearchableRows:
    """Which rows of some fragments may be found.

    ``words`` is a dense bitset over ``space``: rows that are live and have a vector.
    """

    space: OrdinalSpace
    words: NDArray[np.uint64]
    num_rows: int

    @property
    def nbytes(self) -> int:
        """Memory of the bitset."""
        return int(self.words.nbytes)


def searchable_rows(
    files: TableFiles,
    snapshot: Snapshot,
    fragment_ids: Sequence[FragmentId],
    runs: Sequence[VectorRuns] | None = None,
) -> SearchableRows:
    """Find the rows of some fragments that are not deleted.

    Parameters
    ----------
    files
        Reads deletion files that are not in the cache.
    fragment_ids
        The fragments, ascending.
    runs
        The vectors of each fragment; rows without one are left out. None: do not look.
    """
    fragments = [snapshot.fragments_by_id[fragment_id] for fragment_id in fragment_ids]
    space = OrdinalSpace(fragment_ids, [fragment.physical_rows for fragment in fragments])
    excluded: dict[int, BitMap] = {
        fragment.id: files.deleted(snapshot, fragment)
        for fragment in fragments
        if fragment.deletion_file is not None
    }
    for fragment, its_runs in zip(fragments, () if runs is None else runs, strict=False):
        if its_runs.is_valid is not None:
            missing = BitMap(np.flatnonzero(~its_runs.is_valid).astype(np.uint32))
            excluded[fragment.id] = missing | excluded.get(fragment.id, BitMap())
    words = live_words(space, excluded)
    return SearchableRows(space, words, count(words))


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
        The vectors of the fragments of ``rows.space``, in its order.
    query
        Shape ``(d,)``, not normalised.
    """
    addresses, num_rows, first_ordinals = _tables(runs, rows.space)
    top = TopRows(k, rows.num_rows, *bounds)
    own_query = np.array(query, np.float32)
    for piece in _pieces(num_rows, max(1, _PIECE_FLOATS // column.dimension)):
        deadline.check("scanning vectors")
        part, skip, take = piece
        scan_pages(
            addresses[part] + skip * column.row_bytes,
            take,
            first_ordinals[part] + skip,
            own_query,
            metric.code,
            rows.words,
            top,
        )
    distances, ordinals = top.nearest()
    return Candidates(distances, rows.space.to_addresses(ordinals))


def _tables(
    runs: Sequence[VectorRuns], space: OrdinalSpace
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    addresses = np.concatenate([each.addresses for each in runs])
    num_rows = np.concatenate([each.num_rows for each in runs])
    first_ordinals = np.concatenate(
        [
            each.first_offsets + first
            for each, first in zip(runs, space.first_ordinals[:-1], strict=True)
        ]
    )
    return addresses, num_rows, first_ordinals


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
