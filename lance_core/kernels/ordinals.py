"""Turning row addresses into ordinals and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, uint64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


def ordinals_of(
    row_addresses: NDArray[np.uint64],
    fragment_ids: NDArray[np.uint32],
    first_ordinals: NDArray[np.int64],
) -> NDArray[np.uint32]:
    """Return the ordinal of each row address.

    Parameters
    ----------
    row_addresses
        Shape ``(n,)``, C-contiguous, in any order; may be read-only.
    fragment_ids
        Shape ``(f,)``, ascending, writable.
    first_ordinals
        Shape ``(f + 1,)``, writable: ordinal of each fragment's first row, then the number of all
        rows, below ``2**32``.

    Returns
    -------
    NDArray[np.uint32]
        Shape ``(n,)``. An address that names no row gets the number of all rows.
    """
    ordinals = np.empty(len(row_addresses), np.uint32)
    _ordinals_of(address_of(row_addresses), fragment_ids, first_ordinals, ordinals)
    return ordinals


def addresses_of(
    ordinals: NDArray[np.uint32],
    fragment_ids: NDArray[np.uint32],
    first_ordinals: NDArray[np.int64],
) -> NDArray[np.uint64]:
    """Return the row address of each ordinal, shape ``(n,)``.

    ``ordinals`` has shape ``(n,)``, is C-contiguous and writable, and all are below the number of
    rows; the others are those of ``ordinals_of``.
    """
    addresses = np.empty(len(ordinals), np.uint64)
    _addresses_of(ordinals, fragment_ids, first_ordinals, addresses)
    return addresses


@kernel(brief=True)
def _addresses_of(
    ordinals: NDArray[np.uint32],
    fragment_ids: NDArray[np.uint32],
    first_ordinals: NDArray[np.int64],
    addresses: NDArray[np.uint64],
) -> None:
    for i in range(len(ordinals)):
        ordinal = np.int64(ordinals[i])
        place = np.searchsorted(first_ordinals, ordinal, side="right") - 1
        offset = np.uint64(ordinal - first_ordinals[place])
        addresses[i] = (np.uint64(fragment_ids[place]) << np.uint64(32)) | offset


@kernel
def _ordinals_of(
    addresses: int,
    fragment_ids: NDArray[np.uint32],
    first_ordinals: NDArray[np.int64],
    ordinals: NDArray[np.uint32],
) -> None:
    row_addresses = uint64_at(addresses, len(ordinals))
    num_fragments = len(fragment_ids)
    last = np.uint64(1) << np.uint64(32)  # no fragment has this id
    first = 0
    num_rows = 0
    for i in range(len(ordinals)):
        fragment = row_addresses[i] >> np.uint64(32)
        if fragment != last:
            last = fragment
            place = np.searchsorted(fragment_ids, np.uint32(fragment))
            num_rows = 0
            if place < num_fragments and fragment_ids[place] == fragment:
                first = first_ordinals[place]
                num_rows = first_ordinals[place + 1] - first
        offset = int(row_addresses[i] & np.uint64(0xFFFF_FFFF))
        ordinal = first + offset if offset < num_rows else first_ordinals[num_fragments]
        ordinals[i] = np.uint32(ordinal)


@warmup
def _warm() -> None:
    fragment_ids, first_ordinals = np.zeros(1, np.uint32), np.array([0, 1], np.int64)
    ordinals = ordinals_of(np.zeros(1, np.uint64), fragment_ids, first_ordinals)
    addresses_of(ordinals, fragment_ids, first_ordinals)
