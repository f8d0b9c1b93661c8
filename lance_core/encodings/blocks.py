"""Runs of bytes in memory, by address, for kernels that take many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """``n`` byte runs: addresses and sizes, shape ``(n,)``, and what keeps the memory alive."""

    addresses: NDArray[np.int64]
    sizes: NDArray[np.int64]
    owner: object

    @property
    def num_bytes(self) -> int:
        """Bytes of all runs."""
        return int(self.sizes.sum())


def address_of_bytes(view: memoryview | bytes) -> int:
    """Return where a buffer lies; an empty one may lie nowhere."""
    address: int = pa.py_buffer(view).address
    return address


def blocks_of(views: Sequence[memoryview | bytes]) -> Blocks:
    """Return one run per buffer; the buffers stay alive with the result."""
    addresses = np.array([address_of_bytes(view) for view in views], np.int64)
    return Blocks(addresses, np.array([len(view) for view in views], np.int64), views)
