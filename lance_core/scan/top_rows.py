"""Which rows come first in an order: keys and addresses only, in bounded memory where few count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.scan.ordering import may_precede, sortable, sorted_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.scan.ordering import OrderBy

_SPARE_ROWS = 1 << 16


class TopRows:
    """The rows that come first of all that were offered, in order; ties by when they came.

    Parameters
    ----------
    order
        The columns to order by, at least one.
    most
        Rows to keep, at least one; None = all.
    spare_rows
        Rows to gather beside twice those that count before some are thrown away.
    """

    def __init__(
        self, order: Sequence[OrderBy], most: int | None, *, spare_rows: int = _SPARE_ROWS
    ) -> None:
        self._order = order
        self._most = most
        self._spare_rows = spare_rows
        self._keys: list[list[pa.Array]] = [[] for _ in order]
        self._addresses: list[NDArray[np.uint64]] = []
        self._num_rows = 0
        self._last: pa.Scalar | None = None

    def offer(self, values: Sequence[pa.Array], addresses: NDArray[np.uint64]) -> None:
        """Take note of rows.

        Parameters
        ----------
        values
            One array per column of the order.
        addresses
            Shape ``(n,)``: where the rows lie.
        """
        keys = [sortable(each) for each in values]
        if self._last is not None:
            positions = np.flatnonzero(
                may_precede(keys[0], self._last, self._order[0]).to_numpy(zero_copy_only=False)
            )
            if len(positions) < len(addresses):
                kept = pa.array(positions)
                keys = [key.take(kept) for key in keys]
                addresses = addresses[positions]
        for held, key in zip(self._keys, keys, strict=True):
            held.append(key)
        self._addresses.append(addresses)
        self._num_rows += len(addresses)
        if self._most is not None and self._num_rows > 2 * self._most + self._spare_rows:
            self._settle()

    def addresses(self) -> NDArray[np.uint64]:
        """Return where the rows lie, in order, shape ``(n,)``."""
        if self._num_rows == 0:
            return np.empty(0, np.uint64)
        self._settle()
        return self._addresses[0]

    def _settle(self) -> None:
        """Sort the rows, and forget those that do not count."""
        keys = [pa.concat_arrays(each) for each in self._keys]
        positions = sorted_positions(keys, self._order)[: self._most]
        kept = pa.array(positions)
        self._keys = [[key.take(kept)] for key in keys]
        self._addresses = [np.concatenate(self._addresses)[positions]]
        self._num_rows = len(positions)
        if self._num_rows == self._most:
            self._last = self._keys[0][0][-1]
