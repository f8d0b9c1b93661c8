"""Writing one segment with the rows of others, as their files hold them.

Columns are not read again: values are in the files, and rows follow their routes. With one segment
this is how an index follows a compaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lance_core.errors import InvalidRequestError
from lance_core.index.registry import IndexKind, UnusableSegmentError
from lance_core.index.scalar.bitmap import BitmapSegment
from lance_core.index.scalar.btree import BTreeSegment
from lance_core.index.scalar.label_list import LabelListSegment
from lance_core.index.scalar.ngram import NgramSegment
from lance_core.index.scalar.tree_map import decode_tree_map
from lance_core.index.scalar.writers.bitmap import (
    BITMAP_FORM,
    write_bitmap_sets,
    write_label_sets,
)
from lance_core.index.scalar.writers.bloom_filter import (
    BLOOM_FILTER_FILE,
    BLOOM_FILTER_SCHEMA,
)
from lance_core.index.scalar.writers.btree import write_btree
from lance_core.index.scalar.writers.growing_set import GrowingSet
from lance_core.index.scalar.writers.ngram import NGRAM_FORM, write_ngram_sets
from lance_core.index.scalar.writers.sort import merge_rows
from lance_core.index.scalar.writers.stored_btree import StoredBTree
from lance_core.index.scalar.writers.stored_sets import StoredSets, merged_sets, stored_names
from lance_core.index.scalar.writers.stored_zones import StoredZones, merge_zones
from lance_core.index.scalar.writers.zone_map import ZONE_MAP_FILE, zone_map_schema
from lance_core.index.scalar.zone_segment import ZoneSegment
from lance_core.table.treemap import decode_bitmaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from lance_core.index.row_routes import RowRoute
    from lance_core.index.scalar.bitmap_file import BitmapFile
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.segment import ScalarSegment
    from lance_core.index.scalar.writers.indexed_rows import IndexedRows
    from lance_core.index.segment_files import SegmentFiles

S = TypeVar("S")

READ_BYTES = 4 << 20
"""About how much of the files of a segment is read at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """An opened segment, and the route of its rows to the new one."""

    segment: ScalarSegment
    route: RowRoute


def merge_scalar_segments(
    parts: Sequence[Routed], files: SegmentFiles, read_bytes: int = READ_BYTES
) -> None:
    """Write the files of a segment with the rows of others.

    Parameters
    ----------
    parts
        One or more segments of one kind, on a column of one type. Of pages of different sizes the
        last one's is taken.
    files
        Takes the files.
    read_bytes
        About how much of each segment is read at once. Memory grows with this and the number of
        segments; keys of sets are held besides.

    Raises
    ------
    UnusableSegmentError
        What files hold cannot be relied on, or names stretches of rows that have moved or differ
        in size: build the segment anew.
    InvalidRequestError
        The segments are of several kinds.
    CorruptFileError
        What is read contradicts the format. No file is complete then.
    """
    last = parts[-1].segment
    match last:
        case BTreeSegment():
            _merge_btrees(parts, last, files, read_bytes)
        case BitmapSegment():
            _merge_bitmaps(parts, last.file.key_type, files, read_bytes)
        case LabelListSegment():
            _merge_label_lists(parts, last.file.key_type, files, read_bytes)
        case NgramSegment():
            ngrams = [_ngram_sets(each, read_bytes) for each in parts]
            write_ngram_sets(merged_sets(ngrams, NGRAM_FORM), files)
        case ZoneSegment():
            _merge_zones(parts, last, files, read_bytes)
        case _:
            raise UnusableSegmentError(f"a {last.kind} index names no rows that could be followed")


def _merge_btrees(
    parts: Sequence[Routed], last: BTreeSegment, files: SegmentFiles, read_bytes: int
) -> None:
    trees = [StoredBTree(_of(BTreeSegment, each), each.route, read_bytes) for each in parts]

    def rows() -> Iterator[IndexedRows]:
        for tree in trees:
            yield from tree.nulls()
        runs = [tree.rows() for tree in trees]
        yield from runs[0] if len(runs) == 1 else merge_rows(runs)

    write_btree(rows(), last.columns[0].arrow_type, files, last.page_rows)


def _merge_bitmaps(
    parts: Sequence[Routed], kind: pa.DataType, files: SegmentFiles, read_bytes: int
) -> None:
    sets = []
    for part in parts:
        segment = _of(BitmapSegment, part)
        if segment.num_trusted < len(segment.file.keys):
            raise UnusableSegmentError("it may have lost rows whose value is NaN: rebuild it")
        sets.append(_file_sets(segment.file, part.route, read_bytes))
    write_bitmap_sets(merged_sets(sets, BITMAP_FORM), kind, files)


def _merge_label_lists(
    parts: Sequence[Routed], kind: pa.DataType, files: SegmentFiles, read_bytes: int
) -> None:
    segments = [_of(LabelListSegment, each) for each in parts]
    routes = [each.route for each in parts]
    sets = [
        _file_sets(segment.file, route, read_bytes)
        for segment, route in zip(segments, routes, strict=True)
    ]

    def null_rows() -> FragmentRows | None:
        found = GrowingSet()
        for segment, route in zip(segments, routes, strict=True):
            if segment.nulls is None:
                return None
            for names in stored_names(segment.nulls.rows(), route):
                new_names, is_kept = route.follow(names)
                found.add(new_names[is_kept])
        return found.rows

    write_label_sets(merged_sets(sets, BITMAP_FORM), kind, files, null_rows)


def _merge_zones(
    parts: Sequence[Routed], last: ZoneSegment, files: SegmentFiles, read_bytes: int
) -> None:
    zones = [StoredZones.of(_of(ZoneSegment, each), each.route) for each in parts]
    if last.kind is IndexKind.BLOOMFILTER:
        merge_zones(zones, BLOOM_FILTER_SCHEMA, BLOOM_FILTER_FILE, files, read_bytes)
    else:
        kind = last.reader.target("min").arrow_type
        merge_zones(zones, zone_map_schema(kind), ZONE_MAP_FILE, files, read_bytes)


def _file_sets(file: BitmapFile, route: RowRoute, read_bytes: int) -> StoredSets:
    reader = file.reader
    keys = reader.target(reader.schema.names[0])
    return StoredSets(reader, keys, file.sets, decode_tree_map, True, route, read_bytes)


def _ngram_sets(part: Routed, read_bytes: int) -> StoredSets:
    segment, reader = _of(NgramSegment, part), _of(NgramSegment, part).reader
    keys = reader.target("tokens")
    sets = segment.postings
    return StoredSets(reader, keys, sets, decode_bitmaps, False, part.route, read_bytes)


def _of(kind: type[S], part: Routed) -> S:
    if not isinstance(part.segment, kind):
        raise InvalidRequestError("segments of one kind can become one, not of several")
    return part.segment
