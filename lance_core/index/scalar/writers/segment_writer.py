"""What writes segments of each scalar index, and which columns and parameters it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_number
from lance_core.index.details_bytes import number_field
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.keys import has_order
from lance_core.index.scalar.value_hashes import can_be_hashed
from lance_core.index.scalar.writers.bitmap import write_bitmap, write_label_list
from lance_core.index.scalar.writers.bloom_filter import FilterSize, write_bloom_filter
from lance_core.index.scalar.writers.btree import write_btree
from lance_core.index.scalar.writers.ngram import write_ngram
from lance_core.index.scalar.writers.sort import sort_rows
from lance_core.index.scalar.writers.zone_map import write_zone_map
from lance_core.index.segment_files import IndexDetails

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lance_core.index.scalar.segment import RowNames
    from lance_core.index.scalar.writers.indexed_rows import IndexedRows
    from lance_core.index.segment_files import SegmentFiles

    Write = Callable[[Iterable[IndexedRows], SegmentFiles, int], None]
    """Writes the files of a segment of some rows, with about so much memory."""

_MOST_ROWS = 1 << 30
_ROWS_OF_PAGE = 4096
_ROWS_OF_ZONE = 8192
_PROBABILITY = 0.00057
_TABLE, _INDEX = "/lance.table.", "/lance.index.pb."


@dataclass(frozen=True, slots=True)
class SegmentWriter:
    """Writes segments of one kind.

    Parameters
    ----------
    kind
        The kind.
    names_rows_by
        How the rows that it is given are named; ascending ones only where by ``address``.
    details
        What the manifest says of its segments.
    write
        Writes the files of a segment.
    """

    kind: IndexKind
    names_rows_by: RowNames
    details: IndexDetails
    write: Write


def segment_writer(
    kind: IndexKind,
    column_type: pa.DataType,
    parameters: Mapping[str, object],
    *,
    has_stable_row_ids: bool,
) -> SegmentWriter:
    """Return what writes segments of a kind.

    Parameters
    ----------
    kind
        One of `SCALAR_KINDS`.
    column_type
        Type of the column.
    parameters
        By the names that pylance has for them: ``zone_size`` of a BTREE, ``rows_per_zone`` of a
        ZONEMAP, ``number_of_items`` and ``probability`` of a BLOOMFILTER. None is as good as
        absent.
    has_stable_row_ids
        Whether rows of the table have stable row ids.

    Raises
    ------
    InvalidRequestError
        The kind does not take such a column or parameter.

    Notes
    -----
    Scalar index page, sections 1.1, 1.3 and 1.6, and types tried with pylance 14.0.2: each kind
    takes what it takes there, but lists of dictionaries, whose labels no filter can name.
    """
    maker = _MAKERS[kind]
    if not maker.takes(column_type):
        raise InvalidRequestError(
            f"a {kind} index takes columns of {maker.types}, not of type {column_type}"
        )
    given = {name: each for name, each in parameters.items() if each is not None}
    unknown = sorted(set(given) - set(maker.parameters))
    if len(unknown) > 0:
        known = ", ".join(maker.parameters) if maker.parameters else "none"
        raise InvalidRequestError(f"a {kind} index has no parameter {unknown[0]!r}; known: {known}")
    return maker.make(column_type, given, has_stable_row_ids)


def parameters_of(kind: IndexKind) -> tuple[str, ...]:
    """Return the names of the parameters that a kind takes; one of `SCALAR_KINDS`."""
    return _MAKERS[kind].parameters


@dataclass(frozen=True, slots=True)
class _Maker:
    """How a kind is made; ``types`` says in words which columns it ``takes``."""

    takes: Callable[[pa.DataType], bool]
    types: str
    make: Callable[[pa.DataType, Mapping[str, object], bool], SegmentWriter]
    parameters: tuple[str, ...] = ()


def _btree(kind: pa.DataType, given: Mapping[str, object], is_stable: bool) -> SegmentWriter:
    page_rows = checked_number("zone_size", given.get("zone_size", _ROWS_OF_PAGE), 1, _MOST_ROWS)

    def write(rows: Iterable[IndexedRows], files: SegmentFiles, memory_bytes: int) -> None:
        write_btree(sort_rows(rows, memory_bytes), kind, files, page_rows)

    details = IndexDetails(f"{_TABLE}BTreeIndexDetails", b"", 1 if is_stable else 0)
    return SegmentWriter(IndexKind.BTREE, "address", details, write)


def _bitmap(kind: pa.DataType, given: Mapping[str, object], is_stable: bool) -> SegmentWriter:
    def write(rows: Iterable[IndexedRows], files: SegmentFiles, memory_bytes: int) -> None:
        write_bitmap(rows, kind, files, memory_bytes)

    details = IndexDetails(f"{_TABLE}BitmapIndexDetails", b"", 0)
    return SegmentWriter(IndexKind.BITMAP, "row_id", details, write)


def _label_list(kind: pa.DataType, given: Mapping[str, object], is_stable: bool) -> SegmentWriter:
    def write(rows: Iterable[IndexedRows], files: SegmentFiles, memory_bytes: int) -> None:
        write_label_list(rows, kind, files, memory_bytes)

    details = IndexDetails(f"{_TABLE}LabelListIndexDetails", b"", 1)
    return SegmentWriter(IndexKind.LABEL_LIST, "row_id", details, write)


def _ngram(kind: pa.DataType, given: Mapping[str, object], is_stable: bool) -> SegmentWriter:
    details = IndexDetails(f"{_TABLE}NGramIndexDetails", b"", 0)
    return SegmentWriter(IndexKind.NGRAM, "row_id", details, write_ngram)


def _zone_map(kind: pa.DataType, given: Mapping[str, object], is_stable: bool) -> SegmentWriter:
    number = given.get("rows_per_zone", _ROWS_OF_ZONE)
    zone_rows = checked_number("rows_per_zone", number, 1, _MOST_ROWS)

    def write(rows: Iterable[IndexedRows], files: SegmentFiles, memory_bytes: int) -> None:
        write_zone_map(rows, kind, files, zone_rows)

    # Data files carry no seeds, and the file has the null rows.
    value = number_field(1, zone_rows) + number_field(2, 0) + number_field(3, 1)
    details = IndexDetails(f"{_TABLE}ZoneMapIndexDetails", value, 0)
    return SegmentWriter(IndexKind.ZONEMAP, "address", details, write)


def _bloom_filter(kind: pa.DataType, given: Mapping[str, object], is_stable: bool) -> SegmentWriter:
    number = given.get("number_of_items", _ROWS_OF_ZONE)
    zone_rows = checked_number("number_of_items", number, 1, _MOST_ROWS)
    probability = given.get("probability", _PROBABILITY)
    if not isinstance(probability, float) or not 0 < probability < 1:
        raise InvalidRequestError(f"probability is {probability!r}; give a float between 0 and 1")
    size = FilterSize(zone_rows, probability)

    def write(rows: Iterable[IndexedRows], files: SegmentFiles, memory_bytes: int) -> None:
        write_bloom_filter(rows, files, size)

    details = IndexDetails(f"{_INDEX}BloomFilterIndexDetails", b"", 0)
    return SegmentWriter(IndexKind.BLOOMFILTER, "address", details, write)


def _has_labels(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return is_list and has_order(kind.value_type)


def _any_type(kind: pa.DataType) -> bool:
    del kind
    return True


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string())


_PLAIN = "numbers, truth values, decimals, times, texts or binaries"
_MAKERS = {
    IndexKind.BTREE: _Maker(has_order, _PLAIN, _btree, ("zone_size",)),
    IndexKind.BITMAP: _Maker(has_order, _PLAIN, _bitmap),
    IndexKind.LABEL_LIST: _Maker(_has_labels, f"lists of {_PLAIN}", _label_list),
    IndexKind.NGRAM: _Maker(_is_text, "texts", _ngram),
    IndexKind.ZONEMAP: _Maker(_any_type, "any type", _zone_map, ("rows_per_zone",)),
    IndexKind.BLOOMFILTER: _Maker(
        can_be_hashed,
        "whole numbers, floats of 32 or 64 bits, dates, times, timestamps, texts or binaries",
        _bloom_filter,
        ("number_of_items", "probability"),
    ),
}

SCALAR_KINDS = tuple(_MAKERS)
"""Kinds that are written here."""
