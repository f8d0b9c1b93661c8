"""Walking the bytes of an FST: a map from keys of bytes to numbers (scalar index page, 8.4).

A node's address is that of its last byte, from which its fields are read downwards. Addresses of
targets are always lower, so that every walk ends. Bytes are not trusted: what does not fit gives
``DAMAGED``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.text_bits import byte_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER_BYTES = 16
FOOTER_BYTES = 20

COMMON_INPUTS = np.frombuffer(
    b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG", np.uint8
)
"""Input bytes that nodes of one transition name by their place in this list, counted from 1.

There are 63; the last four are missing in the scalar index page (observed with pylance 14.0.2).
"""

NOT_FOUND = -1
DAMAGED = -2

NUM = 0
"""Transitions of an entered node."""

IS_FINAL = 1
FINAL_VALUE = 2
LOWEST = 3
"""Address of its lowest byte."""

TARGET_BYTES = 4
VALUE_BYTES = 5
INPUTS = 6
"""Address of its first input, below which are the others; or its one input, less 256."""

TARGETS = 7
VALUES = 8
"""Addresses behind its first target and value; below each are the others."""

NODE_FIELDS = 9

_NEXT_BELOW = 3
_ONE = 2
_MOST_INDEXED = 32
"""With more transitions a table of 256 places stands before the inputs."""

_WIDEST = 8


@kernel
def number_at(view: NDArray[np.uint8], at: int, size: int) -> int:
    """Return the little-endian number of ``size`` bytes, at most 8, at a position."""
    number = np.uint64(0)
    for index in range(size):
        number |= np.uint64(view[at + index]) << np.uint64(8 * index)
    return np.int64(number)  # type: ignore[return-value]  # `int` keeps it unsigned in kernels


@kernel
def enter_one(view: NDArray[np.uint8], address: int, kind: int, node: NDArray[np.int64]) -> bool:
    """Describe a node of one transition; False if it does not fit."""
    at = address
    place = byte_at(view, address) & 63
    if place == 0:
        at -= 1
        byte = byte_at(view, at)
    else:
        byte = byte_at(COMMON_INPUTS, place - 1)
    node[NUM] = 1
    node[IS_FINAL] = 0
    node[INPUTS] = byte - 256
    node[TARGET_BYTES] = 0
    node[VALUE_BYTES] = 0
    if kind == _ONE:
        at -= 1
        node[TARGET_BYTES] = byte_at(view, at) >> 4
        node[VALUE_BYTES] = byte_at(view, at) & 15
    return lay_out(node, at)


@kernel
def lay_out(node: NDArray[np.int64], at: int) -> bool:
    """Say where targets and values of a node lie, which follow below an address."""
    target_bytes, value_bytes = node[TARGET_BYTES], node[VALUE_BYTES]
    node[TARGETS] = at
    node[VALUES] = at - node[NUM] * target_bytes
    node[LOWEST] = node[VALUES] - (node[NUM] + node[IS_FINAL]) * value_bytes
    return bool(target_bytes <= _WIDEST and value_bytes <= _WIDEST and node[LOWEST] >= HEADER_BYTES)


@kernel
def enter_any(view: NDArray[np.uint8], address: int, node: NDArray[np.int64]) -> bool:
    """Describe a node of any number of transitions; False if it does not fit."""
    at = address
    state = byte_at(view, at)
    num = state & 63
    if num == 0:
        at -= 1
        num = byte_at(view, at)
        if num == 1:
            num = 256
    at -= 1
    node[NUM] = num
    node[IS_FINAL] = state >> 6
    node[TARGET_BYTES] = byte_at(view, at) >> 4
    node[VALUE_BYTES] = byte_at(view, at) & 15
    if num > _MOST_INDEXED:
        at -= 256
    node[INPUTS] = at - 1
    is_inside = lay_out(node, at - num)
    if is_inside and node[IS_FINAL] == 1:
        node[FINAL_VALUE] = number_at(view, node[LOWEST], node[VALUE_BYTES])
    return is_inside and (num == 0 or node[TARGET_BYTES] > 0)


@kernel
def enter_node(view: NDArray[np.uint8], address: int, node: NDArray[np.int64]) -> bool:
    """Describe the node at an address in ``node``, of shape ``(NODE_FIELDS,)`` at least.

    False if it does not fit.
    """
    node[FINAL_VALUE] = 0
    if address == 0:
        node[NUM] = 0
        node[IS_FINAL] = 1
        return True
    if address < HEADER_BYTES or address >= view.shape[0] - FOOTER_BYTES:
        return False
    kind = byte_at(view, address) >> 6
    if kind >= _ONE:
        return enter_one(view, address, kind, node)
    return enter_any(view, address, node)


@kernel
def input_of(view: NDArray[np.uint8], node: NDArray[np.int64], index: int) -> int:
    """Return the byte of a transition."""
    if node[INPUTS] < 0:
        return node[INPUTS] + 256  # type: ignore[no-any-return]
    return byte_at(view, node[INPUTS] - index)


@kernel
def target_of(view: NDArray[np.uint8], node: NDArray[np.int64], index: int) -> int:
    """Return the address that a transition leads to; one that no node has if it does not fit."""
    size = node[TARGET_BYTES]
    if size == 0:
        return node[LOWEST] - 1  # type: ignore[no-any-return]
    distance = number_at(view, node[TARGETS] - (index + 1) * size, size)
    if distance == 0:
        return 0
    return node[LOWEST] - distance if 0 < distance < node[LOWEST] else DAMAGED


@kernel
def value_of(view: NDArray[np.uint8], node: NDArray[np.int64], index: int) -> int:
    """Return what a transition adds to the number of its keys."""
    size = node[VALUE_BYTES]
    return number_at(view, node[VALUES] - (index + 1) * size, size)


@kernel
def find_input(view: NDArray[np.uint8], node: NDArray[np.int64], byte: int) -> int:
    """Return which transition has a byte, ``NOT_FOUND`` if none has."""
    for index in range(node[NUM]):
        if input_of(view, node, index) == byte:
            return index
    return NOT_FOUND


@kernel(brief=True)
def find_keys(
    view: NDArray[np.uint8],
    root: int,
    keys: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Look keys up.

    Parameters
    ----------
    view, root
        The FST, ``HEADER_BYTES + FOOTER_BYTES`` at least, and the address of its root.
    keys, offsets
        Key ``i`` is ``keys[offsets[i] : offsets[i + 1]]``.
    found
        Receives their numbers, shape ``(n,)``; ``NOT_FOUND``, or ``DAMAGED``.
    """
    node = np.zeros(NODE_FIELDS, np.int64)
    for position in range(found.shape[0]):
        key = keys[offsets[position] : offsets[position + 1]]
        found[position] = find_key(view, root, key, node)


@kernel
def find_key(
    view: NDArray[np.uint8], root: int, key: NDArray[np.uint8], node: NDArray[np.int64]
) -> int:
    """Look one key up; ``node`` is overwritten."""
    address, value = root, 0
    for at in range(key.shape[0]):
        if not enter_node(view, address, node):
            return DAMAGED
        index = find_input(view, node, byte_at(key, at))
        if index == NOT_FOUND:
            return NOT_FOUND
        value += value_of(view, node, index)
        address = target_of(view, node, index)
    if not enter_node(view, address, node):
        return DAMAGED
    return value + node[FINAL_VALUE] if node[IS_FINAL] == 1 else NOT_FOUND


@warmup
def warm() -> None:
    """Compile or load the kernels of this module that queries use."""
    find_keys(
        np.zeros(HEADER_BYTES + FOOTER_BYTES, np.uint8),
        0,
        np.zeros(1, np.uint8),
        np.zeros(2, np.int64),
        np.zeros(1, np.int64),
    )
