"""Where mini-block chunks of byte strings begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def bound_strings(
    offsets: NDArray[np.int64],
    value_bytes: int,
    limit_bytes: int,
    max_values: int,
    out: NDArray[np.int64],
) -> int:
    """Cut byte strings into chunks of a power of two values each, but for the last.

    Parameters
    ----------
    offsets
        Shape ``(n + 1,)``; ascending.
    value_bytes
        What a value takes beside its bytes.
    limit_bytes
        Bytes that a chunk should not exceed; two values may.
    max_values
        A power of two, at least 2, that no chunk exceeds.
    out
        Shape ``(n // 2 + 2,)``; receives the bounds, from 0 to ``n``.

    Returns
    -------
    int
        The number of bounds.
    """
    num_values = offsets.shape[0] - 1
    start = 0
    count = 1
    out[0] = 0
    while start < num_values:
        size = max_values
        while size > 2 and (  # noqa: PLR2004
            start + size > num_values
            or offsets[start + size] - offsets[start] + size * value_bytes > limit_bytes
        ):
            size //= 2
        left = num_values - start
        rest_bytes = offsets[num_values] - offsets[start] + left * value_bytes
        if left <= size or (left <= max_values and rest_bytes <= limit_bytes):
            size = left
        start += size
        out[count] = start
        count += 1
    return count


@warmup
def _warm() -> None:
    offsets = np.zeros(1, np.int64)
    bound_strings(offsets, 4, 4096, 2, np.empty(2, np.int64))
