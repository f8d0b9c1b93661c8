"""Chains of small steps on row addresses, as one call each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.topk import distance_of, pack_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW_ROWS = 512
"""So few that sorting them in a kernel is faster than by numpy."""
_SEVERAL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # no file has that many rows


def largest_of_one_fragment(row_addresses: NDArray[np.uint64]) -> int | None:
    """Return the largest address if all are of one fragment, else None.

    Parameters
    ----------
    row_addresses
        Shape ``(n,)``, not empty.
    """
    largest = _largest_of_one_fragment(_own(row_addresses))
    return None if largest == _SEVERAL else int(largest)


def by_fragment(row_addresses: NDArray[np.uint64]) -> tuple[NDArray[np.int64], list[int]]:
    """Group rows by fragment, ascending; within a fragment their order stays.

    Parameters
    ----------
    row_addresses
        Shape ``(n,)``, not empty.

    Returns
    -------
    tuple
        The places of the rows, shape ``(n,)``, group after group; and where in it each group ends.
    """
    order = np.empty(len(row_addresses), np.int64)
    if len(row_addresses) > FEW_ROWS:
        fragments = row_addresses >> np.uint64(32)
        order[:] = np.argsort(fragments, kind="stable")
        ends = np.flatnonzero(np.diff(fragments[order])) + 1
        return order, [*ends.tolist(), len(order)]
    group_ends = np.empty(len(order), np.int64)
    count = _by_fragment(_own(row_addresses), order, group_ends)
    return order, group_ends[:count].tolist()


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
    found = np.empty(len(row_addresses), np.int64)
    find_pointers(_own(row_addresses), first_addresses, pointers, row_bytes, found)
    return found


def nearest_first(
    distances: NDArray[np.float32], row_ids: NDArray[np.uint64]
) -> tuple[NDArray[np.float32], NDArray[np.uint64]]:
    """Sort rows by distance, ties by row id; rows with a NaN distance are left out.

    All four arrays have shape ``(n,)``; those given are C-contiguous and writable.
    """
    if len(distances) > FEW_ROWS:
        # NaN sorts behind every number, so what is to be left out stands at the end.
        num_nan = int(np.count_nonzero(np.isnan(distances)))
        order = np.lexsort((row_ids, distances))[: len(distances) - num_nan]
        return distances[order], row_ids[order]
    sorted_distances, sorted_ids = np.empty_like(distances), np.empty_like(row_ids)
    count = sort_few(distances, row_ids, sorted_distances, sorted_ids)
    return sorted_distances[:count], sorted_ids[:count]


def _own(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return row addresses as kernels take them: contiguous and writable."""
    contiguous = np.ascontiguousarray(rows, np.uint64)
    return contiguous if contiguous.flags.writeable else contiguous.copy()


@kernel(brief=True)
def _largest_of_one_fragment(rows: NDArray[np.uint64]) -> np.uint64:
    fragment = rows[0] >> np.uint64(32)
    largest: np.uint64 = rows[0]
    for row in rows:
        if row >> np.uint64(32) != fragment:
            return _SEVERAL
        largest = max(largest, row)
    return largest


@kernel(ordered=True, brief=True)
def _by_fragment(
    rows: NDArray[np.uint64], order: NDArray[np.int64], ends: NDArray[np.int64]
) -> int:
    """Write the places of rows by fragment and where groups end; return how many these are."""
    keys = np.empty(len(rows), np.uint64)
    for i in range(len(keys)):
        keys[i] = (rows[i] >> np.uint64(32) << np.uint64(32)) | np.uint64(i)
    keys.sort()
    count = 0
    for i in range(len(keys)):
        order[i] = np.int64(keys[i] & np.uint64(0xFFFF_FFFF))
        if i > 0 and keys[i] >> np.uint64(32) != keys[i - 1] >> np.uint64(32):
            ends[count] = i
            count += 1
    ends[count] = len(keys)
    return count + 1


@kernel(brief=True)
def find_pointers(
    rows: NDArray[np.uint64],
    first_addresses: NDArray[np.uint64],
    pointers: NDArray[np.int64],
    row_bytes: int,
    found: NDArray[np.int64],
) -> None:
    """Write where each row lies in memory."""
    for i in range(len(found)):
        run = np.searchsorted(first_addresses, rows[i], side="right") - 1
        found[i] = pointers[run] + np.int64(rows[i] - first_addresses[run]) * row_bytes


@kernel(ordered=True, brief=True)
def sort_few(
    distances: NDArray[np.float32],
    row_ids: NDArray[np.uint64],
    sorted_distances: NDArray[np.float32],
    sorted_ids: NDArray[np.uint64],
) -> int:
    """Write the rows that have a distance, sorted, and return how many these are."""
    keys = np.empty(len(distances), np.uint64)
    count = 0
    for i in range(len(distances)):
        if not np.isnan(distances[i]):
            keys[count] = pack_key(distances[i], np.uint32(i))
            count += 1
    keys = keys[:count]
    keys.sort()
    start = 0
    for i in range(count):
        if keys[i] >> np.uint64(32) != keys[start] >> np.uint64(32):
            start = i
        sorted_distances[i] = distance_of(keys[i])
        row_id = row_ids[np.int64(keys[i] & np.uint64(0xFFFF_FFFF))]
        at = i
        while at > start and sorted_ids[at - 1] > row_id:
            sorted_ids[at] = sorted_ids[at - 1]
            at -= 1
        sorted_ids[at] = row_id
    return count


@warmup
def _warm() -> None:
    rows = np.zeros(1, np.uint64)
    largest_of_one_fragment(rows)
    by_fragment(rows)
    pointers_to_rows(rows, rows, np.zeros(1, np.int64), 4)
    nearest_first(np.zeros(1, np.float32), rows)
