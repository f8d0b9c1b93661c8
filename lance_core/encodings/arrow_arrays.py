"""Decoded values -> Arrow arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.jsonb import to_text
from lance_core.encodings.values import (
    BOOL_BITS,
    AllNull,
    FixedSizeLists,
    FixedWidth,
    Indexed,
    Packed,
    Variable,
)
from lance_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Validity, Values

_MAX_NARROW_OFFSET = 2**31 - 1
_BYTE_BITS = 8
_LAST_ASCII = 0x7F
_MAX_NULL_ELEMENTS = 2**31 - 1
_UNPICKLE = pa.nulls(0, pa.int8()).__reduce__()[0]
"""Makes an array of type, length, nulls, offset, buffers, children and dictionary."""


def to_arrow(values: Values, arrow_type: pa.DataType, place: Place) -> pa.Array:
    """Give ``values`` their Arrow type.

    Parameters
    ----------
    values
        What a page decoder returned.
    arrow_type
        The type of the field.
    place
        The column, for errors.

    Raises
    ------
    CorruptFileError
        The values do not have the width or form of the type, or text is not UTF-8.
    UnsupportedFeatureError
        More than 2 GiB of text in one array of 32-bit offsets.
    """
    if isinstance(values, AllNull):
        return _nulls(values.num_values, arrow_type, place)
    if pa.types.is_dictionary(arrow_type):
        return _dictionary(values, arrow_type, place)
    if isinstance(values, Indexed):
        return to_arrow(_gathered(values, place), arrow_type, place)
    if arrow_type == pa.json_():
        documents = _plain(values, pa.large_binary(), place)
        return pa.ExtensionArray.from_storage(arrow_type, to_text(documents, place))
    return _plain(values, arrow_type, place)


def _plain(
    values: FixedWidth | Variable | FixedSizeLists | Packed, arrow_type: pa.DataType, place: Place
) -> pa.Array:
    if isinstance(values, FixedWidth):
        return _fixed_width(values, arrow_type, place)
    if isinstance(values, Variable):
        return _variable(values, arrow_type, place)
    if isinstance(values, FixedSizeLists):
        return _fixed_size_lists(values, arrow_type, place)
    return _packed(values, arrow_type, place)


def _nulls(num_values: int, arrow_type: pa.DataType, place: Place) -> pa.Array:
    """Return nulls; no bytes of the file stand behind the elements of null lists."""
    elements, element_type = num_values, arrow_type
    while pa.types.is_fixed_size_list(element_type):
        elements, element_type = elements * element_type.list_size, element_type.value_type
    if elements > _MAX_NULL_ELEMENTS:
        raise place.unsupported(f"{elements} nulls in one piece")
    return pa.nulls(num_values, arrow_type)


def plain_bytes(arrow_type: pa.DataType) -> int | None:
    """Return the bytes of a value where those of files are Arrow's own as they are, else None."""
    if not pa.types.is_primitive(arrow_type) or pa.types.is_boolean(arrow_type):
        return None
    return int(arrow_type.bit_width) // _BYTE_BITS


@dataclass(frozen=True, slots=True, eq=False)
class PlainValues:
    """Values of a type that has `plain_bytes`, none of them null, as bytes one after another.

    What an Arrow array says, for those who copy the values only.
    """

    data: NDArray[np.uint8]
    num_values: int
    type: pa.DataType

    def __len__(self) -> int:
        return self.num_values

    def to_array(self) -> pa.Array:
        """Return them as an array.

        As it is made of what was pickled: ``from_buffers`` lets go of the GIL to look at the array,
        and other threads take it.
        """
        buffers = [None, pa.py_buffer(self.data)]
        array: pa.Array = _UNPICKLE((self.type, self.num_values, 0, 0, buffers, [], None))
        return array


def as_array(values: pa.Array | pa.ChunkedArray | PlainValues) -> pa.Array | pa.ChunkedArray:
    """Return an array of values that may be none yet."""
    return values.to_array() if isinstance(values, PlainValues) else values


def plain_rows(data: NDArray[np.uint8], value_bytes: int, arrow_type: pa.DataType) -> PlainValues:
    """Return values of a type of that many `plain_bytes`, none of them null."""
    return PlainValues(data, len(data) // value_bytes, arrow_type)


def fixed_width_rows(
    data: NDArray[np.uint8], row_bytes: int, arrow_type: pa.DataType, place: Place
) -> pa.Array:
    """Give rows of ``row_bytes`` each, none of them null, their Arrow type.

    The rows of fixed-size lists hold all their elements.
    """
    num_values = len(data) // row_bytes
    if not pa.types.is_fixed_size_list(arrow_type):
        return to_arrow(FixedWidth(data, row_bytes * 8, num_values), arrow_type, place)
    element_bytes, rest = divmod(row_bytes, arrow_type.list_size)
    if rest != 0 or element_bytes == 0:
        raise place.corrupt(f"values of {row_bytes} bytes cannot be {arrow_type}")
    items = fixed_width_rows(data, element_bytes, arrow_type.value_type, place)
    return pa.Array.from_buffers(arrow_type, num_values, [None], children=[items])


def validity_bitmap(validity: Validity) -> pa.Buffer | None:
    """Return the Arrow bitmap, or None where all are valid."""
    if validity is None:
        return None
    return pa.py_buffer(np.packbits(validity, bitorder="little"))


def _fixed_width(values: FixedWidth, arrow_type: pa.DataType, place: Place) -> pa.Array:
    try:
        width = arrow_type.bit_width
    except ValueError:
        width = None
    if width == BOOL_BITS and values.bits == _BYTE_BITS:  # full-zip pages give them a byte each
        values = replace(values, data=(values.data != 0).view(np.uint8), bits=BOOL_BITS)
    if width != values.bits or pa.types.is_nested(arrow_type):
        raise place.corrupt(f"values of {values.bits} bits cannot be {arrow_type}")
    data = values.data
    if width == BOOL_BITS:
        data = np.packbits(data, bitorder="little")
    bitmap = validity_bitmap(values.validity)
    return pa.Array.from_buffers(arrow_type, values.num_values, [bitmap, pa.py_buffer(data)])


def unified(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Return dictionary arrays, or arrays that hold some, with one dictionary for all.

    The dictionary begins with that of the first array.

    Raises
    ------
    UnsupportedFeatureError
        The indices are too narrow for all items.
    """
    kind = arrays[0].type
    is_half = pa.types.is_dictionary(kind) and kind.value_type == pa.float16()
    if is_half:  # Arrow unifies them as integers and then converts these
        arrays = [_with_items(array, array.dictionary.view(pa.uint16())) for array in arrays]
    try:
        chunks = pa.chunked_array(arrays).unify_dictionaries().chunks
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            f"the dictionaries of all pages do not fit into one of {kind}: {error}"
        ) from None
    except pa.ArrowNotImplementedError:
        if not _has_only_nulls(kind):
            raise UnsupportedFeatureError(f"dictionaries of null among others: {kind}") from None
        return list(arrays)  # all their items are alike
    if is_half:
        return [_with_items(chunk, chunk.dictionary.view(pa.float16())) for chunk in chunks]
    return list(chunks)


def _with_items(array: pa.DictionaryArray, items: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(array.indices, items, ordered=array.type.ordered)


def _has_only_nulls(kind: pa.DataType) -> bool:
    """Tell whether the items of all dictionaries in a type are nulls."""
    if pa.types.is_dictionary(kind):
        return bool(pa.types.is_null(kind.value_type))
    return all(_has_only_nulls(kind.field(index).type) for index in range(kind.num_fields))


def _is_text(arrow_type: pa.DataType) -> bool:
    return arrow_type in {pa.string(), pa.large_string()}


def _variable(values: Variable, arrow_type: pa.DataType, place: Place) -> pa.Array:
    is_large = pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type)
    is_narrow = pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type)
    if not (is_large or is_narrow):
        raise place.corrupt(f"values of variable width cannot be {arrow_type}")
    offsets: NDArray[np.int64] | NDArray[np.int32] = values.offsets
    if is_narrow:
        if int(values.offsets[-1]) > _MAX_NARROW_OFFSET:
            raise place.unsupported(f"{values.offsets[-1]} bytes of {arrow_type} in one piece")
        offsets = values.offsets.astype(np.int32)
    array = pa.Array.from_buffers(
        arrow_type,
        values.num_values,
        [validity_bitmap(values.validity), pa.py_buffer(offsets), pa.py_buffer(values.data)],
    )
    if _is_text(arrow_type) and len(values.data) > 0 and int(values.data.max()) > _LAST_ASCII:
        _check_text(array, place)
    return array


def _check_text(array: pa.Array, place: Place) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise place.corrupt(f"text is not UTF-8: {error}") from None


def _fixed_size_lists(values: FixedSizeLists, arrow_type: pa.DataType, place: Place) -> pa.Array:
    if not pa.types.is_fixed_size_list(arrow_type) or arrow_type.list_size != values.dimension:
        raise place.corrupt(f"lists of {values.dimension} elements cannot be {arrow_type}")
    items = to_arrow(values.items, arrow_type.value_type, place)
    bitmap = validity_bitmap(values.validity)
    return pa.Array.from_buffers(arrow_type, values.num_values, [bitmap], children=[items])


def _packed(values: Packed, arrow_type: pa.DataType, place: Place) -> pa.Array:
    if not pa.types.is_struct(arrow_type) or arrow_type.num_fields != len(values.children):
        raise place.corrupt(f"rows of {len(values.children)} packed values cannot be {arrow_type}")
    children = [
        to_arrow(child, arrow_type.field(index).type, place)
        for index, child in enumerate(values.children)
    ]
    bitmap = validity_bitmap(values.validity)
    return pa.Array.from_buffers(arrow_type, values.num_values, [bitmap], children=children)


def _safe_indices(values: Indexed, place: Place) -> NDArray[np.int64]:
    """Return indices that are all inside the dictionary: nulls may hold anything."""
    indices = values.indices
    if values.validity is not None:
        indices = np.where(values.validity, indices, 0)
    size = values.items.num_values
    if indices.shape[0] > 0 and (int(indices.min()) < 0 or int(indices.max()) >= size):
        raise place.corrupt(f"a dictionary index is outside the {size} items")
    return indices


def _gathered(values: Indexed, place: Place) -> Values:
    if values.items.num_values == 0 and values.validity is not None and not values.validity.any():
        return AllNull(values.num_values)
    taken = values.items.take(_safe_indices(values, place))
    if values.validity is None or isinstance(taken, AllNull):
        return taken
    both = values.validity if taken.validity is None else values.validity & taken.validity
    return replace(taken, validity=both)


def _dictionary(values: Values, arrow_type: pa.DataType, place: Place) -> pa.Array:
    if not isinstance(values, Indexed):
        plain = to_arrow(values, arrow_type.value_type, place)
        return _encode(plain, arrow_type)
    values = _without_null_items(values, place)
    if values.items.num_values == 0:
        return pa.nulls(values.num_values, arrow_type)
    index_dtype = np.dtype(arrow_type.index_type.to_pandas_dtype())
    if values.items.num_values - 1 > np.iinfo(index_dtype).max:
        raise place.corrupt(f"{values.items.num_values} items, too many for {arrow_type}")
    indices = _safe_indices(values, place).astype(index_dtype)
    index_array = pa.Array.from_buffers(
        arrow_type.index_type,
        values.num_values,
        [validity_bitmap(values.validity), pa.py_buffer(indices)],
    )
    items = to_arrow(values.items, arrow_type.value_type, place)
    return pa.DictionaryArray.from_arrays(index_array, items, ordered=arrow_type.ordered)


def _without_null_items(values: Indexed, place: Place) -> Indexed:
    """Drop items that are null, as 2.0 dictionaries may have: Arrow unifies none with nulls."""
    valid_items = values.items.validity
    if valid_items is None:
        return values
    indices = _safe_indices(values, place)
    validity = valid_items[indices]
    if values.validity is not None:
        validity &= values.validity
    items = values.items.take(np.flatnonzero(valid_items))
    kept = items if isinstance(items, AllNull) else replace(items, validity=None)
    return Indexed((np.cumsum(valid_items) - 1)[indices], kept, validity)


def _encode(plain: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    encoded = plain.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        encoded.indices.cast(arrow_type.index_type), encoded.dictionary
    )
