"""The tape of parsed JSON texts -> JSONB documents: measured from below, written from above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.json_tape import (
    AT,
    FORM,
    NEXT,
    NODE_WORDS,
    NUMBER_FORM,
    PLACE,
    SIZE,
)
from lance_core.kernels.jsonb_format import (
    ARRAY,
    DOUBLE,
    KIND_SHIFT,
    LENGTH,
    NESTED,
    NUMBER,
    OBJECT,
    SCALAR,
    STRING,
    WORD_BYTES,
    put_integer,
    put_word,
)
from lance_core.kernels.memory import bytes_at, int64_at, int64_rows_at, uint64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOUND = -1
"""What kernels return when nothing is wrong, instead of a node."""


@kernel
def measure_nodes(
    tape: NDArray[np.int64], roots: NDArray[np.int64], offsets: NDArray[np.int64]
) -> int:
    """Measure all payloads, count children (into ``AT``) and lay out the documents.

    Parameters
    ----------
    tape, roots
        What ``parse_documents`` left; ``roots`` of shape ``(n + 1,)``.
    offsets
        Shape ``(n + 1,)``; receives where the documents begin and end; a null has no bytes.

    Returns
    -------
    int
        A node whose payload is too large for its word, or ``SOUND``.
    """
    for node in range(roots[-1] - 1, -1, -1):
        if tape[node, FORM] >= OBJECT:
            size, count, child = WORD_BYTES, 0, node + 1
            while child < tape[node, NEXT]:
                size += WORD_BYTES + tape[child, SIZE]
                count += 1
                child = tape[child, NEXT]
            tape[node, AT] = count
            tape[node, SIZE] = size
        if tape[node, SIZE] > LENGTH:
            return node
    offsets[0] = 0
    for row in range(roots.shape[0] - 1):
        size, root = 0, roots[row]
        if root < roots[row + 1]:
            head = 0 if tape[root, FORM] >= OBJECT else 2 * WORD_BYTES
            size = head + tape[root, SIZE]
        offsets[row + 1] = offsets[row] + size
    return SOUND


@kernel
def compare_keys(tape: NDArray[np.int64], strings: NDArray[np.uint8], left: int, right: int) -> int:
    """Compare two keys by their bytes: below, equal to or above 0."""
    sizes = tape[left, SIZE], tape[right, SIZE]
    starts = tape[left, AT], tape[right, AT]
    for place in range(min(sizes[0], sizes[1])):
        one, other = strings[starts[0] + place], strings[starts[1] + place]
        if one != other:
            return 1 if one > other else -1
    return sizes[0] - sizes[1]  # type: ignore[no-any-return]  # a whole number


@kernel
def merge_runs(
    tape: NDArray[np.int64],
    strings: NDArray[np.uint8],
    keys: NDArray[np.int64],
    merged: NDArray[np.int64],
    count: int,
    start: int,
    run: int,
) -> None:
    """Merge two sorted runs of up to ``run`` keys that begin at ``start``."""
    left, middle = start, min(start + run, count)
    right, end = middle, min(start + 2 * run, count)
    for to in range(start, end):
        takes_left = right == end or (
            left < middle and compare_keys(tape, strings, keys[left], keys[right]) <= 0
        )
        merged[to] = keys[left] if takes_left else keys[right]
        left += takes_left
        right += not takes_left


@kernel
def sort_keys(
    tape: NDArray[np.int64],
    strings: NDArray[np.uint8],
    keys: NDArray[np.int64],
    spare: NDArray[np.int64],
    count: int,
) -> int:
    """Sort keys by their bytes; returns one that occurs twice, or ``SOUND``."""
    run = 1
    while run < count:
        for start in range(0, count, 2 * run):
            merge_runs(tape, strings, keys, spare, count, start, run)
        for position in range(count):
            keys[position] = spare[position]
        run *= 2
    for position in range(1, count):
        if compare_keys(tape, strings, keys[position - 1], keys[position]) == 0:
            return keys[position]  # type: ignore[no-any-return]  # a node
    return SOUND


@kernel
def put_entry(tape: NDArray[np.int64], node: int, out: NDArray[np.uint8], at: int) -> None:
    """Write the word of a node."""
    form = tape[node, FORM]
    kind = form
    if form >= OBJECT:
        kind = NESTED
    elif form >= NUMBER_FORM:
        kind = NUMBER
    put_word(out, at, kind << KIND_SHIFT | tape[node, SIZE])


@kernel
def put_container(
    tape: NDArray[np.int64],
    node: int,
    strings: NDArray[np.uint8],
    keys: NDArray[np.int64],
    spare: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> int:
    """Write head and words of a container and place its children; returns a key met twice."""
    count, at = tape[node, AT], tape[node, PLACE] + WORD_BYTES
    place = at + WORD_BYTES * count
    step = 2 if tape[node, FORM] == OBJECT else 1
    size = count // step
    put_word(out, tape[node, PLACE], tape[node, FORM] | size)
    child = node + 1
    for position in range(size):
        keys[position] = child
        child = tape[child + step - 1, NEXT]
    if tape[node, FORM] == OBJECT:
        twice = sort_keys(tape, strings, keys, spare, size)
        if twice != SOUND:
            return twice
    for behind in range(step):  # keys, and then the values that follow them on the tape
        for position in range(size):
            child = keys[position] + behind
            put_entry(tape, child, out, at)
            tape[child, PLACE] = place
            at += WORD_BYTES
            place += tape[child, SIZE]
    return SOUND


@kernel
def put_leaf(
    tape: NDArray[np.int64],
    node: int,
    strings: NDArray[np.uint8],
    doubles: NDArray[np.uint64],
    out: NDArray[np.uint8],
) -> None:
    """Write the payload of a node that is no container."""
    form, at, size, place = tape[node, FORM], tape[node, AT], tape[node, SIZE], tape[node, PLACE]
    if form == STRING:
        for byte in range(size):
            out[place + byte] = strings[at + byte]
    elif form >= NUMBER_FORM:
        tag = form - NUMBER_FORM
        out[place] = tag
        value = doubles[at] if tag == DOUBLE else np.uint64(at)
        put_integer(out, place + 1, value, size - 1)


@kernel
def build_documents(
    tape: NDArray[np.int64],
    roots: NDArray[np.int64],
    strings: NDArray[np.uint8],
    doubles: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    scratch: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> int:
    """Write documents.

    Parameters
    ----------
    tape, roots, strings
        What ``parse_documents`` left, measured.
    doubles
        The bits of the doubles that it put aside.
    offsets
        Shape ``(n + 1,)``; where the documents begin and end in ``out``.
    scratch
        Shape ``(2, num_nodes)``.
    out
        Receives the documents.

    Returns
    -------
    int
        A key that its object has twice, or ``SOUND``.
    """
    keys = int64_at(scratch[0].ctypes.data, tape.shape[0])  # views count no references
    spare = int64_at(scratch[1].ctypes.data, tape.shape[0])
    nodes = int64_rows_at(tape.ctypes.data, tape.shape[0], NODE_WORDS)
    plain = bytes_at(strings.ctypes.data, strings.shape[0])
    bits = uint64_at(doubles.ctypes.data, doubles.shape[0])
    written = bytes_at(out.ctypes.data, out.shape[0])
    for row in range(offsets.shape[0] - 1):
        root = roots[row]
        if root < roots[row + 1]:
            place = offsets[row]
            if nodes[root, FORM] < OBJECT:
                put_word(written, place, SCALAR)
                put_entry(nodes, root, written, place + WORD_BYTES)
                place += 2 * WORD_BYTES
            nodes[root, PLACE] = place
        for node in range(root, roots[row + 1]):
            if nodes[node, FORM] < OBJECT:
                put_leaf(nodes, node, plain, bits, written)
                continue
            twice = put_container(nodes, node, plain, keys, spare, written)
            if twice != SOUND:
                return twice
    return SOUND


@warmup
def _warm() -> None:
    tape = np.zeros((1, NODE_WORDS), np.int64)
    tape[0, FORM], tape[0, NEXT] = ARRAY, 1
    roots = np.array([0, 1])
    offsets = np.zeros(2, np.int64)
    measure_nodes(tape, roots, offsets)
    none = np.zeros(0, np.uint8)
    doubles, scratch = np.zeros(0, np.uint64), np.zeros((2, 1), np.int64)
    out = np.zeros(WORD_BYTES, np.uint8)
    build_documents(tape, roots, none, doubles, offsets, scratch, out)
