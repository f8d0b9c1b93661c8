"""Flat: values of one width, one after another (file format, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.values import BOOL_BITS, FixedWidth, fixed_width
from lance_core.kernels.gather import join_bits, join_bytes
from lance_core.kernels.split import split_bits
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.compression import Selection
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

_MAX_BITS = 1 << 31


@dataclass(frozen=True, slots=True)
class Flat(Compression):
    """``bits`` per value: 1, or a multiple of 8; 0 where the type has no bytes."""

    bits: int
    name: ClassVar[str] = "flat"

    @classmethod
    def of_width(cls, bits: int, place: Place) -> Flat:
        """Check the width and return the encoding."""
        if bits > _MAX_BITS:
            raise place.corrupt(f"flat values of {bits} bits")
        if bits != BOOL_BITS and bits % 8 != 0:
            raise place.unsupported(f"flat values of {bits} bits")
        return cls(bits)

    @property
    def raw_bits(self) -> int | None:
        """The width, unless values share bytes or have none."""
        return None if self.bits in {0, BOOL_BITS} else self.bits

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> FixedWidth:
        """Join the values of all chunks."""
        return self.decode_blocks(buffers[0], counts, place)

    def take_chunks(
        self,
        buffers: Sequence[Blocks],
        counts: NDArray[np.int64],
        selection: Selection,
        place: Place,
    ) -> Values:
        """Copy the values by their positions."""
        if self.bits == BOOL_BITS:
            return Compression.take_chunks(self, buffers, counts, selection, place)
        self._check(buffers[0], counts, place)
        width = self.bits // 8
        addresses = buffers[0].addresses[selection.chunks] + selection.positions * width
        data = np.empty(len(addresses) * width, np.uint8)
        join_bytes(addresses, np.full(len(addresses), width), data)
        return FixedWidth(data, self.bits, len(addresses))

    def _check(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> None:
        if self.bits > 0 and bool((blocks.sizes * 8 // self.bits < counts).any()):
            raise place.corrupt(f"a buffer is shorter than its flat values of {self.bits} bits")

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> FixedWidth:
        """Join the values of all blocks; bytes behind the last value are ignored."""
        self._check(blocks, counts, place)
        total = int(counts.sum())
        if self.bits == BOOL_BITS:
            data = np.empty(total, np.uint8)
            join_bits(blocks.addresses, counts, data)
        else:
            data = np.empty(total * self.bits // 8, np.uint8)
            join_bytes(blocks.addresses, counts * (self.bits // 8), data)
        return FixedWidth(data, self.bits, total)

    def decode_zipped(self, values: Blocks, place: Place) -> FixedWidth:
        """Join the values."""
        num_values = values.sizes.shape[0]
        if self.bits == BOOL_BITS:
            raise place.unsupported("full-zip values of 1 bit")
        if bool((values.sizes != self.bits // 8).any()):
            raise place.corrupt(f"a full-zip value is not of {self.bits} bits")
        data = np.empty(num_values * self.bits // 8, np.uint8)
        join_bytes(values.addresses, values.sizes, data)
        return FixedWidth(data, self.bits, num_values)

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        return flat_message(self.bits)

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Lay the values of all chunks one after another."""
        return (self.encode_blocks(values, bounds),)

    def encode_blocks(self, values: Values, bounds: NDArray[np.int64]) -> ChunkBuffer:
        """Lay the values of all blocks one after another; bits begin a byte in each block."""
        data = fixed_width(values, self.bits).data
        counts = np.diff(bounds)
        if self.bits != BOOL_BITS:
            return ChunkBuffer(data, counts * (self.bits // 8))
        sizes = (counts + 7) // 8
        packed = np.zeros(int(sizes.sum()), np.uint8)
        split_bits(data, bounds, packed)
        return ChunkBuffer(packed, sizes)

    def encode_zipped(self, values: Values) -> FixedWidth:
        """Return the values as they are."""
        if self.bits == BOOL_BITS:
            return Compression.encode_zipped(self, values)  # type: ignore[return-value]  # raises
        return fixed_width(values, self.bits)


def flat_message(bits: int) -> pb.CompressiveEncoding:
    """Return the message of flat values of ``bits``, which other encodings have inside too."""
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))
