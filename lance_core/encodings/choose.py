"""Which encodings and which structure the values of a page get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.bitpacking import InlineBitpacking
from lance_core.encodings.choose_dictionary import choose_dictionary, choose_items
from lance_core.encodings.choose_numbers import Sized, choose_numbers
from lance_core.encodings.choose_packed import choose_packed
from lance_core.encodings.choose_strings import choose_strings
from lance_core.encodings.constant import AllNullElements
from lance_core.encodings.fixed_size_list import FixedSizeList
from lance_core.encodings.flat import Flat
from lance_core.encodings.general import General
from lance_core.encodings.leaf_types import dictionary_types, offset_bits
from lance_core.encodings.rle import Rle
from lance_core.encodings.values import (
    BOOL_BITS,
    FixedSizeLists,
    FixedWidth,
    Indexed,
    Packed,
    Variable,
)
from lance_core.encodings.variable import VariableWidth
from lance_core.encodings.variable_packed_struct import VariablePackedStruct
from lance_core.errors import UnsupportedFeatureError
from lance_core.kernels.bitpacking import BLOCK_ROWS
from lance_core.kernels.chunk_bounds import bound_strings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.choose_dictionary import Coded
    from lance_core.encodings.compression import Compression
    from lance_core.encodings.hints import Hints
    from lance_core.encodings.values import Values
    from lance_core.encodings.version import FileVersion
    from lance_core.schema.field import LanceField

_ZIPPED_BYTES = 256
"""Values of this size and above go into full-zip pages (file format, section 7, rule 4)."""
_SMALL = 0.25
"""A dictionary page of this part of the plain one is taken without a look at other forms."""
_CHUNK_BYTES = 8 << 10
_STRINGS_BYTES = 4 << 10
_SHRUNK_STRINGS_BYTES = 8 << 10
"""Of strings that are to be compressed, before they are; incompressible ones must fit 2.1 too."""
_OFFSET_BYTES = 4
MAX_CHUNK_VALUES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """How a page stores its values.

    Attributes
    ----------
    encoding
        Of ``values``.
    values
        Positions in the dictionary if there is one, else the values of the page.
    zipped
        Whether the page is a full-zip one; never with a dictionary.
    dictionary, dictionary_encoding
        The items, to be written as one block, or None.
    """

    encoding: Compression
    values: Values
    zipped: bool
    dictionary: Values | None = None
    dictionary_encoding: Compression | None = None


def choose_values(
    values: Values,
    field: LanceField,
    hints: Hints,
    version: FileVersion,
    *,
    zipped: bool | None = None,
) -> Choice:
    """Choose from statistics of the values how to store them.

    Parameters
    ----------
    values
        The visible values of one page, at least one, not all null; zeros and empty strings under
        nulls, as `blanked` puts them there.
    field
        The field that owns the column.
    hints
        What its metadata asks for.
    version
        Of the file: 2.1 knows fewer encodings.
    zipped
        Whether the page must be a full-zip one, or must not; None leaves it open.

    Raises
    ------
    UnsupportedFeatureError
        The values have no form in such a page; names the column.
    """
    if isinstance(values, Indexed):
        return _of_dictionary(values, field, hints, version)
    if isinstance(values, FixedWidth):
        return _of_numbers(values, hints, version, zipped)
    if isinstance(values, Variable):
        return _of_strings(values, offset_bits(field.logical_type), hints, version, zipped)
    if isinstance(values, FixedSizeLists):
        is_zipped = _prefers_zip(values, hints) if zipped is None else zipped
        return _of_lists(values, is_zipped, zipped)
    if isinstance(values, Packed):
        packed = choose_packed(values, field, version)
        return Choice(packed, values, zipped is True or isinstance(packed, VariablePackedStruct))
    raise UnsupportedFeatureError(f"column {field.name!r}: nulls have no form beside values")


def _of_dictionary(
    values: Indexed, field: LanceField, hints: Hints, version: FileVersion
) -> Choice:
    """Store the indices of a dictionary column in the width that its type says."""
    items_type, index_bits = dictionary_types(field.logical_type)
    positions = values.indices.astype(f"<u{index_bits // 8}")
    indices = FixedWidth(positions.view(np.uint8), index_bits, len(positions))
    numbers = choose_numbers(indices, hints)
    items = choose_items(values.items, offset_bits(items_type), hints, version)
    return Choice(numbers.encoding, indices, False, values.items, items.encoding)


def _of_numbers(
    values: FixedWidth, hints: Hints, version: FileVersion, zipped: bool | None
) -> Choice:
    if _prefers_zip(values, hints) if zipped is None else zipped:
        if values.bits == BOOL_BITS:
            values = replace(values, bits=8)  # a boolean takes a byte there
        return Choice(Flat(values.bits), values, True)
    numbers = choose_numbers(values, hints)
    coded = choose_dictionary(values, 0, numbers, hints, version)
    return Choice(numbers.encoding, values, False) if coded is None else _coded(coded)


def _of_strings(
    values: Variable, bits: int, hints: Hints, version: FileVersion, zipped: bool | None
) -> Choice:
    """Try a dictionary first, also for long strings: if it is small, nothing beats it."""
    raw_bytes = int(values.offsets[-1]) + values.num_values * bits // 8
    is_zipped = _prefers_zip(values, hints) if zipped is None else zipped
    coded = None
    if not (is_zipped and (zipped is not None or hints.structural_encoding is not None)):
        plain = Sized(VariableWidth(bits), raw_bytes)
        coded = choose_dictionary(values, bits, plain, hints, version)
    if coded is not None and coded.num_bytes < _SMALL * raw_bytes:
        return _coded(coded)
    strings = choose_strings(values, bits, hints, zipped=is_zipped)
    if coded is not None and coded.num_bytes < strings.num_bytes:
        return _coded(coded)
    return Choice(strings.encoding, values, is_zipped)


def _coded(coded: Coded) -> Choice:
    indices, items = coded.dictionary.indices, coded.dictionary.items
    return Choice(coded.index_encoding, indices, False, items, coded.item_encoding)


def _of_lists(values: FixedSizeLists, prefers_zip: bool, zipped: bool | None) -> Choice:
    """Store lists, whose elements are as they are; of nulls alone full-zip pages need no data."""
    has_data = not _is_all_null(values)
    is_zipped = prefers_zip or (not has_data and zipped is None)
    return Choice(_lists(values, has_data or not is_zipped), values, is_zipped)


def _is_all_null(values: FixedSizeLists) -> bool:
    """Whether no innermost element is valid."""
    items = values.items
    if isinstance(items, FixedSizeLists):
        return _is_all_null(items)
    return items.validity is not None and not bool(items.validity.any())


def _lists(values: FixedSizeLists, has_data: bool) -> FixedSizeList:
    items = values.items
    inner: Compression
    if isinstance(items, FixedSizeLists):
        inner = _lists(items, has_data)
    elif isinstance(items, FixedWidth) and has_data:
        inner = Flat(items.bits)
    else:
        inner = AllNullElements()
    return FixedSizeList(values.dimension, inner, items.validity is not None)


def _prefers_zip(values: Values, hints: Hints) -> bool:
    if holds_bits(values):
        return False
    if hints.structural_encoding is not None:
        return hints.structural_encoding == "fullzip"
    return _widest_bytes(values) >= _ZIPPED_BYTES


def holds_bits(values: Values) -> bool:
    """Whether values are booleans or lists of them, which do not fill whole bytes one by one."""
    while isinstance(values, FixedSizeLists):
        values = values.items
    return isinstance(values, FixedWidth) and values.bits == BOOL_BITS


def _widest_bytes(values: Values) -> int:
    """Return the bytes of the longest value."""
    if isinstance(values, Variable):
        return int(np.diff(values.offsets).max(initial=0))
    if isinstance(values, FixedSizeLists):
        return values.dimension * _widest_bytes(values.items)
    if isinstance(values, Packed):
        return sum(_widest_bytes(child) for child in values.children)
    return values.value_bytes if isinstance(values, FixedWidth) else 0


def _chunk_values(encoding: Compression, value_bytes: int, max_values: int) -> int:
    """Return the largest power of two of values that a chunk should hold."""
    if isinstance(encoding, InlineBitpacking):
        return min(BLOCK_ROWS, max_values)
    limit = min(max_values, MAX_CHUNK_VALUES)
    if isinstance(encoding, Rle):
        return limit
    size = 2
    while size * 2 <= limit and size * 2 * value_bytes < _CHUNK_BYTES:
        size *= 2
    return size


def chunk_bounds(choice: Choice, max_values: int = MAX_CHUNK_VALUES) -> NDArray[np.int64]:
    """Cut the values of a mini-block page into chunks (file format, section 7, rule 8).

    Parameters
    ----------
    choice
        What to write.
    max_values
        A power of two, at least 2, that no chunk may exceed.

    Returns
    -------
    NDArray[np.int64]
        Shape ``(chunks + 1,)``; from 0 to the number of values; all chunks but the last hold a
        power of two, at least 2, of them.
    """
    values = choice.values
    encoding = choice.encoding
    if isinstance(values, Variable):
        is_plain = isinstance(encoding, VariableWidth)
        limit_bytes = _STRINGS_BYTES if is_plain else _SHRUNK_STRINGS_BYTES
        bounds = np.empty(values.num_values // 2 + 2, np.int64)
        count = bound_strings(values.offsets, _OFFSET_BYTES, limit_bytes, max_values, bounds)
        return bounds[:count]
    while isinstance(encoding, General):
        encoding = encoding.inner
    size = _chunk_values(encoding, _widest_bytes(values), max_values)
    inner = np.arange(0, values.num_values, size, dtype=np.int64)
    return np.append(inner, values.num_values)
