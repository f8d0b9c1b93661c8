"""Writing an FST: keys in order become a trie (scalar index page, 8.4).

Ends of keys are not shared, as the format leaves to the writer: keys of words are a few percent
longer so. A key's number stands on the first transition that no other key shares, or, where the key
begins the next one, at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.text_fst import COMMON_INPUTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

OUT_OF_ORDER = -1

_PLACES = np.zeros(256, np.int64)
_PLACES[COMMON_INPUTS] = np.arange(1, len(COMMON_INPUTS) + 1)

_INPUT = 0
_TARGET = 1
_VALUE = 2
_TRANSITION_FIELDS = 3

_FIRST = 0
"""Where the transitions of an open node begin on their stack."""

_IS_FINAL = 1
_FINAL_VALUE = 2
_VALUE_BEFORE = 3
"""Value of the transition that leads to an open node."""

_OPEN_FIELDS = 4

_FINAL = 0x40
_NEXT_BELOW = 0xC0
_MOST_INDEXED = 32
_MOST_IN_STATE = 63
_NO_TRANSITION = 255


@kernel
def common_bytes(keys: NDArray[np.uint8], start: int, middle: int, stop: int) -> int:
    """Return how many bytes two neighbouring keys have in common at their beginning."""
    most = min(middle - start, stop - middle)
    for at in range(most):
        if keys[start + at] != keys[middle + at]:
            return at
    return most


@kernel
def is_before(keys: NDArray[np.uint8], start: int, middle: int, stop: int, shared: int) -> bool:
    """Tell whether the first of two neighbouring keys comes before the second."""
    if middle + shared == stop:
        return False
    return start + shared == middle or bool(keys[start + shared] < keys[middle + shared])


@kernel
def num_bytes(number: int) -> int:
    """Return how many bytes a number takes; none for 0."""
    size = 0
    while number > 0:
        number >>= 8
        size += 1
    return size


@kernel
def put_number(out: NDArray[np.uint8], at: int, number: int, size: int) -> int:
    """Write a little-endian number; returns the position behind."""
    for index in range(size):
        out[at + index] = (number >> (8 * index)) & 255
    return at + size


@kernel
def put_next_below(out: NDArray[np.uint8], at: int, byte: int) -> int:
    """Write a node whose one transition leads to the node just below."""
    place = _PLACES[byte]
    if place == 0:
        out[at] = byte
        at += 1
    out[at] = _NEXT_BELOW | place
    return at + 1


@kernel
def put_inputs(out: NDArray[np.uint8], at: int, transitions: NDArray[np.int64]) -> int:
    """Write the inputs of a node, and their table where there are many."""
    num = transitions.shape[0]
    for index in range(num - 1, -1, -1):
        out[at] = transitions[index, _INPUT]
        at += 1
    if num > _MOST_INDEXED:
        out[at : at + 256] = _NO_TRANSITION
        for index in range(num):
            out[at + transitions[index, _INPUT]] = index
        at += 256
    return at


@kernel
def put_any(
    out: NDArray[np.uint8], at: int, node: NDArray[np.int64], transitions: NDArray[np.int64]
) -> int:
    """Write a node with all its fields."""
    lowest, num = at, transitions.shape[0]
    value_bytes = num_bytes(node[_FINAL_VALUE])
    target_bytes = min(num, 1)
    for index in range(num):
        value_bytes = max(value_bytes, num_bytes(transitions[index, _VALUE]))
        if transitions[index, _TARGET] > 0:
            distance = lowest - transitions[index, _TARGET]
            target_bytes = max(target_bytes, num_bytes(distance))
    if node[_IS_FINAL] == 1:
        at = put_number(out, at, node[_FINAL_VALUE], value_bytes)
    for index in range(num - 1, -1, -1):
        at = put_number(out, at, transitions[index, _VALUE], value_bytes)
    for index in range(num - 1, -1, -1):
        target = transitions[index, _TARGET]
        at = put_number(out, at, lowest - target if target > 0 else 0, target_bytes)
    at = put_inputs(out, at, transitions)
    at = put_number(out, at, target_bytes << 4 | value_bytes, 1)
    state = node[_IS_FINAL] * _FINAL
    if 0 < num <= _MOST_IN_STATE:
        state |= num
    else:
        at = put_number(out, at, num % 256 + num // 256, 1)
    return put_number(out, at, state, 1)


@kernel
def put_node(
    out: NDArray[np.uint8], at: int, node: NDArray[np.int64], transitions: NDArray[np.int64]
) -> int:
    """Write a node; returns the position behind, which is ``at`` where it takes no bytes."""
    num = transitions.shape[0]
    if num == 0 and node[_IS_FINAL] == 1 and node[_FINAL_VALUE] == 0:
        return at
    is_plain = num == 1 and node[_IS_FINAL] == 0
    if is_plain and transitions[0, _VALUE] == 0 and transitions[0, _TARGET] == at - 1:
        return put_next_below(out, at, transitions[0, _INPUT])
    return put_any(out, at, node, transitions)


@kernel
def open_nodes(
    opened: NDArray[np.int64], shared: int, length: int, departs: int, number: int, top: int
) -> None:
    """Open the nodes of a key behind the bytes that it shares with the one before."""
    for depth in range(shared + 1, length + 1):
        opened[depth, _FIRST] = top
        opened[depth, _IS_FINAL] = 0
        opened[depth, _FINAL_VALUE] = 0
        opened[depth, _VALUE_BEFORE] = 0
    opened[length, _IS_FINAL] = 1
    if departs == length:
        opened[length, _FINAL_VALUE] = number
    else:
        opened[departs + 1, _VALUE_BEFORE] = number


@kernel
def write_nodes(
    keys: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    numbers: NDArray[np.int64],
    opened: NDArray[np.int64],
    stack: NDArray[np.int64],
    out: NDArray[np.uint8],
    at: int,
) -> tuple[int, int]:
    """Write the nodes of an FST.

    Parameters
    ----------
    keys, offsets
        Key ``i`` is ``keys[offsets[i] : offsets[i + 1]]``; ascending, without repeats.
    numbers
        The number of each, shape ``(n,)``.
    opened
        Room for the nodes of the longest key, shape ``(longest + 1, 4)``, zeros.
    stack
        Room for transitions, shape ``(min(n, 256 * longest) + longest + 1, 3)``.
    out, at
        Receives the nodes from a position on; 40 bytes for each key, and two for each of its bytes,
        are enough.

    Returns
    -------
    tuple[int, int]
        The position behind, ``OUT_OF_ORDER`` if keys are; and the root's address.
    """
    top, length, shared_next = 0, 0, 0
    num = numbers.shape[0]
    for position in range(num + 1):
        shared = shared_next
        while length > shared:  # close what the next key does not go through
            node = opened[length]
            behind = put_node(out, at, node, stack[node[_FIRST] : top])
            top = node[_FIRST]
            stack[top, _INPUT] = keys[offsets[position - 1] + length - 1]
            stack[top, _TARGET] = behind - 1 if behind > at else 0
            stack[top, _VALUE] = node[_VALUE_BEFORE]
            top += 1
            at = behind
            length -= 1
        if position == num:
            break
        start, stop = offsets[position], offsets[position + 1]
        shared_next = 0
        if position + 1 < num:
            behind = offsets[position + 2]
            shared_next = common_bytes(keys, start, stop, behind)
            if not is_before(keys, start, stop, behind, shared_next):
                return OUT_OF_ORDER, 0
        length = stop - start
        open_nodes(opened, shared, length, max(shared, shared_next), numbers[position], top)
    behind = put_node(out, at, opened[0], stack[:top])
    return behind, behind - 1 if behind > at else 0


@kernel
def crc_table() -> NDArray[np.uint32]:
    """Return the table of CRC-32C by bytes."""
    table = np.zeros(256, np.uint32)
    for byte in range(256):
        rest = np.uint32(byte)
        for _ in range(8):
            is_odd = rest & np.uint32(1)
            rest >>= np.uint32(1)
            if is_odd != 0:
                rest ^= np.uint32(0x82F63B78)
        table[byte] = rest
    return table


@kernel
def masked_crc32c(view: NDArray[np.uint8]) -> int:
    """Return the checksum that ends an FST."""
    table = crc_table()
    rest = np.uint32(0xFFFFFFFF)
    for byte in view:
        rest = table[(rest ^ byte) & np.uint32(255)] ^ (rest >> np.uint32(8))
    rest ^= np.uint32(0xFFFFFFFF)
    turned = (np.int64(rest) >> 15) | (np.int64(rest) << 17) & 0xFFFFFFFF
    return (turned + 0xA282EAD8) & 0xFFFFFFFF  # type: ignore[return-value]  # is int64
