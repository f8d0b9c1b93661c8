"""Searching partitions that hold RaBitQ codes.

One bit per dimension gives an estimate of every row's distance and a bound below it; only rows that
the bound does not rule out (about 1 %) have their extra codes read. Rows are taken in the order of
the file and ruled out by the worst distance kept at that moment, as pylance does, because a bound
holds with high probability only: another order would find other rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, prefetch_bytes, uint32_at, uint64_at
from lance_core.kernels.rq_candidates import ExtraCodes, offer_candidates, view_codes
from lance_core.kernels.rq_estimate import (
    STEP_ROWS,
    estimate,
    lower_by_errors,
    multiply_signs,
    new_room,
    view_room,
)
from lance_core.kernels.rq_heap import open_heap
from lance_core.kernels.rq_query import Scale, fill_tables, new_tables, terms_of, view_tables
from lance_core.kernels.rq_rotation import NUM_ROUNDS
from lance_core.kernels.topk import TopRows, offer_rows
from lance_core.kernels.uncounted import uncounted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.kernels.rq_estimate import Room
    from lance_core.kernels.rq_query import Tables, Terms

ROUNDED = 255
ROUNDED_FINELY = 65535
EXACT = 0

# Columns of a partition's row in the table of blocks.
_CODES, _ORDINALS, _COUNT, _ADD, _SCALE, _ERROR, _EXTRA, _ADD_EXTRA, _SCALE_EXTRA = range(9)

_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class RabitCodes:
    """How vectors were coded.

    Parameters
    ----------
    signs, matrix
        The rotation, as `lance_core.kernels.rq_rotation.rotate` takes it.
    num_extra_bits
        Bits per dimension beside the sign, 0 to 8.
    row_bytes
        Bytes of one row's extra codes.
    fields, dimensions, factors
        Where these lie, as `lance_core.kernels.rq_extra` takes them.
    is_residual
        Factors were made for inner products with the query's residual, not with the query.
    is_dot
        Distances are ``1 - q.x``, otherwise squared l2.
    """

    signs: NDArray[np.float32]
    matrix: NDArray[np.float32]
    num_extra_bits: int
    row_bytes: int
    fields: NDArray[np.int64]
    dimensions: NDArray[np.int64]
    factors: NDArray[np.float32]
    is_residual: bool
    is_dot: bool


def search_rq(
    blocks: NDArray[np.int64],
    probes: NDArray[np.int64],
    query: NDArray[np.float32],
    centroids: NDArray[np.float32],
    codes: RabitCodes,
    words: NDArray[np.uint64],
    top: TopRows,
    *,
    levels: int,
    use_extra: bool,
) -> None:
    """Offer every row of some partitions to ``top``.

    Parameters
    ----------
    blocks
        Shape ``(n, 5)`` or ``(n, 9)``, C-contiguous and writable. Per partition: address of its
        sign codes, packed (`lance_core.kernels.rq_signs`); address of its uint32 ordinals; number
        of rows; addresses of the float32 factors to add and to scale by; then, with extra codes, of
        the error factors, the extra codes row by row, and the factors to add and to scale by that
        belong to them. The caller keeps the memory alive.
    probes
        Shape ``(n,)``: the partitions, to find their centroids.
    query
        Shape ``(d,)``, C-contiguous and writable; of unit length for cosine.
    centroids
        Shape ``(P, d)``, C-contiguous and writable.
    words
        Dense bitset over ordinals; only rows whose bit is set are kept.
    top
        Receives the nearest rows; NaN distances never enter.
    levels
        How inner products with signs are rounded: `ROUNDED`, `ROUNDED_FINELY` or `EXACT`.
    use_extra
        Estimate by the extra codes too, if there are any.

    Notes
    -----
    Vector index page, section 4.4. Rows behind the last full block of 32 are never rounded.
    """
    if top.k == 0:
        return
    _search_rq(
        blocks,
        probes,
        query,
        centroids,
        codes.signs,
        codes.matrix,
        codes.fields,
        codes.dimensions,
        codes.factors,
        codes.num_extra_bits if use_extra else 0,
        codes.row_bytes,
        codes.is_residual,
        codes.is_dot,
        levels,
        address_of(words),
        len(words),
        top.keys,
        top.state,
        top.k,
        top.lower,
    )


@kernel
def prefetch_partition(row: NDArray[np.int64], num_bytes: int, num_extra_bits: int) -> None:
    """Ask for what is read of every row: arrays too short for the processor to see them coming."""
    count = row[_COUNT]
    prefetch_bytes(row[_CODES], count * num_bytes)
    prefetch_bytes(row[_ADD], count * _FLOAT_BYTES)
    prefetch_bytes(row[_SCALE], count * _FLOAT_BYTES)
    if num_extra_bits > 0:
        prefetch_bytes(row[_ERROR], count * _FLOAT_BYTES)


@kernel(ordered=True)
def scan_partition(
    row: NDArray[np.int64],
    levels: int,
    tables: Tables,
    scale: Scale,
    terms: Terms,
    model: ExtraCodes,
    room: Room,
    words: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
) -> None:
    """Offer the rows of one partition, given by its row of the table of blocks."""
    count = row[_COUNT]
    for first in range(0, count, STEP_ROWS):
        rows = min(STEP_ROWS, count - first)
        behind = first * _FLOAT_BYTES
        ordinals = uint32_at(row[_ORDINALS] + behind, rows)
        products, distances = room.products[:rows], room.distances[:rows]
        multiply_signs(row[_CODES], first, count, levels, tables, scale, room, products)
        add, factor = row[_ADD] + behind, row[_SCALE] + behind
        estimate(products, add, factor, scale.total, terms, distances)
        if model.num_bits == 0:
            offer_rows(distances, ordinals, words, keys, state, k, lower)
            continue
        lower_by_errors(row[_ERROR] + behind, terms.slack, distances)
        extra = ExtraCodes(
            row[_EXTRA] + first * model.row_bytes,
            row[_ADD_EXTRA] + behind,
            row[_SCALE_EXTRA] + behind,
            model.row_bytes,
            model.num_bits,
            model.fields,
        )
        offer_candidates(
            distances,
            products,
            ordinals,
            words,
            extra,
            tables.weights,
            scale.total,
            terms,
            keys,
            state,
            k,
            lower,
        )


@kernel(ordered=True)
def _search_rq(
    blocks: NDArray[np.int64],
    probes: NDArray[np.int64],
    query: NDArray[np.float32],
    centroids: NDArray[np.float32],
    signs: NDArray[np.float32],
    matrix: NDArray[np.float32],
    fields: NDArray[np.int64],
    dimensions: NDArray[np.int64],
    factors: NDArray[np.float32],
    num_extra_bits: int,
    row_bytes: int,
    is_residual: bool,
    is_dot: bool,
    levels: int,
    words_address: int,
    num_words: int,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
) -> None:
    # Held here, as what is called goes by views that are not counted.
    tables = new_tables(len(query), len(factors))
    room = new_room(0 if levels > 0 else len(tables.floats))
    _scan_partitions(
        blocks,
        probes,
        query,
        centroids,
        signs,
        matrix,
        ExtraCodes(0, 0, 0, row_bytes, num_extra_bits, fields),
        dimensions,
        factors,
        is_residual,
        is_dot,
        levels,
        uint64_at(words_address, num_words),
        keys,
        state,
        k,
        lower,
        tables,
        room,
    )


@kernel(ordered=True)
def _scan_partitions(
    blocks: NDArray[np.int64],
    probes: NDArray[np.int64],
    held_query: NDArray[np.float32],
    held_centroids: NDArray[np.float32],
    signs: NDArray[np.float32],
    matrix: NDArray[np.float32],
    held_model: ExtraCodes,
    dimensions: NDArray[np.int64],
    factors: NDArray[np.float32],
    is_residual: bool,
    is_dot: bool,
    levels: int,
    words: NDArray[np.uint64],
    held_keys: NDArray[np.uint64],
    held_state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
    held_tables: Tables,
    held_room: Room,
) -> None:
    model, tables, room = view_codes(held_model), view_tables(held_tables), view_room(held_room)
    query, centroids = uncounted(held_query), uncounted(held_centroids)
    keys, state = uncounted(held_keys), uncounted(held_state)
    scale = Scale(np.float32(0), np.float32(0), np.float32(0))
    if model.num_bits > 0:
        open_heap(keys, state, k)
    for block in range(len(blocks)):
        if block + 1 < len(blocks):
            prefetch_partition(blocks[block + 1], len(tables.floats), model.num_bits)
        centroid = centroids[probes[block]]
        residual = query - centroid
        terms = terms_of(query, centroid, residual, is_residual, is_dot)
        if block == 0 or is_residual:
            vector = residual if is_residual else query
            scale = fill_tables(vector, signs, matrix, dimensions, factors, levels, tables)
        scan_partition(
            blocks[block],
            levels,
            tables,
            scale,
            terms,
            model,
            room,
            words,
            keys,
            state,
            k,
            lower,
        )


@warmup
def _warm() -> None:
    codes = np.zeros(2, np.uint8)
    ordinals, factors = np.arange(2, dtype=np.uint32), np.ones(2, np.float32)
    model = RabitCodes(
        signs=np.ones((NUM_ROUNDS, 8), np.float32),
        matrix=np.empty((0, 8), np.float32),
        num_extra_bits=1,
        row_bytes=1,
        fields=np.array([[0, 1, 0, 1]], np.int64),
        dimensions=np.zeros(1, np.int64),
        factors=np.ones(1, np.float32),
        is_residual=False,
        is_dot=False,
    )
    one = address_of(factors)
    row = [address_of(codes), address_of(ordinals), 2, one, one, one, address_of(codes), one, one]
    search_rq(
        np.array([row], np.int64),
        np.zeros(1, np.int64),
        np.ones(8, np.float32),
        np.ones((1, 8), np.float32),
        model,
        np.ones(1, np.uint64),
        TopRows(1, 2),
        levels=ROUNDED,
        use_extra=True,
    )
