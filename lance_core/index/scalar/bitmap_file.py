"""The file of BITMAP and LABEL_LIST: keys, and for each the set of rows that have it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.fragment_rows import NO_ROWS, KeptRows, unite
from lance_core.index.scalar.key_ranges import joined_ranges
from lance_core.index.scalar.keys import keys_of
from lance_core.index.scalar.set_blocks import SetBlock, rows_in_blocks
from lance_core.index.scalar.tree_map import decode_tree_map

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.key_ranges import KeyRanges
    from lance_core.index.scalar.keys import Keys
    from lance_core.index.scalar.segment import Check, ScalarSource

_FILE = "bitmap_page_lookup.lance"
_SETS_AT_ONCE = 1024
_BYTES_AT_ONCE = 64 << 20
"""So many sets, and of about so many bytes, are read and held at a time by one search."""

_FEW = 8
_MANY = 256
_SMALL_BYTES = 256
"""Of sets of so few bytes on average, many are read by whole blocks and looked through at once: a
bitmap for each, and a place for it in the cache, would take longer than its rows.
"""

_BLOCK_SETS = 512
_BLOCKS_AT_ONCE = 64


@dataclass(frozen=True, slots=True, eq=False)
class BitmapFile:
    """Keys in memory, their sets read when they are asked for.

    Parameters
    ----------
    source
        Where the file is.
    reader
        The file.
    sets
        Its column of sets.
    key_type
        Type of the keys.
    keys
        Keys but null, in ascending order.
    rows_of_keys
        Shape ``(len(keys),)``: the row of the file for each.
    null_rows
        Rows of the file for the null key, of which there should be one or none.
    """

    source: ScalarSource
    reader: LanceFileReader
    sets: ColumnTarget
    key_type: pa.DataType
    keys: Keys
    rows_of_keys: NDArray[np.int64]
    null_rows: NDArray[np.int64]

    @classmethod
    def open(cls, source: ScalarSource, key_type: pa.DataType) -> BitmapFile:
        """Read the end of the file and its keys; errors as `open_scalar_segment`.

        Parameters
        ----------
        source
            Where the file is.
        key_type
            Type that the keys must have.
        """
        reader = source.open(_FILE)
        names = reader.schema.names
        if names[:2] != ("keys", "bitmaps"):
            raise CorruptFileError(reader.path, f"columns {names}, expected keys and bitmaps")
        keys, sets = (reader.target(name) for name in names[:2])
        source.check_key_type(keys.arrow_type, key_type)
        if sets.arrow_type != pa.binary():
            raise CorruptFileError(reader.path, f"bitmaps have type {sets.arrow_type}")
        (stored,) = reader.read([keys], [(0, reader.num_rows)])
        is_null = stored.is_null().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(~is_null)
        found = keys_of(stored.drop_null())
        if not found.is_ascending():  # as pylance before 7.1 wrote them
            order = found.order()
            found, rows = found.take(order), rows[order]
        return cls(source, reader, sets, key_type, found, rows, np.flatnonzero(is_null))

    @property
    def nbytes(self) -> int:
        """Memory held, without sets."""
        rows = int(self.rows_of_keys.nbytes + self.null_rows.nbytes)
        return self.keys.nbytes + rows + self.reader.nbytes

    def load_sets(self, rows: Sequence[int]) -> int:
        """Bring the sets of some rows of the file into the cache; return the memory they take."""
        return sum(each.nbytes for each in self._kept(rows).values())

    def null_set(self) -> FragmentRows:
        """Return the rows of the null key."""
        return unite(self._load(self.null_rows.tolist()))

    def union(
        self, ranges: KeyRanges, check: Check, *, with_nulls: bool
    ) -> tuple[FragmentRows, FragmentRows | None]:
        """Return the rows that have any of the keys asked for, and those of the null key if asked.

        Few sets are read in one go.
        """
        rows = self.rows_of_keys[ranges.positions(self.keys)]
        if len(rows) > _FEW:
            return self._union(rows, check), self.null_set() if with_nulls else None
        null_rows = self.null_rows.tolist() if with_nulls else []
        loaded = self._load(rows.tolist() + null_rows)
        nulls = unite(loaded[len(rows) :]) if with_nulls else None
        return unite(loaded[: len(rows)]), nulls

    def _union(self, rows: NDArray[np.int64], check: Check) -> FragmentRows:
        set_bytes = self._set_bytes()
        if len(rows) >= _MANY and set_bytes <= _SMALL_BYTES:
            return self._union_of_blocks(np.sort(rows), check)
        at_once = min(max(int(_BYTES_AT_ONCE / set_bytes), 1), _SETS_AT_ONCE)
        found: FragmentRows = NO_ROWS
        for start in range(0, len(rows), at_once):
            check()
            found = unite((found, *self._load(rows[start : start + at_once].tolist())))
        return found

    def sets_of(self, labels: Keys, *, with_null: bool) -> list[FragmentRows]:
        """Return the rows of each of some keys, and of the null key behind them if wanted."""
        starts, stops = self.keys.find(labels)
        ranges = zip(starts.tolist(), stops.tolist(), strict=True)
        rows = [self.rows_of_keys[start:stop].tolist() for start, stop in ranges]
        if with_null:
            rows.append(self.null_rows.tolist())
        loaded = iter(self._load([row for each in rows for row in each]))
        return [unite([next(loaded) for _ in each]) for each in rows]

    def _set_bytes(self) -> float:
        """Return the bytes that a set has on average, 1 at least."""
        size = self.reader.num_rows
        stored = self.reader.stored_bytes([self.sets])(0, size) if size > 0 else 0
        return max(stored / max(size, 1), 1)

    def _union_of_blocks(self, rows: NDArray[np.int64], check: Check) -> FragmentRows:
        """Return the rows in very many small sets, which are kept as they are stored."""
        blocks, starts = np.unique(rows // _BLOCK_SETS, return_index=True)
        positions = np.split(rows % _BLOCK_SETS, starts[1:])
        found: list[FragmentRows] = []
        for start in range(0, len(blocks), _BLOCKS_AT_ONCE):
            check()
            some = slice(start, start + _BLOCKS_AT_ONCE)
            loaded = self._load_blocks(blocks[some].tolist())
            found += rows_in_blocks(loaded, positions[some], self.reader.path)
        return unite(found)

    def _load_blocks(self, blocks: list[int]) -> list[SetBlock]:
        by_key: dict[Hashable, int] = {self.source.key("bitmap block", b): b for b in blocks}
        return self.source.cache.get_or_load_many(
            list(by_key), lambda missing: self._read_blocks([by_key[key] for key in missing])
        )

    def _read_blocks(self, blocks: list[int]) -> list[SetBlock]:
        starts = np.array(blocks, np.int64) * _BLOCK_SETS
        stops = np.minimum(starts + _BLOCK_SETS, self.reader.num_rows)
        (stored,) = self.reader.read([self.sets], joined_ranges(starts, stops))
        ends = np.cumsum(stops - starts).tolist()
        bounds = pairwise([0, *ends])
        return [SetBlock.of(stored.slice(a, b - a), self.reader.path) for a, b in bounds]

    def _load(self, rows: list[int]) -> list[FragmentRows]:
        """Return the sets of some rows of the file, which may repeat."""
        kept = self._kept(rows)
        return [kept[row].rows for row in rows]

    def _kept(self, rows: Sequence[int]) -> dict[int, KeptRows]:
        by_key: dict[Hashable, int] = {self.source.key("bitmap", row): row for row in rows}
        kept = self.source.cache.get_or_load_many(
            list(by_key), lambda missing: self._read([by_key[key] for key in missing])
        )
        return dict(zip(by_key.values(), kept, strict=True))

    def _read(self, rows: list[int]) -> list[KeptRows]:
        if len(rows) == 1:  # the usual case, which takes two thirds of the time as a range
            (stored,) = self.reader.read([self.sets], [(rows[0], rows[0] + 1)])
        else:
            (stored,) = self.reader.take([self.sets], rows)
        if stored.null_count > 0:
            raise CorruptFileError(self.reader.path, "a key has no set of rows")
        decoded = (decode_tree_map(each.as_buffer(), self.reader.path) for each in stored)
        return [KeptRows.of(rows) for rows in decoded]
