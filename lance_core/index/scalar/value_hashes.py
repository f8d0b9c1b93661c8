"""Hashes of values, by which Bloom filters know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.kernels.memory import address_of
from lance_core.kernels.xxhash64 import hash_byte_strings

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS_IN_BYTE = 8
_TEXTS = frozenset((pa.string(), pa.large_string(), pa.binary(), pa.large_binary()))
_FLOATS = frozenset((pa.float32(), pa.float64()))


def can_be_hashed(kind: pa.DataType) -> bool:
    """Tell whether Bloom filters take values of a type."""
    return (
        kind in _TEXTS
        or kind in _FLOATS
        or pa.types.is_integer(kind)
        or pa.types.is_date(kind)
        or pa.types.is_time(kind)
        or pa.types.is_timestamp(kind)
    )


def value_hashes(values: pa.Array) -> NDArray[np.uint64]:
    """Return xxHash64 of the bytes of values, none of them null, shape ``(n,)``.

    Parameters
    ----------
    values
        Of a type that `can_be_hashed`.

    Notes
    -----
    Scalar index page, section 7, and observed with pylance 14.0.2 for every type: numbers and
    times are taken as they lie in memory, so that both zeros have hashes of their own.
    """
    hashes = np.empty(len(values), np.uint64)
    data, offsets = _bytes_of(values)
    hash_byte_strings(address_of(data), offsets, hashes)
    return hashes


def _bytes_of(values: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes that values lie in, and where each begins and ends."""
    if values.type in _TEXTS:
        wide = values.cast(pa.large_binary())  # which need not begin where ``values`` does
        _, stored, data = wide.buffers()
        offsets = np.frombuffer(stored, np.int64)[wide.offset : wide.offset + len(wide) + 1]
        return _view(data), offsets.copy()
    width = values.type.bit_width // _BITS_IN_BYTE
    offsets = np.arange(values.offset, values.offset + len(values) + 1, dtype=np.int64) * width
    return _view(values.buffers()[1]), offsets


def _view(data: pa.Buffer | None) -> NDArray[np.uint8]:
    if data is None or data.size == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer(data, np.uint8)
