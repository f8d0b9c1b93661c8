"""Bit packing, with the width before each block or in the message (file format, section 5.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.flat import flat_message
from lance_core.encodings.values import FixedWidth, fixed_width
from lance_core.kernels.bitpacking import (
    BLOCK_ROWS,
    DONE,
    UNSIGNED,
    unpack_inline,
    unpack_out_of_line,
    unpack_selected,
)
from lance_core.kernels.bitpacking_encode import (
    chunk_widths,
    out_of_line_sizes,
    pack_inline,
    pack_out_of_line,
)
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.compression import Selection
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values


@dataclass(frozen=True, slots=True)
class InlineBitpacking(Compression):
    """Blocks of at most 1,024 values of ``bits``; a word with the packed width stands first."""

    bits: int
    name: ClassVar[str] = "inline bit packing"

    @classmethod
    def of_width(cls, bits: int, place: Place) -> InlineBitpacking:
        """Check the width and return the encoding."""
        if bits not in UNSIGNED:
            raise place.corrupt(f"bit packing of {bits}-bit values")
        return cls(bits)

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> FixedWidth:
        """Unpack all chunks."""
        return self.decode_blocks(buffers[0], counts, place)

    def take_chunks(
        self,
        buffers: Sequence[Blocks],
        counts: NDArray[np.int64],
        selection: Selection,
        place: Place,
    ) -> FixedWidth:
        """Unpack only the values selected."""
        blocks = buffers[0]
        if bool((counts > BLOCK_ROWS).any()):
            raise place.corrupt(f"a bit-packed block of more than {BLOCK_ROWS} values")
        out = np.empty(len(selection.chunks), UNSIGNED[self.bits])
        chunks, positions = selection.chunks, selection.positions
        if unpack_selected(blocks.addresses, blocks.sizes, chunks, positions, out) != DONE:
            raise place.corrupt("a bit-packed block is cut off or of impossible width")
        return FixedWidth(out.view(np.uint8), self.bits, out.shape[0])

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> FixedWidth:
        """Unpack all blocks."""
        if bool((counts > BLOCK_ROWS).any()):
            raise place.corrupt(f"a bit-packed block of more than {BLOCK_ROWS} values")
        out = np.empty(int(counts.sum()), UNSIGNED[self.bits])
        if unpack_inline(blocks.addresses, blocks.sizes, counts, out) != DONE:
            raise place.corrupt("a bit-packed block is cut off or of impossible width")
        return FixedWidth(out.view(np.uint8), self.bits, out.shape[0])

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        packed = pb.InlineBitpacking(uncompressed_bits_per_value=self.bits)
        return pb.CompressiveEncoding(inline_bitpacking=packed)

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Pack all chunks, each to the width that it needs."""
        return (self.encode_blocks(values, bounds),)

    def encode_blocks(self, values: Values, bounds: NDArray[np.int64]) -> ChunkBuffer:
        """Pack all blocks, each to the width that it needs; none has more than 1,024 values."""
        numbers = fixed_width(values, self.bits).integers()
        widths = np.empty(len(bounds) - 1, np.int64)
        chunk_widths(numbers, bounds, widths)
        sizes = self.bits // 8 + widths * (BLOCK_ROWS // 8)
        packed = np.empty(int(sizes.sum()) // numbers.itemsize, numbers.dtype)
        pack_inline(numbers, bounds, widths, packed)
        return ChunkBuffer(packed.view(np.uint8), sizes)


@dataclass(frozen=True, slots=True)
class OutOfLineBitpacking(Compression):
    """Blocks of ``bits``-bit values packed to ``packed_bits``; for levels only."""

    bits: int
    packed_bits: int
    name: ClassVar[str] = "out-of-line bit packing"

    @classmethod
    def of_widths(cls, bits: int, packed_bits: int, place: Place) -> OutOfLineBitpacking:
        """Check the widths and return the encoding."""
        if bits not in UNSIGNED or packed_bits > bits:
            raise place.corrupt(f"bit packing of {bits}-bit values to {packed_bits} bits")
        return cls(bits, packed_bits)

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> FixedWidth:
        """Unpack all blocks."""
        self._check_sizes(blocks, counts, place)
        out = np.empty(int(counts.sum()), UNSIGNED[self.bits])
        width = self.packed_bits
        if unpack_out_of_line(blocks.addresses, blocks.sizes, counts, width, out) != DONE:
            raise place.corrupt("a bit-packed buffer is shorter than its values")
        return FixedWidth(out.view(np.uint8), self.bits, out.shape[0])

    def _check_sizes(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> None:
        # before allocating: each value takes at least its packed bits
        if bool((counts // BLOCK_ROWS * BLOCK_ROWS * self.packed_bits > blocks.sizes * 8).any()):
            raise place.corrupt("a bit-packed buffer is shorter than its values")

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        packed = pb.OutOfLineBitpacking(
            uncompressed_bits_per_value=self.bits, values=flat_message(self.packed_bits)
        )
        return pb.CompressiveEncoding(out_of_line_bitpacking=packed)

    def encode_blocks(self, values: Values, bounds: NDArray[np.int64]) -> ChunkBuffer:
        """Pack all blocks; the caller has seen to it that ``packed_bits`` are enough."""
        numbers = fixed_width(values, self.bits).integers()
        sizes = np.empty(len(bounds) - 1, np.int64)
        out_of_line_sizes(bounds, self.packed_bits, numbers.itemsize, sizes)
        packed = np.empty(int(sizes.sum()) // numbers.itemsize, numbers.dtype)
        pack_out_of_line(numbers, bounds, self.packed_bits, packed)
        return ChunkBuffer(packed.view(np.uint8), sizes)
