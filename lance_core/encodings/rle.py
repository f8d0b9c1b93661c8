"""Run-length coding (file format, section 5.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.blocks import Blocks
from lance_core.encodings.compression import Compression
from lance_core.encodings.flat import flat_message
from lance_core.encodings.values import FixedWidth
from lance_core.kernels.bitpacking import DONE, UNSIGNED
from lance_core.kernels.gather import offset_at
from lance_core.kernels.rle import repeat_runs
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.place import Place

_LENGTH_WORD = 8
_MAX_RUN = 255
_LENGTH_BITS = 8


@dataclass(frozen=True, slots=True)
class Rle(Compression):
    """Values of ``bits`` in one buffer, run lengths of one byte in another."""

    bits: int
    name: ClassVar[str] = "run-length coding"

    @classmethod
    def of_width(cls, bits: int, place: Place) -> Rle:
        """Check the width and return the encoding."""
        if bits not in UNSIGNED:
            raise place.unsupported(f"run-length coding of {bits}-bit values")
        return cls(bits)

    @property
    def num_buffers(self) -> int:
        """Values and lengths."""
        return 2

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> FixedWidth:
        """Repeat the values of all chunks."""
        return self._repeat(buffers[0], buffers[1], counts, place)

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> FixedWidth:
        """Repeat the values of all blocks: a length word, the values, the run lengths."""
        if bool((blocks.sizes < _LENGTH_WORD).any()):
            raise place.corrupt("a run-length block without its header")
        sizes = np.array(
            [offset_at(int(address), 0, _LENGTH_WORD) for address in blocks.addresses], np.int64
        )
        rest = blocks.sizes - _LENGTH_WORD
        if bool(((sizes < 0) | (sizes > rest)).any()):
            raise place.corrupt("the values of a run-length block leave it")
        values = Blocks(blocks.addresses + _LENGTH_WORD, sizes, blocks.owner)
        lengths = Blocks(values.addresses + sizes, rest - sizes, blocks.owner)
        return self._repeat(values, lengths, counts, place)

    def _repeat(
        self, values: Blocks, lengths: Blocks, counts: NDArray[np.int64], place: Place
    ) -> FixedWidth:
        if bool((counts > lengths.sizes * _MAX_RUN).any()):  # before allocating
            raise place.corrupt("the runs end before the values do")
        out = np.empty(int(counts.sum()), UNSIGNED[self.bits])
        bad = repeat_runs(
            values.addresses, values.sizes, lengths.addresses, lengths.sizes, counts, out
        )
        if bad != DONE:
            raise place.corrupt("the runs end before the values do")
        return FixedWidth(out.view(np.uint8), self.bits, out.shape[0])

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        rle = pb.Rle(values=flat_message(self.bits), run_lengths=flat_message(_LENGTH_BITS))
        return pb.CompressiveEncoding(rle=rle)
