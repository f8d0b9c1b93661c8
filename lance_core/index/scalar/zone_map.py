"""ZONEMAP: least and greatest value, nulls and NaNs of each zone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.registry import IndexKind
from lance_core.index.scalar.key_ranges import can_be_ranges, key_ranges
from lance_core.index.scalar.keys import has_order
from lance_core.index.scalar.null_rows import ZONE_NULLS, NullRows
from lance_core.index.scalar.zone_bounds import ZoneBounds
from lance_core.index.scalar.zone_segment import ZoneSegment
from lance_core.index.scalar.zones import ZONE_COLUMNS, whole_numbers, zones_of
from lance_core.index.stored_columns import read_stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.segment import Check, ScalarSource

_FILE = "zonemap.lance"
_COUNTS = {"null_count": pa.uint32(), "nan_count": pa.uint32()}


def open_zone_map(source: ScalarSource) -> ZoneSegment:
    """Read the file of a segment; errors as ``open_scalar_segment``.

    Notes
    -----
    Scalar index page, section 6. What the manifest tells of the segment is not needed, and whether
    there is a set of null rows it does not always tell right.
    """
    reader = source.open(_FILE)
    kind, path = source.column_type, reader.path
    values = {"min": kind, "max": kind} if has_order(kind) else {}
    columns = read_stored(reader, {**ZONE_COLUMNS, **_COUNTS, **values})
    zones = zones_of(columns[:3], path)
    nulls, nans = (whole_numbers(column, path) for column in columns[3:5])
    contents = None
    if len(values) > 0:
        is_empty = nulls + nans >= zones.lengths.astype(np.uint64)
        contents = _Values(ZoneBounds.of(columns[5], columns[6], nans > 0, is_empty), kind)
    return ZoneSegment(
        IndexKind.ZONEMAP,
        reader,
        source.built_from,
        zones,
        nulls > 0,
        NullRows.find(source, reader, ZONE_NULLS),
        contents,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """Values of a type by their bounds."""

    bounds: ZoneBounds
    type: pa.DataType

    @property
    def nbytes(self) -> int:
        return self.bounds.nbytes

    @property
    def num_parts(self) -> int:
        return 0

    def load_parts(self, start: int, stop: int) -> int:
        return 0

    def supports(self, query: LeafQuery) -> bool:
        return not self.bounds.tells_nothing and can_be_ranges(query, self.type)

    def may_hold(self, query: LeafQuery, check: Check) -> NDArray[np.bool_]:
        return self.bounds.may_hold(key_ranges(query))
