"""From arrays of the stored columns and the values of the others to the columns of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.scan.projection import PseudoColumn
from lance_core.schema.arrow import part_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.scan.projection import Projection
    from lance_core.scan.pseudo_values import PseudoValues


def record_batch(
    projection: Projection, stored: Sequence[pa.Array], pseudo: PseudoValues, num_rows: int
) -> pa.RecordBatch:
    """Put ``num_rows`` rows of a projection together; other parameters as ``arrays_of``."""
    if not projection.columns:
        return pa.RecordBatch.from_struct_array(pa.nulls(num_rows, pa.struct([])))
    arrays = arrays_of(projection, stored, pseudo)
    return pa.RecordBatch.from_arrays(arrays, schema=projection.schema)


def arrays_of(
    projection: Projection, stored: Sequence[pa.Array], pseudo: PseudoValues
) -> list[pa.Array]:
    """Return one array per column of a projection.

    Parameters
    ----------
    stored
        One array per field of the projection, each with one value per row.
    pseudo
        Values of all its pseudo columns.
    """
    remaining = iter(stored)
    return [
        pa.array(pseudo[column.source])
        if isinstance(column.source, PseudoColumn)
        else part_of(next(remaining), column.way)
        for column in projection.columns
    ]


def joined_columns(parts: Sequence[Sequence[pa.Array]]) -> list[pa.Array]:
    """Return the columns of all parts, one part's rows after another's."""
    return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]
