"""Which encodings and which structure the values of a page get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.fixed_size_list import FixedSizeList
from lance_core.encodings.flat import Flat
from lance_core.encodings.leaf_types import dictionary_types, offset_bits
from lance_core.encodings.values import (
    BOOL_BITS,
    FixedSizeLists,
    FixedWidth,
    Indexed,
    Variable,
)
from lance_core.encodings.variable import VariableWidth
from lance_core.errors import UnsupportedFeatureError
from lance_core.kernels.chunk_bounds import bound_strings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.compression import Compression
    from lance_core.encodings.hints import Hints
    from lance_core.encodings.values import Values
    from lance_core.encodings.version import FileVersion
    from lance_core.schema.field import LanceField

_ZIPPED_BYTES = 256
"""Values of this size and above go into full-zip pages (file format, section 7, rule 4)."""
_CHUNK_BYTES = 8 << 10
_STRINGS_BYTES = 4 << 10
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
        items_type, index_bits = dictionary_types(field.logical_type)
        indices = values.indices.astype(f"<u{index_bits // 8}")
        numbers = FixedWidth(indices.view(np.uint8), index_bits, len(indices))
        items = values.items
        return Choice(Flat(index_bits), numbers, False, items, _plain(items, items_type, field))
    if zipped is None:
        zipped = _prefers_zip(values, hints)
    return Choice(_plain(values, field.logical_type, field), values, zipped)


def _plain(values: Values, logical_type: str, field: LanceField) -> Compression:
    if isinstance(values, FixedWidth):
        return Flat(values.bits)
    if isinstance(values, Variable):
        return VariableWidth(offset_bits(logical_type))
    if isinstance(values, FixedSizeLists):
        inner = _plain(values.items, logical_type, field)
        has_validity = values.items.validity is not None
        return FixedSizeList(values.dimension, inner, has_validity)
    raise UnsupportedFeatureError(f"column {field.name!r}: {field.logical_type} is not written")


def _prefers_zip(values: Values, hints: Hints) -> bool:
    if _holds_bits(values):
        return False
    if hints.structural_encoding is not None:
        return hints.structural_encoding == "fullzip"
    return _widest_bytes(values) >= _ZIPPED_BYTES


def _holds_bits(values: Values) -> bool:
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
    return values.value_bytes if isinstance(values, FixedWidth) else 0


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
    if isinstance(values, Variable):
        bounds = np.empty(values.num_values // 2 + 2, np.int64)
        width = 4
        count = bound_strings(values.offsets, width, _STRINGS_BYTES, max_values, bounds)
        return bounds[:count]
    limit = min(max_values, MAX_CHUNK_VALUES)
    size = 2
    while size * 2 <= limit and size * 2 * _widest_bytes(values) < _CHUNK_BYTES:
        size *= 2
    inner = np.arange(0, values.num_values, size, dtype=np.int64)
    return np.append(inner, values.num_values)
