"""JSON texts -> a tape of nodes: checked, strings unescaped, doubles put aside as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.json_scalars import (
    END_MISSING,
    FAULT_AT,
    NO_VALUE,
    NUM_NODES,
    STATE_WORDS,
    add_node,
    fail,
    parse_number,
    parse_string,
    parse_word,
)
from lance_core.kernels.json_tape import FORM, NEXT, NODE_WORDS
from lance_core.kernels.jsonb_format import ARRAY, OBJECT
from lance_core.kernels.memory import address_of, bytes_at, int64_at, int64_rows_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_KEY, NO_COLON, NO_COMMA, SOMETHING_BEHIND, TOO_DEEP = range(7, 12)

_BRACE, _CLOSING_BRACE, _BRACKET, _CLOSING_BRACKET, _QUOTE, _COLON, _COMMA, _MINUS = b'{}[]":,-'
_DIGITS = (ord("0"), ord("9"))
_SPACE = np.zeros(256, np.bool_)
_SPACE[list(b" \t\n\r")] = True


@kernel
def skip_space(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return where the next byte is that is no white space."""
    while at < end and _SPACE[data[at]]:
        at += 1
    return at


@kernel
def parse_key(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    tape: NDArray[np.int64],
    strings: NDArray[np.uint8],
    state: NDArray[np.int64],
) -> int:
    """Take a key and its colon."""
    at = skip_space(data, at, end)
    if at == end or data[at] != _QUOTE:
        return fail(state, NO_KEY, at)
    at = parse_string(data, at + 1, end, tape, strings, state)
    if at < 0:
        return at
    at = skip_space(data, at, end)
    if at == end or data[at] != _COLON:
        return fail(state, NO_COLON, at)
    return at + 1


@kernel
def parse_scalar(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    tape: NDArray[np.int64],
    strings: NDArray[np.uint8],
    numbers: NDArray[np.uint8],
    number_ends: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Take a value that is no container."""
    byte = data[at]
    if byte == _QUOTE:
        return parse_string(data, at + 1, end, tape, strings, state)
    if byte == _MINUS or _DIGITS[0] <= byte <= _DIGITS[1]:
        return parse_number(data, at, end, tape, numbers, number_ends, state)
    return parse_word(data, at, end, tape, state)


@kernel
def parse_next(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    tape: NDArray[np.int64],
    strings: NDArray[np.uint8],
    container: int,
    state: NDArray[np.int64],
) -> int:
    """Take the comma between two values, and the key of the second."""
    if at == end:
        return fail(state, END_MISSING, at)
    if data[at] != _COMMA:
        return fail(state, NO_COMMA, at)
    if tape[container, FORM] == ARRAY:
        return at + 1
    return parse_key(data, at + 1, end, tape, strings, state)


@kernel
def is_closed(
    data: NDArray[np.uint8], at: int, end: int, tape: NDArray[np.int64], container: int
) -> bool:
    """Whether the bracket at ``at`` closes a container."""
    closing = _CLOSING_BRACKET if tape[container, FORM] == ARRAY else _CLOSING_BRACE
    return bool(at < end and data[at] == closing)


@kernel
def open_container(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    tape: NDArray[np.int64],
    strings: NDArray[np.uint8],
    state: NDArray[np.int64],
) -> int:
    """Take an opening bracket and the key of the first value.

    A container without values ends at once: its ``NEXT`` is set, and its closing bracket taken.
    """
    node = state[NUM_NODES]
    add_node(tape, state, ARRAY if data[at] == _BRACKET else OBJECT, 0, 0)
    tape[node, NEXT] = 0
    at = skip_space(data, at + 1, end)
    if is_closed(data, at, end, tape, node):
        tape[node, NEXT] = node + 1
        return at + 1
    if tape[node, FORM] == ARRAY:
        return at
    return parse_key(data, at, end, tape, strings, state)


@kernel
def close_containers(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    tape: NDArray[np.int64],
    stack: NDArray[np.int64],
    depth: int,
    state: NDArray[np.int64],
) -> tuple[int, int]:
    """Take closing brackets; returns where they end and how many containers are open."""
    at = skip_space(data, at, end)
    while depth > 0 and is_closed(data, at, end, tape, stack[depth - 1]):
        depth -= 1
        tape[stack[depth], NEXT] = state[NUM_NODES]
        at = skip_space(data, at + 1, end)
    return at, depth


@kernel
def parse_document(
    data: NDArray[np.uint8],
    at: int,
    end: int,
    tape: NDArray[np.int64],
    strings: NDArray[np.uint8],
    numbers: NDArray[np.uint8],
    number_ends: NDArray[np.int64],
    stack: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Add the nodes of one text to the tape; -1 if it is no JSON."""
    depth = 0
    while True:
        at = skip_space(data, at, end)
        if at == end:
            return fail(state, NO_VALUE, at)
        node = state[NUM_NODES]
        if data[at] == _BRACKET or data[at] == _BRACE:
            at = open_container(data, at, end, tape, strings, state)
            if at >= 0 and tape[node, NEXT] == 0:
                if depth == stack.shape[0]:
                    return fail(state, TOO_DEEP, at)
                stack[depth] = node
                depth += 1
                continue
        else:
            at = parse_scalar(data, at, end, tape, strings, numbers, number_ends, state)
        if at >= 0:
            at, depth = close_containers(data, at, end, tape, stack, depth, state)
            if depth == 0:
                return at if at == end else fail(state, SOMETHING_BEHIND, at)
            at = parse_next(data, at, end, tape, strings, stack[depth - 1], state)
        if at < 0:
            return at


@kernel
def parse_documents(
    address: int,
    offsets: NDArray[np.int64],
    is_valid: NDArray[np.bool_],
    tape: NDArray[np.int64],
    roots: NDArray[np.int64],
    strings: NDArray[np.uint8],
    numbers: NDArray[np.uint8],
    number_ends: NDArray[np.int64],
    stack: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Check JSON texts and take them apart.

    Parameters
    ----------
    address, offsets
        Where the bytes are, valid UTF-8; text ``i`` is ``[offsets[i], offsets[i + 1])`` of them.
    is_valid
        Shape ``(n,)``; others are not looked at.
    tape
        Shape ``(num_nodes, NODE_WORDS)``; receives the nodes, parents before children and keys
        before values. Has room for one node per text and one for each of ``,:[{`` in the texts.
    roots
        Shape ``(n + 1,)``; receives the first node of each text; a null has none.
    strings, numbers
        Receive the strings, unescaped, and the texts of the doubles; each as large as the texts.
    number_ends
        Shape ``(num_nodes + 1,)``; receives where the doubles end, behind a first 0.
    stack
        Shape ``(depth,)``; how deep texts may be nested.
    state
        Shape ``(STATE_WORDS,)``, zeros; receives the fault and where it is, or the counts.

    Returns
    -------
    int
        The number of texts taken; less than all if the next is no JSON.
    """
    data = bytes_at(address, offsets[-1])
    nodes = int64_rows_at(tape.ctypes.data, tape.shape[0], NODE_WORDS)  # views count no references
    plain = bytes_at(strings.ctypes.data, strings.shape[0])
    doubles = bytes_at(numbers.ctypes.data, numbers.shape[0])
    ends = int64_at(number_ends.ctypes.data, number_ends.shape[0])
    notes = int64_at(state.ctypes.data, state.shape[0])
    opened = int64_at(stack.ctypes.data, stack.shape[0])
    ends[0] = 0
    for row in range(is_valid.shape[0]):
        roots[row] = state[NUM_NODES]
        if is_valid[row]:
            start, end = offsets[row], offsets[row + 1]
            stop = parse_document(data, start, end, nodes, plain, doubles, ends, opened, notes)
            if stop < 0:
                state[FAULT_AT] -= start
                return row
    roots[is_valid.shape[0]] = state[NUM_NODES]
    return len(is_valid)


@warmup
def _warm() -> None:
    none = np.zeros(0, np.uint8)
    parse_documents(
        address_of(np.zeros(1, np.uint8)),
        np.zeros(1, np.int64),
        np.zeros(0, np.bool_),
        np.zeros((1, NODE_WORDS), np.int64),
        np.zeros(1, np.int64),
        none,
        none,
        np.zeros(1, np.int64),
        np.zeros(0, np.int64),
        np.zeros(STATE_WORDS, np.int64),
    )
