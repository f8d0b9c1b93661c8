"""Row addresses: where a row lies, as one 64-bit number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

OFFSET_BITS = 32
"""Bits of an address below the fragment id."""

ROW_ADDRESS_TOMBSTONE = 0xFFFF_FFFF_FFFF_FFFF
"""The address of no row: the fragment id in it is given to no fragment."""


def pack_row_addresses(
    fragment_ids: NDArray[np.uint32], row_offsets: NDArray[np.uint32]
) -> NDArray[np.uint64]:
    """Pack fragment ids and row offsets into row addresses.

    Parameters
    ----------
    fragment_ids
        Shape ``(n,)``. Fragment id of each row, as recorded in the manifest.
    row_offsets
        Shape ``(n,)``. Zero-based physical offset in the fragment (deleted rows count).

    Returns
    -------
    NDArray[np.uint64]
        Shape ``(n,)``; ``fragment_id * 2**32 + row_offset``.

    Raises
    ------
    InvalidRequestError
        The two arrays differ in length.

    Notes
    -----
    Layout: Lance table format, "row address"; verified against pylance 14.0.2.

    Examples
    --------
    >>> pack_row_addresses(np.array([0, 42], np.uint32), np.array([3, 9], np.uint32)).tolist()
    [3, 180388626441]
    """
    if fragment_ids.shape != row_offsets.shape:
        raise InvalidRequestError(
            f"{fragment_ids.shape[0]} fragment ids but {row_offsets.shape[0]} row offsets"
        )
    return (fragment_ids.astype(np.uint64) << np.uint64(OFFSET_BITS)) | row_offsets


def fragment_of(row_addresses: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the fragment id of each row address, shape ``(n,)``."""
    return (row_addresses >> np.uint64(OFFSET_BITS)).astype(np.uint32)


def offset_of(row_addresses: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the row offset of each row address, shape ``(n,)``."""
    return row_addresses.astype(np.uint32)
