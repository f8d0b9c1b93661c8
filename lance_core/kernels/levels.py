"""Peeling layers off repetition and definition levels (file format, section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def peel_lists(
    repetition: NDArray[np.uint16],
    definition: NDArray[np.uint16],
    base: int,
    highest: int,
    empty: int,
    offsets: NDArray[np.int64],
    valid: NDArray[np.bool_],
    outer_repetition: NDArray[np.uint16],
    outer_definition: NDArray[np.uint16],
) -> int:
    """Find the lists of one layer and the levels of the layers around it.

    Parameters
    ----------
    repetition
        Shape ``(n,)``; 0 continues a list of this layer.
    definition
        Shape ``(n,)``, or empty where there are no definition levels: all are 0.
    base, highest, empty
        Levels up to ``base`` mean a child, ``empty`` an empty list (0 if there is none such),
        others up to ``highest`` null lists; higher ones belong to layers around it.
    offsets, valid
        Room for ``b + 1`` and ``b`` lists where ``b`` counts the levels that are not 0; receive
        where the children of each list begin, and whether it is valid.
    outer_repetition, outer_definition
        Shape ``(b,)``; receive the levels that begin lists, repetition less by one.

    Returns
    -------
    int
        The number of lists.
    """
    children = 0
    lists = 0
    begun = 0
    for index in range(repetition.shape[0]):
        level = np.int64(0)
        if definition.shape[0] > 0:
            level = np.int64(definition[index])
        if repetition[index] == 0:
            children += 1
            continue
        if level <= highest:
            offsets[lists] = children
            valid[lists] = level <= base or level == empty
            lists += 1
            if level <= base:
                children += 1
        outer_repetition[begun] = repetition[index] - 1
        if definition.shape[0] > 0:
            outer_definition[begun] = level
        begun += 1
    offsets[lists] = children
    return lists


@kernel
def peel_items(
    definition: NDArray[np.uint16],
    lists_at_level: NDArray[np.int64],
    lists_passed: int,
    levels_passed: int,
    valid: NDArray[np.bool_],
) -> int:
    """Find the slots of an item layer among levels, and which of them are valid.

    Parameters
    ----------
    definition
        Shape ``(n,)``.
    lists_at_level
        List layers up to the layer that hands a level out; the last entry is for higher levels.
    lists_passed, levels_passed
        List layers and levels below this layer.
    valid
        Shape ``(n,)``; receives the validity of each slot.

    Returns
    -------
    int
        The number of slots.
    """
    last = lists_at_level.shape[0] - 1
    slots = 0
    for index in range(definition.shape[0]):
        level = min(np.int64(definition[index]), last)
        if lists_at_level[level] <= lists_passed:
            valid[slots] = level <= levels_passed
            slots += 1
    return slots


@warmup
def _warm() -> None:
    levels = np.empty(0, np.uint16)
    flags = np.empty(0, np.bool_)
    peel_lists(levels, levels, 0, 0, 0, np.zeros(1, np.int64), flags, levels, levels)
    peel_items(levels, np.zeros(1, np.int64), 0, 0, flags)
