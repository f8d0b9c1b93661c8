"""Lists and structs of Arrow taken apart and put together as another type of the same form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable

    Convert = Callable[[pa.Array, pa.DataType], pa.Array]
    """Returns values as another type."""

_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def as_lists(array: pa.Array, kind: pa.DataType, convert: Convert) -> pa.Array:
    """Return lists of any kind as lists with offsets.

    Parameters
    ----------
    array
        Lists.
    kind
        ``list`` or ``large_list``.
    convert
        What is done with the items.

    Raises
    ------
    UnsupportedFeatureError
        There are more items than offsets of 32 bits count.
    InvalidRequestError
        They are no lists.
    """
    _check(array, "lists", *_LISTS)
    items = convert(array.flatten(), kind.value_type)
    offsets = _offsets(array)
    mask = null_mask(array)
    if pa.types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(offsets, items, type=kind, mask=mask)
    if offsets[-1].as_py() > np.iinfo(np.int32).max:
        raise UnsupportedFeatureError("a batch has over 2^31 items in lists; read fewer rows")
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), items, type=kind, mask=mask)


def as_structs(array: pa.Array, kind: pa.DataType, convert: Convert) -> pa.Array:
    """Return structs with the parts of ``kind``, in its order; each goes through ``convert``.

    Raises
    ------
    InvalidRequestError
        The parts have other names, or there are none.
    """
    _check(array, "structs", pa.types.is_struct)
    children = dict(zip((each.name for each in array.type), array.flatten(), strict=True))
    wanted = [field.name for field in kind]
    if sorted(children) != sorted(wanted):
        raise InvalidRequestError(f"the parts of a struct are {list(children)}, not {wanted}")
    if kind.num_fields == 0:
        return pc.cast(array, kind)
    parts = [convert(children[field.name], field.type) for field in kind]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=null_mask(array))


def as_maps(array: pa.Array, kind: pa.DataType, convert: Convert) -> pa.Array:
    """Return maps as those of another type; keys and values go through ``convert``.

    Raises ``InvalidRequestError`` where they are no maps.
    """
    _check(array, "maps", pa.types.is_map)
    start, stop = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
    keys = convert(array.keys.slice(start, stop - start), kind.key_type)
    items = convert(array.items.slice(start, stop - start), kind.item_type)
    offsets = pc.subtract(array.offsets, start)
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=null_mask(array))


def null_mask(array: pa.Array) -> pa.Array | None:
    """Return which values are null, None if none is."""
    return array.is_null() if array.null_count > 0 else None


def _check(array: pa.Array, what: str, *kinds: Callable[[pa.DataType], bool]) -> None:
    if not any(holds(array.type) for holds in kinds):
        raise InvalidRequestError(f"values of type {array.type} are no {what}")


def _offsets(array: pa.Array) -> pa.Array:
    """Return where lists begin among their flattened items; null ones are empty."""
    if pa.types.is_fixed_size_list(array.type):
        lengths = np.full(len(array), array.type.list_size, np.int64)
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
    else:
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
    return pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))
