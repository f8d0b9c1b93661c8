"""Finding rows by the values of their key columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class KeyTable:
    """The keys of some rows, each distinct one with a number.

    Parameters
    ----------
    columns
        The key columns, of equal length.
    names
        Their names, for errors.

    Raises
    ------
    TypeMismatchError
        A column is of a nested type.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray], names: Sequence[str]) -> None:
        plain = [_plain(column, name) for column, name in zip(columns, names, strict=True)]
        self._names = tuple(names)
        self._values = [pc.unique(column).drop_null() for column in plain]
        self._combined: list[NDArray[np.int64]] = []
        numbers = _places(plain[0], self._values[0])
        for column, values in zip(plain[1:], self._values[1:], strict=True):
            pairs = _pairs(numbers, _places(column, values), len(values))
            self._combined.append(np.unique(pairs[pairs >= 0]))
            numbers = _found(pairs, self._combined[-1])
        self.numbers = numbers
        """Number of each row's key, shape ``(n,)``; -1 where a column of it is null."""

    @property
    def num_keys(self) -> int:
        """Distinct keys."""
        return int(self.numbers.max(initial=-1)) + 1

    def find(self, columns: Sequence[pa.Array]) -> NDArray[np.int64]:
        """Return the number of each key of other rows, shape ``(m,)``; -1 of one not there."""
        first, *others = [
            _plain(column, name) for column, name in zip(columns, self._names, strict=True)
        ]
        numbers = _places(first, self._values[0])
        for column, values, combined in zip(others, self._values[1:], self._combined, strict=True):
            numbers = _found(_pairs(numbers, _places(column, values), len(values)), combined)
        return numbers


def _plain(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = (
            pa.concat_arrays(column.chunks) if column.num_chunks > 0 else column.combine_chunks()
        )
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type):
        raise TypeMismatchError(
            f"column {name!r} is {column.type}; keys are numbers, texts, times, truths or binary"
        )
    # the lookup knows no half precision
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _places(column: pa.Array, values: pa.Array) -> NDArray[np.int64]:
    """Return where each value stands among distinct ones, -1 for null and for others."""
    places = pc.index_in(column, value_set=values, skip_nulls=True).fill_null(-1)
    numbers: NDArray[np.int64] = places.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _pairs(
    first: NDArray[np.int64], second: NDArray[np.int64], num_second: int
) -> NDArray[np.int64]:
    """Return one number per pair; both are below 2**31, as arrays have no more rows."""
    return np.where((first < 0) | (second < 0), -1, first * num_second + second)


def _found(pairs: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each pair stands among ascending known ones, -1 for others."""
    places = np.searchsorted(known, pairs)
    is_known = places < len(known)
    is_known[is_known] = known[places[is_known]] == pairs[is_known]
    return np.where(is_known, places, -1)
