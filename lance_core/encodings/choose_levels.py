"""How repetition or definition levels are stored: in the fewest bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_core.encodings.flat import Flat
from lance_core.encodings.rle import Rle
from lance_core.encodings.version import FileVersion
from lance_core.kernels.bitpacking import BLOCK_ROWS
from lance_core.kernels.bitpacking_encode import chunk_widths, out_of_line_sizes
from lance_core.kernels.rle_encode import count_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.compression import Compression
    from lance_core.encodings.levels import Levels

LEVEL_BITS = 16
_LEVEL_BYTES = 2
_RUN_HEADER = 8
_RUN_BYTES = 3


def choose_levels(levels: Levels, bounds: NDArray[np.int64], version: FileVersion) -> Compression:
    """Choose the smallest form of levels, the plainest among equals.

    Parameters
    ----------
    levels
        Shape ``(n,)``.
    bounds
        Shape ``(blocks + 1,)``; each chunk has a block of its own, a constant page one.
    version
        Of the file: runs are known from 2.2 on.
    """
    candidates: list[tuple[int, Compression]] = [(_LEVEL_BYTES * len(levels), Flat(LEVEL_BITS))]
    sizes = np.empty(len(bounds) - 1, np.int64)
    width = max(int(levels.max(initial=0)).bit_length(), 1)
    out_of_line_sizes(bounds, width, _LEVEL_BYTES, sizes)
    candidates.append((int(sizes.sum()), OutOfLineBitpacking(LEVEL_BITS, width)))
    if int(np.diff(bounds).max(initial=0)) <= BLOCK_ROWS:
        chunk_widths(levels, bounds, sizes)
        packed = sizes * (BLOCK_ROWS // 8) + _LEVEL_BYTES
        candidates.append((int(packed.sum()), InlineBitpacking(LEVEL_BITS)))
    best = min(size for size, _ in candidates)
    if version is FileVersion.V2_2 and _fewest_run_bytes(levels) < best:
        count_runs(levels, bounds, sizes)
        runs = sizes * _RUN_BYTES + _RUN_HEADER
        candidates.append((int(runs.sum()), Rle(LEVEL_BITS)))
    return min(candidates, key=lambda candidate: candidate[0])[1]


def _fewest_run_bytes(levels: Levels) -> int:
    """Return what runs take at least, wherever blocks cut them; found faster than what they do."""
    return _RUN_BYTES * (1 + int(np.count_nonzero(levels[1:] != levels[:-1])))
