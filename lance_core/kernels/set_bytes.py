"""Sets of rows as scalar index files store them, very many at once without a bitmap for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COOKIE = 12346
"""Begins a roaring bitmap without runs."""

_LONGEST_LIST = 4096
_BITS_BYTES = 8192
"""Members of a container that are listed; of more it holds the bits of all 65 536."""

_BITMAP_HEAD = 8
_CONTAINER_HEAD = 8
_FRAGMENT_BITS = np.uint64(32)
_CONTAINER_BITS = np.uint64(16)


@kernel
def measure_sets(
    names: NDArray[np.uint64],
    starts: NDArray[np.int64],
    has_lengths: bool,
    sizes: NDArray[np.int64],
) -> None:
    """Tell how many bytes each of some sets takes.

    Parameters
    ----------
    names
        Shape ``(n,)``: row addresses or ids, those of each set ascending, each once.
    starts
        Shape ``(s + 1,)``: where sets begin in ``names``, and where the last one ends.
    has_lengths
        Whether a bitmap has its length before it: so it has in the sets of scalar index page,
        section 1.2, and not in the treemaps of an NGRAM.
    sizes
        Shape ``(s,)``, written.
    """
    for number in range(len(sizes)):
        first, stop = starts[number], starts[number + 1]
        size = 4 if has_lengths else 8
        while first < stop:
            last = _end(names, first, stop, _FRAGMENT_BITS)
            size += (8 if has_lengths else 4) + _bitmap_size(names, first, last)
            first = last
        sizes[number] = size


@kernel
def write_sets(
    names: NDArray[np.uint64],
    starts: NDArray[np.int64],
    has_lengths: bool,
    offsets: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Write sets, each at its place.

    Parameters
    ----------
    names, starts, has_lengths
        As `measure_sets` takes them.
    offsets
        Shape ``(s,)``: where sets begin in ``out``.
    out
        Zeros, written.
    """
    for number in range(len(offsets)):
        first, stop, at = starts[number], starts[number + 1], offsets[number]
        head = at
        at += 4 if has_lengths else 8
        num_fragments = 0
        while first < stop:
            last = _end(names, first, stop, _FRAGMENT_BITS)
            _put_word(out, at, int(names[first] >> _FRAGMENT_BITS))
            at += 4
            if has_lengths:
                _put_word(out, at, _bitmap_size(names, first, last))
                at += 4
            at = _write_bitmap(names, first, last, out, at)
            num_fragments += 1
            first = last
        _put_word(out, head, num_fragments)


@kernel
def _write_bitmap(
    names: NDArray[np.uint64], first: int, stop: int, out: NDArray[np.uint8], at: int
) -> int:
    count = _num_containers(names, first, stop)
    _put_word(out, at, _COOKIE)
    _put_word(out, at + 4, count)
    head = at + _BITMAP_HEAD
    place = head + 4 * count
    body = at + _BITMAP_HEAD + _CONTAINER_HEAD * count
    while first < stop:
        last = _end(names, first, stop, _CONTAINER_BITS)
        _put_half(out, head, int(names[first] >> _CONTAINER_BITS) & 0xFFFF)
        _put_half(out, head + 2, last - first - 1)
        _put_word(out, place, body - at)
        head += 4
        place += 4
        if last - first <= _LONGEST_LIST:
            for row in range(first, last):
                _put_half(out, body, int(names[row]) & 0xFFFF)
                body += 2
        else:
            for row in range(first, last):
                bit = int(names[row]) & 0xFFFF
                out[body + (bit >> 3)] |= np.uint8(1 << (bit & 7))
            body += _BITS_BYTES
        first = last
    return body


@kernel
def _bitmap_size(names: NDArray[np.uint64], first: int, stop: int) -> int:
    size = _BITMAP_HEAD
    while first < stop:
        last = _end(names, first, stop, _CONTAINER_BITS)
        is_list = last - first <= _LONGEST_LIST
        size += _CONTAINER_HEAD + (2 * (last - first) if is_list else _BITS_BYTES)
        first = last
    return size


@kernel
def _num_containers(names: NDArray[np.uint64], first: int, stop: int) -> int:
    count = 0
    while first < stop:
        first = _end(names, first, stop, _CONTAINER_BITS)
        count += 1
    return count


@kernel
def _end(names: NDArray[np.uint64], first: int, stop: int, bits: np.uint64) -> int:
    """Return where the names end that have the same upper bits as the first."""
    upper = names[first] >> bits
    last = first + 1
    while last < stop and names[last] >> bits == upper:
        last += 1
    return last


@kernel
def _put_half(out: NDArray[np.uint8], at: int, number: int) -> None:
    out[at] = np.uint8(number & 0xFF)
    out[at + 1] = np.uint8((number >> 8) & 0xFF)


@kernel
def _put_word(out: NDArray[np.uint8], at: int, number: int) -> None:
    _put_half(out, at, number & 0xFFFF)
    _put_half(out, at + 2, (number >> 16) & 0xFFFF)


@warmup
def _warm() -> None:
    names, starts = np.zeros(1, np.uint64), np.array([0, 1], np.int64)
    sizes = np.empty(1, np.int64)
    measure_sets(names, starts, True, sizes)
    write_sets(names, starts, True, np.zeros(1, np.int64), np.zeros(sizes[0], np.uint8))
