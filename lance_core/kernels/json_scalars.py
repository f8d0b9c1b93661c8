"""JSON strings, numbers and words -> nodes of the tape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.json_tape import AT, FORM, NEXT, NUMBER_FORM, SIZE
from lance_core.kernels.jsonb_format import (
    DOUBLE,
    DOUBLE_BYTES,
    FALSE,
    NEGATIVE,
    NULL,
    POSITIVE,
    STRING,
    TRUE,
    ZERO,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_NODES, NUM_STRING_BYTES, NUM_NUMBERS, FAULT, FAULT_AT, STATE_WORDS = range(6)

NO_VALUE, END_MISSING, NO_QUOTE, BAD_CONTROL, BAD_ESCAPE, BAD_NUMBER = range(1, 7)

_QUOTE, _BACKSLASH, _MINUS, _PLUS, _POINT, _ZERO, _NINE, _U = b'"\\-+.09u'
_EXPONENTS = (ord("e"), ord("E"))
_FIRST_PLAIN = 0x20
_PLAIN_OF = np.zeros(256, np.uint8)
"""What an escape of one letter stands for; 0 = there is no such escape."""
_PLAIN_OF[list(b'btnfr"\\/')] = list(b'\b\t\n\f\r"\\/')
_VALUE_OF = np.full(256, -1, np.int64)
"""Values of hexadecimal digits; -1 = no such digit."""
_VALUE_OF[list(b"0123456789abcdef")] = np.arange(16)
_VALUE_OF[list(b"ABCDEF")] = np.arange(10, 16)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_HEX_DIGITS, _ESCAPE_BYTES = 4, 6
_TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0x80, 0x800, 0x10000
"""Code points from which UTF-8 takes so many bytes."""
_WIDEST = 8
_HIGH, _LOW, _BEHIND = 0xD800, 0xDC00, 0xE000
_TRUE_TEXT = np.frombuffer(b"true", np.uint8).copy()
_FALSE_TEXT = np.frombuffer(b"false", np.uint8).copy()
_NULL_TEXT = np.frombuffer(b"null", np.uint8).copy()
_MOST_DIGITS = 20
"""Digits of the largest integer of 64 bits without sign."""
_LARGEST = np.uint64(2**64 - 1)
_LARGEST_BELOW = np.uint64(2**63)


@kernel
def fail(state: NDArray[np.int64], fault: int, at: int) -> int:
    """Note a fault and where it is; returns what tells of one."""
    state[FAULT] = fault
    state[FAULT_AT] = at
    return -1


@kernel
def add_node(
    tape: NDArray[np.int64], state: NDArray[np.int64], form: int, at: int, size: int
) -> None:
    """Append a node that has no other below it."""
    node = state[NUM_NODES]
    tape[node, FORM] = form
    tape[node, AT] = at
    tape[node, SIZE] = size
    tape[node, NEXT] = node + 1
    state[NUM_NODES] = node + 1


@kernel
def hex_at(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the number of four hexadecimal digits; -1 if they are not."""
    if end - at < _HEX_DIGITS:
        return -1
    value = 0
    for place in range(at, at + _HEX_DIGITS):
        digit = _VALUE_OF[data[place]]
        if digit < 0:
            return -1
        value = value * 16 + digit
    return value


@kernel
def put_code_point(out: NDArray[np.uint8], at: int, code: int) -> int:
    """Write a code point as UTF-8, half a surrogate pair as its escape; returns where it ends."""
    if code < _TWO_BYTES:
        out[at] = code
        return at + 1
    if code < _THREE_BYTES:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | code & 0x3F
        return at + 2
    if _HIGH <= code < _BEHIND:
        out[at] = _BACKSLASH
        out[at + 1] = _U
        for place in range(_HEX_DIGITS):
            out[at + 2 + place] = _HEX[code >> (12 - 4 * place) & 15]
        return at + _ESCAPE_BYTES
    last, mark = (2, 0xE0) if code < _FOUR_BYTES else (3, 0xF0)
    out[at] = mark | code >> (6 * last)
    for place in range(1, last + 1):
        out[at + place] = 0x80 | code >> (6 * (last - place)) & 0x3F
    return at + last + 1


@kernel
def parse_escape(
    data: NDArray[np.uint8], at: int, end: int, out: NDArray[np.uint8], to: int
) -> tuple[int, int]:
    """Take the escape behind a backslash; returns where it and its bytes end, or -1 and 0."""
    if at < end and _PLAIN_OF[data[at]] != 0:
        out[to] = _PLAIN_OF[data[at]]
        return at + 1, to + 1
    code = hex_at(data, at + 1, end) if at < end and data[at] == _U else -1
    if code < 0:
        return -1, 0
    at += 1 + _HEX_DIGITS
    is_first = _HIGH <= code < _LOW and end - at >= _ESCAPE_BYTES
    if is_first and data[at] == _BACKSLASH and data[at + 1] == _U:
        second = hex_at(data, at + 2, end)
        if _LOW <= second < _BEHIND:
            code = 0x10000 + ((code - _HIGH) << 10) + second - _LOW
            at += _ESCAPE_BYTES
    return at, put_code_point(out, to, code)


@kernel
def parse_string(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    tape: NDArray[np.int64],
    strings: NDArray[np.uint8],
    state: NDArray[np.int64],
) -> int:
    """Take a string behind its first quote; returns where it ends."""
    start = to = state[NUM_STRING_BYTES]
    while at < end:
        byte = data[at]
        if byte == _QUOTE:
            add_node(tape, state, STRING, start, to - start)
            state[NUM_STRING_BYTES] = to
            return at + 1
        if byte == _BACKSLASH:
            behind, to = parse_escape(data, at + 1, end, strings, to)
            if behind < 0:
                return fail(state, BAD_ESCAPE, at)
            at = behind
            continue
        if byte < _FIRST_PLAIN:
            return fail(state, BAD_CONTROL, at)
        strings[to] = byte
        to += 1
        at += 1
    return fail(state, NO_QUOTE, at)


@kernel
def skip_digits(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return where the digits at ``at`` end."""
    while at < end and _ZERO <= data[at] <= _NINE:
        at += 1
    return at


@kernel
def whole_end(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return where the digits before a point end: one zero, or digits that begin with another."""
    if at < end and data[at] == _ZERO:
        return at + 1
    return skip_digits(data, at, end)


@kernel
def fraction_end(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return where a fraction and an exponent end; -1 if they lack their digits."""
    if at < end and data[at] == _POINT:
        stop = skip_digits(data, at + 1, end)
        if stop == at + 1:
            return -1
        at = stop
    if at < end and (data[at] == _EXPONENTS[0] or data[at] == _EXPONENTS[1]):
        at += 1
        if at < end and (data[at] == _MINUS or data[at] == _PLUS):
            at += 1
        stop = skip_digits(data, at, end)
        if stop == at:
            return -1
        at = stop
    return at


@kernel
def parse_whole(data: NDArray[np.uint8], start: int, end: int) -> tuple[bool, np.uint64]:
    """Return whether up to 20 digits fit 64 bits, and their number."""
    value = np.uint64(0)
    for place in range(start, end):
        digit = np.uint64(data[place]) - np.uint64(_ZERO)
        if value > (_LARGEST - digit) // np.uint64(10):
            return False, value
        value = value * np.uint64(10) + digit
    return True, value


@kernel
def add_integer(
    tape: NDArray[np.int64], state: NDArray[np.int64], value: np.uint64, is_below: bool
) -> None:
    """Append an integer in the fewest of 1, 2, 4 or 8 bytes."""
    if value == np.uint64(0):
        add_node(tape, state, NUMBER_FORM + ZERO, 0, 1)
        return
    bits = value
    if is_below:  # one bit more for the sign
        bits = (value - np.uint64(1)) << np.uint64(1) | np.uint64(1)
        value = ~value + np.uint64(1)
    width = 1
    while width < _WIDEST and bits >> np.uint64(8 * width) != np.uint64(0):
        width *= 2
    form = NUMBER_FORM + (NEGATIVE if is_below else POSITIVE)
    kept: int = np.int64(value)  # type: ignore[assignment]  # an int64
    add_node(tape, state, form, kept, 1 + width)


@kernel
def parse_number(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    tape: NDArray[np.int64],
    numbers: NDArray[np.uint8],
    number_ends: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Take a number; what is no integer of 64 bits is put aside; returns where it ends."""
    start = at
    is_below = data[at] == _MINUS
    at += is_below
    whole = whole_end(data, at, end)
    if whole == at:
        return fail(state, BAD_NUMBER, start)
    stop = fraction_end(data, whole, end)
    if stop < 0:
        return fail(state, BAD_NUMBER, start)
    if stop == whole and whole - at <= _MOST_DIGITS:
        fits, value = parse_whole(data, at, whole)
        if fits and (not is_below or value <= _LARGEST_BELOW):
            add_integer(tape, state, value, is_below)
            return stop
    number = state[NUM_NUMBERS]
    to = number_ends[number]
    numbers[to : to + stop - start] = data[start:stop]
    number_ends[number + 1] = to + stop - start
    state[NUM_NUMBERS] = number + 1
    add_node(tape, state, NUMBER_FORM + DOUBLE, number, 1 + DOUBLE_BYTES)
    return stop


@kernel
def begins_with(data: NDArray[np.uint8], at: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Whether the bytes of a word are at ``at``."""
    if end - at < word.shape[0]:
        return False
    differ = False
    for place in range(word.shape[0]):
        differ |= data[at + place] != word[place]
    return not differ


@kernel
def parse_word(
    data: NDArray[np.uint8], at: int, end: int, tape: NDArray[np.int64], state: NDArray[np.int64]
) -> int:
    """Take ``null``, ``true`` or ``false``; returns where it ends."""
    if begins_with(data, at, end, _NULL_TEXT):
        add_node(tape, state, NULL, 0, 0)
        return at + 4
    if begins_with(data, at, end, _TRUE_TEXT):
        add_node(tape, state, TRUE, 0, 0)
        return at + 4
    if begins_with(data, at, end, _FALSE_TEXT):
        add_node(tape, state, FALSE, 0, 0)
        return at + 5
    return fail(state, NO_VALUE, at)
