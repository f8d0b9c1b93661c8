"""From stable row ids to row addresses, at one version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError
from lance_core.row_address import OFFSET_BITS, ROW_ADDRESS_TOMBSTONE, fragment_of
from lance_core.row_set import bitmap_offsets
from lance_core.table.stored_lineage import row_ids_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from lance_core.ids import FragmentId
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot
    from lance_core.table.u64_segments import Runs


@dataclass(frozen=True, slots=True, eq=False)
class RowIdIndex:
    """Live rows of some fragments by their ids, as runs in which id and address count up by one.

    A table that was only appended to has a run per fragment.

    Parameters
    ----------
    first_ids
        Shape ``(r,)``, uint64, ascending: id of the first row of each run.
    lengths
        Shape ``(r,)``, int64: rows of each run; no id is in two.
    addresses
        Shape ``(r,)``, uint64: address of the first row of each run.
    """

    first_ids: NDArray[np.uint64]
    lengths: NDArray[np.int64]
    addresses: NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        """Memory of the runs."""
        return int(self.first_ids.nbytes + self.lengths.nbytes + self.addresses.nbytes)

    @property
    def num_rows(self) -> int:
        """Rows that have an address."""
        return int(self.lengths.sum())

    def find(self, row_ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the address of each row, shape ``(n,)``; of one that is not live the tombstone.

        Ids may come in any order and repeat.
        """
        if len(self.first_ids) == 0:
            return np.full(len(row_ids), ROW_ADDRESS_TOMBSTONE, np.uint64)
        run = np.empty(len(row_ids), np.int64)
        order = np.argsort(row_ids)  # so that each search begins where the last one has read
        run[order] = np.searchsorted(self.first_ids, row_ids[order], side="right") - 1
        steps = row_ids - self.first_ids[run]  # of ids before all runs it wraps to huge ones
        is_live = (run >= 0) & (steps < self.lengths[run].astype(np.uint64))
        return np.where(is_live, self.addresses[run] + steps, np.uint64(ROW_ADDRESS_TOMBSTONE))

    def runs_at(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the run of live rows that each address would be in, and whether it is."""
        if len(self.lengths) == 0:
            return np.zeros(len(addresses), np.intp), np.zeros(len(addresses), np.bool_)
        order = np.argsort(self.addresses)
        place = np.searchsorted(self.addresses[order], addresses, side="right") - 1
        run = order[np.maximum(place, 0)]
        steps = addresses - self.addresses[run]  # of earlier addresses it wraps to huge ones
        return run, steps < self.lengths[run].astype(np.uint64)

    def ids_at(self, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the id of each row, shape ``(n,)``; all must be live."""
        run, _ = self.runs_at(addresses)
        ids: NDArray[np.uint64] = self.first_ids[run] + (addresses - self.addresses[run])
        return ids

    def live_ids(self, high_half: int) -> BitMap:
        """Return the lower halves of the ids of live rows that have this upper half."""
        start = high_half << OFFSET_BITS
        end = start + (1 << OFFSET_BITS)
        live = BitMap()
        for first, length in zip(self.first_ids.tolist(), self.lengths.tolist(), strict=True):
            if first < end and first + length > start:
                live.add_range(max(first, start) - start, min(first + length, end) - start)
        return live

    def of_fragments(self, fragment_ids: Collection[int]) -> RowIdIndex:
        """Return the part of it whose rows lie in these fragments."""
        wanted = np.array(sorted(fragment_ids), np.uint32)
        kept = np.isin(fragment_of(self.addresses), wanted)
        return RowIdIndex(self.first_ids[kept], self.lengths[kept], self.addresses[kept])


def row_id_index(files: TableFiles, snapshot: Snapshot) -> RowIdIndex:
    """Return the index over all live rows of a version with stable row ids.

    Reads all deletion files, and the data files of fragments whose row ids are spilled.

    Raises
    ------
    CorruptFileError
        Two live rows have the same id, or a fragment's ids contradict the format.

    Notes
    -----
    Lance table format, section "Stable row ids": an id may be there twice, of a row that was
    deleted when it was updated and of its new place.
    """
    key = CacheKey("row id index", snapshot.scheduler.store.key, snapshot.incarnation)
    return files.cache.get_or_load(key, lambda: _build(files, snapshot))


def _build(files: TableFiles, snapshot: Snapshot) -> RowIdIndex:
    parts = [_live_runs(files, snapshot, fragment) for fragment in snapshot.fragments]
    firsts = np.concatenate([np.empty(0, np.uint64), *(firsts for (firsts, _), _ in parts)])
    lengths = np.concatenate([np.empty(0, np.int64), *(lengths for (_, lengths), _ in parts)])
    addresses = np.concatenate([np.empty(0, np.uint64), *(addresses for _, addresses in parts)])
    order = np.argsort(firsts, kind="stable")
    index = RowIdIndex(firsts[order], lengths[order], addresses[order])
    last_ids = index.first_ids + (index.lengths - 1).astype(np.uint64)
    twice = np.flatnonzero(index.first_ids[1:] <= last_ids[:-1])
    if len(twice) > 0:
        raise CorruptFileError(
            snapshot.manifest.path, f"two live rows have the id {index.first_ids[twice[0] + 1]}"
        )
    return index


def _live_runs(
    files: TableFiles, snapshot: Snapshot, fragment: Fragment
) -> tuple[Runs, NDArray[np.uint64]]:
    """Return the runs of ids of a fragment's live rows, and the address of each run's first row."""
    row_ids = row_ids_of(files, snapshot, fragment)
    deleted = bitmap_offsets(files.deleted(snapshot, fragment)).astype(np.int64)
    runs, first_offsets = row_ids.without(deleted)
    return runs, first_offsets.astype(np.uint64) | _first_address(fragment.id)


def _first_address(fragment_id: FragmentId) -> np.uint64:
    return np.uint64(fragment_id << OFFSET_BITS)
