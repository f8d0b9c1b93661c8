"""What a zone map knows of the values in each zone, and which zones may hold what is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.index.scalar.keys import keys_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.scalar.key_ranges import KeyRanges
    from lance_core.index.scalar.keys import Keys

_BITS_IN_BYTE = 8


@dataclass(frozen=True, slots=True, eq=False)
class ZoneBounds:
    """Least and greatest value of each zone.

    Parameters
    ----------
    known
        Shape ``(n,)``: numbers of the zones whose bounds are known.
    minima, maxima
        The ``n`` bounds of these; NaNs lie outside.
    is_unknown
        Shape ``(z,)``: whether a zone may hold any values: its writer kept no bounds.
    has_nans
        Shape ``(z,)``: whether a zone has NaNs, of either sign.
    nans
        All NaNs, as least and greatest keys of two ranges; None for columns that cannot hold any.
    """

    known: NDArray[np.int64]
    minima: Keys
    maxima: Keys
    is_unknown: NDArray[np.bool_]
    has_nans: NDArray[np.bool_]
    nans: tuple[Keys, Keys] | None

    @classmethod
    def of(
        cls,
        minima: pa.Array,
        maxima: pa.Array,
        has_nans: NDArray[np.bool_],
        is_empty: NDArray[np.bool_],
    ) -> Self:
        """Return the bounds as a file holds them.

        Parameters
        ----------
        minima, maxima
            Shape ``(z,)``: of all values but nulls, and but NaNs; a maximum is NaN where there are
            NaNs, and both are null where there is nothing else, or no bound was kept.
        has_nans
            Shape ``(z,)``: whether a zone has NaNs, of either sign.
        is_empty
            Shape ``(z,)``: whether a zone has nothing but nulls and NaNs.

        Raises
        ------
        UnusableSegmentError
            Values of the type have no order.

        Notes
        -----
        Scalar index page, section 6. pylance 14.0.2 keeps no bounds of binaries of fixed size and
        of dictionaries, although it counts no nulls there either.
        """
        is_float = pa.types.is_floating(minima.type)
        if is_float:
            minima, maxima = _widened(minima, maxima)
        is_known = pc.and_(pc.is_valid(minima), pc.is_valid(maxima))
        known = is_known.to_numpy(zero_copy_only=False)
        return cls(
            np.flatnonzero(known),
            keys_of(minima.filter(is_known)),
            keys_of(maxima.filter(is_known)),
            ~known & ~is_empty,
            has_nans,
            _all_nans(minima.type) if is_float else None,
        )

    @property
    def nbytes(self) -> int:
        """Memory held."""
        arrays = (self.known, self.is_unknown, self.has_nans)
        return sum(int(a.nbytes) for a in arrays) + self.minima.nbytes + self.maxima.nbytes

    @property
    def tells_nothing(self) -> bool:
        """Whether the bounds exclude no zone, whatever is asked for."""
        return bool(self.is_unknown.all())

    def may_hold(self, ranges: KeyRanges) -> NDArray[np.bool_]:
        """Say of each zone whether it may hold a value in any of some ranges, shape ``(z,)``."""
        chosen = self.is_unknown.copy()
        chosen[self.known] = _meet(ranges, self.minima, self.maxima)
        if self.nans is not None and _meet(ranges, *self.nans).any():
            chosen |= self.has_nans
        return chosen


def _meet(ranges: KeyRanges, lowest: Keys, highest: Keys) -> NDArray[np.bool_]:
    """Say for each of ``n`` pairs of bounds whether a range reaches between them."""
    before = np.zeros(len(lowest), np.int64)
    if ranges.upper is not None:
        before = ranges.upper.search(lowest, is_behind_equals=not ranges.includes_upper)
    begun = np.full(len(highest), len(ranges), np.int64)
    if ranges.lower is not None:
        begun = ranges.lower.search(highest, is_behind_equals=ranges.includes_lower)
    return before < begun


def _widened(minima: pa.Array, maxima: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return bounds that hold whatever a writer does with zeros, and without NaNs.

    Where there are NaNs a maximum is not known.
    """
    low = minima.to_numpy(zero_copy_only=False)
    high = maxima.to_numpy(zero_copy_only=False)
    low = np.where(low == 0, np.copysign(low, -1), low)
    high = np.where(high == 0, np.abs(high), high)
    high = np.where(np.isnan(high), np.inf, high)
    kind, missing = minima.type, pc.is_null(minima).to_numpy(zero_copy_only=False)
    width = np.dtype(kind.to_pandas_dtype())
    return (
        pa.array(low.astype(width), kind, mask=missing),
        pa.array(high.astype(width), kind, mask=missing),
    )


def _all_nans(kind: pa.DataType) -> tuple[Keys, Keys]:
    """Return the least and the greatest negative and positive NaN."""
    bits = np.dtype(f"u{kind.bit_width // _BITS_IN_BYTE}")
    infinity = int(np.array([np.inf], kind.to_pandas_dtype()).view(bits)[0])
    sign, every = 1 << (kind.bit_width - 1), (1 << kind.bit_width) - 1
    least = np.array([every, infinity + 1], bits)
    greatest = np.array([(sign | infinity) + 1, every ^ sign], bits)
    return _float_keys(least, kind), _float_keys(greatest, kind)


def _float_keys(bits: NDArray[np.unsignedinteger], kind: pa.DataType) -> Keys:
    return keys_of(pa.Array.from_buffers(kind, len(bits), [None, pa.py_buffer(bits)]))
