"""All keys of an FST in byte order, some at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.kernels.compile import kernel
from lance_core.kernels.text_fst import (
    DAMAGED,
    FINAL_VALUE,
    IS_FINAL,
    NODE_FIELDS,
    NUM,
    enter_node,
    input_of,
    target_of,
    value_of,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEXT = NODE_FIELDS
"""Which transition of an entered node is next, and the sum of the values on the way to it."""

SUM = NODE_FIELDS + 1
STEP_FIELDS = NODE_FIELDS + 2

NOT_STARTED = -1
"""Stands for the next transition of a node whose own key is not told yet."""

DONE = 0
MORE = 1
DEEPER = 2
"""What `walk_keys` ends with: all keys are told, the room for them is full, the stack is."""


@kernel
def start_walk(view: NDArray[np.uint8], root: int, stack: NDArray[np.int64]) -> bool:
    """Put the root on the stack; False if it does not fit."""
    stack[0, NEXT] = NOT_STARTED
    stack[0, SUM] = 0
    return enter_node(view, root, stack[0])


@kernel
def step_down(
    view: NDArray[np.uint8], stack: NDArray[np.int64], depth: int, key: NDArray[np.uint8]
) -> bool:
    """Enter the target of the next transition of the node on top; False if it does not fit."""
    node, child = stack[depth - 1], stack[depth]
    index = node[NEXT]
    node[NEXT] = index + 1
    key[depth - 1] = input_of(view, node, index)
    child[NEXT] = NOT_STARTED
    child[SUM] = node[SUM] + value_of(view, node, index)
    return enter_node(view, target_of(view, node, index), child)


@kernel
def walk_keys(
    view: NDArray[np.uint8],
    stack: NDArray[np.int64],
    depth: int,
    key: NDArray[np.uint8],
    most_steps: int,
    out: NDArray[np.uint8],
    ends: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Tell the next keys.

    Parameters
    ----------
    view
        The FST.
    stack, depth
        The nodes on the way, shape ``(most, STEP_FIELDS)``, and how many they are.
    key
        The bytes on the way, shape ``(most,)``.
    most_steps
        Nodes that are entered at most, so that the caller gets to look up.
    out, ends, numbers
        Receive the bytes of the keys one after another, where each ends, and its number.

    Returns
    -------
    tuple[int, int, int]
        ``DONE``, ``MORE``, ``DEEPER`` or ``DAMAGED``; the depth; and how many keys were told.
    """
    told, filled = 0, 0
    while depth > 0:
        node = stack[depth - 1]
        if node[NEXT] == NOT_STARTED:
            if node[IS_FINAL] == 1:
                if told == numbers.shape[0] or filled + depth - 1 > out.shape[0]:
                    return MORE, depth, told
                out[filled : filled + depth - 1] = key[: depth - 1]
                filled += depth - 1
                ends[told] = filled
                numbers[told] = node[SUM] + node[FINAL_VALUE]
                told += 1
            node[NEXT] = 0
        if node[NEXT] == node[NUM]:
            depth -= 1
            continue
        if depth == stack.shape[0]:
            return DEEPER, depth, told
        if most_steps == 0:
            return MORE, depth, told
        most_steps -= 1
        if not step_down(view, stack, depth, key):
            return DAMAGED, depth, told
        depth += 1
    return DONE, depth, told
