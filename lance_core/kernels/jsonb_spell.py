"""Writing the text of JSONB documents that were checked and measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.jsonb_doubles import SLOT
from lance_core.kernels.jsonb_format import (
    ARRAY,
    CONTAINER_KIND,
    CONTAINER_SIZE,
    DOUBLE,
    FALSE,
    KIND_SHIFT,
    LENGTH,
    NESTED,
    NULL,
    NUMBER,
    OBJECT,
    SCALAR,
    STRING,
    WORD_BYTES,
    ZERO,
    integer_at,
    word_at,
)
from lance_core.kernels.jsonb_measure import count_digits, is_integer, is_negative, magnitude
from lance_core.kernels.memory import address_of, bytes_at, int64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEY_WORD, KEY_AT, VALUE_WORD, VALUE_AT, NUM_LEFT, FORM, IS_FIRST, SPELL_WORDS = range(8)
"""Columns of the stack of containers under way."""

_ESCAPES = np.zeros(256, np.uint8)
"""What follows the backslash for a byte; 0 = the byte stands for itself."""
_ESCAPES[:0x20] = ord("u")
_ESCAPES[list(b'\b\t\n\f\r"\\')] = list(b'btnfr"\\')
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_NULL_TEXT = np.frombuffer(b"null", np.uint8).copy()
_TRUE_TEXT = np.frombuffer(b"true", np.uint8).copy()
_FALSE_TEXT = np.frombuffer(b"false", np.uint8).copy()
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _DIGIT, _U = b'"\\,:-0u'
_OPENING, _CLOSING = (ord("["), ord("{")), (ord("]"), ord("}"))
_EXPONENT = 0x7FF
_EXPONENT_SHIFT = 52


@kernel
def put_bytes(out: NDArray[np.uint8], at: int, word: NDArray[np.uint8]) -> int:
    """Write bytes; returns where they end."""
    for byte in word:
        out[at] = byte
        at += 1
    return at


@kernel
def put_string(
    data: NDArray[np.uint8], start: int, end: int, out: NDArray[np.uint8], at: int
) -> int:
    """Write a string in quotes; returns where it ends."""
    out[at] = _QUOTE
    at += 1
    for place in range(start, end):
        byte = data[place]
        escape = _ESCAPES[byte]
        if escape == 0:
            out[at] = byte
            at += 1
            continue
        out[at] = _BACKSLASH
        out[at + 1] = escape
        at += 2
        if escape == _U:
            out[at] = _DIGIT
            out[at + 1] = _DIGIT
            out[at + 2] = _HEX[byte >> 4]
            out[at + 3] = _HEX[byte & 15]
            at += 4
    out[at] = _QUOTE
    return at + 1


@kernel
def put_integer_text(
    data: NDArray[np.uint8], start: int, end: int, out: NDArray[np.uint8], at: int
) -> int:
    """Write an integer; returns where it ends."""
    if is_negative(data, start):
        out[at] = _MINUS
        at += 1
    value = magnitude(data, start, end)
    stop = at + count_digits(value)
    for place in range(stop - 1, at - 1, -1):
        out[place] = _DIGIT + np.int64(value % np.uint64(10))
        value //= np.uint64(10)
    return stop


@kernel
def put_number(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    doubles: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    done: NDArray[np.int64],
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write a number; a finite double is the next of those spelt before."""
    if is_integer(data, start, end):
        return put_integer_text(data, start, end, out, at)
    if data[start] == ZERO:
        out[at] = _DIGIT
        return at + 1
    bits = integer_at(data, start + 1, end)
    is_finite = (bits >> np.uint64(_EXPONENT_SHIFT)) & np.uint64(_EXPONENT) != np.uint64(_EXPONENT)
    if data[start] == DOUBLE and is_finite:
        double = done[0]
        done[0] = double + 1
        for byte in range(sizes[double]):
            out[at + byte] = doubles[double * SLOT + byte]
        return at + sizes[double]  # type: ignore[no-any-return]  # a whole number
    return put_bytes(out, at, _NULL_TEXT)


@kernel
def put_value(
    data: NDArray[np.uint8],
    kind: int,
    start: int,
    end: int,
    doubles: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    done: NDArray[np.int64],
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write a value that is no container; returns where it ends."""
    if kind == STRING:
        return put_string(data, start, end, out, at)
    if kind == NUMBER:
        return put_number(data, start, end, doubles, sizes, done, out, at)
    if kind == NULL:
        return put_bytes(out, at, _NULL_TEXT)
    return put_bytes(out, at, _FALSE_TEXT if kind == FALSE else _TRUE_TEXT)


@kernel
def begin_container(
    data: NDArray[np.uint8],
    start: int,
    stack: NDArray[np.int64],
    frame: int,
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Fill the frame of a container and write its bracket; returns where that ends."""
    header = word_at(data, start)
    kind = header & CONTAINER_KIND
    size = 1 if kind == SCALAR else header & CONTAINER_SIZE
    num_keys = size if kind == OBJECT else 0
    payload = start + WORD_BYTES * (1 + size + num_keys)
    stack[frame + KEY_WORD] = start + WORD_BYTES
    stack[frame + VALUE_WORD] = start + WORD_BYTES * (1 + num_keys)
    stack[frame + KEY_AT] = payload
    for key in range(num_keys):
        payload += word_at(data, stack[frame + KEY_WORD] + WORD_BYTES * key) & LENGTH
    stack[frame + VALUE_AT] = payload
    stack[frame + NUM_LEFT] = size
    stack[frame + FORM] = kind
    stack[frame + IS_FIRST] = 1
    if kind != SCALAR:
        out[at] = _OPENING[0] if kind == ARRAY else _OPENING[1]
        at += 1
    return at


@kernel
def begin_entry(
    data: NDArray[np.uint8], stack: NDArray[np.int64], frame: int, out: NDArray[np.uint8], at: int
) -> int:
    """Write what comes before a value: a comma, a key and a colon."""
    if stack[frame + IS_FIRST] == 0:
        out[at] = _COMMA
        at += 1
    stack[frame + IS_FIRST] = 0
    if stack[frame + FORM] == OBJECT:
        end = stack[frame + KEY_AT] + (word_at(data, stack[frame + KEY_WORD]) & LENGTH)
        at = put_string(data, stack[frame + KEY_AT], end, out, at)
        out[at] = _COLON
        at += 1
        stack[frame + KEY_WORD] += WORD_BYTES
        stack[frame + KEY_AT] = end
    return at


@kernel
def spell_document(
    data: NDArray[np.uint8],
    start: int,
    doubles: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    done: NDArray[np.int64],
    stack: NDArray[np.int64],
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write the text of one document; returns where it ends."""
    at = begin_container(data, start, stack, 0, out, at)
    frame = 0
    while frame >= 0:
        if stack[frame + NUM_LEFT] == 0:
            if stack[frame + FORM] != SCALAR:
                out[at] = _CLOSING[0] if stack[frame + FORM] == ARRAY else _CLOSING[1]
                at += 1
            frame -= SPELL_WORDS
            continue
        at = begin_entry(data, stack, frame, out, at)
        word, first = word_at(data, stack[frame + VALUE_WORD]), stack[frame + VALUE_AT]
        stack[frame + NUM_LEFT] -= 1
        stack[frame + VALUE_WORD] += WORD_BYTES
        stack[frame + VALUE_AT] = first + (word & LENGTH)
        if word >> KIND_SHIFT == NESTED:
            frame += SPELL_WORDS
            at = begin_container(data, first, stack, frame, out, at)
        else:
            kind, stop = word >> KIND_SHIFT, stack[frame + VALUE_AT]
            at = put_value(data, kind, first, stop, doubles, sizes, done, out, at)
    return at


@kernel
def spell_documents(
    address: int,
    offsets: NDArray[np.int64],
    is_valid: NDArray[np.bool_],
    doubles: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    num_done: NDArray[np.int64],
    stack: NDArray[np.int64],
    ends: NDArray[np.int32],
    out: NDArray[np.uint8],
) -> None:
    """Write the texts of documents that ``measure_documents`` found sound.

    Parameters
    ----------
    address, offsets, is_valid
        The documents, as they were measured.
    doubles, sizes
        Shapes ``(m, SLOT)`` and ``(m,)``: the texts of their doubles.
    num_done
        Shape ``(1,)``, zero; counts the doubles used.
    stack
        Shape ``(depth * SPELL_WORDS,)``, as deep as when they were measured.
    ends
        Shape ``(n + 1,)``; receives the offsets of the texts.
    out
        Receives the texts, one after another.
    """
    data = bytes_at(address, offsets[-1])
    texts = bytes_at(doubles.ctypes.data, doubles.size)  # views count no references
    text_sizes = int64_at(sizes.ctypes.data, sizes.shape[0])
    frames = int64_at(stack.ctypes.data, stack.shape[0])
    written = bytes_at(out.ctypes.data, out.shape[0])
    done = int64_at(num_done.ctypes.data, 1)
    at = 0
    ends[0] = 0
    for row in range(is_valid.shape[0]):
        if is_valid[row]:
            at = spell_document(data, offsets[row], texts, text_sizes, done, frames, written, at)
        ends[row + 1] = at


@warmup
def _warm() -> None:
    none = np.zeros(0, np.int64)
    spell_documents(
        address_of(np.zeros(1, np.uint8)),
        np.zeros(1, np.int64),
        np.zeros(0, np.bool_),
        np.zeros((0, SLOT), np.uint8),
        none,
        np.zeros(1, np.int64),
        np.zeros(2 * SPELL_WORDS, np.int64),
        np.zeros(1, np.int32),
        np.zeros(0, np.uint8),
    )
