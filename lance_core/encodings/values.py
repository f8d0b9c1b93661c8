"""Decoded values before they get an Arrow type.

Every class has ``num_values`` and ``validity`` (shape ``(n,)`` bool, or None when all are valid;
the value under a null is undefined), and selects rows by position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.gather import select_values, selected_offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.place import Place

    Validity = NDArray[np.bool_] | None

BOOL_BITS = 1
_WORD_BYTES = frozenset({1, 2, 4, 8})


def _part(validity: Validity, start: int, stop: int) -> Validity:
    return None if validity is None else validity[start:stop]


def _bytes_of(validity: Validity) -> int:
    return 0 if validity is None else validity.nbytes


def _pick(validity: Validity, rows: NDArray[np.int64]) -> Validity:
    return None if validity is None else validity[rows]


@dataclass(frozen=True, slots=True, eq=False)
class FixedWidth:
    """``num_values`` values of ``bits`` each: a multiple of 8, which may be 0, or 1 for booleans.

    ``data`` has shape ``(n * bits / 8,)``; booleans take a whole byte of 0 or 1 each.
    """

    data: NDArray[np.uint8]
    bits: int
    num_values: int
    validity: Validity = None

    @property
    def value_bytes(self) -> int:
        """Bytes that one value takes in ``data``."""
        return 1 if self.bits == BOOL_BITS else self.bits // 8

    @property
    def nbytes(self) -> int:
        """Memory of the values."""
        return self.data.nbytes + _bytes_of(self.validity)

    def integers(self) -> NDArray[np.unsignedinteger]:
        """Return the values as unsigned integers of 8, 16, 32 or 64 bits."""
        return self.data.view(np.dtype(f"u{self.value_bytes}"))

    def slice(self, start: int, stop: int) -> FixedWidth:
        """Return the values ``[start, stop)``, without a copy."""
        data = self.data[start * self.value_bytes : stop * self.value_bytes]
        return FixedWidth(data, self.bits, stop - start, _part(self.validity, start, stop))

    def take(self, rows: NDArray[np.int64]) -> FixedWidth:
        """Return the values at ``rows``, in that order."""
        if self.value_bytes in _WORD_BYTES:  # whole words are copied several times faster
            data = self.integers()[rows].view(np.uint8)
        else:
            data = self.data.reshape(self.num_values, self.value_bytes)[rows].reshape(-1)
        return FixedWidth(data, self.bits, rows.shape[0], _pick(self.validity, rows))


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """Byte strings: ``offsets`` of shape ``(n + 1,)`` into ``data``, checked, ascending."""

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    validity: Validity = None

    @property
    def num_values(self) -> int:
        """Number of byte strings."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Memory of the values."""
        return self.offsets.nbytes + self.data.nbytes + _bytes_of(self.validity)

    def slice(self, start: int, stop: int) -> Variable:
        """Return the values ``[start, stop)``, without a copy of their bytes."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - first
        return Variable(offsets, self.data[first:last], _part(self.validity, start, stop))

    def take(self, rows: NDArray[np.int64]) -> Variable:
        """Return the values at ``rows``, in that order."""
        rows = np.ascontiguousarray(rows)
        offsets = np.empty(rows.shape[0] + 1, np.int64)
        if selected_offsets(self.offsets, rows, offsets) != DONE:
            raise IndexError("a row that does not exist")
        data = np.empty(int(offsets[-1]), np.uint8)
        select_values(self.offsets, self.data, rows, offsets, data)
        return Variable(offsets, data, _pick(self.validity, rows))


@dataclass(frozen=True, slots=True, eq=False)
class FixedSizeLists:
    """Lists of ``dimension`` elements each; ``items`` holds ``n * dimension``."""

    items: Values
    dimension: int
    num_values: int
    validity: Validity = None

    @property
    def nbytes(self) -> int:
        """Memory of the values."""
        return self.items.nbytes + _bytes_of(self.validity)

    def slice(self, start: int, stop: int) -> FixedSizeLists:
        """Return the lists ``[start, stop)``, without a copy."""
        items = self.items.slice(start * self.dimension, stop * self.dimension)
        validity = _part(self.validity, start, stop)
        return FixedSizeLists(items, self.dimension, stop - start, validity)

    def take(self, rows: NDArray[np.int64]) -> FixedSizeLists:
        """Return the lists at ``rows``, in that order."""
        elements = rows[:, None] * self.dimension + np.arange(self.dimension)
        return FixedSizeLists(
            self.items.take(elements.reshape(-1)),
            self.dimension,
            rows.shape[0],
            _pick(self.validity, rows),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Indexed:
    """Positions in a dictionary; those of valid values are inside it."""

    indices: NDArray[np.int64]
    items: Values
    validity: Validity = None

    @property
    def num_values(self) -> int:
        """Number of positions."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Memory of the values."""
        return self.indices.nbytes + self.items.nbytes + _bytes_of(self.validity)

    def slice(self, start: int, stop: int) -> Indexed:
        """Return the positions ``[start, stop)``, without a copy."""
        return Indexed(self.indices[start:stop], self.items, _part(self.validity, start, stop))

    def take(self, rows: NDArray[np.int64]) -> Indexed:
        """Return the positions at ``rows``, in that order."""
        return Indexed(self.indices[rows], self.items, _pick(self.validity, rows))


@dataclass(frozen=True, slots=True, eq=False)
class AllNull:
    """``num_values`` nulls of any type."""

    num_values: int

    @property
    def validity(self) -> Validity:
        """All False."""
        return np.zeros(self.num_values, np.bool_)

    @property
    def nbytes(self) -> int:
        """Memory of the values."""
        return 0

    def slice(self, start: int, stop: int) -> AllNull:
        """Return as many nulls as the range has."""
        return AllNull(stop - start)

    def take(self, rows: NDArray[np.int64]) -> AllNull:
        """Return as many nulls as ``rows``."""
        return AllNull(rows.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Several values per row, one of each child, kept together."""

    children: tuple[Values, ...]
    num_values: int
    validity: Validity = None

    @property
    def nbytes(self) -> int:
        """Memory of the values."""
        return sum(child.nbytes for child in self.children) + _bytes_of(self.validity)

    def slice(self, start: int, stop: int) -> Packed:
        """Return the rows ``[start, stop)``, without a copy."""
        children = tuple(child.slice(start, stop) for child in self.children)
        return Packed(children, stop - start, _part(self.validity, start, stop))

    def take(self, rows: NDArray[np.int64]) -> Packed:
        """Return the rows at ``rows``, in that order."""
        return Packed(
            tuple(child.take(rows) for child in self.children),
            rows.shape[0],
            _pick(self.validity, rows),
        )


Values = FixedWidth | Variable | FixedSizeLists | Indexed | AllNull | Packed


def fixed_width(values: Values, bits: int) -> FixedWidth:
    """Return ``values``, which an encoder takes only as values of ``bits``."""
    if isinstance(values, FixedWidth) and values.bits == bits:
        return values
    message = f"{type(values).__name__} was to be encoded as values of {bits} bits"
    raise TypeError(message)


def variable(values: Values) -> Variable:
    """Return ``values``, which an encoder takes only as byte strings."""
    if isinstance(values, Variable):
        return values
    message = f"{type(values).__name__} was to be encoded as byte strings"
    raise TypeError(message)


def with_validity(values: Values, validity: NDArray[np.bool_]) -> Values:
    """Return ``values`` with those nulls, and none other at this level."""
    if isinstance(values, AllNull) or bool(validity.all()):
        return values
    return replace(values, validity=validity)


def concat_values(parts: Sequence[Values], place: Place) -> Values:
    """Join values of one form and width, numbers or byte strings, without nulls.

    Raises
    ------
    UnsupportedFeatureError
        The parts have different or other forms.
    """
    if len(parts) == 1:
        return parts[0]
    numbers = [part for part in parts if isinstance(part, FixedWidth)]
    if len(numbers) == len(parts) and len({part.bits for part in numbers}) == 1:
        data = np.concatenate([part.data for part in numbers])
        return FixedWidth(data, numbers[0].bits, sum(part.num_values for part in numbers))
    strings = [part for part in parts if isinstance(part, Variable)]
    if len(strings) != len(parts) or len(parts) == 0:
        raise place.unsupported("dictionaries of different forms")
    sizes = np.concatenate([np.diff(part.offsets) for part in strings])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    spans = [part.data[part.offsets[0] : part.offsets[-1]] for part in strings]
    return Variable(offsets, np.concatenate(spans))


def constant_rows(values: Values, num_values: int) -> Values:
    """Repeat the one value of ``values``."""
    return values.take(np.zeros(num_values, np.int64))
