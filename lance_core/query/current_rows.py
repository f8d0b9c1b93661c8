"""Where the rows are now that an index segment names: by old addresses, or by stable row ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.ids import FragmentId
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.fragment_rows import unite
from lance_core.row_address import OFFSET_BITS, ROW_ADDRESS_TOMBSTONE
from lance_core.row_set import bitmap_offsets, bitmaps_by_fragment
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.table.files import TableFiles
    from lance_core.table.frag_reuse import FragmentReuse
    from lance_core.table.row_id_index import RowIdIndex
    from lance_core.table.snapshot import Snapshot

_ROWS_AT_ONCE = 1 << 20
"""Rows that are led to their new places together: each takes some 30 bytes so long."""


class CurrentRows:
    """Leads rows of index files to where they are at one version.

    Parameters
    ----------
    files, snapshot
        Opened files, and the version.
    reuse
        Deferred compactions that index files may not have followed, None where there were none.
    """

    def __init__(self, files: TableFiles, snapshot: Snapshot, reuse: FragmentReuse | None) -> None:
        self._files = files
        self._snapshot = snapshot
        self._fragments = snapshot.fragments_by_id
        self._reuse = reuse
        self._old_rows: Mapping[int, int] = {} if reuse is None else rows_of_old_fragments(reuse)

    def all_rows(self, fragment_ids: Iterable[int]) -> FragmentRows:
        """Return all rows of some fragments, deleted ones included."""
        sizes = {each: self._fragments[FragmentId(each)].physical_rows for each in fragment_ids}
        return {each: BitMap(range(size)) for each, size in sizes.items() if size > 0}

    def translate(self, answer: RowAnswer, coverage: BitMap, *, by_row_id: bool) -> RowAnswer:
        """Return what a segment says of the fragments that it covers.

        Parameters
        ----------
        answer
            The rows as the segment's files name them.
        coverage
            Live fragments that it covers; rows of others are left out.
        by_row_id
            Whether it names them by row ids, which are addresses unless they are stable.
        """
        certain = self._translate(answer.certain, coverage, by_row_id=by_row_id)
        nulls = answer.nulls
        if nulls is not None:
            nulls = self._translate(nulls, coverage, by_row_id=by_row_id)
        if answer.is_exact:
            return RowAnswer.exact(certain, nulls)
        possible = self._translate(answer.possible, coverage, by_row_id=by_row_id)
        return RowAnswer(certain, possible, nulls)

    def _translate(self, rows: FragmentRows, coverage: BitMap, *, by_row_id: bool) -> FragmentRows:
        if by_row_id and self._snapshot.has_stable_row_ids:
            rows = _at_row_ids(rows, row_id_index(self._files, self._snapshot))
        elif self._reuse is not None:
            rows = self._followed(rows, self._reuse)
        clipped = {
            key: self._clipped(FragmentId(key), bitmap)
            for key, bitmap in rows.items()
            if key in coverage
        }
        return {key: bitmap for key, bitmap in clipped.items() if bitmap}

    def _clipped(self, fragment_id: FragmentId, offsets: BitMap) -> BitMap:
        num_rows = self._fragments[fragment_id].physical_rows
        return offsets if offsets.max() < num_rows else offsets & BitMap(range(num_rows))

    def _followed(self, rows: FragmentRows, reuse: FragmentReuse) -> FragmentRows:
        """Lead rows of compacted fragments to the fragments that they are in now."""
        stayed = {key: bitmap for key, bitmap in rows.items() if key not in self._old_rows}
        parts: list[FragmentRows] = [stayed]
        for key in rows.keys() & self._old_rows.keys():
            # An entry may stand for more offsets than the fragment ever had.
            offsets = rows[key] & BitMap(range(self._old_rows[key]))
            parts += [
                _found(reuse.addresses.map_addresses(addresses))
                for addresses in _addresses(key, offsets)
            ]
        return unite(parts)


def rows_of_old_fragments(reuse: FragmentReuse) -> Mapping[int, int]:
    """Return how many rows each fragment had that deferred compactions have rewritten."""
    return {
        digest.id: digest.physical_rows
        for version in reuse.history.versions
        for group in version.groups
        for digest in group.old_fragments
    }


def _at_row_ids(rows: FragmentRows, index: RowIdIndex) -> FragmentRows:
    """Return the live rows that have some ids."""
    parts = []
    for key, low_halves in rows.items():
        # An entry may stand for all 2**32 rows that there could be.
        is_bounded = len(low_halves) <= index.num_rows
        ids_of = low_halves if is_bounded else low_halves & index.live_ids(key)
        parts += [_found(index.find(ids)) for ids in _addresses(key, ids_of)]
    return unite(parts)


def _addresses(key: int, offsets: BitMap) -> Iterable[NDArray[np.uint64]]:
    """Yield the addresses, or ids, of rows with the same upper half, some at a time."""
    members = bitmap_offsets(offsets)
    for start in range(0, len(members), _ROWS_AT_ONCE):
        some = members[start : start + _ROWS_AT_ONCE].astype(np.uint64)
        yield some | np.uint64(key << OFFSET_BITS)


def _found(addresses: NDArray[np.uint64]) -> FragmentRows:
    """Return rows that are still there."""
    return bitmaps_by_fragment(addresses[addresses != np.uint64(ROW_ADDRESS_TOMBSTONE)])
