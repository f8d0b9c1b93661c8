"""Run-length coding (file format, section 5.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.blocks import Blocks
from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.flat import flat_message
from lance_core.encodings.values import FixedWidth, fixed_width
from lance_core.kernels.bitpacking import DONE, UNSIGNED
from lance_core.kernels.gather import join_bytes
from lance_core.kernels.rle import repeat_runs
from lance_core.kernels.rle_encode import MAX_RUN, count_runs, join_run_blocks, write_runs
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

_LENGTH_WORD = 8
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
        sizes = np.empty(len(blocks.sizes), np.int64)
        words = np.full(len(blocks.sizes), _LENGTH_WORD)
        join_bytes(blocks.addresses, words, sizes.view(np.uint8))
        rest = blocks.sizes - _LENGTH_WORD
        if bool(((sizes < 0) | (sizes > rest)).any()):
            raise place.corrupt("the values of a run-length block leave it")
        values = Blocks(blocks.addresses + _LENGTH_WORD, sizes, blocks.owner)
        lengths = Blocks(values.addresses + sizes, rest - sizes, blocks.owner)
        return self._repeat(values, lengths, counts, place)

    def _repeat(
        self, values: Blocks, lengths: Blocks, counts: NDArray[np.int64], place: Place
    ) -> FixedWidth:
        if bool((counts > lengths.sizes * MAX_RUN).any()):  # before allocating
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

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Write the values of the runs of all chunks, and their lengths."""
        numbers, lengths, runs = self._runs(values, bounds)
        return ChunkBuffer(numbers, runs * (self.bits // 8)), ChunkBuffer(lengths, runs)

    def encode_blocks(self, values: Values, bounds: NDArray[np.int64]) -> ChunkBuffer:
        """Write of each block a length word, the values of its runs, and their lengths."""
        numbers, lengths, runs = self._runs(values, bounds)
        width = self.bits // 8
        sizes = _LENGTH_WORD + runs * (width + 1)
        data = np.empty(int(sizes.sum()), np.uint8)
        join_run_blocks(numbers, lengths, runs, width, data)
        return ChunkBuffer(data, sizes)

    def _runs(
        self, values: Values, bounds: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64]]:
        """Return bytes of the values and lengths of all runs, and the runs of each chunk."""
        numbers = fixed_width(values, self.bits).integers()
        runs = np.empty(len(bounds) - 1, np.int64)
        count_runs(numbers, bounds, runs)
        run_values = np.empty(int(runs.sum()), numbers.dtype)
        lengths = np.empty(len(run_values), np.uint8)
        write_runs(numbers, bounds, run_values, lengths)
        return run_values.view(np.uint8), lengths, runs
