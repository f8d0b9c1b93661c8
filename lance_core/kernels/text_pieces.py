"""Pieces of many texts: runs of characters of one class, and n-grams."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ASCII = 0x80
_TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0xC0, 0xE0, 0xF0
_LOW_BITS = 0x3F
_LAST_CODE = 0x10FFFF


class Pieces(NamedTuple):
    """Pieces of texts in their order.

    Parameters
    ----------
    texts
        Shape ``(n,)``: which text.
    starts, sizes
        Shape ``(n,)`` each: where the bytes are behind the base of the texts, and how many.
    positions
        Shape ``(n,)``: which piece of its text it is, those that were too long counted; 0 for
        every n-gram.
    """

    texts: NDArray[np.int32]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]
    positions: NDArray[np.int32]


def room_for(num_pieces: int) -> Pieces:
    """Return room for pieces, not filled."""
    texts, sizes, positions = (np.empty(num_pieces, np.int32) for _ in range(3))
    return Pieces(texts, np.empty(num_pieces, np.int64), sizes, positions)


@kernel
def find_runs(
    base: int,
    offsets: NDArray[np.int64],
    classes: NDArray[np.uint8],
    most_bytes: int,
    found: Pieces,
) -> int:
    """Find runs of characters of one class.

    Parameters
    ----------
    base
        Address of UTF-8.
    offsets
        Shape ``(n + 1,)``: where the texts begin and end behind ``base``.
    classes
        Shape ``(0x110000,)``: class of each code point; runs of class 0 are no pieces.
    most_bytes
        Only pieces of fewer bytes are taken.
    found
        Written, as far as there is room.

    Returns
    -------
    int
        How many there are, so that a call without room tells how much the next one needs.
    """
    data = bytes_at(base, offsets[-1])
    texts, starts, sizes, positions = found  # fields would count references in the loop
    count = 0
    for text in range(offsets.shape[0] - 1):
        place, end = offsets[text], offsets[text + 1]
        began, kind, position = place, np.uint8(0), 0
        while place <= end:  # one step behind the text, where the last run ends
            current, width = np.uint8(0), 1
            if place < end:
                code = int(np.int64(data[place]))
                if code >= _ASCII:
                    code, width = _code_at(data, place, end)
                current = classes[code]
            if current != kind:
                if kind != 0 and place - began < most_bytes:
                    if count < texts.shape[0]:
                        texts[count], positions[count] = text, position
                        starts[count], sizes[count] = began, place - began
                    count += 1
                position += kind != 0
                began, kind = place, current
            place += width
    return count


@kernel
def find_ngrams(
    base: int,
    offsets: NDArray[np.int64],
    least: int,
    most: int,
    prefix_only: bool,
    most_bytes: int,
    found: Pieces,
) -> int:
    """Find all n-grams of ``least`` to ``most`` characters, both at least 1.

    The other parameters and the result are those of `find_runs`; with ``prefix_only`` n-grams only
    start where a text does.
    """
    data = bytes_at(base, offsets[-1])
    texts, starts, sizes, positions = found  # fields would count references in the loop
    count = 0
    for text in range(offsets.shape[0] - 1):
        start, end = offsets[text], offsets[text + 1]
        while start < end:
            stop, length = start, 0
            while stop < end and length < most and stop - start < most_bytes:
                stop = _next_character(data, stop, end)
                length += 1
                if length >= least and stop - start < most_bytes:
                    if count < texts.shape[0]:
                        texts[count], positions[count] = text, 0
                        starts[count], sizes[count] = start, stop - start
                    count += 1
            start = end if prefix_only else _next_character(data, start, end)
    return count


@kernel
def _code_at(data: NDArray[np.uint8], place: int, end: int) -> tuple[int, int]:
    """Return the code point at ``place``, of bytes that are no UTF-8 any, and its bytes."""
    code = int(np.int64(data[place]))
    if code >= _FOUR_BYTES:
        code -= _FOUR_BYTES
    elif code >= _THREE_BYTES:
        code -= _THREE_BYTES
    elif code >= _TWO_BYTES:
        code -= _TWO_BYTES
    stop = _next_character(data, place, end)
    for index in range(place + 1, stop):
        code = (code << 6) | int(np.int64(data[index]) & _LOW_BITS)
    return min(code, _LAST_CODE), stop - place


@kernel
def _next_character(data: NDArray[np.uint8], place: int, end: int) -> int:
    """Return where the next character begins, never behind ``end``."""
    first = data[place]
    width = 1 + int(first >= _TWO_BYTES) + int(first >= _THREE_BYTES) + int(first >= _FOUR_BYTES)
    return min(place + width, end)


@warmup
def _warm() -> None:
    base = address_of(np.frombuffer(b"ab", np.uint8))
    offsets = np.array([0, 2], np.int64)
    find_runs(base, offsets, np.ones(_LAST_CODE + 1, np.uint8), 40, room_for(1))
    find_ngrams(base, offsets, 1, 2, False, 40, room_for(3))
