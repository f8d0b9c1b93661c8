"""Packed structs: the children of a row side by side (file format, section 5.11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.values import BOOL_BITS, FixedSizeLists, FixedWidth, Packed
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values


@dataclass(frozen=True, slots=True)
class PackedStruct(Compression):
    """Children of fixed widths, whole bytes each; ``inner`` decodes the rows."""

    child_bits: tuple[int, ...]
    inner: Compression
    name: ClassVar[str] = "packed struct"

    @classmethod
    def of(cls, child_bits: tuple[int, ...], inner: Compression, place: Place) -> PackedStruct:
        """Check the widths and return the encoding."""
        if any(bits % 8 != 0 for bits in child_bits) or len(child_bits) == 0:
            raise place.unsupported(f"packed struct with children of {child_bits} bits")
        return cls(child_bits, inner)

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> Packed:
        """Decode the rows of all chunks and take them apart."""
        return self.split(self.inner.decode_chunks(buffers, counts, place), place)

    def decode_zipped(self, values: Blocks, place: Place) -> Packed:
        """Decode single rows and take them apart."""
        return self.split(self.inner.decode_zipped(values, place), place)

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        packed = pb.PackedStruct(bits_per_value=self.child_bits, values=self.inner.message())
        return pb.CompressiveEncoding(packed_struct=packed)

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Put the children of each row together and write the rows of all chunks."""
        return self.inner.encode_chunks(self.join(values), bounds)

    def encode_zipped(self, values: Values) -> Values:
        """Put the children of each row together and write single rows."""
        return self.inner.encode_zipped(self.join(values))

    def join(self, values: Values) -> FixedWidth:
        """Return rows that hold one value of each child, side by side."""
        if not isinstance(values, Packed):
            message = f"{type(values).__name__} was to be encoded as a packed struct"
            raise TypeError(message)
        columns = [
            row_bytes(child).reshape(values.num_values, bits // 8)
            for child, bits in zip(values.children, self.child_bits, strict=True)
        ]
        rows = np.concatenate(columns, axis=1)
        return FixedWidth(rows.reshape(-1), sum(self.child_bits), values.num_values)

    def split(self, rows: Values, place: Place) -> Packed:
        """Take rows apart into one array per child."""
        if not isinstance(rows, FixedWidth) or rows.bits != sum(self.child_bits):
            raise place.corrupt("packed rows are not as wide as their children")
        table = rows.data.reshape(rows.num_values, rows.value_bytes)
        stops = np.cumsum(self.child_bits) // 8
        children = tuple(
            FixedWidth(
                np.ascontiguousarray(table[:, stop - bits // 8 : stop]).reshape(-1),
                bits,
                rows.num_values,
            )
            for bits, stop in zip(self.child_bits, stops.tolist(), strict=True)
        )
        return Packed(children, rows.num_values)


def row_bytes(values: Values) -> NDArray[np.uint8]:
    """Return the bytes of values of whole bytes each, or of lists of such values."""
    while isinstance(values, FixedSizeLists):
        values = values.items
    if isinstance(values, FixedWidth) and values.bits != BOOL_BITS:
        return values.data
    message = f"{type(values).__name__} has no place in a packed row"
    raise TypeError(message)
