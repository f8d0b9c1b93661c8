"""General compression: LZ4 and Zstandard (file format, section 5.9)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from lance_core.encodings.blocks import blocks_of
from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.values import Variable, variable
from lance_core.kernels.memory import bytes_at
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

_SCHEMES: dict[str, pb.CompressionScheme.ValueType] = {
    "lz4_raw": pb.COMPRESSION_LZ4,
    "zstd": pb.COMPRESSION_ZSTD,
}
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SINGLE_SEGMENT_DICTIONARY = 0x10
_PIECE_BYTES = 1 << 20
_MAX_RATIO = {"lz4_raw": 256, "zstd": 1 << 17}
"""No unit expands by more: LZ4 by 255, Zstandard by one block of 128 KiB per few bytes."""


@dataclass(frozen=True, slots=True)
class Codec:
    """One of the two schemes, with the size word that the format puts before each unit.

    ``level`` says how hard to compress; None is the scheme's own default.
    Readers need not know it.
    """

    name: str
    level: int | None = field(default=None, compare=False)

    def message(self) -> pb.BufferCompression:
        """Return the message of this scheme."""
        return pb.BufferCompression(scheme=_SCHEMES[self.name], level=self.level)

    def decompress(self, unit: memoryview, place: Place) -> bytes:
        """Return the bytes of one compressed unit; an empty one is empty.

        Raises
        ------
        CorruptFileError
            The unit is damaged, or claims a size that it cannot have.
        """
        if len(unit) == 0:
            return b""
        if self.name == "zstd" and _is_bare_frame(unit):
            return _expand_bare_frame(unit, place)
        size, start = self._size(unit, place)
        if size > len(unit) * _MAX_RATIO[self.name]:
            raise place.corrupt(f"{len(unit)} {self.name} bytes claim to expand to {size}")
        try:
            expanded: bytes = pa.Codec(self.name).decompress(unit[start:], size, asbytes=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise place.corrupt(f"{self.name} data is damaged: {error}") from None
        if len(expanded) != size:
            raise place.corrupt(f"{self.name} data expands to {len(expanded)} bytes, not {size}")
        return expanded

    def compress(self, values: memoryview) -> bytes:
        """Return one unit."""
        return b"".join(next(self.compress_each([values])))

    def compress_each(self, parts: Iterable[memoryview]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the unit of each part: its size, and what it compresses to; none stays none."""
        word = struct.Struct("<I" if self.name == "lz4_raw" else "<Q")
        level = self.level if self.name == "zstd" else None  # the other scheme has no levels
        compress = pa.Codec(self.name, compression_level=level).compress
        for part in parts:
            size = len(part)
            yield (word.pack(size), compress(part, asbytes=True)) if size > 0 else (b"", b"")

    def _size(self, unit: memoryview, place: Place) -> tuple[int, int]:
        """Return the size when expanded and where the compressed bytes begin."""
        word = "<I" if self.name == "lz4_raw" else "<Q"
        start = struct.calcsize(word)
        if len(unit) < start:
            raise place.corrupt(f"{len(unit)} bytes of {self.name} data")
        size: int = struct.unpack_from(word, unit)[0]
        return size, start


def _is_bare_frame(unit: memoryview) -> bool:
    if len(unit) < len(_ZSTD_MAGIC) * 2:
        return True
    return bytes(unit[:4]) == _ZSTD_MAGIC and unit[4] & _SINGLE_SEGMENT_DICTIONARY == 0


def _expand_bare_frame(unit: memoryview, place: Place) -> bytes:
    """Expand a frame that no size stands before, as early 2.0 writers left them."""
    limit = len(unit) * _MAX_RATIO["zstd"]
    parts: list[bytes] = []
    try:
        with pa.CompressedInputStream(pa.BufferReader(unit), "zstd") as stream:
            while sum(map(len, parts)) <= limit:
                part = stream.read(_PIECE_BYTES)
                if len(part) == 0:
                    return b"".join(parts)
                parts.append(part)
    except (pa.ArrowException, OSError) as error:
        raise place.corrupt(f"zstd data is damaged: {error}") from None
    raise place.corrupt(f"{len(unit)} zstd bytes expand to more than {limit}")


def _view(address: int, size: int) -> memoryview:
    return bytes_at(address, size).data


@dataclass(frozen=True, slots=True)
class General(Compression):
    """Units of ``codec`` that hold values encoded as ``inner``."""

    codec: Codec
    inner: Compression
    name: ClassVar[str] = "general compression"

    @property
    def num_buffers(self) -> int:
        """As the inner encoding; only the first buffer is compressed."""
        return self.inner.num_buffers

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> Values:
        """Decompress the first buffer of each chunk and decode what was inside."""
        return self.inner.decode_chunks(
            [self._expand(buffers[0], place), *buffers[1:]], counts, place
        )

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> Values:
        """Decompress each block and decode what was inside."""
        return self.inner.decode_blocks(self._expand(blocks, place), counts, place)

    def decode_zipped(self, values: Blocks, place: Place) -> Values:
        """Decompress each value by itself."""
        return self.inner.decode_zipped(self._expand(values, place), place)

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        general = pb.General(compression=self.codec.message(), values=self.inner.message())
        return pb.CompressiveEncoding(general=general)

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Encode all chunks as the inner encoding does, and compress the first buffer of each."""
        first, *others = self.inner.encode_chunks(values, bounds)
        return (self._compress(first), *others)

    def encode_blocks(self, values: Values, bounds: NDArray[np.int64]) -> ChunkBuffer:
        """Encode blocks as the inner encoding does and compress each."""
        return self._compress(self.inner.encode_blocks(values, bounds))

    def encode_zipped(self, values: Values) -> Variable:
        """Compress each byte string by itself; empty ones, which may be nulls, stay empty."""
        strings = variable(self.inner.encode_zipped(values))
        start, stop = int(strings.offsets[0]), int(strings.offsets[-1])
        sizes = np.diff(strings.offsets)
        units = self._compress(ChunkBuffer(strings.data[start:stop], sizes))
        offsets = np.append(0, np.cumsum(units.sizes))
        return Variable(offsets, units.data)

    def _compress(self, parts: ChunkBuffer) -> ChunkBuffer:
        ends = np.cumsum(parts.sizes)
        spans = zip((ends - parts.sizes).tolist(), ends.tolist(), strict=True)
        view = parts.data.data
        data, sizes = bytearray(), np.empty(len(parts.sizes), np.int64)
        for number, unit in enumerate(self.codec.compress_each(view[a:b] for a, b in spans)):
            before = len(data)
            for piece in unit:
                data += piece  # dropped before the next is made: single values may be very large
            sizes[number] = len(data) - before
        return ChunkBuffer(np.frombuffer(data, np.uint8), sizes)

    def _expand(self, blocks: Blocks, place: Place) -> Blocks:
        spans = zip(blocks.addresses.tolist(), blocks.sizes.tolist(), strict=True)
        return blocks_of([self.codec.decompress(_view(*span), place) for span in spans])
