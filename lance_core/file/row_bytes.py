"""How much memory the rows of an array take, by which reading and writing cut pieces."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.from_arrow import offsets_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_BYTE = 8
_NARROW, _WIDE = 4, 8
_WITH_WIDE_OFFSETS = (pa.types.is_large_list, pa.types.is_large_string, pa.types.is_large_binary)
_WITH_NARROW_OFFSETS = (
    pa.types.is_list,
    pa.types.is_map,
    pa.types.is_string,
    pa.types.is_binary,
)


def row_bytes(array: pa.Array) -> int:
    """Return about the bytes that the rows of an array take: neither validity nor dictionaries.

    Dictionaries do not get smaller when rows are cut off. ``Array.nbytes`` would take as long as
    decoding a small array, and lets go of the GIL.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    bits = _bits(array.type)
    if bits is not None:
        return len(array) * bits // _BYTE
    if isinstance(array, pa.StructArray):
        return sum(row_bytes(array.field(i)) for i in range(array.type.num_fields))
    if isinstance(array, pa.FixedSizeListArray):
        size = array.type.list_size
        return row_bytes(array.values.slice(array.offset * size, len(array) * size))
    width = _offset_bytes(array.type)
    return int(array.nbytes) if width is None else width * len(array) + _inner_bytes(array, width)


def bytes_before(arrays: Sequence[pa.Array], num_rows: int) -> NDArray[np.int64]:
    """Return the bytes that the first ``i`` rows of several arrays take together.

    So the bytes of any rows are a difference, where weighing slices one by one would take as long
    as decoding them does.

    Returns
    -------
    NDArray[np.int64]
        Shape ``(num_rows + 1,)``, from 0; what counts is as in `row_bytes`, bits rounded up.
    """
    fixed_bits = 0
    varying: list[NDArray[np.int64]] = []
    for array in arrays:
        bits = _bits(array.type)
        if bits is None:
            varying.append(_bytes_before(array))
        else:
            fixed_bits += bits
    total = np.arange(num_rows + 1, dtype=np.int64) * -(-fixed_bits // _BYTE)
    for part in varying:
        total += part
    return total


def _bytes_before(array: pa.Array) -> NDArray[np.int64]:
    """Return what `bytes_before` does, of one array whose rows take different numbers of bytes."""
    if isinstance(array, pa.ExtensionArray):
        return _bytes_before(array.storage)
    if isinstance(array, pa.StructArray):
        return bytes_before([array.field(i) for i in range(array.type.num_fields)], len(array))
    if isinstance(array, pa.FixedSizeListArray):
        first, size = array.offset, array.type.list_size
        items = array.values.slice(first * size, len(array) * size)
        return bytes_before([items], len(items))[::size]
    offsets = offsets_of(array)
    before: NDArray[np.int64] = offsets - offsets[0]
    if isinstance(array, pa.ListArray | pa.LargeListArray):
        items = array.values.slice(int(offsets[0]), int(before[-1]))
        before = bytes_before([items], len(items))[before]
    width = _offset_bytes(array.type)
    return before + np.arange(len(array) + 1) * (0 if width is None else width)


def _inner_bytes(array: pa.Array, width: int) -> int:
    """Return the bytes of texts or elements."""
    first, last = _ends(array, width)
    if isinstance(array, pa.ListArray | pa.LargeListArray):
        return row_bytes(array.values.slice(first, last - first))
    return last - first


def _ends(array: pa.Array, width: int) -> tuple[int, int]:
    """Return the first and the last offset."""
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:  # an array without elements needs no offset
        return 0, 0
    first, last = (
        int.from_bytes(buffer[at * width : (at + 1) * width].to_pybytes(), "little")
        for at in (array.offset, array.offset + len(array))
    )
    return first, last


@lru_cache(maxsize=1024)
def _offset_bytes(kind: pa.DataType) -> int | None:
    """Return the width of the offsets of strings, lists and maps; None for other types."""
    if any(matches(kind) for matches in _WITH_WIDE_OFFSETS):
        return _WIDE
    return _NARROW if any(matches(kind) for matches in _WITH_NARROW_OFFSETS) else None


@lru_cache(maxsize=1024)
def _bits(kind: pa.DataType) -> int | None:
    """Return the bits of each row, or None if rows differ."""
    if isinstance(kind, pa.BaseExtensionType):
        return _bits(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _bits(kind.index_type)
    if pa.types.is_fixed_size_list(kind):
        item = _bits(kind.value_type)
        return None if item is None else item * kind.list_size
    if pa.types.is_struct(kind):
        parts = [_bits(field.type) for field in kind]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None
    try:
        # a value of no bytes counts as a bit, so that pages of such values end
        return 0 if pa.types.is_null(kind) else max(int(kind.bit_width), 1)
    except ValueError:
        return None
