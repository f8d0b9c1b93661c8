"""Token dictionaries as the bytes of an FST."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.text.byte_keys import key_bytes
from lance_core.kernels.text_fst import FOOTER_BYTES, HEADER_BYTES
from lance_core.kernels.text_fst_write import OUT_OF_ORDER, masked_crc32c, write_nodes

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_VERSION = 3
_MAP = 0
_BYTES_OF_KEY = 40
"""More than the nodes take for each key beside two for each of its bytes."""


def fst_bytes(keys: pa.Array, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Write a map from keys to numbers.

    Parameters
    ----------
    keys
        Strings, ascending by their bytes, without repeats and nulls.
    numbers
        Shape ``(len(keys),)``, from 0 to ``2**32 - 1``.

    Raises
    ------
    InvalidRequestError
        The keys are out of order.
    """
    data, offsets = key_bytes(keys)
    longest = int(np.diff(offsets).max(initial=0))
    room = 2 * len(data) + _BYTES_OF_KEY * (len(keys) + 1)
    out = np.zeros(HEADER_BYTES + room + FOOTER_BYTES, np.uint8)
    out[:HEADER_BYTES] = _words(_VERSION, _MAP)
    opened = np.zeros((longest + 1, 4), np.int64)
    stack = np.zeros((min(len(keys), 256 * longest) + longest + 1, 3), np.int64)
    end, root = write_nodes(data, offsets, numbers, opened, stack, out, HEADER_BYTES)
    if end == OUT_OF_ORDER:
        raise InvalidRequestError("the keys of an FST ascend by their bytes, each of them once")
    checked = end + HEADER_BYTES
    out[end:checked] = _words(len(keys), root)
    out[checked : end + FOOTER_BYTES] = np.array([masked_crc32c(out[:checked])], "<u4").view("u1")
    return out[: end + FOOTER_BYTES].copy()


def _words(first: int, second: int) -> NDArray[np.uint8]:
    return np.array([first, second], "<u8").view(np.uint8)
