"""How packed structs are stored: by the widths of their children."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.encodings.choose_strings import choose_strings
from lance_core.encodings.fixed_size_list import FixedSizeList
from lance_core.encodings.flat import Flat
from lance_core.encodings.hints import Hints
from lance_core.encodings.leaf_types import offset_bits
from lance_core.encodings.packed_struct import PackedStruct
from lance_core.encodings.values import BOOL_BITS, FixedSizeLists, FixedWidth, Variable
from lance_core.encodings.variable_packed_struct import PackedField, VariablePackedStruct
from lance_core.encodings.version import FileVersion
from lance_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from lance_core.encodings.compression import Compression
    from lance_core.encodings.values import Packed, Values
    from lance_core.schema.field import LanceField


def choose_packed(
    values: Packed, field: LanceField, version: FileVersion
) -> PackedStruct | VariablePackedStruct:
    """Choose the form of packed rows.

    Parameters
    ----------
    values
        Rows whose children have no nulls of their own.
    field
        The struct, with a field for each child.
    version
        2.1 has only children of fixed width.

    Raises
    ------
    UnsupportedFeatureError
        A child has no form in packed rows; names it.

    Notes
    -----
    Lists of fixed size make rows variable packed ones, as pylance 14.0.2 writes them.
    """
    widths = [_bits(child) for child in values.children]
    if all(isinstance(child, FixedWidth) for child in values.children) and 0 not in widths:
        return PackedStruct(tuple(widths), Flat(sum(widths)))
    fields = [
        _field(child, child_field, field, version)
        for child, child_field in zip(values.children, field.children, strict=True)
    ]
    return VariablePackedStruct(tuple(fields))


def _bits(values: Values) -> int:
    """Return the bits of one value, 0 if values do not fill whole bytes, all alike."""
    if isinstance(values, FixedSizeLists):
        return _bits(values.items) * values.dimension
    if isinstance(values, FixedWidth) and values.bits != BOOL_BITS:
        return values.bits
    return 0


def _field(
    values: Values, child: LanceField, struct: LanceField, version: FileVersion
) -> PackedField:
    bits = _bits(values)
    if version is FileVersion.V2_2:
        if isinstance(values, Variable):
            length_bits = offset_bits(child.logical_type)
            hints = Hints.of(child.metadata, child.name)
            strings = choose_strings(values, length_bits, hints, zipped=True)
            return PackedField(strings.encoding, 0, length_bits // 8)
        if bits > 0:
            return PackedField(_fixed(values), bits // 8, 0)
    raise UnsupportedFeatureError(
        f"column {struct.name!r}: its child {child.name!r} of type {child.logical_type} cannot be "
        f"packed in a file of version {version.value}; drop lance-encoding:packed from the "
        "metadata of the struct"
    )


def _fixed(values: Values) -> Compression:
    if isinstance(values, FixedSizeLists):
        return FixedSizeList(values.dimension, _fixed(values.items), has_validity=False)
    return Flat(_bits(values))
