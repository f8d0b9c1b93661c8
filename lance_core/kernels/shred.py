"""Building repetition and definition levels from the outside inwards, one layer at a time.

Definition levels are *codes* here: 0 for what is there, and two numbers of its own for each layer,
null and empty, counted from the outside. A leaf renumbers them once it knows which occur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def mark_nulls(
    definition: NDArray[np.uint16],
    has_slot: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    code: int,
) -> int:
    """Mark the nulls of an item layer.

    Parameters
    ----------
    definition
        Shape ``(levels,)``; codes, changed in place where a slot is null by itself.
    has_slot
        Shape ``(codes,)``; whether an entry of that code has a slot in this layer.
    valid
        Shape ``(slots,)``; changed in place: a slot is null too if something around it is.
    code
        The code of a null of this layer.

    Returns
    -------
    int
        How many slots are null by themselves.
    """
    slot = 0
    count = 0
    for entry in range(definition.shape[0]):
        if not has_slot[definition[entry]]:
            continue
        if definition[entry] != 0:
            valid[slot] = False
        elif not valid[slot]:
            definition[entry] = code
            count += 1
        slot += 1
    return count


@kernel
def measure_lists(
    definition: NDArray[np.uint16],
    has_slot: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    valid: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> None:
    """Count what a list layer holds, before ``expand_lists``.

    Parameters
    ----------
    definition, has_slot
        As ``mark_nulls``.
    offsets, valid
        Shapes ``(slots + 1,)`` and ``(slots,)``; the lists.
    counts
        Shape ``(5,)``; receives levels with the elements spelt out, elements of valid lists, null
        lists, empty lists, and lists that a null struct hides.
    """
    slot = 0
    levels = elements = nulls = empties = hidden = 0
    for entry in range(definition.shape[0]):
        code = definition[entry]
        size = 0
        if has_slot[code]:
            if code == 0 and valid[slot]:
                size = offsets[slot + 1] - offsets[slot]
                empties += size == 0
            elif code == 0:
                nulls += 1
            else:
                hidden += 1
            slot += 1
        elements += size
        levels += max(size, 1)
    counts[0] = levels
    counts[1] = elements
    counts[2] = nulls
    counts[3] = empties
    counts[4] = hidden


@kernel
def expand_lists(
    repetition: NDArray[np.uint16],
    definition: NDArray[np.uint16],
    has_slot: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    valid: NDArray[np.bool_],
    null_code: int,
    new_repetition: NDArray[np.uint16],
    new_definition: NDArray[np.uint16],
) -> None:
    """Spell out the elements of a list layer.

    Parameters
    ----------
    repetition, definition, has_slot, offsets, valid
        As ``measure_lists``; ``repetition`` has one entry per level.
    null_code
        The code of a null list; the one behind it is that of an empty list.
    new_repetition, new_definition
        Shape ``(counts[0],)``; hold what elements have that do not begin a list, and are changed
        for the others.
    """
    slot = 0
    position = 0
    for entry in range(definition.shape[0]):
        code = definition[entry]
        new_repetition[position] = repetition[entry]
        new_definition[position] = code
        size = 1
        if has_slot[code]:
            if code == 0:
                if not valid[slot]:
                    new_definition[position] = null_code
                elif offsets[slot + 1] == offsets[slot]:
                    new_definition[position] = null_code + 1
                else:
                    size = offsets[slot + 1] - offsets[slot]
            slot += 1
        position += size


@kernel
def visible_elements(
    definition: NDArray[np.uint16],
    has_slot: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    valid: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """Write the positions of the elements of lists that are valid and below nothing null.

    Arguments as ``measure_lists``; ``out`` has shape ``(counts[1],)``.
    """
    slot = 0
    position = 0
    for entry in range(definition.shape[0]):
        if not has_slot[definition[entry]]:
            continue
        if definition[entry] == 0 and valid[slot]:
            for element in range(offsets[slot], offsets[slot + 1]):
                out[position] = element
                position += 1
        slot += 1


@kernel
def bound_levels(
    definition: NDArray[np.uint16],
    max_visible: int,
    bounds: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Find where the levels of chunks of values begin: behind the last value of the one before.

    Parameters
    ----------
    definition
        Shape ``(levels,)``; as files have them, not codes.
    max_visible
        Entries of a higher level have no value.
    bounds
        Shape ``(chunks + 1,)``; ascending from 0 to the number of values.
    out
        As ``bounds``; receives 0, the bounds between chunks, and the number of levels.
    """
    position = 0
    num_values = 0
    for chunk in range(bounds.shape[0] - 1):
        while num_values < bounds[chunk]:
            num_values += definition[position] <= max_visible
            position += 1
        out[chunk] = position
    out[bounds.shape[0] - 1] = definition.shape[0]


@warmup
def _warm() -> None:
    levels = np.zeros(1, np.uint16)
    slots = np.ones(1, np.bool_)
    offsets = np.zeros(2, np.int64)
    mark_nulls(levels, slots, slots, 1)
    measure_lists(levels, slots, offsets, slots, np.zeros(5, np.int64))
    expand_lists(levels, levels, slots, offsets, slots, 1, levels.copy(), levels.copy())
    visible_elements(levels, slots, offsets, slots, np.empty(0, np.int64))
    bound_levels(levels, 0, offsets, offsets.copy())
