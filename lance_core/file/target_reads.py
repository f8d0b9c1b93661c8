"""Reading one target as steps: the fast way where rows are found by arithmetic, else by pages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import fixed_width_rows, plain_rows
from lance_core.encodings.nested import leaf_array, nested_array
from lance_core.encodings.place import Place
from lance_core.encodings.rows import disjoint, runs_of
from lance_core.encodings.steps import together
from lance_core.encodings.version import FileVersion
from lance_core.file.nested_v2_0 import read_node
from lance_core.io.metering import current_meter
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.arrow_arrays import PlainValues
    from lance_core.encodings.page import Pieces
    from lance_core.encodings.steps import ReadSteps
    from lance_core.file.columns import ColumnTarget
    from lance_core.file.direct_column import DirectColumn
    from lance_core.file.file_columns import FileColumns
    from lance_core.ids import FieldId
    from lance_core.schema.field import LanceField


def read_target(
    columns: FileColumns, target: ColumnTarget, ranges: Sequence[tuple[int, int]]
) -> ReadSteps[pa.Array]:
    """Read row ranges in any order; they are inside the file."""
    direct = _direct(columns, target)
    data = None if direct is None else (yield from direct.read(ranges))
    if direct is not None and data is not None:
        return _rows(columns, target, direct, data)
    pieces, positions = disjoint(ranges)
    array = yield from _read_disjoint(columns, target, pieces)
    return array if positions is None else _pick_ranges(array, ranges, positions)


def take_target(
    columns: FileColumns, target: ColumnTarget, rows: NDArray[np.int64]
) -> ReadSteps[pa.Array]:
    """Read single rows in any order, repeats allowed; they are inside the file."""
    direct = _direct(columns, target)
    data = None if direct is None else (yield from direct.take(rows))
    if direct is not None and data is not None:
        return _rows(columns, target, direct, data)
    distinct, places = np.unique(rows, return_inverse=True)
    array = yield from _read_disjoint(columns, target, runs_of(distinct))
    if len(distinct) == len(rows) and bool((places == np.arange(len(rows))).all()):
        return array
    return array.take(pa.array(places))


def take_mapped(
    columns: FileColumns,
    target: ColumnTarget,
    whole: memoryview | None,
    rows: NDArray[np.int64],
) -> pa.Array | None:
    """Take rows by one kernel call, or return None where that is not possible.

    It is where ``whole``, the mapped file, is there and nothing has to be loaded first.
    """
    direct = _direct(columns, target)
    data = None if whole is None or direct is None else _take_metered(direct, whole, rows)
    return None if direct is None or data is None else _rows(columns, target, direct, data)


def take_plain(
    columns: FileColumns, target: ColumnTarget, whole: memoryview, rows: NDArray[np.int64]
) -> PlainValues | None:
    """Take rows like `take_mapped`, if their bytes are all there is to say of them."""
    direct = _direct(columns, target)
    if direct is None or direct.row_bytes != target.plain_bytes:
        return None
    data = _take_metered(direct, whole, rows)
    return None if data is None else plain_rows(data, direct.row_bytes, target.arrow_type)


def _take_metered(
    direct: DirectColumn, whole: memoryview, rows: NDArray[np.int64]
) -> NDArray[np.uint8] | None:
    data = direct.take_mapped(whole, rows)
    if data is not None:
        meter = current_meter()
        meter.bytes_read += len(data)
        meter.store_requests += 1
    return data


def is_direct(columns: FileColumns, target: ColumnTarget) -> bool:
    """Tell whether the rows of a target are found by arithmetic, as far as is known."""
    return _direct(columns, target) is not None


def _direct(columns: FileColumns, target: ColumnTarget) -> DirectColumn | None:
    column = columns.only(target)
    return None if column is None else column.direct


def _rows(
    columns: FileColumns, target: ColumnTarget, direct: DirectColumn, data: NDArray[np.uint8]
) -> pa.Array:
    if direct.row_bytes == target.plain_bytes:  # the usual case, worth a short way
        return plain_rows(data, direct.row_bytes, target.arrow_type).to_array()
    place = Place(columns.path, target.field.name)
    return fixed_width_rows(data, direct.row_bytes, target.arrow_type, place)


def _read_disjoint(
    columns: FileColumns, target: ColumnTarget, pieces: Pieces
) -> ReadSteps[pa.Array]:
    """Read ascending, disjoint ranges and check that all rows came."""
    array = yield from _read_pages(columns, target, pieces)
    wanted = sum(stop - start for start, stop in pieces)
    if len(array) != wanted:
        place = Place(columns.path, target.field.name)
        raise place.corrupt(f"the pages hold {len(array)} of the {wanted} rows asked for")
    return array


def _read_pages(columns: FileColumns, target: ColumnTarget, pieces: Pieces) -> ReadSteps[pa.Array]:
    column = columns.only(target)
    if column is not None:
        pages = yield from column.read(pieces)
        return leaf_array(pages, target.arrow_type, column.place)
    if columns.version is FileVersion.V2_0:
        return (yield from read_node(target.field, partial(columns.of_field, target), pieces))
    leaves = list(target.field.leaves())
    scales = _rows_per_row(target.field)
    data = yield from together(
        [columns.of_field(target, leaf).read(_scaled(pieces, scales[leaf.id])) for leaf in leaves]
    )
    by_leaf = {leaf.id: pages for leaf, pages in zip(leaves, data, strict=True)}
    return nested_array(target.field, by_leaf, Place(columns.path, target.field.name))


def _rows_per_row(field: LanceField, factor: int = 1) -> dict[FieldId, int]:
    """Return for each leaf how many of its rows stand for one row of ``field``.

    Pages below fixed-size lists of structs count elements as rows (file format, section 4.2).
    """
    if field.owns_column:
        return {field.id: factor}
    if field.logical_type.startswith("fixed_size_list:"):
        factor *= arrow_type(field).list_size
    return {
        leaf: rows
        for child in field.children
        for leaf, rows in _rows_per_row(child, factor).items()
    }


def _scaled(pieces: Pieces, factor: int) -> Pieces:
    if factor == 1:
        return pieces
    return [(start * factor, stop * factor) for start, stop in pieces]


def _pick_ranges(
    array: pa.Array, ranges: Sequence[tuple[int, int]], positions: Sequence[int]
) -> pa.Array:
    """Return the rows of all ranges; range ``i`` begins at ``positions[i]`` of the array."""
    parts = [
        array.slice(position, stop - start)
        for (start, stop), position in zip(ranges, positions, strict=True)
    ]
    return pa.concat_arrays(parts)
