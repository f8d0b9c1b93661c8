"""Leading row addresses through the history of a Fragment Reuse Index, and composing the history.

The rows of a fragment that survived are numbered in their order. The numbers come from one of two
tables, whichever is small: a bit for each row with the number of the first of every 64, side by
side so that both lie in one cache line; or runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, uint64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FREE = np.uint64(0)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)
_ONE = np.uint64(1)
_ALL_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_WORD_SHIFT = np.uint64(6)
_WORD_MASK = np.uint64(63)
_DELETED = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_NUM_RUNS, _FIRST, _SPAN, _FIRST_PIECE, _END_PIECE = range(5)


@dataclass(frozen=True, slots=True, eq=False)
class ReuseTables:
    """A history as kernels take it; all arrays are C-contiguous and writable.

    Parameters
    ----------
    slots
        Shape ``(h,)``, uint64, ``h`` a power of two: id of an old fragment in the upper half, its
        place in ``fragments`` plus one in the lower, by hash with linear probing; 0 is free.
    fragments
        Shape ``(f, 5)``, int64: number of runs (0 = bits), first row of ``runs`` or of ``bits``,
        first offset behind all survivors, first and end of its rows of ``pieces``.
    bits
        Shape ``(w, 2)``, uint64: a bit for each of 64 offsets, number of the first survivor there.
    runs
        Shape ``(r, 3)``, int64: first offset, end, number of the first survivor there.
    pieces
        Shape ``(p, 2)``, uint64: where the survivors from a number on lie: this number, ascending
        in each fragment, and the row address.
    """

    slots: NDArray[np.uint64]
    fragments: NDArray[np.int64]
    bits: NDArray[np.uint64]
    runs: NDArray[np.int64]
    pieces: NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        tables = (self.slots, self.fragments, self.bits, self.runs, self.pieces)
        return sum(int(table.nbytes) for table in tables)


def hash_fragments(fragment_ids: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return ``slots`` for fragment ids, shape ``(f,)``, C-contiguous and writable, each once."""
    slots = np.full(1 << (2 * len(fragment_ids)).bit_length(), _FREE, np.uint64)
    _hash_fragments(fragment_ids, slots)
    return slots


def bits_of_runs(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the rows of ``bits`` for the survivors of one fragment.

    ``starts`` and ``ends`` have shape ``(r,)`` and ascend, are C-contiguous and writable.
    """
    span = int(ends[-1]) if len(ends) > 0 else 0
    bits = np.zeros((-(-span // 64), 2), np.uint64)
    _bits_of_runs(starts, ends, bits)
    return bits


def select_runs(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    first_numbers: NDArray[np.int64],
    end_numbers: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return those rows of some runs that have certain numbers.

    Parameters
    ----------
    starts, ends
        Shape ``(r,)``, ascending: the runs; their rows are numbered from 0 in their order.
    first_numbers, end_numbers
        Shape ``(k,)``, ascending: the numbers ``[first, end)`` of the rows wanted; no more of them
        than there are rows.

    Returns
    -------
    tuple
        Starts and ends of at most ``r + k`` runs.

    Notes
    -----
    All arrays are C-contiguous and writable.
    """
    selected = np.empty((2, len(starts) + len(first_numbers)), np.int64)
    count = _select_runs(starts, ends, first_numbers, end_numbers, selected)
    return selected[0, :count].copy(), selected[1, :count].copy()


def map_through(row_addresses: NDArray[np.uint64], tables: ReuseTables) -> NDArray[np.uint64]:
    """Return where each row is now.

    Parameters
    ----------
    row_addresses
        Shape ``(n,)``, C-contiguous, in any order; may be read-only.
    tables
        The history.

    Returns
    -------
    NDArray[np.uint64]
        Shape ``(n,)``. ``2**64 - 1`` for a row that did not survive; a row of a fragment without an
        entry keeps its address.
    """
    mapped = np.empty(len(row_addresses), np.uint64)
    _map_through(
        address_of(row_addresses),
        tables.slots,
        tables.fragments,
        tables.bits,
        tables.runs,
        tables.pieces,
        mapped,
    )
    return mapped


@kernel
def _slot(fragment: np.uint64, num_slots: int) -> np.int64:
    """Return where the search for a fragment begins."""
    return np.int64((fragment * _SEED) >> _HALF) & (num_slots - 1)


@kernel
def _hash_fragments(fragment_ids: NDArray[np.uint32], slots: NDArray[np.uint64]) -> None:
    for place in range(len(fragment_ids)):
        fragment = np.uint64(fragment_ids[place])
        slot = _slot(fragment, len(slots))
        while slots[slot] != _FREE:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = (fragment << _HALF) | np.uint64(place + 1)


@kernel
def _place_of(fragment: np.uint64, slots: NDArray[np.uint64]) -> np.int64:
    """Return the place of a fragment, -1 if it has none."""
    slot = _slot(fragment, len(slots))
    while slots[slot] != _FREE and slots[slot] >> _HALF != fragment:
        slot = (slot + 1) & (len(slots) - 1)
    return np.int64(slots[slot] & _LOW) - 1


@kernel
def _bits_of_runs(
    starts: NDArray[np.int64], ends: NDArray[np.int64], bits: NDArray[np.uint64]
) -> None:
    for run in range(len(starts)):
        last = ends[run] - 1
        head = _ALL_ONES << (np.uint64(starts[run]) & _WORD_MASK)
        tail = _ALL_ONES >> (_WORD_MASK - (np.uint64(last) & _WORD_MASK))
        for word in range(starts[run] >> 6, (last >> 6) + 1):
            ones = head if word == starts[run] >> 6 else _ALL_ONES
            bits[word, 0] |= ones & tail if word == last >> 6 else ones
    number = np.uint64(0)
    for word in range(len(bits)):
        bits[word, 1] = number
        number += _count_ones(bits[word, 0])


@kernel
def _select_runs(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    first_numbers: NDArray[np.int64],
    end_numbers: NDArray[np.int64],
    selected: NDArray[np.int64],
) -> int:
    """Write starts and ends, runs that touch joined, and return how many."""
    count, run, before = 0, 0, 0  # rows of earlier runs
    for i in range(len(first_numbers)):
        number = first_numbers[i]
        while number < end_numbers[i]:
            length = ends[run] - starts[run]
            if number >= before + length:
                before += length
                run += 1
                continue
            start = starts[run] + number - before
            number = min(end_numbers[i], before + length)
            if count > 0 and selected[1, count - 1] == start:
                count -= 1
            else:
                selected[0, count] = start
            selected[1, count] = starts[run] + number - before
            count += 1
    return count


@kernel
def _count_ones(word: np.uint64) -> np.uint64:
    word -= (word >> _ONE) & np.uint64(0x5555_5555_5555_5555)
    pairs = np.uint64(0x3333_3333_3333_3333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F_0F0F_0F0F_0F0F)
    return (word * np.uint64(0x0101_0101_0101_0101)) >> np.uint64(56)


@kernel
def _number_in_runs(offset: np.int64, first: int, end: int, runs: NDArray[np.int64]) -> np.uint64:
    """Return the number of a survivor of the runs ``[first, end)``, `_DELETED` if it is none."""
    while end - first > 1:
        middle = (first + end) >> 1
        if runs[middle, 0] <= offset:
            first = middle
        else:
            end = middle
    if not runs[first, 0] <= offset < runs[first, 1]:
        return _DELETED
    return np.uint64(runs[first, 2] + offset - runs[first, 0])


@kernel
def _address(number: np.uint64, first: int, end: int, pieces: NDArray[np.uint64]) -> np.uint64:
    """Return where a numbered survivor lies, by the pieces ``[first, end)``."""
    while end - first > 1:
        middle = (first + end) >> 1
        if pieces[middle, 0] <= number:
            first = middle
        else:
            end = middle
    address: np.uint64 = pieces[first, 1] + (number - pieces[first, 0])
    return address


@kernel
def _map_through(
    addresses: int,
    slots: NDArray[np.uint64],
    fragments: NDArray[np.int64],
    bits: NDArray[np.uint64],
    runs: NDArray[np.int64],
    pieces: NDArray[np.uint64],
    mapped: NDArray[np.uint64],
) -> None:
    row_addresses = uint64_at(addresses, len(mapped))
    last, place = _ALL_ONES, np.int64(-1)  # no fragment has this id
    for i in range(len(mapped)):
        row = row_addresses[i]
        if row >> _HALF != last:
            last = row >> _HALF
            place = _place_of(last, slots)
        if place < 0:
            mapped[i] = row
            continue
        offset = np.int64(row & _LOW)
        first = fragments[place, _FIRST]
        number = _DELETED
        if offset >= fragments[place, _SPAN]:
            pass
        elif fragments[place, _NUM_RUNS] == 0:
            word = first + (offset >> 6)
            bit = _ONE << (np.uint64(offset) & _WORD_MASK)
            before = bits[word, 1] + _count_ones(bits[word, 0] & (bit - _ONE))
            number = before if bits[word, 0] & bit != 0 else _DELETED
        else:
            number = _number_in_runs(offset, first, first + fragments[place, _NUM_RUNS], runs)
        if number != _DELETED:
            first, end = fragments[place, _FIRST_PIECE], fragments[place, _END_PIECE]
            number = _address(number, first, end, pieces)
        mapped[i] = number


@warmup
def _warm() -> None:
    zero, one = np.array([0], np.int64), np.array([1], np.int64)
    tables = ReuseTables(
        slots=hash_fragments(np.zeros(1, np.uint32)),
        fragments=np.array([[0, 0, 1, 0, 1]], np.int64),
        bits=bits_of_runs(*select_runs(zero, one, zero, one)),
        runs=np.zeros((0, 3), np.int64),
        pieces=np.array([[0, 1 << 32]], np.uint64),
    )
    map_through(np.zeros(1, np.uint64), tables)
