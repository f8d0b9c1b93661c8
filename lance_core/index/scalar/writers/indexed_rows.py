"""Rows on their way into an index: what they hold, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_NAME_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class IndexedRows:
    """Some rows of a column.

    Parameters
    ----------
    values
        One value for each of ``n`` rows, null ones among them.
    names
        Shape ``(n,)``: row addresses, or row ids where the index stores these.
    """

    values: pa.Array
    names: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def nbytes(self) -> int:
        """Bytes of values and names."""
        return int(self.values.nbytes) + len(self) * _NAME_BYTES

    def part(self, start: int, stop: int) -> IndexedRows:
        """Return the rows ``[start, stop)``, sharing memory."""
        return IndexedRows(self.values.slice(start, stop - start), self.names[start:stop])

    def cut(self, most_bytes: int) -> Iterator[IndexedRows]:
        """Yield the rows in parts of about so many bytes, of at least one row."""
        step = max(len(self) * most_bytes // max(self.nbytes, 1), 1)
        for start in range(0, len(self), step):
            yield self.part(start, min(start + step, len(self)))

    def take(self, positions: NDArray[np.int64]) -> IndexedRows:
        """Return the rows at ``positions``."""
        return IndexedRows(self.values.take(pa.array(positions)), self.names[positions])

    def split_nulls(self) -> tuple[NDArray[np.uint64], IndexedRows]:
        """Return the names of the rows without a value, and the other rows."""
        if self.values.null_count == 0:
            return np.zeros(0, np.uint64), self
        is_null = self.values.is_null().to_numpy(zero_copy_only=False)
        return self.names[is_null], IndexedRows(self.values.drop_null(), self.names[~is_null])


def joined(pieces: Sequence[IndexedRows]) -> IndexedRows:
    """Return the rows of some pieces, of which there is at least one, in one."""
    if len(pieces) == 1:
        return pieces[0]
    values = pa.concat_arrays([piece.values for piece in pieces])
    return IndexedRows(values, np.concatenate([piece.names for piece in pieces]))
