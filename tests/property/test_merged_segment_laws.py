"""A segment made of others has the files that building it of the rows left would give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyroaring import BitMap, BitMap64

from lance_core.cache.byte_cache import ByteCache
from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError
from lance_core.file.reader import LanceFileReader
from lance_core.ids import FieldId, FragmentId
from lance_core.index.registry import IndexKind, UnusableSegmentError
from lance_core.index.row_routes import AddressRoute, RowIdRoute
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.scalar.tree_map import decode_tree_map
from lance_core.index.scalar.writers.indexed_rows import IndexedRows
from lance_core.index.scalar.writers.merge import Routed, merge_scalar_segments
from lance_core.index.scalar.writers.segment_writer import segment_writer
from lance_core.index.segment_files import SegmentFiles
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.table.base_paths import Place
from lance_core.table.index_metadata import IndexMetadata
from lance_core.table.reuse_history import FragmentDigest, ReuseGroup, ReuseHistory, ReuseVersion
from lance_core.table.reuse_map import AddressMap
from lance_core.table.row_id_index import RowIdIndex
from lance_core.table.treemap import encode_treemap
from tests.scalar_indices import rows_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lance_core.index.row_routes import RowRoute
    from lance_core.index.scalar.segment import ScalarSegment

MEMORY = 1 << 20
TEXT = st.sampled_from(["abcd", "bcde xyz", "abc", "", "cde1"])
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "BTREE": (pa.float32(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), -2.0])),
    "BITMAP": (pa.string(), TEXT),
    "LABEL_LIST": (pa.list_(pa.int16()), st.lists(st.none() | st.integers(0, 4), max_size=3)),
    "NGRAM": (pa.string(), TEXT),
}


def write(kind: str, rows: IndexedRows) -> tuple[MemoryStore, ScalarSegment]:
    """Write a segment of rows, whose names need not ascend, and open it."""
    store = MemoryStore()
    files = SegmentFiles(store, "segment", FileVersion.V2_2)
    writer = segment_writer(
        IndexKind(kind), rows.values.type, parameters(kind), has_stable_row_ids=False
    )
    writer.write([rows], files, MEMORY)
    return store, opened(store, kind, rows.values.type)


def parameters(kind: str) -> dict[str, object]:
    known: dict[str, dict[str, object]] = {
        "BTREE": {"zone_size": 7},
        "ZONEMAP": {"rows_per_zone": 3},
        "BLOOMFILTER": {"number_of_items": 3},
    }
    return known.get(kind, {})


def opened(store: MemoryStore, kind: str, column: pa.DataType) -> ScalarSegment:
    writer = segment_writer(IndexKind(kind), column, {}, has_stable_row_ids=False)
    metadata = IndexMetadata(
        uuid="00000000-0000-0000-0000-00000000000a",
        name="c_idx",
        field_ids=(FieldId(0),),
        dataset_version=1,
        fragment_bitmap=BitMap([0, 1, 2]),
        type_name=writer.details.type_url.rpartition(".")[2],
        details=writer.details.value,
        index_version=writer.details.index_version,
        created_at_ms=None,
        files=(),
        base_id=None,
    )
    lance_field = schema_from_arrow(pa.schema([("c", column)])).fields[0]
    place = Place(RangeScheduler(store), "segment")
    return open_scalar_segment(place, metadata, ByteCache(1 << 24), lance_field)


def merged(parts: Sequence[Routed], read_bytes: int) -> MemoryStore:
    store = MemoryStore()
    merge_scalar_segments(parts, SegmentFiles(store, "segment", FileVersion.V2_2), read_bytes)
    return store


def members(tree_map: bytes) -> Mapping[int, list[int]]:
    return rows_in(decode_tree_map(tree_map, "f"))


DECODERS: dict[str, Callable[[Any], object]] = {
    "bitmaps": members,
    "posting_list": lambda data: BitMap64.deserialize(data).to_array().tolist(),
}


def contents(store: MemoryStore) -> dict[str, object]:
    """Return all that files say; rows of equal values in one order, sets as their members."""
    found: dict[str, object] = {}
    for each in store.list_tree("segment"):
        reader = LanceFileReader.open(RangeScheduler(store), each.path)
        rows = [
            {name: DECODERS.get(name, lambda value: value)(row[name]) for name in row}
            for row in reader.read_all().to_pylist()
        ]
        if "ids" in reader.schema.names:
            values = [repr(row["values"]) for row in rows]
            found["values"] = values
            rows.sort(key=lambda row: (repr(row["values"]), row["ids"]))
        numbers = range(1, len(reader.metadata.buffers))
        buffers = [members(bytes(reader.global_buffer(n))) for n in numbers]
        found[each.path] = (repr(rows), dict(reader.schema.metadata), buffers)
    return found


@dataclass
class Fragments:
    """Fragments of a segment before and after a compaction of all of them."""

    kind: str
    values: list[list[object]]
    first_id: int
    is_compacted: bool
    gone: set[int]
    deleted: set[int]
    is_covered: bool
    names: list[int] = field(default_factory=list)
    new_names: list[int | None] = field(default_factory=list)

    @property
    def column(self) -> pa.Array:
        flat = [value for values in self.values for value in values]
        return pa.array(flat, KINDS[self.kind][0])

    def lay_out(self) -> None:
        """Give rows their names, and those that they have behind the compaction if they are left.

        ``gone`` are rows that the compaction leaves out, ``deleted`` such that go later, by number.
        """
        number = place = 0
        for fragment, values in enumerate(self.values):
            for offset in range(len(values)):
                address = (self.first_id + fragment) << 32 | offset
                is_left = not (self.is_compacted and number in self.gone)
                new_address = (self.first_id + 100) << 32 | place
                new = new_address if self.is_compacted else address
                place += is_left
                is_found = is_left and self.is_covered and number not in self.deleted
                self.names.append(address)
                self.new_names.append(new if is_found else None)
                number += 1

    def group(self) -> ReuseGroup:
        survivors: dict[int, BitMap] = {}
        numbers = iter(range(len(self.names)))
        for fragment, values in enumerate(self.values):
            kept = [o for o in range(len(values)) if next(numbers) not in self.gone]
            survivors[self.first_id + fragment] = BitMap(kept)
        old = tuple(
            FragmentDigest(
                FragmentId(self.first_id + n),
                len(values),
                len(values) - len(survivors[self.first_id + n]),
            )
            for n, values in enumerate(self.values)
        )
        left = sum(map(len, survivors.values()))
        new = FragmentDigest(FragmentId(self.first_id + 100), left, 0)
        return ReuseGroup(encode_treemap(survivors), old, (new,))


@st.composite
def fragments(draw: st.DrawFn, kind: str, first_id: int) -> Fragments:
    values = st.lists(st.none() | KINDS[kind][1], max_size=25)
    numbers = st.sets(st.integers(0, 40), max_size=15)
    found = Fragments(
        kind,
        draw(st.lists(values, min_size=1, max_size=2)),
        first_id,
        draw(st.booleans()),
        draw(numbers),
        draw(numbers),
        draw(st.integers(0, 5)) > 0,
    )
    found.lay_out()
    return found


def route_of(all_parts: Sequence[Fragments], part: Fragments) -> RowRoute:
    groups = tuple(each.group() for each in all_parts if each.is_compacted)
    history = ReuseHistory((ReuseVersion(1, groups),) if groups else ())
    old_rows: dict[int, int] = {
        digest.id: digest.physical_rows for group in groups for digest in group.old_fragments
    }
    covered: dict[int, int] = {}
    deleted: dict[int, BitMap] = {}
    if part.is_covered:
        digests = part.group().new_fragments if part.is_compacted else part.group().old_fragments
        covered = {digest.id: digest.physical_rows for digest in digests}
        deleted = after(part)
    addresses = AddressMap(history, "m")
    return AddressRoute(addresses, old_rows, covered, deleted)


def after(part: Fragments) -> dict[int, BitMap]:
    """Return the deleted rows of the fragments that there are behind the compaction."""
    found: dict[int, BitMap] = {}
    number = place = 0
    for fragment, values in enumerate(part.values):
        for offset in range(len(values)):
            is_left = not (part.is_compacted and number in part.gone)
            if is_left and number in part.deleted:
                key = part.first_id + (100 if part.is_compacted else fragment)
                found.setdefault(key, BitMap()).add(place if part.is_compacted else offset)
            place += is_left
            number += 1
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), read_bytes=st.sampled_from([1, 200, 1 << 20]))
def test_a_segment_made_of_others_is_one_built_of_the_rows_left(
    kind: str, data: st.DataObject, read_bytes: int
) -> None:
    parts = [data.draw(fragments(kind, 10 * n)) for n in range(data.draw(st.integers(1, 3)))]
    stored = [write(kind, IndexedRows(p.column, np.array(p.names, np.uint64)))[1] for p in parts]
    routed = [Routed(s, route_of(parts, p)) for s, p in zip(stored, parts, strict=True)]
    kept = [
        (value, name)
        for part in parts
        for value, name in zip(part.column.to_pylist(), part.new_names, strict=True)
        if name is not None
    ]
    values = pa.array([value for value, _ in kept], KINDS[kind][0])
    names = np.array([name for _, name in kept], np.uint64)
    expected, _ = write(kind, IndexedRows(values, names))
    assert contents(merged(routed, read_bytes)) == contents(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_named_by_ids_keep_them_unless_they_left_the_fragments_covered(kind: str) -> None:
    examples: dict[str, list[object]] = {
        "BTREE": [3.0, 1.0, None, 2.0],
        "BITMAP": ["a", "b", None, "a"],
        "LABEL_LIST": [[1], [1, 2], None, [2]],
        "NGRAM": ["abc", "abcd", None, "xabc"],
    }
    column = pa.array(examples[kind], KINDS[kind][0])
    _, segment = write(kind, IndexedRows(column, np.array([7, 5, 6, 1 << 33], np.uint64)))
    first_ids = np.array([5, 7, 1 << 33], np.uint64)  # 6 is gone, 7 is in fragment 2 now
    addresses = np.array([0, 2 << 32, 1 << 32], np.uint64)
    index = RowIdIndex(first_ids, np.ones(3, np.int64), addresses)
    expected, _ = write(
        kind, IndexedRows(column.take(pa.array([1, 3])), np.array([5, 1 << 33], np.uint64))
    )
    assert contents(merged([Routed(segment, RowIdRoute(index, [0, 1]))], 64)) == contents(expected)


def all_rows(num_rows: int) -> AddressRoute:
    return AddressRoute(AddressMap(ReuseHistory(()), "m"), {}, {0: num_rows}, {})


@pytest.mark.parametrize("read_bytes", [1, 300, 1 << 20])
@pytest.mark.parametrize("kind", ["ZONEMAP", "BLOOMFILTER"])
def test_zones_of_interleaved_fragments_are_those_of_all_rows(kind: str, read_bytes: int) -> None:
    names = np.arange(100, dtype=np.uint64)
    own = [names | np.uint64(number << 32) for number in range(3)]
    values = [
        pa.array([None if n % 8 == 0 else f"{at} {n}" for n in range(100)]) for at in range(3)
    ]

    def rows(numbers: Sequence[int]) -> IndexedRows:
        chosen = [values[number] for number in numbers]
        return IndexedRows(pa.concat_arrays(chosen), np.concatenate([own[n] for n in numbers]))

    parts = []
    for numbers in ([0, 2], [1]):
        covered = dict.fromkeys(numbers, 100)
        route = AddressRoute(AddressMap(ReuseHistory(()), "m"), {}, covered, {})
        parts.append(Routed(write(kind, rows(numbers))[1], route))
    expected, _ = write(kind, rows([0, 1, 2]))
    assert contents(merged(parts, read_bytes)) == contents(expected)


def test_large_sets_and_such_of_whole_fragments_follow() -> None:
    num_rows = 200_000
    values = pa.array(np.where(np.arange(num_rows) % 100 == 0, "rare", "usual"))
    names = np.arange(num_rows, dtype=np.uint64)
    store, segment = write("BITMAP", IndexedRows(values, names))
    assert contents(merged([Routed(segment, all_rows(num_rows))], 1 << 20)) == contents(store)
    route = all_rows(10)
    assert route.within(0, BitMap(range(30))) == BitMap(range(10))
    assert route.within(1, BitMap(range(30))) == BitMap()


def test_what_cannot_be_followed_is_refused() -> None:
    rows = IndexedRows(pa.array([1, 2]), np.arange(2, dtype=np.uint64))
    _, zones = write("ZONEMAP", rows)
    addresses = AddressMap(ReuseHistory(()), "m")
    with pytest.raises(UnusableSegmentError, match="stretches of rows"):
        merged([Routed(zones, AddressRoute(addresses, {0: 2}, {9: 2}, {}))], 100)
    _, tree = write("BTREE", rows)
    _, bits = write("BITMAP", rows)
    with pytest.raises(InvalidRequestError, match="one kind"):
        merged([Routed(bits, all_rows(2)), Routed(tree, all_rows(2))], 100)
    nans = pa.array(np.array([np.nan, -np.nan]))
    _, doubtful = write("BITMAP", IndexedRows(nans, np.arange(2, dtype=np.uint64)))
    with pytest.raises(UnusableSegmentError, match="NaN"):
        merged([Routed(doubtful, all_rows(2))], 100)
