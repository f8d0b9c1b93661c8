"""Pages that can be used where they lie in the file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FixedWidthPage:
    """Rows ``[first_row, first_row + num_rows)``, raw and contiguous from byte ``offset``.

    ``bits_per_value`` is the width of one row, a multiple of 8; there are no nulls.
    """

    first_row: int
    num_rows: int
    offset: int
    bits_per_value: int
