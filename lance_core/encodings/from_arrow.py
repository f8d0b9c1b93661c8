"""Arrow arrays -> values: the reverse of ``arrow_arrays``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.blanks import blanked
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
    from numpy.typing import NDArray

    from lance_core.encodings.values import Validity, Values

_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
_STRINGS = {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}


def from_arrow(array: pa.Array, column: str) -> Values:
    """Return the values of an array of anything but lists and plain structs.

    Parameters
    ----------
    array
        May be a slice. Structs become packed rows.
    column
        Its name, for errors.

    Returns
    -------
    Values
        One per element, sharing memory with the array where it holds no nulls. Bytes under nulls
        are zero, see `blanked`; booleans take a byte each.

    Raises
    ------
    UnsupportedFeatureError
        The type has no form in a file, or a packed struct has nulls in a child.
    """
    values = _from_arrow(array, column)
    return values if values.validity is None else blanked(values, values.validity)


def _from_arrow(array: pa.Array, column: str) -> Values:
    if isinstance(array, pa.ExtensionArray):
        return _from_arrow(array.storage, column)
    if pa.types.is_null(array.type):
        return AllNull(len(array))
    if array.type in _VIEWS:
        return _variable(array.cast(_VIEWS[array.type]))
    if array.type in _STRINGS:
        return _variable(array)
    return _other(array, column)


def _other(array: pa.Array, column: str) -> Values:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _dictionary(array, column)
    if pa.types.is_fixed_size_list(kind) and not pa.types.is_struct(kind.value_type):
        return _fixed_size_lists(array, column)
    if pa.types.is_struct(kind):
        return _packed(array, column)
    if pa.types.is_primitive(kind) or _is_wide(kind):
        return _fixed_width(array)
    raise UnsupportedFeatureError(f"column {column!r}: {kind} has no form in a Lance file")


def _is_wide(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind))


def validity_of(array: pa.Array) -> Validity:
    """Return which elements are valid, shape ``(n,)``, or None where all are; a copy."""
    if array.null_count == 0:
        return None
    bitmap = array.buffers()[0]
    if bitmap is None:  # only the null type has nulls without a bitmap
        return np.zeros(len(array), np.bool_)
    return _bits(bitmap, array.offset, len(array)).view(np.bool_)


def offsets_of(array: pa.Array) -> NDArray[np.int64]:
    """Return the offsets of strings or lists, shape ``(n + 1,)``, as the array holds them."""
    data = bytes_of(array.buffers()[1])
    if len(data) == 0:  # an array without elements needs no offset
        return np.zeros(1, np.int64)
    is_wide = pa.types.is_large_list(array.type) or array.type in {
        pa.large_string(),
        pa.large_binary(),
    }
    kept = data.view(np.int64 if is_wide else np.int32)
    return kept[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False)


class _Bytes:
    """Memory of a buffer as numpy takes it, which keeps this object and with it the buffer.

    Kernels are compiled for writable arrays, and Arrow hands out read-only ones; nobody writes.
    """

    def __init__(self, buffer: pa.Buffer) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": (buffer.size,),
            "typestr": "|u1",
            "data": (buffer.address, False),
        }


def bytes_of(buffer: pa.Buffer | None) -> NDArray[np.uint8]:
    """View a buffer; an array without elements may have none."""
    if buffer is None or buffer.size == 0:
        return np.empty(0, np.uint8)
    return np.asarray(_Bytes(buffer))


def _bits(buffer: pa.Buffer | None, offset: int, count: int) -> NDArray[np.uint8]:
    first, skipped = divmod(offset, 8)
    packed = bytes_of(buffer)[first : (offset + count + 7) // 8]
    return np.unpackbits(packed, count=skipped + count, bitorder="little")[skipped:]


def _fixed_width(array: pa.Array) -> FixedWidth:
    bits = array.type.bit_width
    validity = validity_of(array)
    buffer = array.buffers()[1]
    if bits == BOOL_BITS:
        data = _bits(buffer, array.offset, len(array))
    else:
        width = bits // 8
        start = array.offset * width
        data = bytes_of(buffer)[start : start + len(array) * width]
    return FixedWidth(data, bits, len(array), validity)


def _variable(array: pa.Array) -> Variable:
    offsets = offsets_of(array)
    validity = validity_of(array)
    data = bytes_of(array.buffers()[2])[int(offsets[0]) : int(offsets[-1])]
    return Variable(offsets - offsets[0], data, validity)


def _dictionary(array: pa.DictionaryArray, column: str) -> Indexed:
    positions = _fixed_width(array.indices).integers()
    indices = positions.astype(np.int64)
    validity = validity_of(array.indices)
    items = array.dictionary
    valid_items = validity_of(items)
    if valid_items is not None:
        of_items = valid_items[indices]
        validity = of_items if validity is None else validity & of_items
        indices = np.where(validity, (np.cumsum(valid_items) - 1)[indices], 0)
        items = items.drop_null()
    return Indexed(indices, from_arrow(items, column), validity)


def _fixed_size_lists(array: pa.FixedSizeListArray, column: str) -> FixedSizeLists:
    dimension = array.type.list_size
    elements = array.values.slice(array.offset * dimension, len(array) * dimension)
    items = from_arrow(elements, column)
    return FixedSizeLists(items, dimension, len(array), validity_of(array))


def _packed(array: pa.StructArray, column: str) -> Packed:
    validity = validity_of(array)
    children = []
    for index in range(array.type.num_fields):
        name = f"{column}.{array.type.field(index).name}"
        child = from_arrow(array.field(index), name)
        if _has_nulls(child, validity):
            raise UnsupportedFeatureError(
                f"column {name!r}: a packed struct cannot hold nulls in its children; fill them, "
                "or drop lance-encoding:packed from the metadata of the struct"
            )
        children.append(child if isinstance(child, AllNull) else replace(child, validity=None))
    return Packed(tuple(children), len(array), validity)


def _has_nulls(child: Values, around: Validity) -> bool:
    """Whether a child is null in a row that is valid itself."""
    if child.validity is None:
        return False
    nulls = ~child.validity
    return bool(nulls.any() if around is None else (nulls & around).any())
