"""BLOOMFILTER: a Bloom filter of the values in each zone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.expr.index_query import AnyOf
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.null_rows import ZONE_NULLS, NullRows
from lance_core.index.scalar.value_hashes import can_be_hashed, value_hashes
from lance_core.index.scalar.zone_segment import ZoneSegment
from lance_core.index.scalar.zones import ZONE_COLUMNS, flags, zones_of
from lance_core.index.stored_columns import find_stored, read_stored
from lance_core.kernels.bloom import BLOCK_BYTES, may_hold_any

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from lance_core.expr.index_query import LeafQuery
    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.scalar.segment import Check, ScalarSource

_FILE = "bloomfilter.lance"
_NULL_COLUMN = {"has_null": pa.bool_()}
_FILTER_COLUMN = {"bloom_filter_data": pa.binary()}
_BLOCK_BYTES = 4 << 20
_MOST_ZONES = 1024
"""Zones of a block at most, because filters may be far smaller in the file than in memory."""

_BLOCKS_AT_ONCE = 8


def open_bloom_filter(source: ScalarSource) -> ZoneSegment:
    """Read where the zones of a segment are, not their filters; errors as ``open_scalar_segment``.

    Notes
    -----
    Scalar index page, section 7.
    """
    reader = source.open(_FILE)
    *places, nulls = read_stored(reader, {**ZONE_COLUMNS, **_NULL_COLUMN})
    (filters,) = find_stored(reader, _FILTER_COLUMN)
    contents = _Filters(source, reader, filters) if can_be_hashed(source.column_type) else None
    return ZoneSegment(
        IndexKind.BLOOMFILTER,
        reader,
        source.built_from,
        zones_of(places, reader.path),
        flags(nulls, reader.path),
        NullRows.find(source, reader, ZONE_NULLS),
        contents,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Filters:
    """Values by filters, which are read by blocks of some megabytes and kept in the cache."""

    source: ScalarSource
    reader: LanceFileReader
    target: ColumnTarget

    @property
    def nbytes(self) -> int:
        return 0

    @property
    def num_parts(self) -> int:
        return len(self._block_ranges())

    def load_parts(self, start: int, stop: int) -> int:
        return sum(each.nbytes for each in self._blocks(self._block_ranges()[start:stop]))

    def supports(self, query: LeafQuery) -> bool:
        return isinstance(query, AnyOf) and query.values.type == self.source.column_type

    def may_hold(self, query: LeafQuery, check: Check) -> NDArray[np.bool_]:
        if not isinstance(query, AnyOf):
            raise InvalidRequestError(f"a Bloom filter answers no {type(query).__name__}")
        hashes = value_hashes(query.values)
        found = np.empty(self.reader.num_rows, np.bool_)
        ranges = self._block_ranges()
        for first in range(0, len(ranges), _BLOCKS_AT_ONCE):
            some = ranges[first : first + _BLOCKS_AT_ONCE]
            for (start, stop), block in zip(some, self._blocks(some), strict=True):
                check()
                may_hold_any(block.addresses, block.lengths, hashes, found[start:stop])
        return found

    def _block_ranges(self) -> list[tuple[int, int]]:
        """Return the zones ``[start, stop)`` of each block."""
        num_zones = self.reader.num_rows
        num_bytes = self.reader.stored_bytes([self.target])(0, num_zones)
        step = min(max(int(num_zones * _BLOCK_BYTES / max(num_bytes, 1)), 1), _MOST_ZONES)
        return [(start, min(start + step, num_zones)) for start in range(0, num_zones, step)]

    def _blocks(self, ranges: Sequence[tuple[int, int]]) -> list[_Block]:
        by_key: dict[Hashable, tuple[int, int]] = {
            self.source.key("bloom filters", each): each for each in ranges
        }
        return self.source.cache.get_or_load_many(
            list(by_key), lambda missing: self._read([by_key[key] for key in missing])
        )

    def _read(self, ranges: Sequence[tuple[int, int]]) -> list[_Block]:
        """Read blocks in one go."""
        (filters,) = self.reader.read([self.target], ranges)
        ends = np.cumsum([stop - start for start, stop in ranges]).tolist()
        starts = [0, *ends[:-1]]
        return [
            _Block.of(filters.slice(start, end - start), self.reader.path)
            for start, end in zip(starts, ends, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Filters of zones that follow one another.

    Parameters
    ----------
    filters
        Owns the memory.
    addresses, lengths
        Shape ``(n,)``: where each filter lies, and its bytes.
    """

    filters: pa.BinaryArray
    addresses: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, filters: pa.BinaryArray, path: str) -> _Block:
        """Check filters: each is there and has a whole number of blocks, of which at least one."""
        if filters.null_count > 0:
            raise CorruptFileError(path, "a zone has no Bloom filter")
        _, offsets, data = filters.buffers()
        size = np.dtype(np.int32).itemsize
        bounds = np.frombuffer(offsets, np.int32, len(filters) + 1, filters.offset * size)
        lengths = np.diff(bounds).astype(np.int64)
        is_wrong = (lengths <= 0) | (lengths % BLOCK_BYTES != 0)
        if is_wrong.any():
            raise CorruptFileError(path, f"a Bloom filter has {lengths[is_wrong][0]} bytes")
        return cls(filters, data.address + bounds[:-1].astype(np.int64), lengths)

    @property
    def nbytes(self) -> int:
        return int(self.lengths.sum() + self.addresses.nbytes + self.lengths.nbytes)
