"""Splitting values over mini-block chunks: the mirror of ``gather``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def split_bits(
    booleans: NDArray[np.uint8], bounds: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Pack bytes of 0 and 1 to bits, low bits first; every chunk begins a byte.

    Parameters
    ----------
    booleans
        Shape ``(bounds[-1],)``.
    bounds
        Shape ``(chunks + 1,)``; ascending from 0.
    out
        Zeros, ``ceil(n / 8)`` for each chunk of ``n``.
    """
    position = 0
    for chunk in range(bounds.shape[0] - 1):
        start = bounds[chunk]
        count = bounds[chunk + 1] - start
        for index in range(count):
            out[position + (index >> 3)] |= booleans[start + index] << (index & 7)
        position += (count + 7) // 8


@kernel
def split_strings(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    sizes: NDArray[np.int64],
    words: NDArray[np.unsignedinteger],
    out: NDArray[np.uint8],
) -> None:
    """Write byte strings as chunks: offsets from the chunk's start, then the bytes.

    Parameters
    ----------
    offsets, data
        Shapes ``(n + 1,)`` and ``(bytes,)``; ascending offsets into ``data``.
    bounds, sizes
        Shapes ``(chunks + 1,)`` and ``(chunks,)``; the values of each chunk and its bytes, a
        multiple of the offset width.
    words, out
        The same zeroed memory of ``sum(sizes)`` bytes, as offsets of 4 or 8 bytes and as bytes.
    """
    begin = 0
    for chunk in range(sizes.shape[0]):
        first = bounds[chunk]
        count = bounds[chunk + 1] - first
        table = begin // words.itemsize
        table_bytes = (count + 1) * words.itemsize
        shift = table_bytes - offsets[first]
        for index in range(count + 1):
            words[table + index] = offsets[first + index] + shift
        start = offsets[first]
        length = offsets[first + count] - start
        to = begin + table_bytes
        out[to : to + length] = data[start : start + length]
        begin += sizes[chunk]


@kernel
def split_streams(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], value_bytes: int, out: NDArray[np.uint8]
) -> None:
    """Split values into byte streams: byte ``j`` of value ``i`` of a chunk goes to ``j * n + i``.

    ``data`` and ``out`` have shape ``(bounds[-1] * value_bytes,)``.
    """
    for chunk in range(bounds.shape[0] - 1):
        start = bounds[chunk] * value_bytes
        count = bounds[chunk + 1] - bounds[chunk]
        for byte in range(value_bytes):
            for index in range(count):
                out[start + byte * count + index] = data[start + index * value_bytes + byte]


@warmup
def _warm() -> None:
    bounds = np.zeros(1, np.int64)
    none = np.empty(0, np.int64)
    data = np.empty(0, np.uint8)
    split_bits(data, bounds, data)
    split_streams(data, bounds, 4, data)
    for word in (np.uint32, np.uint64):
        split_strings(bounds, data, bounds, none, np.empty(0, word), data)
