"""Zipping entries: control word, then the value (file format, section 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def _put(out: NDArray[np.uint8], position: int, number: int, width: int) -> None:
    """Write ``number`` in ``width`` bytes, low byte first."""
    for byte in range(width):
        out[position + byte] = (number >> (8 * byte)) & 0xFF


@kernel
def zip_entries(
    controls: NDArray[np.uint32],
    control_bytes: int,
    bits_def: int,
    max_visible: int,
    value_address: int,
    value_bytes: int,
    length_bytes: int,
    offsets: NDArray[np.int64],
    out: NDArray[np.uint8],
    entries: NDArray[np.int64],
) -> None:
    """Write entries one after another.

    Parameters
    ----------
    controls
        Shape ``(entries,)``; the control words, also where they take no bytes.
    control_bytes, bits_def
        Width of the control word (0, 1, 2 or 4) and how many of its low bits are the definition.
    max_visible
        Entries with a higher definition have no value slot.
    value_address
        Where the values lie, one after another.
    value_bytes, length_bytes
        Width of a value, or 0 and the width (4 or 8) of the length before each one; with
        lengths, only entries of definition 0 have a value.
    offsets
        With lengths, shape ``(visible entries + 1,)``; where each value begins.
    out
        Exactly the room that the entries take.
    entries
        Shape ``(entries + 1,)``; receives where each begins, and where the last one ends.
    """
    definition_mask = (np.int64(1) << np.int64(bits_def)) - 1
    position = 0
    visible = 0
    for entry in range(controls.shape[0]):
        entries[entry] = position
        _put(out, position, controls[entry], control_bytes)
        position += control_bytes
        definition = controls[entry] & definition_mask
        if definition > max_visible:
            continue
        start = visible * value_bytes
        size = value_bytes
        if length_bytes > 0:
            start = offsets[visible]
            size = 0
            if definition == 0:
                size = offsets[visible + 1] - start
                _put(out, position, size, length_bytes)
                position += length_bytes
        out[position : position + size] = bytes_at(value_address + start, size)
        position += size
        visible += 1
    entries[controls.shape[0]] = position


@warmup
def _warm() -> None:
    out = np.empty(0, np.uint8)
    ends = np.zeros(1, np.int64)
    zip_entries(np.empty(0, np.uint32), 1, 1, 1, 0, 0, 4, ends, out, ends)
