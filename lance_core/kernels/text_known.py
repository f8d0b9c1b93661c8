"""Numbers for pieces of texts: the same for the same bytes, over any number of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distinct import grown_slots, hash_bytes, same_bytes
from lance_core.kernels.memory import address_of, bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FREE = -1
_FIRST_SLOTS = 1024
_FIRST_BYTES = 4096


class KnownPieces(NamedTuple):
    """Pieces met so far; longer than what is filled.

    Parameters
    ----------
    slots
        Hash table of numbers, a power of two long and at least half free; -1 is free.
    hashes
        By number.
    ends
        By number and 1 more: where each piece begins in ``data``, and so where the last one ends.
    data
        UTF-8 of the pieces one after the other.
    """

    slots: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    ends: NDArray[np.int64]
    data: NDArray[np.uint8]


@kernel
def none_known() -> KnownPieces:
    """Return room for pieces, of which none is known."""
    return KnownPieces(
        np.full(_FIRST_SLOTS, _FREE, np.int32),
        np.empty(_FIRST_SLOTS // 2, np.uint64),
        np.zeros(_FIRST_SLOTS // 2 + 1, np.int64),
        np.empty(_FIRST_BYTES, np.uint8),
    )


@kernel
def number_pieces(
    base: int,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int32],
    known: KnownPieces,
    num_known: int,
    numbers: NDArray[np.int32],
) -> tuple[KnownPieces, int]:
    """Give pieces their numbers, new ones the next in the order of their first occurrence.

    Parameters
    ----------
    base
        Address of UTF-8.
    starts, sizes
        Shape ``(n,)`` each: where pieces are behind ``base``, and how many bytes they have.
    known, num_known
        Pieces of earlier calls, which this one may write to, and how many.
    numbers
        Shape ``(n,)``, written.

    Returns
    -------
    tuple[KnownPieces, int]
        Pieces that are known now, and how many.
    """
    slots, hashes, ends, data = known  # fields of a tuple would count references in the loop
    for index in range(starts.shape[0]):
        address, size = base + starts[index], int(sizes[index])
        hashed = hash_bytes(address, size)
        slot = np.int64(hashed) & (slots.shape[0] - 1)
        number = slots[slot]
        while number != _FREE:
            start = ends[number]
            is_likely = hashes[number] == hashed and ends[number + 1] - start == size
            if is_likely and same_bytes(address, data.ctypes.data + start, size):
                break
            slot = (slot + 1) & (slots.shape[0] - 1)
            number = slots[slot]
        if number == _FREE:
            number = np.int32(num_known)
            hashes, ends, data = _with_room(hashes, ends, data, num_known, size)
            start = ends[number]
            slots[slot], hashes[number], ends[number + 1] = number, hashed, start + size
            data[start : start + size] = bytes_at(address, size)
            num_known += 1
            if 2 * num_known > slots.shape[0]:
                slots = grown_slots(slots, hashes, num_known)
        numbers[index] = number
    return KnownPieces(slots, hashes, ends, data), num_known


@kernel
def _with_room(
    hashes: NDArray[np.uint64],
    ends: NDArray[np.int64],
    data: NDArray[np.uint8],
    num_known: int,
    size: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the arrays with room for one more piece of ``size`` bytes."""
    if num_known == hashes.shape[0]:
        more_hashes = np.empty(2 * num_known, np.uint64)
        more_hashes[:num_known] = hashes
        more_ends = np.empty(2 * num_known + 1, np.int64)
        more_ends[: num_known + 1] = ends
        hashes, ends = more_hashes, more_ends
    used = ends[num_known]
    if used + size > data.shape[0]:
        more_data = np.empty(2 * (used + size), np.uint8)
        more_data[:used] = data[:used]
        data = more_data
    return hashes, ends, data


@warmup
def _warm() -> None:
    base = address_of(np.frombuffer(b"ab", np.uint8))
    starts, sizes = np.array([0, 1], np.int64), np.array([1, 1], np.int32)
    number_pieces(base, starts, sizes, none_known(), 0, np.empty(2, np.int32))
