"""Checking JSONB documents, measuring their text and collecting their doubles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.jsonb_format import (
    ARRAY,
    CONTAINER_KIND,
    CONTAINER_SIZE,
    DOUBLE,
    DOUBLE_BYTES,
    FALSE,
    KIND_SHIFT,
    LENGTH,
    NEGATIVE,
    NEGATIVE_INFINITY,
    NESTED,
    NULL,
    NUMBER,
    OBJECT,
    POSITIVE,
    SCALAR,
    STRING,
    TRUE,
    WORD_BYTES,
    ZERO,
    integer_at,
    word_at,
)
from lance_core.kernels.memory import address_of, bytes_at, int64_at, uint64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAULT, DETAIL, NUM_DOUBLES, STATE_WORDS = range(4)
"""What kernels leave in their state: kind of fault, the number it is about, doubles so far."""

(
    CUT_OFF,
    BAD_HEADER,
    TOO_MANY_ENTRIES,
    VALUE_LEAVES,
    BYTES_BEHIND,
    KEY_KIND,
    VALUE_KIND,
    WORD_WITH_BYTES,
    EMPTY_NUMBER,
    NUMBER_TAG,
) = range(1, 11)

WORDS_AT, NUM_WORDS, NUM_KEYS, PAYLOAD, END, FRAME_WORDS = range(6)
"""Columns of the stack of open containers."""

_BAD = -1
_EXTRA = np.zeros(256, np.uint8)
"""Bytes that the text of a byte has more than the byte."""
_EXTRA[:0x20] = 5
_EXTRA[list(b'\b\t\n\f\r"\\')] = 1
_QUOTES = 2
_WORD_SIZES = np.array([4, 0, 0, 5, 4], np.int64)
_NULL_BYTES = 4
_SIGN = 0x80
_WIDEST = 8


@kernel
def fail(state: NDArray[np.int64], fault: int, detail: int) -> int:
    """Note a fault; returns what tells of one."""
    state[FAULT] = fault
    state[DETAIL] = detail
    return -1


@kernel
def count_digits(value: np.uint64) -> int:
    """Return the decimal digits of a number; zero has one."""
    count = 1
    while value >= np.uint64(10):
        value //= np.uint64(10)
        count += 1
    return count


@kernel
def is_negative(data: NDArray[np.uint8], start: int) -> bool:
    """Whether the number at ``start`` is an integer below zero."""
    return bool(data[start] == NEGATIVE and data[start + 1] >= _SIGN)


@kernel
def magnitude(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Return the absolute value of the integer at ``start``, which is its tag."""
    value = integer_at(data, start + 1, end)
    if is_negative(data, start):
        ones = ~np.uint64(0)
        width = np.uint64(8 * (end - start - 1))
        sign = ones << width if width < np.uint64(64) else np.uint64(0)
        value = ~(value | sign) + np.uint64(1)
    return value


@kernel
def measure_string(data: NDArray[np.uint8], start: int, end: int) -> int:
    """Return the bytes of a string in quotes, with its escapes."""
    size = end - start + _QUOTES
    for at in range(start, end):
        size += _EXTRA[data[at]]
    return size


@kernel
def is_integer(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether a number's payload, of at least one byte, is an integer with its bytes."""
    width = end - start - 1
    is_width = 0 < width <= _WIDEST and width & (width - 1) == 0
    return is_width and data[start] in (NEGATIVE, POSITIVE)


@kernel
def measure_number(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    doubles: NDArray[np.uint64],
    state: NDArray[np.int64],
) -> int:
    """Return the bytes of a number's text; 0 for a double, which is put aside."""
    if start == end:
        return fail(state, EMPTY_NUMBER, 0)
    tag = data[start]
    if is_integer(data, start, end):
        return count_digits(magnitude(data, start, end)) + is_negative(data, start)
    if tag == DOUBLE and end - start == 1 + DOUBLE_BYTES:
        bits = integer_at(data, start + 1, end)
        if (bits >> np.uint64(52)) & np.uint64(0x7FF) == np.uint64(0x7FF):
            return _NULL_BYTES  # NaN and infinities
        doubles[state[NUM_DOUBLES]] = bits
        state[NUM_DOUBLES] += 1
        return 0
    if tag > NEGATIVE_INFINITY or tag % 16 != 0 or end - start > 1:
        return fail(state, NUMBER_TAG, tag)
    return 1 if tag == ZERO else _NULL_BYTES


@kernel
def measure_value(
    data: NDArray[np.uint8],
    kind: int,
    start: int,
    end: int,
    doubles: NDArray[np.uint64],
    state: NDArray[np.int64],
) -> int:
    """Return the bytes of the text of a value that is no container."""
    if kind == STRING:
        return measure_string(data, start, end)
    if kind == NUMBER:
        return measure_number(data, start, end, doubles, state)
    if kind not in (NULL, FALSE, TRUE):
        return fail(state, VALUE_KIND, kind)
    if start != end:
        return fail(state, WORD_WITH_BYTES, end - start)
    return _WORD_SIZES[kind]  # type: ignore[no-any-return]  # a whole number


@kernel
def open_container(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    stack: NDArray[np.int64],
    frame: int,
    state: NDArray[np.int64],
) -> int:
    """Check a container's head and fill its frame; returns the bytes of its punctuation."""
    if end - start < WORD_BYTES:
        return fail(state, CUT_OFF, 0)
    header = word_at(data, start)
    kind, size = header & CONTAINER_KIND, header & CONTAINER_SIZE
    is_scalar = kind == SCALAR and size == 0
    if not (is_scalar or kind in (ARRAY, OBJECT)):
        return fail(state, BAD_HEADER, header)
    num_keys = size if kind == OBJECT else 0
    num_words = 1 if is_scalar else size + num_keys
    payload = start + WORD_BYTES * (num_words + 1)
    if payload > end:
        return fail(state, TOO_MANY_ENTRIES, num_words)
    stack[frame + WORDS_AT] = start + WORD_BYTES
    stack[frame + NUM_WORDS] = num_words
    stack[frame + NUM_KEYS] = num_keys
    stack[frame + PAYLOAD] = payload
    stack[frame + END] = end
    return 0 if is_scalar else 2 + max(num_words - 1, 0)  # brackets, colons and commas


@kernel
def measure_document(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    doubles: NDArray[np.uint64],
    stack: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Return the bytes of a document's text without its doubles; -1 if it is corrupt."""
    size = open_container(data, start, end, stack, 0, state)
    frame = 0 if size >= 0 else -FRAME_WORDS
    while frame >= 0:
        first = stack[frame + PAYLOAD]
        if stack[frame + NUM_WORDS] == 0:
            if first != stack[frame + END]:
                return fail(state, BYTES_BEHIND, stack[frame + END] - first)
            frame -= FRAME_WORDS
            continue
        word = word_at(data, stack[frame + WORDS_AT])
        kind, stop = word >> KIND_SHIFT, first + (word & LENGTH)
        if stop > stack[frame + END]:
            return fail(state, VALUE_LEAVES, 0)
        if stack[frame + NUM_KEYS] > 0 and kind != STRING:
            return fail(state, KEY_KIND, kind)
        stack[frame + WORDS_AT] += WORD_BYTES
        stack[frame + NUM_WORDS] -= 1
        stack[frame + NUM_KEYS] -= 1
        stack[frame + PAYLOAD] = stop
        if kind == NESTED:
            frame += FRAME_WORDS
            more = open_container(data, first, stop, stack, frame, state)
        else:
            more = measure_value(data, kind, first, stop, doubles, state)
        if more < 0:
            return _BAD
        size += more
    return size


@kernel
def measure_documents(
    address: int,
    offsets: NDArray[np.int64],
    is_valid: NDArray[np.bool_],
    doubles: NDArray[np.uint64],
    stack: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Check documents and measure their text.

    Parameters
    ----------
    address, offsets
        Where the bytes are; document ``i`` is ``[offsets[i], offsets[i + 1])`` of them.
    is_valid
        Shape ``(n,)``; others are not looked at.
    doubles
        Receives the bits of the finite doubles in the order of the documents' bytes; has room for
        one in every 13 bytes.
    stack
        Shape ``(depth * FRAME_WORDS,)``; a depth for every 8 bytes of the longest document and 2.
    state
        Shape ``(STATE_WORDS,)``, zeros; receives the fault or the number of doubles.

    Returns
    -------
    int
        Bytes of all texts without their doubles; -1 if a document is corrupt.
    """
    data = bytes_at(address, offsets[-1])
    found = uint64_at(doubles.ctypes.data, doubles.shape[0])  # views count no references
    frames = int64_at(stack.ctypes.data, stack.shape[0])
    notes = int64_at(state.ctypes.data, state.shape[0])
    total = 0
    for row in range(is_valid.shape[0]):
        if is_valid[row]:
            size = measure_document(data, offsets[row], offsets[row + 1], found, frames, notes)
            if size < 0:
                return _BAD
            total += size
    return total


@warmup
def _warm() -> None:
    measure_documents(
        address_of(np.zeros(1, np.uint8)),
        np.zeros(1, np.int64),
        np.zeros(0, np.bool_),
        np.zeros(0, np.uint64),
        np.zeros(2 * FRAME_WORDS, np.int64),
        np.zeros(STATE_WORDS, np.int64),
    )
