"""The sets of BITMAP, LABEL_LIST and NGRAM files, for a segment that takes their rows over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.scalar.keys import keys_of
from lance_core.index.scalar.set_blocks import SetBlock
from lance_core.index.scalar.writers.indexed_rows import IndexedRows, joined
from lance_core.index.scalar.writers.sets import KeySets, key_sets
from lance_core.index.scalar.writers.sort import merge_rows
from lance_core.kernels.small_sets import NOT_SMALL
from lance_core.row_address import OFFSET_BITS
from lance_core.row_set import bitmap_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.row_routes import RowRoute
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.writers.sets import SetForm

_ROWS_AT_ONCE = 1 << 20
_ROWS_OF_PIECE = 1 << 16
_SETS_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class StoredSets:
    """A file of keys and their sets.

    Parameters
    ----------
    reader
        The file.
    keys, sets
        Its columns.
    decode
        Decodes a set of the file at a path; raises ``CorruptFileError``.
    has_lengths
        As in `SetForm`.
    route
        Leads the rows to the new segment.
    read_bytes
        About how much is read at once.
    """

    reader: LanceFileReader
    keys: ColumnTarget
    sets: ColumnTarget
    decode: Callable[[bytes, str], FragmentRows]
    has_lengths: bool
    route: RowRoute
    read_bytes: int

    def read_keys(self) -> pa.Array:
        """Return the keys of all rows of the file."""
        (keys,) = self.reader.read([self.keys], [(0, self.reader.num_rows)])
        return keys

    def members(self, numbers: NDArray[np.int64]) -> Iterator[IndexedRows]:
        """Yield the rows of all sets under their new names, each with the number of its key.

        Parameters
        ----------
        numbers
            Shape ``(n,)``: a number for the key of each row of the file.

        Yields
        ------
        IndexedRows
            By ascending number, in pieces that are not empty.
        """
        yield from _gathered(self._followed(self._stored(numbers)))

    def _followed(self, pieces: Iterable[IndexedRows]) -> Iterator[IndexedRows]:
        for piece in pieces:
            names, is_kept = self.route.follow(piece.names)
            yield IndexedRows(piece.values, names).take(np.flatnonzero(is_kept))

    def _stored(self, numbers: NDArray[np.int64]) -> Iterator[IndexedRows]:
        order = np.argsort(numbers, kind="stable")
        step = self._sets_at_once()
        for start in range(0, len(order), step):
            rows = order[start : start + step]
            block = SetBlock.of(self._read_sets(rows), self.reader.path)
            yield from self._members_of(block, numbers[rows])

    def _read_sets(self, rows: NDArray[np.int64]) -> pa.BinaryArray:
        first, last = int(rows[0]), int(rows[-1])
        is_run = (np.diff(rows) == 1).all()  # but in files of old writers
        columns = [self.sets]
        (sets,) = (
            self.reader.read(columns, [(first, last + 1)])
            if is_run
            else self.reader.take(columns, rows)
        )
        return sets

    def _sets_at_once(self) -> int:
        num_sets = self.reader.num_rows
        stored_bytes = self.reader.stored_bytes([self.sets])(0, num_sets) if num_sets > 0 else 0
        fitting = int(self.read_bytes * num_sets / max(stored_bytes, 1))
        return min(max(fitting, 1), _SETS_AT_ONCE)

    def _members_of(self, block: SetBlock, numbers: NDArray[np.int64]) -> Iterator[IndexedRows]:
        """Yield the members of sets; small ones together, others one by one."""
        counts = np.full(len(numbers), NOT_SMALL)
        if self.has_lengths:
            counts = block.counts(np.arange(len(numbers)))
        first = 0
        for place in [*np.flatnonzero(counts == NOT_SMALL).tolist(), len(numbers)]:
            if first < place:
                own = slice(first, place)
                names = block.small_members(np.arange(first, place), counts[own])
                yield IndexedRows(pa.array(np.repeat(numbers[own], counts[own])), names)
            if place < len(numbers):
                rows = self.decode(block.sets[place].as_py(), self.reader.path)
                for names in stored_names(rows, self.route):
                    yield IndexedRows(pa.array(np.full(len(names), numbers[place])), names)
            first = place + 1


def stored_names(rows: FragmentRows, route: RowRoute) -> Iterator[NDArray[np.uint64]]:
    """Yield the names of rows, some at a time; of sets that stand for all rows those that are."""
    for key, bitmap in rows.items():
        members = bitmap_offsets(route.within(key, bitmap))
        for start in range(0, len(members), _ROWS_AT_ONCE):
            some = members[start : start + _ROWS_AT_ONCE].astype(np.uint64)
            yield some | np.uint64(key << OFFSET_BITS)


def merged_sets(files: Sequence[StoredSets], form: SetForm) -> Iterator[KeySets]:
    """Unite the sets of equal keys; yields keys in their order, null first, as `key_sets` does.

    The keys of all files are held in memory, as they are when a file is searched. A key without
    rows is left out.

    Parameters
    ----------
    files
        One or more, with keys of one type.
    form
        How sets are serialized.
    """
    keys, numbers = _numbered([file.read_keys() for file in files])
    runs = [file.members(own) for file, own in zip(files, numbers, strict=True)]
    for found in key_sets(runs[0] if len(runs) == 1 else merge_rows(runs), form):
        yield KeySets(keys.take(found.keys), found.sets)


def _numbered(columns: Sequence[pa.Array]) -> tuple[pa.Array, list[NDArray[np.int64]]]:
    """Return all keys in their order, each once, and the place there of each key of a column."""
    stored = pa.concat_arrays(columns)
    is_null = stored.is_null().to_numpy(zero_copy_only=False)
    known = stored.drop_null()
    keys = keys_of(known)
    order = keys.order()
    starts = keys.take(order).starts()
    nulls = stored.filter(pa.array(is_null)).slice(0, 1)
    numbers = np.zeros(len(stored), np.int64)
    place = np.empty(len(known), np.int64)
    is_first = np.zeros(len(known), np.int64)
    is_first[starts] = 1
    place[order] = np.cumsum(is_first) - 1 + len(nulls)
    numbers[~is_null] = place
    ends = np.cumsum([len(column) for column in columns])
    distinct = pa.concat_arrays([nulls, known.take(pa.array(order[starts]))])
    return distinct, np.split(numbers, ends[:-1])


def _gathered(pieces: Iterable[IndexedRows]) -> Iterator[IndexedRows]:
    """Join small pieces: each costs as much as very many rows."""
    waiting: list[IndexedRows] = []
    num_rows = 0
    for piece in pieces:
        if len(piece) > 0:
            waiting.append(piece)
            num_rows += len(piece)
        if num_rows >= _ROWS_OF_PIECE:
            yield joined(waiting)
            waiting, num_rows = [], 0
    if num_rows > 0:
        yield joined(waiting)
