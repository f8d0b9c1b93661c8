"""Variable: byte strings delimited by offsets (file format, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.blocks import Blocks
from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.flat import flat_message
from lance_core.encodings.rows import descends
from lance_core.encodings.values import Variable, variable
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.gather import find_strings, join_bytes, join_offsets, join_values
from lance_core.kernels.memory import bytes_at
from lance_core.kernels.split import split_strings
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.compression import Selection
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

NARROW_BITS, WIDE_BITS = 32, 64


@dataclass(frozen=True, slots=True)
class VariableWidth(Compression):
    """Offsets of 32 or 64 bits, then the bytes."""

    offset_bits: int
    name: ClassVar[str] = "variable"

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> Variable:
        """Join the strings of all chunks; each has its own offsets, from its buffer's start."""
        blocks = buffers[0]
        width = self.offset_bits // 8
        offsets = np.zeros(_room(counts, width, blocks, place) + 1, np.int64)
        bad = join_offsets(blocks.addresses, blocks.sizes, counts, width, offsets)
        if bad != DONE:
            raise place.corrupt("the offsets of a chunk of strings leave its buffer")
        data = np.empty(int(offsets[-1]), np.uint8)
        join_values(blocks.addresses, counts, width, offsets, data)
        return Variable(offsets, data)

    def take_chunks(
        self,
        buffers: Sequence[Blocks],
        counts: NDArray[np.int64],
        selection: Selection,
        place: Place,
    ) -> Variable:
        """Copy only the strings selected."""
        blocks = buffers[0]
        addresses = np.empty(len(selection.chunks), np.int64)
        sizes = np.empty(len(selection.chunks), np.int64)
        bad = find_strings(
            blocks.addresses,
            blocks.sizes,
            counts,
            self.offset_bits // 8,
            selection.chunks,
            selection.positions,
            addresses,
            sizes,
        )
        if bad != DONE:
            raise place.corrupt("the offsets of a chunk of strings leave its buffer")
        return self.decode_zipped(Blocks(addresses, sizes, blocks.owner), place)

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> Variable:
        """Decode one block: header, offsets from 0, bytes.

        Early 2.1 writers put the width, one byte, and the number of strings before the rest.
        """
        if blocks.sizes.shape[0] != 1:
            raise place.unsupported("strings in more than one block")
        block = bytes_at(int(blocks.addresses[0]), int(blocks.sizes[0]))
        word = np.dtype(f"<u{self.offset_bits // 8}")
        count = int(counts[0])
        is_early = bool(block[1:4].any())
        header = 2 * word.itemsize + is_early
        if block.shape[0] < header + (count + 1) * word.itemsize:
            raise place.corrupt(f"a block is too short for {count} strings")
        start = int(block[header - word.itemsize : header].view(word)[0])
        bits = int(block[0] if is_early else block[: word.itemsize].view(word)[0])
        if bits != self.offset_bits:
            raise place.corrupt(f"a block of strings with offsets of {bits} bits")
        offsets = block[header : header + (count + 1) * word.itemsize].view(word)
        checked = offsets.astype(np.int64)
        end = block.shape[0] - start
        if start != header + (count + 1) * word.itemsize or _leave(checked, end):
            raise place.corrupt("the offsets of a block of strings leave the block")
        data = block[start + int(checked[0]) : start + int(checked[-1])].copy()
        return Variable(checked - checked[0], data)

    def decode_zipped(self, values: Blocks, place: Place) -> Variable:
        """Join the values; the lengths before them were already taken off."""
        offsets = np.zeros(values.sizes.shape[0] + 1, np.int64)
        np.cumsum(values.sizes, out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        join_bytes(values.addresses, values.sizes, data)
        return Variable(offsets, data)

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        return pb.CompressiveEncoding(variable=pb.Variable(offsets=flat_message(self.offset_bits)))

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Put offsets before the strings of each chunk, and fill it up to a whole offset."""
        strings = variable(values)
        word = np.dtype(f"<u{self.offset_bits // 8}")
        ends = strings.offsets[bounds]
        sizes = np.diff(ends) + (np.diff(bounds) + 1) * word.itemsize
        sizes += -sizes % word.itemsize
        data = np.zeros(int(sizes.sum()), np.uint8)
        split_strings(strings.offsets, strings.data, bounds, sizes, data.view(word), data)
        return (ChunkBuffer(data, sizes),)

    def encode_blocks(self, values: Values, bounds: NDArray[np.int64]) -> ChunkBuffer:
        """Encode one block, of a dictionary."""
        if bounds.shape != (2,):
            return Compression.encode_blocks(self, values, bounds)
        strings = variable(values)
        word = np.dtype(f"<u{self.offset_bits // 8}")
        first, last = int(strings.offsets[0]), int(strings.offsets[-1])
        start = (2 + len(strings.offsets)) * word.itemsize
        data = np.empty(start + last - first, np.uint8)
        words = data[:start].view(word)
        words[:2] = self.offset_bits, start
        words[2:] = strings.offsets - first
        data[start:] = strings.data[first:last]
        return ChunkBuffer(data, np.array([len(data)], np.int64))

    def encode_zipped(self, values: Values) -> Variable:
        """Return the strings as they are."""
        return variable(values)


def _room(counts: NDArray[np.int64], width: int, blocks: Blocks, place: Place) -> int:
    """Return the number of values, once it is sure that their offsets fit into the buffers."""
    if bool(((counts + 1) * width > blocks.sizes).any()):
        raise place.corrupt("a chunk is too short for the offsets of its strings")
    return int(counts.sum())


def _leave(offsets: NDArray[np.int64], end: int) -> bool:
    return int(offsets[0]) < 0 or int(offsets[-1]) > end or descends(offsets)
