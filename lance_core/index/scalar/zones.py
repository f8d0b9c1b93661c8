"""Zones: stretches of rows of one fragment, of which an index knows something in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.scalar.fragment_rows import NO_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.index.scalar.fragment_rows import FragmentRows

ZONE_COLUMNS = {"fragment_id": pa.uint64(), "zone_start": pa.uint64(), "zone_length": pa.uint64()}
"""Columns that say where zones lie."""

MISPLACED = "an early release of Lance put its zones in wrong places: rebuild it"
"""Why a segment cannot be used whose zones leave rows out."""

_NUM_NUMBERS = 1 << 32  # of fragments, and of offsets in each


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """Where the zones of a segment lie.

    Rows that were deleted when the segment was built may lie in and between zones.

    Parameters
    ----------
    fragment_ids, starts, ends
        Shape ``(z,)``: fragment and row offsets ``[start, end)`` of each zone.
    """

    fragment_ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Offsets in each zone, shape ``(z,)``; no fewer than the rows that it was built from."""
        return self.ends - self.starts

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.fragment_ids.nbytes + self.starts.nbytes + self.ends.nbytes)

    @property
    def fragments(self) -> BitMap:
        """Fragments that there are zones of."""
        return BitMap(np.unique(self.fragment_ids).tolist())

    def __len__(self) -> int:
        return len(self.starts)

    def last_ends(self) -> Mapping[int, int]:
        """Return by fragment where the last of its zones ends."""
        ids, places = np.unique(self.fragment_ids, return_inverse=True)
        ends = np.zeros(len(ids), np.int64)
        np.maximum.at(ends, places, self.ends)
        return dict(zip(ids.tolist(), ends.tolist(), strict=True))

    def rows(self, chosen: NDArray[np.bool_]) -> FragmentRows:
        """Return all row addresses in the chosen zones, shape of ``chosen`` ``(z,)``."""
        numbers = np.flatnonzero(chosen & (self.lengths > 0))
        if len(numbers) == 0:
            return NO_ROWS
        fragment_ids, starts, ends = (
            each[numbers] for each in (self.fragment_ids, self.starts, self.ends)
        )
        is_first = np.ones(len(numbers), np.bool_)  # of zones that follow one another
        is_first[1:] = (fragment_ids[1:] != fragment_ids[:-1]) | (starts[1:] != ends[:-1])
        firsts = np.flatnonzero(is_first)
        lasts = np.append(firsts[1:], len(numbers)) - 1
        rows: dict[int, BitMap] = {}
        for fragment_id, start, end in zip(
            fragment_ids[firsts].tolist(),
            starts[firsts].tolist(),
            ends[lasts].tolist(),
            strict=True,
        ):
            rows.setdefault(fragment_id, BitMap()).add_range(start, end)
        return rows


def zones_of(columns: Sequence[pa.Array], path: str) -> Zones:
    """Return the zones that the `ZONE_COLUMNS` of a file describe.

    Raises
    ------
    CorruptFileError
        A value is missing, or a zone begins outside of fragments of the largest size.
    UnusableSegmentError
        A zone ends there.

    Notes
    -----
    Scalar index page, sections 1.3 and 6. How many rows a fragment really has is for those to
    check who know the table. Lengths below 0, without their sign, are what pylance 1.0 wrote for
    zones that begin in one fragment and end in the next.
    """
    fragment_ids, starts, lengths = (whole_numbers(column, path) for column in columns)
    limit = np.uint64(_NUM_NUMBERS)
    if (fragment_ids >= limit).any() or (starts >= limit).any():
        raise CorruptFileError(path, "a zone lies outside all fragments")
    if (lengths > limit - starts).any():
        raise UnusableSegmentError(MISPLACED)
    first = starts.astype(np.int64)
    return Zones(fragment_ids.astype(np.int64), first, first + lengths.astype(np.int64))


def whole_numbers(column: pa.Array, path: str) -> NDArray[np.uint64]:
    """Return the values of a column of unsigned numbers that must not have nulls."""
    if column.null_count > 0:
        raise CorruptFileError(path, "a number that describes a zone is missing")
    numbers: NDArray[np.uint64] = column.to_numpy(zero_copy_only=False).astype(np.uint64)
    return numbers


def flags(column: pa.Array, path: str) -> NDArray[np.bool_]:
    """Return the values of a column of truth values that must not have nulls."""
    if column.null_count > 0:
        raise CorruptFileError(path, "a truth value that describes a zone is missing")
    values: NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return values
