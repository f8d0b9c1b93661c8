"""Sets of rows: roaring bitmaps as files store them, dense bitsets as kernels test them.

A dense bitset over ``num_bits`` ordinals is an array of ``uint64`` words; ordinal ``i`` is bit
``i & 63`` of word ``i >> 6``. Bits at and above ``num_bits`` are always 0, so that a count needs no
mask and a sentinel ordinal at the end is never in the set.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.row_address import OFFSET_BITS, fragment_of, offset_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_WORD_BITS = 64
_ALL_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_CONTAINER_BITS = 1 << 16
_LONGEST_LIST = 4096
"""Rows of a container that are listed in a bitmap's portable form; of more it holds the bits."""
_COOKIE = 12346
"""Begins a bitmap without runs."""
_SPARSE_BYTES = 2
"""A byte that holds rows, picked from others, takes as long as so many looked through."""
_MANY_ROWS = 1 << 12
_ROWS_PER_MEMBER = 16
"""Where fewer are members bitmaps list them, and sorting takes less time than finding bits."""
_FLAGS_AT_ONCE = 1 << 22
"""Rows that take a byte each while a bitmap is made dense; a multiple of the bits of a word."""


def bitmap_from_bytes(data: bytes | memoryview, path: str) -> BitMap:
    """Decode a 32-bit roaring bitmap in the portable serialization.

    Parameters
    ----------
    data
        The serialized bitmap, with or without run containers.
    path
        File that the bytes came from, for the error.

    Raises
    ------
    CorruptFileError
        The bytes are no valid bitmap. pyroaring checks the order and the cardinality of every
        container, so a bitmap that comes back is safe to iterate.

    Notes
    -----
    Lance table format, "Roaring32"; verified against pylance 14.0.2.
    """
    try:
        return BitMap.deserialize(bytes(data))
    except (ValueError, IndexError) as error:
        raise CorruptFileError(path, f"{len(data)} bytes are no roaring bitmap: {error}") from error


def bitmap_offsets(bitmap: BitMap) -> NDArray[np.uint32]:
    """Return the members of a bitmap in ascending order, shape ``(len(bitmap),)``."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32)


def bitmap_of(offsets: NDArray[np.uint32]) -> BitMap:
    """Return the bitmap of ``offsets``, shape ``(n,)``, in any order, repeats allowed."""
    if len(offsets) >= _MANY_ROWS:
        num_bits = int(offsets.max()) + 1
        if num_bits <= _ROWS_PER_MEMBER * len(offsets):
            flags = np.zeros(-(-num_bits // _CONTAINER_BITS) * _CONTAINER_BITS, np.bool_)
            flags[offsets] = True
            return bitmap_of_words(np.packbits(flags, bitorder="little").view(np.uint64))
    # pyroaring takes arrays of the standard library whole, all others number by number, and sorted
    # numbers in a sixth of the time.
    return BitMap(array("I", np.sort(offsets).tobytes()))


def bitmaps_by_fragment(row_addresses: NDArray[np.uint64]) -> dict[int, BitMap]:
    """Return the row offsets of each fragment, by ascending fragment id.

    Parameters
    ----------
    row_addresses
        Shape ``(n,)``, in any order, repeats allowed.
    """
    if len(row_addresses) == 0:
        return {}
    first, last = (int(each) >> OFFSET_BITS for each in (row_addresses.min(), row_addresses.max()))
    if first == last:
        return {first: bitmap_of(offset_of(row_addresses))}
    ordered = np.sort(row_addresses)
    fragment_ids, offsets = fragment_of(ordered), offset_of(ordered)
    starts = np.flatnonzero(np.diff(fragment_ids)) + 1
    ends = [0, *starts.tolist(), len(ordered)]
    return {
        int(fragment_ids[start]): BitMap(array("I", offsets[start:end].tobytes()))
        for start, end in pairwise(ends)
    }


def bitmap_of_words(words: NDArray[np.uint64]) -> BitMap:
    """Return a dense set over whole containers, of 1024 words each, as a bitmap.

    Notes
    -----
    Writes the portable form: containers of many rows are plain bits there, others list their rows.
    """
    containers = words.reshape(-1, _CONTAINER_BITS // _WORD_BITS)
    num_rows = np.bitwise_count(containers).sum(axis=1, dtype=np.int64)
    keys = np.flatnonzero(num_rows)
    num_rows = num_rows[keys]
    is_listed = num_rows <= _LONGEST_LIST
    lists: Iterator[NDArray[np.uint16]] = iter(())
    if is_listed.any():
        listed = to_ordinals(containers[keys[is_listed]].ravel()).astype("<u2")
        lists = iter(np.split(listed, np.cumsum(num_rows[is_listed])[:-1]))
    bodies = [
        next(lists).tobytes() if is_list else containers[key].tobytes()
        for key, is_list in zip(keys.tolist(), is_listed.tolist(), strict=True)
    ]
    sizes = np.where(is_listed, 2 * num_rows, _CONTAINER_BITS // 8)
    header = np.stack([keys, num_rows - 1], axis=1).astype("<u2")
    start = np.array([_COOKIE, len(keys)], "<u4")
    first = start.nbytes + header.nbytes + 4 * len(keys)
    positions = (first + np.cumsum(sizes) - sizes).astype("<u4")
    parts = [start.tobytes(), header.tobytes(), positions.tobytes(), *bodies]
    return BitMap.deserialize(b"".join(parts))


def words_of_bitmap(bitmap: BitMap, num_bits: int) -> NDArray[np.uint64]:
    """Return a bitmap, whose members are all below ``num_bits``, as a dense set.

    Notes
    -----
    Where the portable form has plain bits for a container they are copied.
    """
    words = empty_words(num_bits)
    data = bitmap.serialize()
    cookie, num_containers = np.frombuffer(data, "<u4", 2).tolist()
    if cookie != _COOKIE:  # ranges
        _set_many(words, bitmap)
        return words
    header = np.frombuffer(data, "<u2", 2 * num_containers, 8).reshape(-1, 2).astype(np.int64)
    positions = np.frombuffer(data, "<u4", num_containers, 8 + 4 * num_containers)
    num_rows = header[:, 1] + 1
    is_listed = num_rows <= _LONGEST_LIST
    if is_listed.all() and len(bitmap) * _WORD_BITS > num_bits:
        _set_many(words, bitmap)
        return words
    for key, position in zip(
        header[~is_listed, 0].tolist(), positions[~is_listed].tolist(), strict=True
    ):
        start = key * (_CONTAINER_BITS // _WORD_BITS)
        own = words[start : start + _CONTAINER_BITS // _WORD_BITS]
        own[:] = np.frombuffer(data, "<u8", len(own), position)
    lists = [
        np.frombuffer(data, "<u2", count, position).astype(np.uint32) + np.uint32(key << 16)
        for key, count, position in zip(
            header[is_listed, 0].tolist(),
            num_rows[is_listed].tolist(),
            positions[is_listed].tolist(),
            strict=True,
        )
    ]
    set_ordinals(words, np.concatenate([np.empty(0, np.uint32), *lists]))
    return words


def _set_many(words: NDArray[np.uint64], bitmap: BitMap) -> None:
    """Add the members of a bitmap to a set, some millions at a time."""
    for start in range(0, bitmap.max() + 1, _FLAGS_AT_ONCE):
        part = bitmap_offsets(bitmap & BitMap(range(start, start + _FLAGS_AT_ONCE)))
        first = start // _WORD_BITS
        own = words[first : first + _FLAGS_AT_ONCE // _WORD_BITS]
        flags = np.zeros(len(own) * _WORD_BITS, np.bool_)
        flags[part - np.uint32(start)] = True
        own |= np.packbits(flags, bitorder="little").view(np.uint64)


def empty_words(num_bits: int) -> NDArray[np.uint64]:
    """Return the empty set over ``num_bits`` ordinals."""
    return np.zeros(num_words(num_bits), dtype=np.uint64)


def full_words(num_bits: int) -> NDArray[np.uint64]:
    """Return the set of all ordinals below ``num_bits``."""
    words = empty_words(num_bits)
    set_range(words, 0, num_bits)
    return words


def num_words(num_bits: int) -> int:
    """Return how many words a set over ``num_bits`` ordinals takes."""
    return -(-num_bits // _WORD_BITS)


def words_of(ordinals: NDArray[np.uint32], num_bits: int) -> NDArray[np.uint64]:
    """Return the set of ``ordinals``, shape ``(n,)``, repeats allowed, all below ``num_bits``."""
    words = empty_words(num_bits)
    set_ordinals(words, ordinals)
    return words


def set_ordinals(words: NDArray[np.uint64], ordinals: NDArray[np.uint32]) -> None:
    """Add ``ordinals``, shape ``(n,)``, to the set in place."""
    np.bitwise_or.at(words, ordinals >> 6, _bit_of(ordinals))


def clear_ordinals(words: NDArray[np.uint64], ordinals: NDArray[np.uint32]) -> None:
    """Take ``ordinals``, shape ``(n,)``, out of the set in place."""
    np.bitwise_and.at(words, ordinals >> 6, ~_bit_of(ordinals))


def set_range(words: NDArray[np.uint64], start: int, end: int) -> None:
    """Add the ordinals ``[start, end)`` to the set in place."""
    if start >= end:
        return
    first, last = start // _WORD_BITS, (end - 1) // _WORD_BITS
    head, tail = _edge_masks(start, end)
    if first == last:
        words[first] |= head & tail
        return
    words[first] |= head
    words[first + 1 : last] = _ALL_ONES
    words[last] |= tail


def clear_range(words: NDArray[np.uint64], start: int, end: int) -> None:
    """Take the ordinals ``[start, end)`` out of the set in place."""
    if start >= end:
        return
    first, last = start // _WORD_BITS, (end - 1) // _WORD_BITS
    head, tail = _edge_masks(start, end)
    if first == last:
        words[first] &= ~(head & tail)
        return
    words[first] &= ~head
    words[first + 1 : last] = 0
    words[last] &= ~tail


def contains(words: NDArray[np.uint64], ordinals: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Say for each of ``ordinals``, shape ``(n,)``, whether it is in the set."""
    found: NDArray[np.bool_] = (words[ordinals >> 6] & _bit_of(ordinals)) != 0
    return found


def count(words: NDArray[np.uint64]) -> int:
    """Return the number of ordinals in the set."""
    return int(np.bitwise_count(words).sum(dtype=np.int64))


def to_ordinals(words: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the members of the set in ascending order, shape ``(count(words),)``."""
    held = words.astype("<u8", copy=False).view(np.uint8)
    if _SPARSE_BYTES * np.count_nonzero(held) > len(held):
        return _set_bits(held)
    places = np.flatnonzero(held != 0)
    found = _set_bits(held[places])
    ordinals: NDArray[np.uint32] = (places.astype(np.uint32)[found >> 3] << 3) | (found & 7)
    return ordinals


def _set_bits(held: NDArray[np.uint8]) -> NDArray[np.uint32]:
    bits = np.unpackbits(held, bitorder="little")
    # numpy finds true ones among truth values ten times as fast as numbers that are not 0.
    return np.flatnonzero(bits.view(np.bool_)).astype(np.uint32)


def _bit_of(ordinals: NDArray[np.uint32]) -> NDArray[np.uint64]:
    return np.uint64(1) << (ordinals & 63).astype(np.uint64)


def _edge_masks(start: int, end: int) -> tuple[np.uint64, np.uint64]:
    """Return the bits of the first word from ``start`` on, and of the last word before ``end``."""
    head = _ALL_ONES << np.uint64(start % _WORD_BITS)
    tail = _ALL_ONES >> np.uint64(-end % _WORD_BITS)
    return head, tail
