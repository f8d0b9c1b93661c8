"""Keys of an FST within an edit distance of a text, in byte order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.text_fst import (
    DAMAGED,
    FINAL_VALUE,
    FOOTER_BYTES,
    HEADER_BYTES,
    IS_FINAL,
    NUM,
)
from lance_core.kernels.text_fst_walk import (
    NEXT,
    NOT_STARTED,
    STEP_FIELDS,
    SUM,
    start_walk,
    step_down,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHARS = STEP_FIELDS
"""Whole characters on the way to a node, the bytes that the next one lacks, and its bits so far."""

LACKING = STEP_FIELDS + 1
BITS = STEP_FIELDS + 2
FUZZY_FIELDS = STEP_FIELDS + 3

_CHAR_BYTES = 4
_LEAD_OF_TWO = 0xC0
_LEAD_OF_THREE = 0xE0
_LEAD_OF_FOUR = 0xF0


@kernel
def read_byte(parent: NDArray[np.int64], byte: int, child: NDArray[np.int64]) -> bool:
    """Take one more byte of UTF-8 into account; True if it ends a character."""
    child[CHARS] = parent[CHARS]
    if parent[LACKING] > 0:
        child[LACKING] = parent[LACKING] - 1
        child[BITS] = parent[BITS] << 6 | (byte & 63)
    elif byte < _LEAD_OF_TWO:
        child[LACKING] = 0
        child[BITS] = byte
    else:
        child[LACKING] = 1 + (byte >= _LEAD_OF_THREE) + (byte >= _LEAD_OF_FOUR)
        child[BITS] = byte & (63 >> child[LACKING])
    child[CHARS] += child[LACKING] == 0
    return bool(child[LACKING] == 0)


@kernel
def next_row(
    text: NDArray[np.int64], char: int, above: NDArray[np.int64], row: NDArray[np.int64]
) -> int:
    """Fill in the edit distances of the text's beginnings to one more character.

    Returns the least of them: no key that goes on from here is nearer.
    """
    row[0] = above[0] + 1
    least = row[0]
    for at in range(text.shape[0]):
        kept = above[at] + (text[at] != char)
        row[at + 1] = min(kept, above[at + 1] + 1, row[at] + 1)
        least = min(least, row[at + 1])
    return least  # type: ignore[no-any-return]


@kernel
def may_go_on(
    text: NDArray[np.int64],
    num_fixed: int,
    distance: int,
    rows: NDArray[np.int64],
    node: NDArray[np.int64],
) -> bool:
    """Tell whether keys that go on from a node can be near enough; it has ended a character."""
    chars = node[CHARS]
    if chars <= num_fixed and text[chars - 1] != node[BITS]:
        return False
    return next_row(text, node[BITS], rows[chars - 1], rows[chars]) <= distance


@kernel
def is_near(
    text: NDArray[np.int64],
    num_fixed: int,
    distance: int,
    rows: NDArray[np.int64],
    node: NDArray[np.int64],
) -> bool:
    """Tell whether the key that ends in a node is one that was asked for."""
    if node[IS_FINAL] == 0 or node[LACKING] > 0 or node[CHARS] < num_fixed:
        return False
    return bool(rows[node[CHARS], text.shape[0]] <= distance)


@kernel
def find_near_keys(
    view: NDArray[np.uint8],
    root: int,
    text: NDArray[np.int64],
    num_fixed: int,
    distance: int,
    most_steps: int,
    out: NDArray[np.uint8],
    lengths: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> int:
    """Find the first keys within an edit distance (of Unicode scalars; no transpositions).

    Parameters
    ----------
    view, root
        The FST and the address of its root.
    text
        The code points, shape ``(n,)``.
    num_fixed
        Characters at the beginning that must be the same, at most ``n``.
    distance
        Insertions, deletions and replacements at most.
    most_steps
        Nodes that are entered at most.
    out, lengths, numbers
        Receive the bytes of each key, shape ``(most, longest)``, its length and its number.
        ``longest`` is ``4 * (n + distance + 1)``.

    Returns
    -------
    int
        How many keys were found, or ``DAMAGED``, also where there are more steps.
    """
    longest = out.shape[1]
    stack = np.zeros((longest + 1, FUZZY_FIELDS), np.int64)
    key = np.zeros(longest, np.uint8)
    rows = np.zeros((longest // _CHAR_BYTES + 1, text.shape[0] + 1), np.int64)
    rows[0] = np.arange(text.shape[0] + 1)
    if not start_walk(view, root, stack):
        return DAMAGED
    depth, found = 1, 0
    while depth > 0 and found < numbers.shape[0]:
        node = stack[depth - 1]
        if node[NEXT] == NOT_STARTED:
            node[NEXT] = 0
            if is_near(text, num_fixed, distance, rows, node):
                out[found, : depth - 1] = key[: depth - 1]
                lengths[found] = depth - 1
                numbers[found] = node[SUM] + node[FINAL_VALUE]
                found += 1
        if node[NEXT] == node[NUM]:
            depth -= 1
            continue
        most_steps -= 1
        if most_steps < 0 or not step_down(view, stack, depth, key):
            return DAMAGED
        child = stack[depth]
        if not read_byte(node, int(key[depth - 1]), child) or may_go_on(
            text, num_fixed, distance, rows, child
        ):
            depth += 1
    return found


@warmup
def warm() -> None:
    """Compile or load the kernels of this module."""
    find_near_keys(
        np.zeros(HEADER_BYTES + FOOTER_BYTES, np.uint8),
        0,
        np.zeros(1, np.int64),
        0,
        1,
        1,
        np.zeros((1, 12), np.uint8),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
    )
