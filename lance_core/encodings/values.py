"""Decoded values before they get an Arrow type.

Every class has ``num_values`` and ``validity`` (shape ``(n,)`` bool, or None when all are valid;
the value under a null is undefined), and selects rows by position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.gather import select_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Validity = NDArray[np.bool_] | None

BOOL_BITS = 1


def _pick(validity: Validity, rows: NDArray[np.int64]) -> Validity:
    return None if validity is None else validity[rows]


@dataclass(frozen=True, slots=True, eq=False)
class FixedWidth:
    """``num_values`` values of ``bits`` each: a multiple of 8, or 1 for booleans.

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

    def integers(self) -> NDArray[np.unsignedinteger]:
        """Return the values as unsigned integers of 8, 16, 32 or 64 bits."""
        return self.data.view(np.dtype(f"u{self.value_bytes}"))

    def take(self, rows: NDArray[np.int64]) -> FixedWidth:
        """Return the values at ``rows``, in that order."""
        table = self.data.reshape(self.num_values, self.value_bytes)
        return FixedWidth(
            table[rows].reshape(-1), self.bits, rows.shape[0], _pick(self.validity, rows)
        )


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

    def take(self, rows: NDArray[np.int64]) -> Variable:
        """Return the values at ``rows``, in that order."""
        offsets = np.zeros(rows.shape[0] + 1, np.int64)
        np.cumsum(self.offsets[rows + 1] - self.offsets[rows], out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        select_values(self.offsets, self.data, np.ascontiguousarray(rows), offsets, data)
        return Variable(offsets, data, _pick(self.validity, rows))


@dataclass(frozen=True, slots=True, eq=False)
class FixedSizeLists:
    """Lists of ``dimension`` elements each; ``items`` holds ``n * dimension``."""

    items: Values
    dimension: int
    num_values: int
    validity: Validity = None

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

    def take(self, rows: NDArray[np.int64]) -> AllNull:
        """Return as many nulls as ``rows``."""
        return AllNull(rows.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Several values per row, one of each child, kept together."""

    children: tuple[Values, ...]
    num_values: int
    validity: Validity = None

    def take(self, rows: NDArray[np.int64]) -> Packed:
        """Return the rows at ``rows``, in that order."""
        return Packed(
            tuple(child.take(rows) for child in self.children),
            rows.shape[0],
            _pick(self.validity, rows),
        )


Values = FixedWidth | Variable | FixedSizeLists | Indexed | AllNull | Packed


def with_validity(values: Values, validity: NDArray[np.bool_]) -> Values:
    """Return ``values`` with those nulls, and none other at this level."""
    if isinstance(values, AllNull) or bool(validity.all()):
        return values
    return replace(values, validity=validity)


def constant_rows(values: Values, num_values: int) -> Values:
    """Repeat the one value of ``values``."""
    return values.take(np.zeros(num_values, np.int64))
