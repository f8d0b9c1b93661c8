"""Byte stream splitting: first bytes of all values, then second ones (file format, 5.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.flat import flat_message
from lance_core.encodings.values import FixedWidth, fixed_width
from lance_core.kernels.gather import deinterleave
from lance_core.kernels.split import split_streams
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values


@dataclass(frozen=True, slots=True)
class ByteStreamSplit(Compression):
    """Values of ``bits``, a multiple of 8."""

    bits: int
    name: ClassVar[str] = "byte stream split"

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> FixedWidth:
        """Put the bytes of each chunk's values together again."""
        blocks = buffers[0]
        value_bytes = self.bits // 8
        if bool((blocks.sizes < counts * value_bytes).any()):
            raise place.corrupt("a byte-split buffer is shorter than its values")
        out = np.empty(int(counts.sum()) * value_bytes, np.uint8)
        deinterleave(blocks.addresses, counts, value_bytes, out)
        return FixedWidth(out, self.bits, int(counts.sum()))

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        split = pb.ByteStreamSplit(values=flat_message(self.bits))
        return pb.CompressiveEncoding(byte_stream_split=split)

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Take the bytes of each chunk's values apart."""
        data = fixed_width(values, self.bits).data
        out = np.empty(len(data), np.uint8)
        split_streams(data, bounds, self.bits // 8, out)
        return (ChunkBuffer(out, np.diff(bounds) * (self.bits // 8)),)
