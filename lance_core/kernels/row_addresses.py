"""Chains of small steps on row addresses, as one call each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, uint64_at
from lance_core.kernels.topk import pack_key, sort_few

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FEW = 512
_SEVERAL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # no file has that many rows


def largest_of_one_fragment(row_addresses: NDArray[np.uint64]) -> int | None:
    """Return the largest address if all are of one fragment, else None.

    Parameters
    ----------
    row_addresses
        Shape ``(n,)``, not empty.
    """
    rows = np.ascontiguousarray(row_addresses, np.uint64)
    largest = _largest_of_one_fragment(address_of(rows), len(rows))
    return None if largest == _SEVERAL else int(largest)


def pointers_to_rows(
    row_addresses: NDArray[np.uint64],
    first_addresses: NDArray[np.uint64],
    pointers: NDArray[np.int64],
    row_bytes: int,
) -> NDArray[np.int64]:
    """Return where each row lies in memory, shape ``(n,)``.

    Parameters
    ----------
    row_addresses
        Shape ``(n,)``: rows of the runs.
    first_addresses, pointers
        Shape ``(r,)``, writable: row address of the first row of each run of rows, ascending, and
        where in memory it lies.
    row_bytes
        Bytes per row.
    """
    rows = np.ascontiguousarray(row_addresses, np.uint64)
    found = np.empty(len(rows), np.int64)
    _pointers_to_rows(address_of(rows), first_addresses, pointers, row_bytes, found)
    return found


def nearest_first(
    distances: NDArray[np.float32], row_addresses: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the places of rows by distance, ties by row address; NaN distances are left out.

    Both have shape ``(n,)`` and are C-contiguous and writable.
    """
    if len(distances) > _FEW:
        # NaN sorts behind every number, so what is to be left out stands at the end.
        num_nan = int(np.count_nonzero(np.isnan(distances)))
        return np.lexsort((row_addresses, distances))[: len(distances) - num_nan]
    keys = np.empty(len(distances), np.uint64)
    keys = keys[: _place_keys(distances, keys)]
    sort_few(keys)
    order = np.empty(len(keys), np.int64)
    _order_ties(keys, row_addresses, order)
    return order


@kernel(brief=True)
def _largest_of_one_fragment(address: int, count: int) -> np.uint64:
    rows = uint64_at(address, count)
    fragment = rows[0] >> np.uint64(32)
    largest: np.uint64 = rows[0]
    for row in rows:
        if row >> np.uint64(32) != fragment:
            return _SEVERAL
        largest = max(largest, row)
    return largest


@kernel(brief=True)
def _pointers_to_rows(
    address: int,
    first_addresses: NDArray[np.uint64],
    pointers: NDArray[np.int64],
    row_bytes: int,
    found: NDArray[np.int64],
) -> None:
    rows = uint64_at(address, len(found))
    for i in range(len(found)):
        run = np.searchsorted(first_addresses, rows[i], side="right") - 1
        found[i] = pointers[run] + np.int64(rows[i] - first_addresses[run]) * row_bytes


@kernel(ordered=True, brief=True)
def _place_keys(distances: NDArray[np.float32], keys: NDArray[np.uint64]) -> int:
    """Write a key of distance and place for each number, and return how many these are."""
    count = 0
    for i in range(len(distances)):
        if not np.isnan(distances[i]):
            keys[count] = pack_key(distances[i], np.uint32(i))
            count += 1
    return count


@kernel(ordered=True, brief=True)
def _order_ties(
    keys: NDArray[np.uint64], row_addresses: NDArray[np.uint64], order: NDArray[np.int64]
) -> None:
    """Write the places in sorted keys, those of equal distances by row address."""
    start = 0
    for i in range(len(keys)):
        distance = keys[i] >> np.uint64(32)
        if distance != keys[start] >> np.uint64(32):
            start = i
        place = np.int64(keys[i] & np.uint64(0xFFFF_FFFF))
        at = i
        while at > start and row_addresses[order[at - 1]] > row_addresses[place]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = place


@warmup
def _warm() -> None:
    rows = np.zeros(1, np.uint64)
    largest_of_one_fragment(rows)
    pointers_to_rows(rows, rows, np.zeros(1, np.int64), 4)
    nearest_first(np.zeros(1, np.float32), rows)
