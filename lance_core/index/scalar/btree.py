"""BTREE: all rows sorted by value, in pages that a small lookup leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError, UnknownColumnError
from lance_core.expr.index_query import IsNull, StartsWith
from lance_core.index.registry import IndexKind, UnusableSegmentError
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.btree_pages import decode_page, read_lookup
from lance_core.index.scalar.fragment_rows import NO_ROWS, KeptRows, unite
from lance_core.index.scalar.key_ranges import can_be_ranges, joined_ranges, key_ranges
from lance_core.index.scalar.named_rows import rows_of_names

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from lance_core.cache.keys import CacheKey
    from lance_core.expr.index_query import LeafQuery
    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.scalar.btree_pages import BTreePage, PageLookup
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.key_ranges import KeyRanges
    from lance_core.index.scalar.segment import Check, RowNames, ScalarSource

_LOOKUP_FILE = "page_lookup.lance"
_DATA_FILE = "page_data.lance"
_LOOKUP_COLUMNS = ("min", "max", "null_count", "page_idx")
_PAGE_ROWS = 4096
"""Rows of a page where the file does not say."""

_MAX_DIGITS = 9
_VERSION_OF_ADDRESSES = 1
_PAGES_AT_ONCE = 256
_BYTES_AT_ONCE = 64 << 20
"""Of so many pages, and about so many bytes, the rows are held at a time by one search."""


@dataclass(frozen=True, slots=True, eq=False)
class BTreeSegment:
    """An opened BTREE; see `ScalarSegment`.

    Parameters
    ----------
    source
        Where its files are.
    lookup
        Which page has which keys.
    reader
        The file of pages.
    columns
        Its columns of values and of row names.
    page_rows
        Rows of each page but the last.
    pages_at_once
        Pages that one search reads and holds at a time.
    """

    source: ScalarSource
    lookup: PageLookup
    reader: LanceFileReader
    columns: tuple[ColumnTarget, ColumnTarget]
    page_rows: int
    pages_at_once: int

    @property
    def kind(self) -> IndexKind:
        """Which index it is."""
        return IndexKind.BTREE

    @property
    def names_rows_by(self) -> RowNames:
        """How answers name rows (scalar index page, section 1.3)."""
        is_newer = self.source.metadata.index_version >= _VERSION_OF_ADDRESSES
        return "address" if is_newer else "row_id"

    @property
    def knows_nulls(self) -> bool:
        """Whether answers tell the null rows if asked."""
        return True

    @property
    def nbytes(self) -> int:
        """Memory held, without pages."""
        return self.lookup.nbytes + self.reader.nbytes

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self.reader.watch_growth(told)

    @property
    def num_parts(self) -> int:
        """Pages."""
        return len(self.lookup)

    def load_parts(self, start: int, stop: int) -> int:
        """Bring pages into the cache; return the memory they take."""
        return sum(each.nbytes for each in self._load(list(range(start, stop))))

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether the index can answer a query; reads nothing."""
        return can_be_ranges(query, self.columns[0].arrow_type)

    def search(self, query: LeafQuery, *, with_nulls: bool, check: Check) -> RowAnswer:
        """Find rows; reads the pages that may have some, all null ones if asked."""
        if isinstance(query, IsNull):
            return RowAnswer.exact(self._null_rows(check), NO_ROWS)
        rows = self._rows(key_ranges(query), check, with_nulls=with_nulls)
        nulls = self._null_rows(check) if with_nulls else None
        if isinstance(query, StartsWith) and not query.is_exact:
            return RowAnswer.at_most(rows, nulls)
        return RowAnswer.exact(rows, nulls)

    @property
    def _null_key(self) -> CacheKey:
        return self.source.key("btree nulls", None)

    def _null_rows(self, check: Check) -> FragmentRows:
        return self.source.cache.get_or_load(
            self._null_key, lambda: self._read_null_rows(check)
        ).rows

    def _read_null_rows(self, check: Check) -> KeptRows:
        found = self._gather(
            self.lookup.pages_with_nulls(), lambda _, page: page.null_names(), check
        )
        return KeptRows.of(found)

    def _rows(self, ranges: KeyRanges, check: Check, *, with_nulls: bool) -> FragmentRows:
        first, behind = self.lookup.pages_of(ranges)
        pages = _covered(first, behind, len(self.lookup))
        if with_nulls and self._null_key not in self.source.cache:
            # Needed next: better read in one go with the pages of the query.
            both = np.union1d(pages, self.lookup.pages_with_nulls())
            self._load(both[: self.pages_at_once].tolist())

        def names_in(position: int, page: BTreePage) -> NDArray[np.uint64]:
            if len(ranges) == 1:
                # Only the first and the last page may have other keys too.
                is_inside = first[0] < position < behind[0] - 1
                return page.names_with_keys() if is_inside else page.names_in(ranges)
            # Ranges ascend, and so do the pages of each: those that meet a page are neighbours.
            start = int(np.searchsorted(behind, position, "right"))
            stop = int(np.searchsorted(first, position, "right"))
            return page.names_in(ranges.part(start, stop))

        return self._gather(pages, names_in, check)

    def _gather(
        self,
        positions: NDArray[np.int64],
        names_of: Callable[[int, BTreePage], NDArray[np.uint64]],
        check: Check,
    ) -> FragmentRows:
        """Return rows of pages, which are read in one go, or in several if they are very many."""
        found: list[FragmentRows] = []
        for start in range(0, len(positions), self.pages_at_once):
            check()
            some = positions[start : start + self.pages_at_once].tolist()
            names = [names_of(*each) for each in zip(some, self._load(some), strict=True)]
            found.append(rows_of_names(names))
        return unite(found)

    def _load(self, positions: list[int]) -> list[BTreePage]:
        by_key: dict[Hashable, int] = {self.source.key("btree page", p): p for p in positions}
        return self.source.cache.get_or_load_many(
            list(by_key), lambda missing: self._read([by_key[key] for key in missing])
        )

    def _read(self, positions: Sequence[int]) -> list[BTreePage]:
        numbers = self.lookup.numbers[positions]
        starts = numbers * self.page_rows
        stops = np.minimum(starts + self.page_rows, self.reader.num_rows)
        values, names = self.reader.read(self.columns, joined_ranges(starts, stops))
        pages: list[BTreePage] = []
        at = 0
        for position, size in zip(positions, (stops - starts).tolist(), strict=True):
            page = decode_page(values.slice(at, size), names.slice(at, size), self.reader.path)
            self.lookup.check_page(position, page, self.reader.path)
            pages.append(page)
            at += size
        return pages


def open_btree(source: ScalarSource) -> BTreeSegment:
    """Open a BTREE: reads the ends of its files and the lookup; errors as `open_scalar_segment`."""
    lookup_file = source.open(_LOOKUP_FILE)
    metadata = lookup_file.schema.metadata
    if metadata.get("range_partitioned", "false").lower() != "false":
        raise UnusableSegmentError("a BTREE of several page files (range_partitioned) is not read")
    page_rows = _page_rows(metadata.get("batch_size"), lookup_file.path)
    reader = source.open(_DATA_FILE)
    columns = _page_columns(source, reader)
    starts = np.arange(0, reader.num_rows, page_rows, dtype=np.int64)
    lookup = read_lookup(
        _lookup_columns(lookup_file, columns[0].arrow_type),
        np.minimum(reader.num_rows - starts, page_rows),
        lookup_file.path,
    )
    at_once = _pages_at_once(reader.stored_bytes(columns)(0, reader.num_rows), len(lookup))
    return BTreeSegment(source, lookup, reader, columns, page_rows, at_once)


def _pages_at_once(stored_bytes: float, num_pages: int) -> int:
    most = int(_BYTES_AT_ONCE * num_pages / max(stored_bytes, 1))
    return min(max(most, 1), _PAGES_AT_ONCE)


def _page_rows(text: str | None, path: str) -> int:
    if text is None:
        return _PAGE_ROWS
    if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) < 1:
        raise CorruptFileError(path, f'metadata "batch_size" is "{text}", expected rows of a page')
    return int(text)


def _page_columns(
    source: ScalarSource, reader: LanceFileReader
) -> tuple[ColumnTarget, ColumnTarget]:
    """Find the columns by their places: older writers call the second one ``row_ids``."""
    names = reader.schema.names
    if len(names) < len(("values", "ids")):
        raise CorruptFileError(reader.path, f"columns {names}, expected values and row ids")
    values, ids = reader.target(names[0]), reader.target(names[1])
    source.check_key_type(values.arrow_type, source.column_type)
    if ids.arrow_type != pa.uint64():
        raise CorruptFileError(reader.path, f"row ids have type {ids.arrow_type}")
    return values, ids


def _lookup_columns(reader: LanceFileReader, key_type: pa.DataType) -> list[pa.Array]:
    try:
        targets = [reader.target(name) for name in _LOOKUP_COLUMNS]
    except UnknownColumnError as error:
        raise CorruptFileError(reader.path, f"no page lookup: {error}") from error
    kinds = [target.arrow_type for target in targets[:2]]
    if kinds != [key_type, key_type]:
        raise CorruptFileError(reader.path, f"bounds have types {kinds}, the values {key_type}")
    return reader.read(targets, [(0, reader.num_rows)])


def _covered(first: NDArray[np.int64], behind: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the numbers below ``size`` that lie in any range ``[first[i], behind[i])``."""
    if len(first) == 1:
        return np.arange(first[0], behind[0])
    edges = np.bincount(first, minlength=size + 1) - np.bincount(behind, minlength=size + 1)
    return np.flatnonzero(np.cumsum(edges) > 0)
