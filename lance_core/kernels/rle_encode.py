"""Finding runs, and writing them as values beside lengths of one byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.bitpacking import UNSIGNED
from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_RUN = 255


@kernel
def count_runs(
    values: NDArray[np.unsignedinteger], bounds: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Count the runs of each chunk, none longer than 255; ``out`` has shape ``(chunks,)``."""
    for chunk in range(out.shape[0]):
        runs = 0
        start = bounds[chunk]
        stop = bounds[chunk + 1]
        for index in range(start + 1, stop + 1):
            if index == stop or values[index] != values[start]:
                runs += (index - start + MAX_RUN - 1) // MAX_RUN
                start = index
        out[chunk] = runs


@kernel
def count_changes(values: NDArray[np.unsignedinteger]) -> int:
    """Count the values that differ from the one before."""
    changes = 0
    for index in range(1, values.shape[0]):
        changes += values[index] != values[index - 1]
    return changes


@kernel
def write_runs(
    values: NDArray[np.unsignedinteger],
    bounds: NDArray[np.int64],
    run_values: NDArray[np.unsignedinteger],
    run_lengths: NDArray[np.uint8],
) -> None:
    """Write the runs of all chunks; both outputs have room for all ``count_runs``."""
    run = 0
    for chunk in range(bounds.shape[0] - 1):
        start = bounds[chunk]
        stop = bounds[chunk + 1]
        for index in range(start + 1, stop + 1):
            if index == stop or values[index] != values[start]:
                while start < index:
                    length = min(index - start, MAX_RUN)
                    run_values[run] = values[start]
                    run_lengths[run] = length
                    start += length
                    run += 1


@kernel
def join_run_blocks(
    values: NDArray[np.uint8],
    lengths: NDArray[np.uint8],
    runs: NDArray[np.int64],
    value_bytes: int,
    out: NDArray[np.uint8],
) -> None:
    """Write blocks of runs: the bytes of the values as a word of 8 bytes, values, lengths.

    Parameters
    ----------
    values, lengths
        Shapes ``(r * value_bytes,)`` and ``(r,)``; the runs of all blocks.
    runs
        Shape ``(blocks,)``; the runs of each.
    out
        ``8 + runs * (value_bytes + 1)`` bytes for each block.
    """
    run = 0
    position = 0
    for block in range(runs.shape[0]):
        count = runs[block]
        size = count * value_bytes
        for byte in range(8):
            out[position + byte] = (size >> (8 * byte)) & 0xFF
        position += 8
        out[position : position + size] = values[run * value_bytes :][:size]
        position += size
        out[position : position + count] = lengths[run : run + count]
        position += count
        run += count


@warmup
def _warm() -> None:
    bounds = np.zeros(1, np.int64)
    none = np.empty(0, np.int64)
    join_run_blocks(np.empty(0, np.uint8), np.empty(0, np.uint8), none, 1, np.empty(0, np.uint8))
    for element in UNSIGNED.values():
        values = np.empty(0, element)
        count_runs(values, bounds, none)
        count_changes(values)
        write_runs(values, bounds, values, np.empty(0, np.uint8))
