"""Taking zipped entries apart: control word, then the value (file format, section 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.gather import offset_at
from lance_core.kernels.memory import bytes_at, pointer_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def _control_word(address: int, width: int) -> int:
    word = np.int64(0)
    read = carray(pointer_at(address), width, np.uint8)
    for byte in range(width):
        word |= np.int64(read[byte]) << np.int64(8 * byte)
    return word  # type: ignore[return-value]  # a scalar in kernels


@kernel
def unzip(
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    control_bytes: int,
    bits_def: int,
    max_visible: int,
    value_bytes: int,
    length_bytes: int,
    controls: NDArray[np.uint32],
    value_addresses: NDArray[np.int64],
    value_sizes: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> int:
    """Find the entries of several runs of whole entries.

    Called twice: first with empty ``controls`` and ``value_*`` to learn how many there are.

    Parameters
    ----------
    addresses, sizes
        Shape ``(n,)``; where each run lies and its bytes.
    control_bytes, bits_def
        Width of the control word (0, 1, 2 or 4) and how many of its low bits are the definition.
    max_visible
        Entries with a higher definition have no value slot.
    value_bytes, length_bytes
        Width of a value, or 0 and the width (4 or 8) of the length before each one; with
        lengths, only entries of definition 0 have a value.
    controls
        Shape ``(entries,)`` or empty; receives the control words.
    value_addresses, value_sizes
        Shape ``(visible entries,)`` or empty; receive where the values lie; size 0 for nulls.
    totals
        Shape ``(2,)``; receives the numbers of entries and of visible ones.

    Returns
    -------
    int
        ``DONE``, or the first run that ends inside an entry.
    """
    definition_mask = (np.int64(1) << np.int64(bits_def)) - 1
    entries = 0
    visible = 0
    for run in range(addresses.shape[0]):
        at = addresses[run]
        end = at + sizes[run]
        while at < end:
            if at + control_bytes > end:
                return run
            word = _control_word(at, control_bytes)
            definition = word & definition_mask
            at += control_bytes
            if entries < controls.shape[0]:
                controls[entries] = word
            entries += 1
            if definition > max_visible:
                continue
            size = value_bytes
            if length_bytes > 0 and definition == 0:
                if at + length_bytes > end:
                    return run
                size = offset_at(at, 0, length_bytes)
                at += length_bytes
            if size < 0 or size > end - at:
                return run
            if visible < value_sizes.shape[0]:
                value_addresses[visible] = at
                value_sizes[visible] = size
            visible += 1
            at += size
    totals[0] = entries
    totals[1] = visible
    return DONE


@kernel
def strip_controls(
    addresses: NDArray[np.int64],
    counts: NDArray[np.int64],
    control_bytes: int,
    value_bytes: int,
    controls: NDArray[np.uint32],
    out: NDArray[np.uint8],
) -> None:
    """Split entries of one fixed width, all visible, into control words and values.

    ``counts`` holds the entries at each address, ``controls`` and ``out`` have room for all.
    """
    entry = 0
    for run in range(addresses.shape[0]):
        at = addresses[run]
        for _ in range(counts[run]):
            controls[entry] = _control_word(at, control_bytes)
            at += control_bytes
            out[entry * value_bytes : (entry + 1) * value_bytes] = bytes_at(at, value_bytes)
            at += value_bytes
            entry += 1


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    controls = np.empty(0, np.uint32)
    unzip(none, none, 1, 1, 1, 0, 4, controls, none, none, np.zeros(2, np.int64))
    strip_controls(none, none, 1, 1, controls, np.empty(0, np.uint8))
