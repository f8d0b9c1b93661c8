"""What RaBitQ makes of a query: tables for products with codes, and terms of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.distance import inner_product, squared_l2
from lance_core.kernels.rq_extra import fill_weights
from lance_core.kernels.rq_rotation import rotate
from lance_core.kernels.rq_tables import (
    GROUP_ENTRIES,
    NUM_ENTRIES,
    fill_groups,
    join_floats,
    round_groups,
)
from lance_core.kernels.uncounted import uncounted

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BYTE_DIMENSIONS = 8
_GROUP_DIMENSIONS = 4


class Tables(NamedTuple):
    """Memory for one rotated query, of shape ``(d,)``, and what is looked up by codes.

    ``groups``, shape ``(d / 4, 16)``, holds a sum per nibble of sign code, ``lower`` and ``upper``
    the two bytes of these as whole numbers, ``floats``, shape ``(d / 8, 256)``, a sum per byte.
    ``weights`` belong to the fields of extra codes.
    """

    rotated: NDArray[np.float32]
    groups: NDArray[np.float32]
    lower: NDArray[np.uint8]
    upper: NDArray[np.uint8]
    floats: NDArray[np.float32]
    weights: NDArray[np.float32]


class Scale(NamedTuple):
    """What whole numbers stand for, and the sum over the rotated query.

    An inner product is about ``step * whole + offset``.
    """

    step: np.float32
    offset: np.float32
    total: np.float32


class Terms(NamedTuple):
    """What a partition makes of its rows' factors, which were formed without the query.

    A factor ``f`` adds ``ratio * (f - origin) + shift`` to the distance of its row, the product
    with the scale factor counts ``gain`` times and the error factor ``slack`` times.
    """

    ratio: np.float32
    origin: np.float32
    shift: np.float32
    gain: np.float32
    slack: np.float32


@kernel(ordered=True)
def new_tables(dimension: int, num_weights: int) -> Tables:
    """Return memory for queries of a dimension, not filled."""
    num_groups = dimension // _GROUP_DIMENSIONS
    return Tables(
        np.empty(dimension, np.float32),
        np.empty((num_groups, GROUP_ENTRIES), np.float32),
        np.empty((num_groups, GROUP_ENTRIES), np.uint8),
        np.empty((num_groups, GROUP_ENTRIES), np.uint8),
        np.empty((dimension // _BYTE_DIMENSIONS, NUM_ENTRIES), np.float32),
        np.empty(num_weights, np.float32),
    )


@kernel(ordered=True)
def view_tables(tables: Tables) -> Tables:
    """Return the same memory by views that are not counted."""
    return Tables(
        uncounted(tables.rotated),
        uncounted(tables.groups),
        uncounted(tables.lower),
        uncounted(tables.upper),
        uncounted(tables.floats),
        uncounted(tables.weights),
    )


@kernel(ordered=True)
def fill_tables(
    vector: NDArray[np.float32],
    signs: NDArray[np.float32],
    matrix: NDArray[np.float32],
    dimensions: NDArray[np.int64],
    factors: NDArray[np.float32],
    levels: int,
    tables: Tables,
) -> Scale:
    """Rotate a vector and fill the tables for it.

    Parameters
    ----------
    vector
        Shape ``(d,)``: the query, or its residual where codes were made for that.
    signs, matrix
        The rotation, as `lance_core.kernels.rq_rotation.rotate` takes it.
    dimensions, factors
        Of the extra codes' fields, as `lance_core.kernels.rq_extra.fill_weights` takes them.
    levels
        The largest whole number; 0 = none are wanted.
    """
    rotate(vector, signs, matrix, tables.rotated)
    total = np.float32(0)
    for value in tables.rotated:
        total += value
    fill_groups(tables.rotated, tables.groups)
    join_floats(tables.groups, tables.floats)
    fill_weights(tables.rotated, dimensions, factors, tables.weights)
    step, offset = np.float32(0), np.float32(0)
    if levels > 0:
        step, offset = round_groups(tables.groups, np.float32(levels), tables.lower, tables.upper)
    return Scale(step, offset, total)


@kernel(ordered=True)
def terms_of(
    query: NDArray[np.float32],
    centroid: NDArray[np.float32],
    residual: NDArray[np.float32],
    is_residual: bool,
    is_dot: bool,
) -> Terms:
    """Return the terms of the partition around a centroid.

    Parameters
    ----------
    query, centroid
        Shape ``(d,)``, not rotated: a rotation keeps every product that is needed here.
    residual
        Shape ``(d,)``: query less centroid.
    is_residual
        Codes were made for inner products with the residual, not with the query.
    is_dot
        Distances are ``1 - q.x``, otherwise squared l2.
    """
    zero, one = np.float32(0), np.float32(1)
    square = inner_product(residual, residual)
    product = inner_product(query, centroid)
    if is_residual:
        gain = np.float32(2) / np.sqrt(np.float32(len(query)))
        return Terms(one, zero, -product if is_dot else square, gain, zero)
    if not is_dot:
        return Terms(one, zero, square, one, np.sqrt(square))
    ratio = product / inner_product(centroid, centroid)
    if not np.isfinite(ratio):
        ratio = zero
    slack = np.sqrt(squared_l2(ratio * centroid, query))
    return Terms(ratio, one, one - product, one, slack)
