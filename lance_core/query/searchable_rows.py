"""Which rows of some fragments an exact search may find, and how it numbers them.

Ties go by row id, so the ordinals that kernels compare ascend with row ids. On tables without
stable ones these are addresses, and the ordinals count physical rows; otherwise they count live
rows in the order of their ids, wherever these lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from pyroaring import BitMap

from lance_core.index.ordinals import OrdinalSpace, live_words
from lance_core.query.row_masks import AddressRuns
from lance_core.row_address import OFFSET_BITS, fragment_of, offset_of
from lance_core.row_set import clear_ordinals, count, full_words
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.ids import FragmentId
    from lance_core.scan.vector_column import VectorRuns
    from lance_core.table.files import TableFiles
    from lance_core.table.row_id_index import RowIdIndex
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class VectorPages:
    """Vectors in memory as a scan takes them: runs of rows with consecutive ordinals.

    All have shape ``(n,)`` and dtype int64: where the first vector of a run lies, how many there
    are, the ordinal of the first, the place of its fragment among those that are searched, and its
    offset in that.
    """

    addresses: NDArray[np.int64]
    num_rows: NDArray[np.int64]
    first_ordinals: NDArray[np.int64]
    fragments: NDArray[np.int64]
    first_offsets: NDArray[np.int64]

    def pieces(self, max_rows: int, row_bytes: int) -> Iterator[VectorPages]:
        """Yield the rows in pieces of at most ``max_rows`` rows."""
        ends = np.cumsum(self.num_rows)
        total = int(ends[-1]) if len(ends) > 0 else 0
        if total <= max_rows:
            yield self
            return
        starts = ends - self.num_rows
        for start in range(0, total, max_rows):
            stop = min(start + max_rows, total)
            part = slice(
                int(np.searchsorted(ends, start, side="right")),
                int(np.searchsorted(starts, stop, side="left")),
            )
            skip = np.maximum(start - starts[part], 0)
            yield VectorPages(
                self.addresses[part] + skip * row_bytes,
                np.minimum(ends[part], stop) - starts[part] - skip,
                self.first_ordinals[part] + skip,
                self.fragments[part],
                self.first_offsets[part] + skip,
            )


class SearchableRows(Protocol):
    """Rows that are live and have a vector."""

    @property
    def words(self) -> NDArray[np.uint64]:
        """Dense bitset over their ordinals."""

    @property
    def num_rows(self) -> int:
        """How many they are."""

    @property
    def nbytes(self) -> int:
        """Memory held."""

    @property
    def address_runs(self) -> AddressRuns:
        """Where the rows lie, in runs of their ordinals; rows without a vector included."""

    def pages(self, runs: Sequence[VectorRuns], row_bytes: int) -> VectorPages:
        """Give ordinals to the vectors of the fragments, ascending; one entry of ``runs`` each."""

    def to_row_ids(self, ordinals: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return the row id of each ordinal, shape ``(n,)``."""


@dataclass(frozen=True, slots=True, eq=False)
class AddressedRows:
    """Rows of a table without stable row ids."""

    space: OrdinalSpace
    words: NDArray[np.uint64]
    num_rows: int

    @property
    def nbytes(self) -> int:
        """Memory of the bitset."""
        return int(self.words.nbytes)

    @property
    def address_runs(self) -> AddressRuns:
        """The physical rows of all fragments."""
        return AddressRuns.of_space(self.space)

    def pages(self, runs: Sequence[VectorRuns], row_bytes: int) -> VectorPages:
        """Give ordinals to all vectors, deleted ones too."""
        del row_bytes
        first_ordinals = [
            each.first_offsets + first
            for each, first in zip(runs, self.space.first_ordinals[:-1], strict=True)
        ]
        return VectorPages(
            np.concatenate([each.addresses for each in runs]),
            np.concatenate([each.num_rows for each in runs]),
            np.concatenate(first_ordinals),
            np.repeat(np.arange(len(runs)), [len(each.addresses) for each in runs]),
            np.concatenate([each.first_offsets for each in runs]),
        )

    def to_row_ids(self, ordinals: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return the row address of each ordinal, shape ``(n,)``."""
        return self.space.to_row_ids(ordinals)


class IdentifiedRows:
    """Rows of a table with stable row ids.

    Parameters
    ----------
    index
        Live rows of the fragments.
    fragment_ids
        The fragments, ascending.
    missing
        Addresses of live and dead rows without a vector, shape ``(n,)``.
    """

    __slots__ = ("_ends", "_fragment_ids", "_index", "num_rows", "words")

    def __init__(
        self,
        index: RowIdIndex,
        fragment_ids: Sequence[FragmentId],
        missing: NDArray[np.uint64],
    ) -> None:
        self._index = index
        self._fragment_ids = fragment_ids
        self._ends = np.cumsum(index.lengths)
        self.words: NDArray[np.uint64] = full_words(index.num_rows)
        run, is_live = self._index.runs_at(missing)
        run, missing = run[is_live], missing[is_live]
        ordinals = self._first_ordinals[run] + (missing - index.addresses[run]).astype(np.int64)
        clear_ordinals(self.words, ordinals.astype(np.uint32))
        self.num_rows = count(self.words)

    @property
    def nbytes(self) -> int:
        """Memory of the bitset and the runs."""
        return int(self.words.nbytes + self._ends.nbytes) + self._index.nbytes

    @property
    def address_runs(self) -> AddressRuns:
        """The live rows in the order of their ids."""
        return AddressRuns(self._index.addresses, self._index.lengths, self._first_ordinals)

    @property
    def _first_ordinals(self) -> NDArray[np.int64]:
        return self._ends - self._index.lengths

    def pages(self, runs: Sequence[VectorRuns], row_bytes: int) -> VectorPages:
        """Give ordinals to the vectors of live rows; cuts runs where their ids do not follow."""
        held = [
            each.first_offsets.astype(np.uint64) | np.uint64(fragment_id << OFFSET_BITS)
            for fragment_id, each in zip(self._fragment_ids, runs, strict=True)
        ]
        rows_in_memory = np.concatenate(held)
        where = np.concatenate([each.addresses for each in runs])
        starts = np.union1d(rows_in_memory, self._index.addresses)
        run, is_live = self._index.runs_at(starts)
        starts, run = starts[is_live], run[is_live]
        skipped = (starts - self._index.addresses[run]).astype(np.int64)
        left = self._index.lengths[run] - skipped
        gaps = np.diff(starts, append=np.uint64(2**64 - 1))
        num_rows = np.minimum(left.astype(np.uint64), gaps).astype(np.int64)
        page = np.searchsorted(rows_in_memory, starts, side="right") - 1
        inside = (starts - rows_in_memory[page]).astype(np.int64)
        fragment_ids = np.array(self._fragment_ids, np.uint32)
        return VectorPages(
            where[page] + inside * row_bytes,
            num_rows,
            self._first_ordinals[run] + skipped,
            np.searchsorted(fragment_ids, fragment_of(starts)),
            offset_of(starts).astype(np.int64),
        )

    def to_row_ids(self, ordinals: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return the stable row id of each ordinal, shape ``(n,)``."""
        run = np.searchsorted(self._ends, ordinals, side="right")
        steps = ordinals - self._first_ordinals[run]
        found: NDArray[np.uint64] = self._index.first_ids[run] + steps.astype(np.uint64)
        return found


def addressed_rows(
    files: TableFiles,
    snapshot: Snapshot,
    fragment_ids: Sequence[FragmentId],
    runs: Sequence[VectorRuns] | None = None,
) -> AddressedRows:
    """Find the rows of some fragments that are not deleted, and number all by their addresses.

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
    return AddressedRows(space, words, count(words))


def searchable_rows(
    files: TableFiles,
    snapshot: Snapshot,
    fragment_ids: Sequence[FragmentId],
    runs: Sequence[VectorRuns],
) -> SearchableRows:
    """Find the rows of some fragments that are live and have a vector.

    Parameters
    ----------
    files
        Reads deletion files and row ids that are not in the cache.
    fragment_ids
        The fragments, ascending.
    runs
        The vectors of each fragment.
    """
    if not snapshot.has_stable_row_ids:
        return addressed_rows(files, snapshot, fragment_ids, runs)
    missing = [
        np.flatnonzero(~each.is_valid).astype(np.uint64) | np.uint64(fragment_id << OFFSET_BITS)
        for fragment_id, each in zip(fragment_ids, runs, strict=True)
        if each.is_valid is not None
    ]
    index = row_id_index(files, snapshot).of_fragments(fragment_ids)
    return IdentifiedRows(index, fragment_ids, np.concatenate([np.empty(0, np.uint64), *missing]))
