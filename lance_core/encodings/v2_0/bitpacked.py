"""Integers packed to fewer bits: a plain bit stream, or blocks in FastLanes order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.bitpacking import OutOfLineBitpacking
from lance_core.encodings.blocks import blocks_of
from lance_core.encodings.values import FixedWidth
from lance_core.kernels.bitpacking import BLOCK_ROWS, UNSIGNED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps


@dataclass(frozen=True, slots=True)
class BitpackedArray:
    """Value ``i`` takes ``packed_bits`` from bit ``i * packed_bits`` on, lowest bit first.

    ``is_signed`` says that the highest of these bits is the sign.
    """

    packed_bits: int
    bits: int
    buffer: int
    is_signed: bool

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Compare the size of the buffer with that of its values."""
        _check_widths(self.packed_bits, self.bits, place)
        _check_size(page, self.buffer, (num_values * self.packed_bits + 7) // 8, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[FixedWidth]:
        """Read the bytes that hold the values and spread them."""
        width = self.packed_bits
        views = yield [
            page.span(self.buffer, start * width // 8, (stop * width + 7) // 8)
            for start, stop in pieces
        ]
        parts = [
            self._spread(view, start * width % 8, stop - start)
            for view, (start, stop) in zip(views, pieces, strict=True)
        ]
        data = np.concatenate([*parts, np.empty(0, UNSIGNED[self.bits])])
        return FixedWidth(data.view(np.uint8), self.bits, len(data))

    def _spread(self, view: memoryview, skip: int, count: int) -> NDArray[np.unsignedinteger]:
        width = self.packed_bits
        stream = np.unpackbits(np.frombuffer(view, np.uint8), bitorder="little")
        table = stream[skip : skip + count * width].reshape(count, width)
        values = np.zeros(count, np.uint64)
        for bit in range(width):
            values |= table[:, bit].astype(np.uint64) << np.uint64(bit)
        if self.is_signed and width > 0:
            unused = np.uint64(64 - width)
            values = ((values << unused).view(np.int64) >> unused.view(np.int64)).view(np.uint64)
        return values.astype(UNSIGNED[self.bits])

    def raw(self, page: Page) -> RawRows | None:
        """Values share bytes."""
        return None


@dataclass(frozen=True, slots=True)
class BlockPackedArray:
    """Blocks of 1,024 values packed to ``packed_bits``; the last one is filled up."""

    packed_bits: int
    bits: int
    buffer: int

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Compare the size of the buffer with that of its blocks."""
        _check_widths(self.packed_bits, self.bits, place)
        num_blocks = (num_values + BLOCK_ROWS - 1) // BLOCK_ROWS
        _check_size(page, self.buffer, num_blocks * self._block_bytes, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[FixedWidth]:
        """Read the blocks that hold the values and unpack them whole."""
        blocks = [(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS)) for start, stop in pieces]
        size = self._block_bytes
        views = yield [page.span(self.buffer, first * size, last * size) for first, last in blocks]
        counts = np.array([last - first for first, last in blocks], np.int64) * BLOCK_ROWS
        packing = OutOfLineBitpacking(self.bits, self.packed_bits)
        unpacked = packing.decode_blocks(blocks_of(views), counts, place)
        values = unpacked.data.view(UNSIGNED[self.bits])
        begins = np.cumsum(counts) - counts
        parts = [
            values[begin + start % BLOCK_ROWS :][: stop - start]
            for begin, (start, stop) in zip(begins.tolist(), pieces, strict=True)
        ]
        data = np.concatenate([*parts, values[:0]])
        return FixedWidth(data.view(np.uint8), self.bits, len(data))

    def raw(self, page: Page) -> RawRows | None:
        """Values share bytes."""
        return None

    @property
    def _block_bytes(self) -> int:
        return BLOCK_ROWS // 8 * self.packed_bits


def _check_widths(packed_bits: int, bits: int, place: Place) -> None:
    if bits not in UNSIGNED or not 0 < packed_bits <= bits:
        raise place.corrupt(f"bit packing of {bits}-bit values to {packed_bits} bits")


def _check_size(page: Page, buffer: int, needed: int, place: Place) -> None:
    if buffer >= len(page.buffers):
        raise place.corrupt(f"there is no buffer {buffer}, only {len(page.buffers)}")
    if page.buffers[buffer][1] < needed:
        raise place.corrupt(f"packed values of {needed} bytes in {page.buffers[buffer][1]} bytes")
