"""Where a file of comma-separated values can be cut: between rows, never in a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.csv_quotes import ROW_START, next_row

if TYPE_CHECKING:
    from collections.abc import Callable

_BLOCK_BYTES = 4 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class RowStarts:
    """Finds beginnings of rows from the front to the back of a file, which is read once.

    A line break alone does not tell: it may be part of a value in quotes, and what follows may look
    like a row. Only the bytes from the beginning on tell which quotes open a value.

    Parameters
    ----------
    read
        Returns the bytes between two places.
    size
        Bytes of the file.
    delimiter
        What stands between values, one byte.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int, delimiter: str) -> None:
        self._read = read
        self._size = size
        self._delimiter = ord(delimiter)
        self._state = ROW_START
        self._block = np.zeros(0, np.uint8)
        self._block_start = 0
        self._at = 0

    def at_or_after(self, wanted: int) -> int:
        """Return where the first row begins at a byte or after it; the size where none does.

        Parameters
        ----------
        wanted
            Not before the place that was returned last; that is returned again where it is.
        """
        if self._at >= wanted:
            return self._at
        while self._at < self._size:
            if self._at == self._block_start + len(self._block):
                self._load()
            base = self._block_start
            found, self._state = next_row(
                self._block, self._at - base, wanted - base, self._delimiter, self._state
            )
            self._at = base + (len(self._block) if found < 0 else found)
            if found >= 0:
                break
        return self._at

    def _load(self) -> None:
        start = self._at
        data = self._read(start, min(start + _BLOCK_BYTES, self._size))
        self._block, self._block_start = np.frombuffer(data, np.uint8), start
        if start == 0 and data.startswith(_BYTE_ORDER_MARK):
            self._at = len(_BYTE_ORDER_MARK)
