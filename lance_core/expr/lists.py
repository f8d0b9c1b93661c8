"""Lists of values: items by position, and lists made of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.made_size import require_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.expr.convert import Values


def as_array(values: Values, num_rows: int) -> pa.Array:
    """Return a scalar as many times as there are rows, and an array as it is.

    Raises
    ------
    TypeMismatchError
        It would be too large; tells the limit.
    """
    if isinstance(values, pa.Array):
        return values
    if not values.is_valid:
        return pa.nulls(num_rows, values.type)
    require_size(pa.array([values], values.type).nbytes * num_rows)
    return pa.repeat(values, num_rows)


def with_offsets(lists: pa.Array) -> pa.Array:
    """Return lists of one length as lists of any."""
    if not pa.types.is_fixed_size_list(lists.type):
        return lists
    return lists.cast(pa.large_list(lists.type.value_type))


def item_at(lists: Values, index: Values, num_rows: int) -> pa.Array:
    """Return one item of each list.

    Parameters
    ----------
    lists
        The lists.
    index
        int64: 1 = the first, -1 = the last.
    num_rows
        For scalars.

    Returns
    -------
    pa.Array
        Shape ``(num_rows,)``; null where the list or the position is, or there is no such item.
    """
    lists = with_offsets(as_array(lists, num_rows))
    wanted = as_array(index, num_rows)
    is_known = pc.and_(lists.is_valid(), wanted.is_valid()).to_numpy(zero_copy_only=False)
    at = pc.fill_null(wanted, 0).to_numpy(zero_copy_only=False)
    starts = np.asarray(lists.offsets)[:-1].astype(np.int64)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    position = np.where(at > 0, at - 1, lengths + at)
    is_there = is_known & (at != 0) & (position >= 0) & (position < lengths)
    return lists.values.take(pa.array(starts + np.where(is_there, position, 0), mask=~is_there))


def made_list(values: Sequence[Values], kind: pa.DataType, num_rows: int) -> Values:
    """Return a list per row, of the values of some expressions in that row."""
    if all(isinstance(each, pa.Scalar) for each in values):
        return pa.scalar([each.as_py() for each in values], kind)
    columns = [as_array(each, num_rows) for each in values]
    number = len(columns)
    require_size(sum(each.nbytes for each in columns))
    order = np.arange(num_rows * number).reshape(number, num_rows).T.ravel()
    items = pa.concat_arrays(columns).take(pa.array(order))
    offsets = pa.array(np.arange(num_rows + 1, dtype=np.int64) * number)
    return pa.LargeListArray.from_arrays(offsets, items).cast(kind)
