"""Texts as kernels take them: their bytes one after another, and where each begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def key_bytes(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of strings or binaries without nulls, and offsets, shape ``(n + 1,)``.

    Text ``i`` is ``data[offsets[i] : offsets[i + 1]]``; both are copies.
    """
    wide = texts.cast(pa.large_binary())
    _, offsets, data = wide.buffers()
    start = wide.offset * np.int64().itemsize
    bounds = np.frombuffer(offsets, np.int64, len(wide) + 1, start).copy()
    first, last = int(bounds[0]), int(bounds[-1])
    if data is None:
        return np.zeros(0, np.uint8), bounds - first
    return np.frombuffer(data, np.uint8, last - first, first).copy(), bounds - first


def bytes_of(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return as `key_bytes` a few texts, which takes half of the time so.

    Halves of surrogate pairs become bytes that no stored text has.
    """
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    return np.frombuffer(bytearray(b"".join(encoded)) + b"\0", np.uint8), offsets
