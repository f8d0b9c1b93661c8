"""Distances that RaBitQ's sign codes tell, and bounds below the true ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import float32_at
from lance_core.kernels.rq_signs import BLOCK_ROWS, unpack_blocks
from lance_core.kernels.rq_tables import sum_blocks, sum_floats
from lance_core.kernels.uncounted import uncounted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.kernels.rq_query import Scale, Tables, Terms


STEP_ROWS = 1024
"""Rows that are looked at together, whole blocks but for the last; their numbers stay in L1."""

_ONE, _UPPER = np.uint32(1), np.uint32(256)


class Room(NamedTuple):
    """Scratch for one step; ``columns`` are of unpacked codes, one per byte."""

    part: NDArray[np.uint16]
    sums: NDArray[np.uint32]
    columns: NDArray[np.uint8]
    products: NDArray[np.float32]
    distances: NDArray[np.float32]


@kernel(ordered=True)
def new_room(num_bytes: int) -> Room:
    """Return scratch for codes of ``num_bytes`` per row; without columns for 0."""
    return Room(
        np.empty(STEP_ROWS, np.uint16),
        np.empty(STEP_ROWS, np.uint32),
        np.empty((num_bytes, STEP_ROWS), np.uint8),
        np.empty(STEP_ROWS, np.float32),
        np.empty(STEP_ROWS, np.float32),
    )


@kernel(ordered=True)
def view_room(room: Room) -> Room:
    """Return the same scratch by views that are not counted."""
    return Room(
        uncounted(room.part),
        uncounted(room.sums),
        uncounted(room.columns),
        uncounted(room.products),
        uncounted(room.distances),
    )


@kernel(ordered=True)
def multiply_signs(
    codes_address: int,
    first: int,
    count: int,
    levels: int,
    tables: Tables,
    scale: Scale,
    room: Room,
    products: NDArray[np.float32],
) -> None:
    """Write the inner product of the rotated query with the signs of rows, 0 or 1 each.

    Parameters
    ----------
    codes_address
        Where the packed codes of the partition lie.
    first
        The first of the rows, which begins a step.
    count
        Rows of the partition.
    levels
        The largest of the whole numbers that products are summed from; 0 = sum floats. Rows behind
        the last full block are summed from floats always.
    products
        Shape ``(n,)``, one per row of the step.
    """
    num_bytes = len(tables.floats)
    whole = count - count % BLOCK_ROWS
    packed = min(whole - first, len(products))
    if levels > 0:
        round_products(
            codes_address + first * num_bytes, levels, tables, scale, room, products[:packed]
        )
    elif packed > 0:
        unpack_blocks(codes_address + first * num_bytes, room.columns, packed)
        sum_floats(room.columns.ctypes.data, STEP_ROWS, tables.floats, products[:packed])
    if packed < len(products):
        rest = codes_address + whole * num_bytes
        sum_floats(rest, count - whole, tables.floats, products[packed:])


@kernel(ordered=True)
def round_products(
    codes_address: int,
    levels: int,
    tables: Tables,
    scale: Scale,
    room: Room,
    products: NDArray[np.float32],
) -> None:
    """Write the products of full blocks, summed from whole numbers."""
    sums = room.sums[: len(products)]
    sums[:] = np.uint32(0)
    sum_blocks(codes_address, tables.lower, _ONE, room.part, sums)
    if levels >= _UPPER:
        sum_blocks(codes_address, tables.upper, _UPPER, room.part, sums)
    for i in range(len(products)):
        products[i] = np.float32(np.int32(sums[i])) * scale.step + scale.offset


@kernel(ordered=True)
def estimate(
    products: NDArray[np.float32],
    add_address: int,
    scale_address: int,
    total: np.float32,
    terms: Terms,
    distances: NDArray[np.float32],
) -> None:
    """Write the distances that the sign codes tell.

    Parameters
    ----------
    products
        Shape ``(n,)``: inner products of the rotated query with signs.
    add_address, scale_address
        Where the float32 factors of these rows lie.
    total
        The sum over the rotated query.
    distances
        Shape ``(n,)``.
    """
    add = float32_at(add_address, len(products))
    scale = float32_at(scale_address, len(products))
    middle = total / np.float32(2)
    for i in range(len(products)):
        known = terms.ratio * (add[i] - terms.origin) + terms.shift
        distances[i] = (products[i] - middle) * terms.gain * scale[i] + known


@kernel(ordered=True)
def lower_by_errors(error_address: int, slack: np.float32, distances: NDArray[np.float32]) -> None:
    """Turn estimates, shape ``(n,)``, into bounds; infinite errors make bounds that say nothing."""
    error = float32_at(error_address, len(distances))
    for i in range(len(distances)):
        distances[i] -= error[i] * slack
