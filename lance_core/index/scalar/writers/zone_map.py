"""Writing a ZONEMAP: least and greatest value, nulls and NaNs of each zone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.index.scalar.keys import has_order, keys_of
from lance_core.index.scalar.tree_map import encode_tree_map
from lance_core.index.scalar.writers.growing_set import GrowingSet
from lance_core.index.scalar.writers.zones import PLACE_FIELDS, Places, cut_zones

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.index.scalar.writers.indexed_rows import IndexedRows
    from lance_core.index.segment_files import SegmentFiles

ZONE_MAP_FILE = "zonemap.lance"
_COUNTS = ("null_count", "nan_count")


def write_zone_map(
    rows: Iterable[IndexedRows], kind: pa.DataType, files: SegmentFiles, zone_rows: int
) -> None:
    """Write the file of a ZONEMAP.

    Parameters
    ----------
    rows
        As `cut_zones` takes them.
    kind
        Type of the values.
    files
        Takes the file.
    zone_rows
        Rows of a zone.

    Notes
    -----
    Scalar index page, section 6. Memory grows with the zones, not with the rows. Zones of nested
    columns, dictionaries and nulls have no bounds, as those of pylance 14.0.2: readers learn from
    them which rows are null. It takes columns of the type null for having none, which is wrong.
    """
    places, nulls, bounds = Places(), GrowingSet(), _Bounds(kind)
    for zone in cut_zones(rows, zone_rows):
        places.add(zone)
        nulls.add_nulls(zone)
        bounds.add(zone.values)
    schema = zone_map_schema(kind)
    columns = [*bounds.columns(), *places.columns()]
    with files.create(ZONE_MAP_FILE, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        number = writer.add_global_buffer(encode_tree_map(nulls.rows))
        writer.add_schema_metadata("null_bitmap", str(number))
        writer.add_schema_metadata("rows_per_zone", str(zone_rows))


def zone_map_schema(kind: pa.DataType) -> pa.Schema:
    """Return the schema of the file for values of a type."""
    counts = [pa.field(name, pa.uint32(), nullable=False) for name in _COUNTS]
    return pa.schema([("min", kind), ("max", kind), *counts, *PLACE_FIELDS])


class _Bounds:
    """Bounds and counts of zones, gathered as they pass."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._has_order = has_order(kind)
        self._least: list[pa.Array] = []
        self._greatest: list[pa.Array] = []
        self._num_nulls: list[int] = []
        self._num_nans: list[int] = []

    def add(self, values: pa.Array) -> None:
        self._num_nulls.append(values.null_count)
        if self._has_order:
            self._add_values(values.drop_null())
        else:
            self._num_nans.append(0)

    def _add_values(self, known: pa.Array) -> None:
        num_nans = 0
        if pa.types.is_floating(self._kind):
            is_nan = np.isnan(known.to_numpy())
            num_nans = int(is_nan.sum())
            known = known.filter(pa.array(~is_nan))
        least, greatest = _bounds(known)
        if num_nans > 0:  # of either sign: readers look for NaNs by the count
            greatest = pa.array(np.full(1, np.nan, self._kind.to_pandas_dtype()))
        self._least.append(least)
        self._greatest.append(greatest)
        self._num_nans.append(num_nans)

    def columns(self) -> list[pa.Array]:
        if self._has_order:
            none = pa.array([], self._kind)
            bounds = [pa.concat_arrays([none, *each]) for each in (self._least, self._greatest)]
        else:
            bounds = [pa.nulls(len(self._num_nulls), self._kind)] * 2
        counts = [pa.array(each, pa.uint32()) for each in (self._num_nulls, self._num_nans)]
        return bounds + counts


def _bounds(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the least and the greatest value, neither null nor NaN; null if there is none."""
    if len(values) == 0:
        return pa.nulls(1, values.type), pa.nulls(1, values.type)
    if pa.types.is_floating(values.type):
        return _float_bounds(values)
    try:
        found = pc.min_max(values)
    except pa.ArrowNotImplementedError:  # as of durations and some decimals
        order = keys_of(values).order()
        return values.slice(int(order[0]), 1), values.slice(int(order[-1]), 1)
    return pa.repeat(found["min"], 1), pa.repeat(found["max"], 1)


def _float_bounds(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return bounds of which both zeros are within, whichever there is."""
    numbers = values.to_numpy()
    least, greatest = numbers.min(), numbers.max()
    bounds = (-abs(least) if least == 0 else least, abs(greatest) if greatest == 0 else greatest)
    low, high = (pa.array(np.array([each], numbers.dtype)) for each in bounds)
    return low, high
