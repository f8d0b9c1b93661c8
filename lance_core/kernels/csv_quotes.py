"""Ends of rows of comma-separated values, where values in quotes may have line breaks in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROW_START, VALUE_START, IN_VALUE, QUOTED, AFTER_QUOTE, AFTER_RETURN = range(6)
"""What a byte stands in or after."""

_QUOTE, _NEWLINE, _RETURN = np.uint8(ord('"')), np.uint8(ord("\n")), np.uint8(ord("\r"))


@kernel
def next_row(
    block: NDArray[np.uint8], start: int, wanted: int, delimiter: int, state: int
) -> tuple[int, int]:
    """Find where a row begins.

    Parameters
    ----------
    block
        Shape ``(n,)``, uint8: a part of a file.
    start
        Where to begin reading in it.
    wanted
        The row begins there or after it; it may be beyond the block, or before ``start``.
    delimiter
        Byte between values.
    state
        Of the byte before ``start``.

    Returns
    -------
    tuple[int, int]
        The place after the line break that ends the row before, -1 where there is none in the
        block; and the state of the byte before it, or of the last one.

    Notes
    -----
    As pyarrow reads them: quotes count only at the beginning of a value, ``""`` in such a value is
    a quote, and empty lines are no rows. A row that ends by a carriage return alone ends no piece.
    """
    for place in range(start, len(block)):
        byte = block[place]
        if state == QUOTED:
            state = AFTER_QUOTE if byte == _QUOTE else QUOTED
        elif byte == _QUOTE:
            is_inner = state == IN_VALUE
            state = IN_VALUE if is_inner else QUOTED
        elif byte == delimiter:
            state = VALUE_START
        elif byte == _NEWLINE:
            is_row = state != ROW_START
            state = ROW_START
            if is_row and place + 1 >= wanted:
                return place + 1, state
        elif byte == _RETURN:
            state = ROW_START if state == ROW_START else AFTER_RETURN
        else:
            state = IN_VALUE
    return -1, state
