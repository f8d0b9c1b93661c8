"""Partitions in memory: one immutable block of ordinals with the arrays that kernels search.

A block is what the cache keeps and drops: searches that hold it are not disturbed. Row addresses
become ordinals once, here, so that a search touches half the memory and tests masks directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.io.waiting import for_each
from lance_core.kernels.memory import address_of
from lance_core.row_address import ROW_ADDRESS_TOMBSTONE

if TYPE_CHECKING:
    from collections.abc import Sequence, Set as AbstractSet

    from numpy.typing import NDArray

    from lance_core.file.mapped_rows import MappedRows
    from lance_core.index.ordinals import RowSpace
    from lance_core.index.vector.segment import VectorSegment
    from lance_core.table.frag_reuse import FragmentReuse


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PartitionBlock:
    """The rows of one partition.

    Parameters
    ----------
    ordinals
        Shape ``(n,)``, uint32. A row outside the ordinal space has the space's size.
    owners
        What keeps the other memory alive: arrays, or the mapped file that holds the rows.
    row
        The address of the first array, that of the ordinals, the number of rows, the addresses of
        the other arrays: what kernels take.
    nbytes
        Memory of its own; a mapped file counts nothing.
    """

    ordinals: NDArray[np.uint32]
    owners: tuple[object, ...]
    row: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class _PartitionRows:
    """What was read of one partition: ordinals, which rows compaction removed, and columns.

    ``columns`` is None where the rows are used in the mapped file.
    """

    ordinals: NDArray[np.uint32]
    is_kept: NDArray[np.bool_] | None
    columns: Sequence[NDArray[np.generic]] | None


def load_blocks(
    segment: VectorSegment,
    space: RowSpace,
    partitions: Sequence[int],
    mapped: MappedRows | None = None,
    reuse: FragmentReuse | None = None,
) -> list[PartitionBlock]:
    """Read partitions in one batch and make a block of each.

    Parameters
    ----------
    segment
        Says where the partitions lie.
    space
        Numbers the rows.
    partitions
        Which to load, each once, in any order.
    mapped
        Rows that need no reading; partitions that it cannot give are read.
    reuse
        Where rows of compacted fragments are now.

    Raises
    ------
    CorruptFileError
        A null row address or value, another number of rows than the header says, or links that
        lead nowhere.
    """
    in_file_order = sorted(partitions, key=segment.row_range)
    in_place = {} if mapped is None else _addresses(mapped, segment, partitions)
    rows_of: dict[int, _PartitionRows] = {}
    links_of: dict[int, tuple[NDArray[np.generic], ...]] = dict.fromkeys(partitions, ())

    def read_rows() -> None:
        rows_of.update(_read(segment, space, in_file_order, in_place.keys(), reuse))

    def read_links() -> None:
        links_of.update(_read_links(segment, in_file_order))

    reads = [read_rows] if segment.graph is None else [read_rows, read_links]
    for_each(segment.folder.scheduler.store, lambda read: read(), reads)
    blocks = {
        p: _block(segment, rows, links_of[p], mapped, in_place.get(p))
        for p, rows in rows_of.items()
    }
    return [blocks[p] for p in partitions]


def _addresses(
    mapped: MappedRows, segment: VectorSegment, partitions: Sequence[int]
) -> dict[int, int]:
    found = {p: mapped.address(*segment.row_range(p)) for p in partitions}
    return {p: address for p, address in found.items() if address is not None}


def _read(
    segment: VectorSegment,
    space: RowSpace,
    partitions: Sequence[int],
    in_place: AbstractSet[int],
    reuse: FragmentReuse | None,
) -> dict[int, _PartitionRows]:
    """Read row ids of all partitions and the columns of those that are not used in place."""
    storage = segment.storage
    to_copy = [p for p in partitions if p not in in_place]
    ranges = _filled(segment, partitions)
    if len(in_place) == 0:
        row_ids, *columns = storage.reader.read([storage.row_ids, *storage.payload], ranges)
    else:
        (row_ids,) = storage.reader.read([storage.row_ids], ranges)
        columns = storage.reader.read(storage.payload, _filled(segment, to_copy))
    path = storage.reader.path
    addresses: NDArray[np.uint64] = plain_values(row_ids, path)
    is_kept = None
    if reuse is not None:
        addresses = reuse.addresses.map_addresses(addresses)
        if segment.quantizer.drops_rows:
            is_kept = addresses != ROW_ADDRESS_TOMBSTONE
    ordinals = space.to_ordinals(addresses)
    values = [plain_values(column, path) for column in columns]
    parts = _cuts(segment, partitions, len(ordinals))
    copied = _cuts(segment, to_copy, len(values[0]))
    return {
        p: _PartitionRows(
            ordinals[part],
            None if is_kept is None else is_kept[part],
            [each[copied[p]] for each in values] if p in copied else None,
        )
        for p, part in parts.items()
    }


def _read_links(
    segment: VectorSegment, partitions: Sequence[int]
) -> dict[int, tuple[NDArray[np.generic], ...]]:
    if segment.graph is None:
        return {}
    lengths = segment.lengths[np.array(partitions, np.int64)].tolist()
    return dict(zip(partitions, segment.graph.read(partitions, lengths), strict=True))


def _filled(segment: VectorSegment, partitions: Sequence[int]) -> list[tuple[int, int]]:
    """Return the row ranges of the partitions that have rows."""
    ranges = map(segment.row_range, partitions)
    return [(start, end) for start, end in ranges if start < end]


def _cuts(segment: VectorSegment, partitions: Sequence[int], num_rows: int) -> dict[int, slice]:
    """Return where each partition lies in what was read for some, in this order."""
    ends = [0, *accumulate(int(segment.lengths[p]) for p in partitions)]
    if num_rows != ends[-1]:
        raise CorruptFileError(
            segment.storage.reader.path, f"{num_rows} rows where {ends[-1]} were asked for"
        )
    return {p: slice(*cut) for p, cut in zip(partitions, pairwise(ends), strict=True)}


def plain_values(column: pa.Array, path: str) -> NDArray[Any]:
    """Return numbers, shape ``(n,)``, or lists of them, shape ``(n, width)``.

    Raises ``CorruptFileError`` with the file that they are of if one is null.
    """
    width = None
    nulls = column.null_count
    if pa.types.is_fixed_size_list(column.type):
        width = column.type.list_size
        column = column.flatten()
        nulls += column.null_count
    if nulls > 0:
        raise CorruptFileError(path, "a row address, a code or a vector is null")
    values: NDArray[Any] = column.to_numpy(zero_copy_only=True)
    return values if width is None else values.reshape(-1, width)


def _block(
    segment: VectorSegment,
    rows: _PartitionRows,
    links: tuple[NDArray[np.generic], ...],
    mapped: MappedRows | None,
    address: int | None,
) -> PartitionBlock:
    """Copy a partition out of the batch, so that dropping the block frees its memory."""
    ordinals = rows.ordinals.copy() if rows.is_kept is None else rows.ordinals[rows.is_kept]
    arrays = links
    mapping: tuple[object, ...] = ()
    addresses = []
    if rows.columns is not None:
        laid_out = segment.quantizer.lay_out(rows.columns, rows.is_kept)
        graph = segment.graph
        arrays = (*(laid_out if graph is None else graph.arrange(laid_out)), *links)
    elif mapped is not None and address is not None:
        mapping, addresses = (mapped.mapping,), [address]
    addresses += [address_of(each) for each in arrays]
    row = (addresses[0], address_of(ordinals), len(ordinals), *addresses[1:])
    nbytes = ordinals.nbytes + sum(each.nbytes for each in arrays)
    return PartitionBlock(ordinals, (*mapping, *arrays), row, nbytes)
