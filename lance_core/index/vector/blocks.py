"""Partitions in memory: one immutable block of ordinals with codes or vectors each.

A block is what the cache keeps and drops: searches that hold it are not disturbed. Row addresses
become ordinals once, here, so that a search touches half the memory and tests masks directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.file.mapped_rows import MappedRows
    from lance_core.index.ordinals import RowSpace
    from lance_core.index.vector.segment import VectorSegment
    from lance_core.table.frag_reuse import FragmentReuse

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PartitionBlock:
    """The rows of one partition.

    Parameters
    ----------
    ordinals
        Shape ``(n,)``, uint32. A row outside the ordinal space has the space's size.
    payload
        What keeps the codes or vectors alive: PQ codes, shape ``(m, n)``, uint8; vectors, shape
        ``(n, d)``, float32; or the mapped file that holds the vectors.
    row
        Addresses of payload and ordinals, and the number of rows: what kernels take.
    nbytes
        Memory of its own; a mapped file counts nothing.
    """

    ordinals: NDArray[np.uint32]
    payload: object
    row: tuple[int, int, int]
    nbytes: int


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
        Vectors that need no reading; partitions that it cannot give are read.
    reuse
        Where rows of compacted fragments are now.

    Raises
    ------
    CorruptFileError
        A null row address, code or vector, or another number of rows than the header says.
    """
    bounds = {p: segment.row_range(p) for p in partitions}
    in_file_order = sorted(partitions, key=lambda p: bounds[p])
    in_place = {} if mapped is None else _addresses(mapped, bounds)
    to_copy = [p for p in in_file_order if p not in in_place]
    row_ids, payload = _read(segment, bounds, in_file_order, to_copy)
    lengths = {p: end - start for p, (start, end) in bounds.items()}
    addresses = _row_addresses(segment, row_ids)
    if reuse is not None:
        addresses = reuse.addresses.map_addresses(addresses)
    ordinals = space.to_ordinals(addresses)
    ordinals_of = _split(segment, ordinals, {p: lengths[p] for p in in_file_order})
    rows_of = _split(segment, _payload_rows(segment, payload), {p: lengths[p] for p in to_copy})
    blocks = {p: _copied_block(segment, ordinals_of[p], rows_of[p]) for p in to_copy}
    if mapped is not None:
        blocks |= {p: _mapped_block(ordinals_of[p], mapped, in_place[p]) for p in in_place}
    return [blocks[p] for p in partitions]


def _addresses(mapped: MappedRows, bounds: dict[int, tuple[int, int]]) -> dict[int, int]:
    found = {p: mapped.address(start, end) for p, (start, end) in bounds.items()}
    return {p: address for p, address in found.items() if address is not None}


def _read(
    segment: VectorSegment,
    bounds: dict[int, tuple[int, int]],
    partitions: Sequence[int],
    to_copy: Sequence[int],
) -> tuple[pa.Array, pa.Array]:
    """Read row ids of all ``partitions`` and the payload of those to copy."""
    storage = segment.storage
    ranges = _filled(bounds, partitions)
    if len(to_copy) == len(partitions):
        row_ids, payload = storage.reader.read([storage.row_ids, storage.payload], ranges)
    else:
        (row_ids,) = storage.reader.read([storage.row_ids], ranges)
        (payload,) = storage.reader.read([storage.payload], _filled(bounds, to_copy))
    return row_ids, payload


def _filled(bounds: dict[int, tuple[int, int]], partitions: Sequence[int]) -> list[tuple[int, int]]:
    """Return the row ranges of the partitions that have rows."""
    return [bounds[p] for p in partitions if bounds[p][0] < bounds[p][1]]


def _split(
    segment: VectorSegment, rows: NDArray[T], lengths: dict[int, int]
) -> dict[int, NDArray[T]]:
    """Cut what was read for some partitions, in this order, into the part of each."""
    expected = sum(lengths.values())
    if len(rows) != expected:
        raise CorruptFileError(
            segment.storage.reader.path, f"{len(rows)} rows where {expected} were asked for"
        )
    ends = dict(zip(lengths, accumulate(lengths.values()), strict=True))
    return {p: rows[end - lengths[p] : end] for p, end in ends.items()}


def _row_addresses(segment: VectorSegment, row_ids: pa.Array) -> NDArray[np.uint64]:
    if row_ids.null_count > 0:
        raise CorruptFileError(segment.storage.reader.path, "a row address is null")
    addresses: NDArray[np.uint64] = row_ids.to_numpy(zero_copy_only=True)
    return addresses


def _payload_rows(segment: VectorSegment, payload: pa.Array) -> NDArray[np.generic]:
    """Return codes, shape ``(n, m)`` as stored, or vectors, shape ``(n, d)``."""
    width = payload.type.list_size
    values = payload.flatten()
    if payload.null_count > 0 or values.null_count > 0:
        raise CorruptFileError(segment.storage.reader.path, "a code or a vector is null")
    rows: NDArray[np.generic] = values.to_numpy(zero_copy_only=True).reshape(-1, width)
    return rows


def _copied_block(
    segment: VectorSegment, ordinals: NDArray[np.uint32], rows: NDArray[np.generic]
) -> PartitionBlock:
    """Copy a partition out of the batch, so that dropping the block frees its memory."""
    payload = _float_rows(rows) if segment.pq is None else _code_columns(segment, rows)
    own = ordinals.copy()
    row = (address_of(payload), address_of(own), len(own))
    return PartitionBlock(own, payload, row, payload.nbytes + own.nbytes)


def _float_rows(rows: NDArray[np.generic]) -> NDArray[np.float32]:
    return np.array(rows, np.float32)


def _code_columns(segment: VectorSegment, rows: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Return the codes of a partition column after column, as kernels want them.

    Stored so, they run over the partition's rows as one flat array (vector index page, 4.2).
    """
    if segment.pq is not None and segment.pq.is_transposed:
        return np.array(rows, np.uint8).reshape(rows.shape[1], rows.shape[0])
    return np.array(rows.T, np.uint8, order="C")


def _mapped_block(ordinals: NDArray[np.uint32], mapped: MappedRows, address: int) -> PartitionBlock:
    own = ordinals.copy()
    row = (address, address_of(own), len(own))
    return PartitionBlock(own, mapped.mapping, row, own.nbytes)
