"""Columns of Spark as a dataset stores them.

Nothing is rounded: what does not fit its column is refused, but floats become halves as they can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError
from pipeline.nested_arrays import as_lists, as_maps, as_structs, null_mask

if TYPE_CHECKING:
    from collections.abc import Callable

_FLOAT32_BYTES = 4


def storable(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of Spark as a dataset stores them.

    Parameters
    ----------
    batch
        Rows as Spark hands them to Python.
    schema
        Columns of the dataset, in its order; those that the rows have not are left out.

    Raises
    ------
    InvalidRequestError
        A value does not fit its column.
    """
    fields = [field for field in schema if field.name in batch.schema.names]
    arrays = [_storable_column(batch.column(field.name), field) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def storable_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values of Spark as a type of a dataset.

    Raises
    ------
    InvalidRequestError
        A list has not the length of a vector, bytes are no vector, or values have another form.
    pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError
        A value does not fit.
    """
    if array.type == kind:
        return array
    if pa.types.is_null(array.type) and not _is_extension(kind):
        return pa.nulls(len(array), kind)
    for holds, make in _RULES:
        if holds(kind):
            return make(array, kind)
    return pc.cast(array, kind)


def _storable_column(array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return storable_array(array, field.type)
    except (InvalidRequestError, pa.ArrowException) as error:
        raise InvalidRequestError(
            f"column {field.name!r} is {array.type} in the rows and {field.type} in the dataset:"
            f" {error}"
        ) from None


def _as_extension(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storable_array(array, kind.storage_type))


def _as_dictionary(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return storable_array(array, kind.value_type).dictionary_encode().cast(kind)


def _as_lists(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return as_lists(array, kind, storable_array)


def _as_maps(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return as_maps(array, kind, storable_array)


def _as_structs(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return as_structs(array, kind, storable_array)


def _as_vectors(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return lists, or the bytes of float32, as lists of one length."""
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        array = _lists_of_bytes(array, kind)
    size = kind.list_size
    lengths = pc.list_value_length(array)
    wrong = pc.fill_null(pc.not_equal(lengths, size), False)
    if pc.any(wrong).as_py():
        row = int(np.flatnonzero(wrong.to_numpy(zero_copy_only=False))[0])
        raise InvalidRequestError(
            f"a list has {lengths[row].as_py()} items, vectors of this column have {size}"
        )
    items = storable_array(_filled_items(array, size), kind.value_type)
    return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=null_mask(array))


def _filled_items(array: pa.Array, size: int) -> pa.Array:
    """Return the items of lists of one length, and as many nulls for each null list."""
    items = array.flatten()
    if array.null_count == 0:
        return items
    has_list = np.repeat(array.is_valid().to_numpy(zero_copy_only=False), size)
    places = np.cumsum(has_list) - 1
    return items.take(pa.array(places, mask=~has_list))


def _lists_of_bytes(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind.value_type != pa.float32():
        raise InvalidRequestError(f"bytes are vectors of float32, not of {kind.value_type}")
    sizes = pc.binary_length(array)
    whole = pc.equal(sizes, kind.list_size * _FLOAT32_BYTES)
    if pc.any(pc.invert(whole)).as_py():
        raise InvalidRequestError(f"a value has not the bytes of {kind.list_size} float32 numbers")
    valid = array.drop_null()
    fixed = pc.cast(valid, pa.binary(kind.list_size * _FLOAT32_BYTES))
    own = fixed.buffers()[1].slice(fixed.offset * fixed.type.byte_width)
    items = pa.Array.from_buffers(pa.float32(), len(valid) * kind.list_size, [None, own])
    lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), kind.list_size, 0)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), items, mask=null_mask(array))


def _as_nulls(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.null_count < len(array):
        raise InvalidRequestError("the column holds nothing but nulls")
    return pa.nulls(len(array), kind)


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


_RULES: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]], ...
] = (
    (_is_extension, _as_extension),
    (pa.types.is_dictionary, _as_dictionary),
    (pa.types.is_fixed_size_list, _as_vectors),
    (pa.types.is_list, _as_lists),
    (pa.types.is_large_list, _as_lists),
    (pa.types.is_map, _as_maps),
    (pa.types.is_struct, _as_structs),
    (pa.types.is_null, _as_nulls),
)
