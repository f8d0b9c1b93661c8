"""Windows of rows whose blobs are read: cut by the sizes that their descriptors tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.file.windows import WINDOW_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.file.columns import ColumnTarget
    from lance_core.schema.field import LanceField


def cut_by_blobs(
    windows: Iterable[tuple[int, int]],
    targets: Sequence[ColumnTarget],
    read: Callable[[Sequence[ColumnTarget], int, int], Sequence[pa.Array]],
) -> Iterator[tuple[int, int]]:
    """Cut windows so that the blobs of each take some megabytes; a single row may have more.

    Parameters
    ----------
    windows
        Ranges ``[start, stop)``.
    targets
        What is scanned; without targets whose bytes are asked for, windows stay as they are.
    read
        Reads descriptors: the targets of a window, without bytes.
    """
    blobs = [replace(target, has_bytes=False) for target in targets if target.has_bytes]
    for start, stop in windows:
        if len(blobs) == 0:
            yield start, stop
            continue
        sizes = np.zeros(stop - start, np.int64)
        for target, array in zip(blobs, read(blobs, start, stop), strict=True):
            sizes += _blob_bytes(target.field, array)
        for begin, end in _cuts(sizes):
            yield start + begin, start + end


def _cuts(sizes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin > 0 else 0
        fit = int(np.searchsorted(ends, before + WINDOW_BYTES, side="right"))
        end = max(fit, begin + 1)
        yield begin, end
        begin = end


def _blob_bytes(field: LanceField, array: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of the blobs in each row of an array of descriptors."""
    if field.is_blob:
        size = array.flatten()[array.type.get_field_index("size")]
        numbers: NDArray[np.uint64] = size.fill_null(0).to_numpy(zero_copy_only=False)
        return np.minimum(numbers, WINDOW_BYTES + 1).astype(np.int64)
    if field.owns_column:
        return np.zeros(len(array), np.int64)
    if pa.types.is_struct(array.type):
        parts = zip(field.children, array.flatten(), strict=True)
        return sum((_blob_bytes(*part) for part in parts), np.zeros(len(array), np.int64))
    items = _blob_bytes(field.children[0], array.values)
    if pa.types.is_fixed_size_list(array.type):
        of_list: NDArray[np.int64] = items.reshape(-1, array.type.list_size).sum(axis=1)
        return of_list
    before = np.append(0, np.cumsum(items))
    of_lists: NDArray[np.int64] = np.diff(before[array.offsets.to_numpy()])
    return of_lists
