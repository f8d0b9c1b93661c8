"""Putting mini-block chunks together: header, levels and value buffers (file format, 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAD = 8
_HALF_BITS = 16
_HALF = 0xFFFF


@kernel
def assemble_chunks(
    num_levels: NDArray[np.int64],
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    num_level_parts: int,
    has_large_chunk: bool,
    halves: NDArray[np.uint16],
    out: NDArray[np.uint8],
) -> None:
    """Write chunks one after another.

    Parameters
    ----------
    num_levels
        Shape ``(chunks,)``; level entries of each chunk, below 65,536.
    addresses
        Shape ``(parts,)``; where each part lies, chunk after chunk without gaps; levels first.
    sizes
        Shape ``(parts, chunks)``; bytes of each part in each chunk.
    num_level_parts
        How many of repetition and definition levels are present, 0 to 2.
    has_large_chunk
        Whether the sizes of value buffers take four bytes instead of two.
    halves, out
        The same memory, of exactly the chunks' bytes, as numbers of 16 bits and as bytes.
    """
    parts = sizes.shape[0]
    value_halves = 2 if has_large_chunk else 1
    header_halves = 1 + num_level_parts + value_halves * (parts - num_level_parts)
    header = (header_halves * 2 + _PAD - 1) // _PAD * _PAD
    sources = addresses.copy()
    position = 0
    for chunk in range(sizes.shape[1]):
        half = position // 2
        stop = half + header // 2
        halves[half] = num_levels[chunk]
        half += 1
        for part in range(parts):
            halves[half] = sizes[part, chunk] & _HALF
            half += 1
            if part >= num_level_parts and has_large_chunk:
                halves[half] = sizes[part, chunk] >> _HALF_BITS
                half += 1
        halves[half:stop] = 0
        position += header
        for part in range(parts):
            size = sizes[part, chunk]
            end = position + size
            out[position:end] = bytes_at(sources[part], size)
            sources[part] += size
            position = (end + _PAD - 1) // _PAD * _PAD
            out[end:position] = 0


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    sizes = np.empty((1, 0), np.int64)
    out = np.empty(0, np.uint8)
    assemble_chunks(none, np.zeros(1, np.int64), sizes, 0, True, out.view(np.uint16), out)
