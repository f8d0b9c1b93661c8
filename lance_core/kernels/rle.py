"""Run-length coding: values beside run lengths of one byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.bitpacking import DONE, UNSIGNED
from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import bytes_at, pointer_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def repeat_runs(
    value_addresses: NDArray[np.int64],
    value_sizes: NDArray[np.int64],
    length_addresses: NDArray[np.int64],
    length_sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    out: NDArray[np.unsignedinteger],
) -> int:
    """Repeat the values of each buffer by its run lengths, up to its count.

    Parameters
    ----------
    value_addresses, value_sizes, length_addresses, length_sizes, counts
        Shape ``(n,)``. What a buffer has beyond its count is dropped: older writers let a run cross
        the end of a chunk (file format, section 5.7).
    out
        Shape ``(sum(counts),)``.

    Returns
    -------
    int
        ``DONE``, or the first buffer whose runs end before its count.
    """
    position = 0
    for buffer in range(counts.shape[0]):
        runs = min(value_sizes[buffer] // out.itemsize, length_sizes[buffer])
        values = carray(pointer_at(value_addresses[buffer]), runs, out.dtype)
        lengths = bytes_at(length_addresses[buffer], runs)
        stop = position + counts[buffer]
        for run in range(runs):
            end = min(position + lengths[run], stop)
            out[position:end] = values[run]
            position = end
        if position < stop:
            return buffer
    return DONE


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    for element in UNSIGNED.values():
        repeat_runs(none, none, none, none, none, np.empty(0, element))
