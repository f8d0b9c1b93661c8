"""The pages of a BTREE: which hold the keys of a query, and what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.keys import keys_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.scalar.key_ranges import KeyRanges
    from lance_core.index.scalar.keys import Keys


@dataclass(frozen=True, slots=True, eq=False)
class BTreePage:
    """The rows of one page, nulls first, then by key.

    Parameters
    ----------
    keys
        Keys of the rows behind the null ones.
    names
        How the rows are named, shape ``(n,)``.
    """

    keys: Keys
    names: NDArray[np.uint64]

    @property
    def num_nulls(self) -> int:
        """Number of rows without a value."""
        return len(self.names) - len(self.keys)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.keys.nbytes + int(self.names.nbytes)

    def null_names(self) -> NDArray[np.uint64]:
        """Return the rows without a value."""
        return self.names[: self.num_nulls]

    def names_with_keys(self) -> NDArray[np.uint64]:
        """Return the rows that have a value."""
        return self.names[self.num_nulls :]

    def names_in(self, ranges: KeyRanges) -> NDArray[np.uint64]:
        """Return the rows whose keys are asked for."""
        if len(ranges) == 1:
            start, stop = ranges.starts(self.keys)[0], ranges.stops(self.keys)[0]
            return self.names[self.num_nulls + start : self.num_nulls + stop]
        return self.names[self.num_nulls + ranges.positions(self.keys)]


@dataclass(frozen=True, slots=True, eq=False)
class PageLookup:
    """First and last key of each of ``n`` pages, in their order.

    Parameters
    ----------
    lowest
        Keys that the last ``len(lowest)`` pages begin with; the ones before begin with null.
    highest
        Keys that the last ``len(highest)`` pages end with; the ones before hold only nulls.
    null_counts
        Shape ``(n,)``: rows without a value.
    numbers
        Shape ``(n,)``: which page of the file it is.
    """

    lowest: Keys
    highest: Keys
    null_counts: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        arrays = int(self.null_counts.nbytes + self.numbers.nbytes)
        return self.lowest.nbytes + self.highest.nbytes + arrays

    def pages_with_nulls(self) -> NDArray[np.int64]:
        """Return the positions of pages that have rows without a value."""
        return np.flatnonzero(self.null_counts > 0)

    def pages_of(self, ranges: KeyRanges) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each range the pages ``[first[i], behind[i])`` that may hold keys of it.

        Both ascend. A run of equal keys may lie in several pages.
        """
        first = ranges.starts(self.highest) + len(self) - len(self.highest)
        behind = ranges.stops(self.lowest) + len(self) - len(self.lowest)
        return first, np.maximum(first, behind)

    def check_page(self, position: int, page: BTreePage, path: str) -> None:
        """Check a page against what the lookup says of it.

        Raises
        ------
        CorruptFileError
            It is another page, or its keys do not ascend: searches would miss rows.
        """
        if page.num_nulls != self.null_counts[position] or not page.keys.is_ascending():
            raise CorruptFileError(
                path, f"the rows of page {self.numbers[position]} are not sorted"
            )
        if len(page.keys) == 0:
            return
        last = page.keys.part(len(page.keys) - 1, len(page.keys))
        is_last = _are_equal(self.highest, position - len(self) + len(self.highest), last)
        is_first = page.num_nulls > 0 or _are_equal(
            self.lowest, position - len(self) + len(self.lowest), page.keys.part(0, 1)
        )
        if not is_first or not is_last:
            raise CorruptFileError(
                path, f"page {self.numbers[position]} has other keys than the lookup says"
            )


def read_lookup(columns: Sequence[pa.Array], page_rows: NDArray[np.int64], path: str) -> PageLookup:
    """Check and take the columns of a lookup.

    Parameters
    ----------
    columns
        ``min``, ``max``, ``null_count`` and ``page_idx``.
    page_rows
        Rows of each page in the file that has them, shape ``(n,)``.
    path
        The file, for errors.

    Raises
    ------
    CorruptFileError
        Pages are missing, named twice, or out of order.
    UnusableSegmentError
        Keys of the type are not supported.
    """
    lowest, highest, null_counts, numbers = columns
    if null_counts.type != pa.uint32() or numbers.type != pa.uint32():
        raise CorruptFileError(path, f"pages are {numbers.type}, null counts {null_counts.type}")
    if null_counts.null_count + numbers.null_count > 0:
        raise CorruptFileError(path, "a page without a number, or without a count of nulls")
    pages = numbers.to_numpy().astype(np.int64)
    if len(pages) != len(page_rows) or (np.sort(pages) != np.arange(len(pages))).any():
        raise CorruptFileError(path, f"it does not name the {len(page_rows)} pages once each")
    lookup = PageLookup(
        _behind_nulls(lowest, path),
        _behind_nulls(highest, path),
        null_counts.to_numpy().astype(np.int64),
        pages,
    )
    _check_order(lookup, page_rows[pages], path)
    return lookup


def decode_page(values: pa.Array, names: pa.Array, path: str) -> BTreePage:
    """Take the rows of a page, copied.

    Raises
    ------
    CorruptFileError
        Nulls are not first, or a row has no name.
    """
    if names.null_count > 0:
        raise CorruptFileError(path, "a row has no address")
    keys = values.slice(values.null_count)
    if keys.null_count > 0:
        raise CorruptFileError(path, "rows without a value are not the first of their page")
    return BTreePage(keys_of(keys).copied(), names.to_numpy().copy())


def _behind_nulls(bounds: pa.Array, path: str) -> Keys:
    keys = bounds.slice(bounds.null_count)
    if keys.null_count > 0:
        raise CorruptFileError(path, "pages without a bound are not the first")
    return keys_of(keys)


def _check_order(lookup: PageLookup, page_rows: NDArray[np.int64], path: str) -> None:
    """Check that pages ascend and that those without bounds have null rows."""
    lowest, highest, size = lookup.lowest, lookup.highest, len(lookup)
    has_nulls, is_null = lookup.null_counts > 0, lookup.null_counts == page_rows
    begins_null = np.arange(size) < size - len(lowest)
    ends_null = np.arange(size) < size - len(highest)
    if (
        (lookup.null_counts > page_rows).any()
        or (has_nulls != begins_null).any()
        or (is_null != ends_null).any()
        or not lowest.is_ascending()
        or not highest.is_ascending()
    ):
        raise CorruptFileError(path, "the pages are out of order")


def _are_equal(keys: Keys, position: int, other: Keys) -> bool:
    starts, stops = keys.part(position, position + 1).find(other)
    return bool(starts[0] < stops[0])
