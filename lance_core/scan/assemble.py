"""From arrays of the stored columns and the offsets of the rows to the columns of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.scan.projection import PseudoColumn
from lance_core.schema.arrow import part_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.scan.projection import Projection


def record_batch(
    projection: Projection,
    stored: Sequence[pa.Array],
    row_addresses: NDArray[np.uint64],
    row_ranks: NDArray[np.int64] | None,
) -> pa.RecordBatch:
    """Put the columns of a projection together; parameters as ``arrays_of``."""
    if not projection.columns:
        return pa.RecordBatch.from_struct_array(pa.nulls(len(row_addresses), pa.struct([])))
    arrays = arrays_of(projection, stored, row_addresses, row_ranks)
    return pa.RecordBatch.from_arrays(arrays, schema=projection.schema)


def arrays_of(
    projection: Projection,
    stored: Sequence[pa.Array],
    row_addresses: NDArray[np.uint64],
    row_ranks: NDArray[np.int64] | None,
) -> list[pa.Array]:
    """Return one array per column of a projection.

    Parameters
    ----------
    stored
        One array per field of the projection, each with one value per row.
    row_addresses
        Shape ``(n,)``.
    row_ranks
        Shape ``(n,)``. Rank of each row among the live rows of the table; None unless the
        projection has ``_rowoffset``.
    """
    remaining = iter(stored)
    return [
        _pseudo_array(column.source, row_addresses, row_ranks)
        if isinstance(column.source, PseudoColumn)
        else part_of(next(remaining), column.way)
        for column in projection.columns
    ]


def _pseudo_array(
    column: PseudoColumn,
    row_addresses: NDArray[np.uint64],
    row_ranks: NDArray[np.int64] | None,
) -> pa.Array:
    if column in (PseudoColumn.ROW_ID, PseudoColumn.ROW_ADDRESS):
        return pa.array(row_addresses)
    if column is PseudoColumn.ROW_OFFSET and row_ranks is not None:
        return pa.array(row_ranks.astype(np.uint64))
    return pa.array(np.ones(len(row_addresses), np.uint64))
