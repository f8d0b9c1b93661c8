"""Packed structs with children of variable width, row by row (file format, section 5.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.blocks import Blocks
from lance_core.encodings.compression import Compression
from lance_core.encodings.values import FixedWidth, Packed, Variable
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.memory import address_of
from lance_core.kernels.packed_rows import find_fields
from lance_core.kernels.packed_rows_encode import join_fields
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

_LENGTH_BITS = {0, 32, 64}
_MAX_BITS = 1 << 31


@dataclass(frozen=True, slots=True)
class PackedField:
    """One child: its encoding and its width, or 0 and the width of the length before it."""

    values: Compression
    value_bytes: int
    length_bytes: int

    @classmethod
    def of(
        cls, values: Compression, value_bits: int, length_bits: int, place: Place
    ) -> PackedField:
        """Check the widths; exactly one of them is set."""
        if (value_bits == 0) == (length_bits == 0) or length_bits not in _LENGTH_BITS:
            raise place.corrupt(f"a packed child of {value_bits} bits, {length_bits} of length")
        if value_bits % 8 != 0 or value_bits > _MAX_BITS:
            raise place.unsupported(f"packed struct with a child of {value_bits} bits")
        return cls(values, value_bits // 8, length_bits // 8)


@dataclass(frozen=True, slots=True)
class VariablePackedStruct(Compression):
    """Children of fixed and variable widths; for full-zip pages only."""

    fields: tuple[PackedField, ...]
    name: ClassVar[str] = "variable packed struct"

    def decode_zipped(self, values: Blocks, place: Place) -> Packed:
        """Take each row apart and decode each child; a row of no bytes is null."""
        shape = (len(self.fields), len(values.sizes))
        addresses, sizes = np.empty(shape, np.int64), np.empty(shape, np.int64)
        value_bytes = np.array([field.value_bytes for field in self.fields], np.int64)
        length_bytes = np.array([field.length_bytes for field in self.fields], np.int64)
        blank = np.zeros(max([1, *value_bytes.tolist()]), np.uint8)
        found = find_fields(
            values.addresses,
            values.sizes,
            value_bytes,
            length_bytes,
            address_of(blank),
            addresses,
            sizes,
        )
        if found != DONE:
            raise place.corrupt("the children of a packed row do not fill it")
        owner = (values.owner, blank)
        children = tuple(
            field.values.decode_zipped(Blocks(at, size, owner), place)
            for field, at, size in zip(self.fields, addresses, sizes, strict=True)
        )
        return Packed(children, len(values.sizes))

    def encode_zipped(self, values: Values) -> Variable:
        """Encode each child and put the children of each row together; null rows stay empty."""
        if not isinstance(values, Packed):
            message = f"{type(values).__name__} was to be encoded as packed rows"
            raise TypeError(message)
        zipped = [
            field.values.encode_zipped(child)
            for field, child in zip(self.fields, values.children, strict=True)
        ]
        data = [child.data for child in zipped if isinstance(child, FixedWidth | Variable)]
        offsets = np.stack([_offsets(child) for child in zipped])
        length_bytes = np.array([field.length_bytes for field in self.fields], np.int64)
        sizes = np.diff(offsets).sum(axis=0) + length_bytes.sum()
        if values.validity is not None:
            sizes *= values.validity
        row_offsets = np.append(0, np.cumsum(sizes))
        out = np.empty(int(row_offsets[-1]), np.uint8)
        addresses = np.array([address_of(part) for part in data], np.int64)
        join_fields(addresses, offsets, length_bytes, row_offsets, out)
        return Variable(row_offsets, out)

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        packed = pb.VariablePackedStruct()
        for field in self.fields:
            child = packed.fields.add(value=field.values.message())
            if field.length_bytes > 0:
                child.bits_per_length = 8 * field.length_bytes
            else:
                child.bits_per_value = 8 * field.value_bytes
        return pb.CompressiveEncoding(variable_packed_struct=packed)


def _offsets(values: Values) -> NDArray[np.int64]:
    """Return where zipped values begin and end, shape ``(n + 1,)``."""
    if isinstance(values, Variable):
        return values.offsets
    width = values.value_bytes if isinstance(values, FixedWidth) else 0
    return np.arange(values.num_values + 1, dtype=np.int64) * width
