"""The constant encoding below a fixed-size list: all elements are null, no data (4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lance_core.encodings.compression import Compression
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lance_core.encodings.compression import ChunkBuffer
    from lance_core.encodings.values import Values


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
