"""Constants: no value at all below a fixed-size list (4.4), or one value in a block (5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.compression import Compression
from lance_core.encodings.values import FixedWidth
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.compression import ChunkBuffer
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

_MAX_BYTES = 1 << 27
"""A repeated value takes no bytes in the file, so that nothing else bounds how often."""


@dataclass(frozen=True, slots=True)
class AllNullElements(Compression):
    """No value at all; the list around it knows that all elements are null."""

    name: ClassVar[str] = "constant"

    @property
    def num_buffers(self) -> int:
        """There is no data."""
        return 0

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Write nothing."""
        return ()

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        return pb.CompressiveEncoding(constant=pb.Constant())


@dataclass(frozen=True, slots=True)
class RepeatedValue(Compression):
    """All values of a block are these bytes; the block itself is not looked at."""

    value: bytes
    name: ClassVar[str] = "constant"

    @classmethod
    def of(cls, value: bytes, place: Place) -> RepeatedValue:
        """Check the value and return the encoding."""
        if len(value) == 0:
            raise place.corrupt("a constant value of no bytes")
        return cls(value)

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> FixedWidth:
        """Repeat the value."""
        total = int(counts.sum())
        if total * len(self.value) > _MAX_BYTES:
            raise place.corrupt(f"{total} times the same {len(self.value)} bytes")
        data = np.tile(np.frombuffer(self.value, np.uint8), total)
        return FixedWidth(data, 8 * len(self.value), total)

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        return pb.CompressiveEncoding(constant=pb.Constant(value=self.value))
