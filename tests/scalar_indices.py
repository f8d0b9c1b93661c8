"""Scalar indices for tests: files as pylance lays them out, and what they should answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field as attribute
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.encodings.version import FileVersion
from lance_core.expr.index_query import AnyOf, Between, HasLabels, IsNull, StartsWith
from lance_core.file.writer import LanceFileWriter
from lance_core.ids import FieldId
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.scalar.tree_map import encode_tree_map
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.row_set import bitmaps_by_fragment
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.table.base_paths import Place
from lance_core.table.index_metadata import IndexMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.answer import RowAnswer
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.segment import ScalarSegment
    from lance_core.schema.field import LanceField

Key = tuple[Any, ...]
"""0 for null; 1 and what is compared for a value."""

UUID = "00000000-0000-0000-0000-00000000000a"
DETAILS = {
    "BTREE": "BTreeIndexDetails",
    "BITMAP": "BitmapIndexDetails",
    "LABEL_LIST": "LabelListIndexDetails",
}


@dataclass
class WrittenSegment:
    """The files of a segment in memory, which a test may change before it opens them."""

    kind: str
    column: pa.Field
    files: dict[str, pa.Table]
    metadata: dict[str, dict[str, str]] = attribute(default_factory=dict)
    buffers: dict[str, list[bytes]] = attribute(default_factory=dict)
    version: str = "2.2"
    index_version: int = 0
    type_name: str | None = None

    def store(self) -> MemoryStore:
        store = MemoryStore()
        for name, table in self.files.items():
            with LanceFileWriter(
                store, f"{UUID}/{name}", table.schema, version=FileVersion(self.version)
            ) as writer:
                writer.write_batch(table)
                for buffer in self.buffers.get(name, []):
                    writer.add_global_buffer(buffer)
                for key, value in self.metadata.get(name, {}).items():
                    writer.add_schema_metadata(key, value)
        return store

    def open(
        self, store: MemoryStore | None = None, cache: ByteCache | None = None
    ) -> ScalarSegment:
        place = Place(RangeScheduler(self.store() if store is None else store), UUID)
        metadata = IndexMetadata(
            uuid=UUID,
            name="c_idx",
            field_ids=(FieldId(0),),
            dataset_version=1,
            fragment_bitmap=BitMap([0]),
            type_name=DETAILS[self.kind] if self.type_name is None else self.type_name,
            details=b"",
            index_version=self.index_version,
            created_at_ms=None,
            files=(),
            base_id=None,
        )
        return open_scalar_segment(
            place, metadata, ByteCache(1 << 24) if cache is None else cache, self.lance_field
        )

    @property
    def lance_field(self) -> LanceField:
        return schema_from_arrow(pa.schema([self.column])).fields[0]


def btree(values: pa.Array, names: NDArray[np.uint64], page_rows: int = 4) -> WrittenSegment:
    """Lay out a BTREE of ``values``, row ``i`` of which is called ``names[i]``."""
    order = sorted(range(len(values)), key=sort_keys(values).__getitem__)
    ordered = values.take(pa.array(order, pa.int64()))
    starts = range(0, len(ordered), page_rows)
    pages = [ordered.slice(start, page_rows) for start in starts]
    kind = values.type
    lookup = pa.table(
        {
            "min": _joined([page.slice(0, 1) for page in pages], kind),
            "max": _joined([page.slice(len(page) - 1, 1) for page in pages], kind),
            "null_count": pa.array([page.null_count for page in pages], pa.uint32()),
            "page_idx": pa.array(range(len(pages)), pa.uint32()),
        }
    )
    data = pa.table({"values": ordered, "ids": pa.array(names[order], pa.uint64())})
    metadata = {"batch_size": str(page_rows), "range_partitioned": "false"}
    return WrittenSegment(
        "BTREE",
        pa.field("c", kind),
        {"page_lookup.lance": lookup, "page_data.lance": data},
        {"page_lookup.lance": metadata},
    )


def bitmap(
    values: pa.Array, names: NDArray[np.uint64], *, is_shuffled: bool = False
) -> WrittenSegment:
    """Lay out a BITMAP of ``values``, with its keys in order or as older writers left them."""
    keys = sort_keys(values)
    rows: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    ordered = sorted(rows)
    if is_shuffled:
        np.random.default_rng(3).shuffle(ordered)
    firsts = values.take(pa.array([rows[key][0] for key in ordered], pa.int64()))
    sets = [bitmaps_by_fragment(names[rows[key]]) for key in ordered]
    return _set_file("BITMAP", pa.field("c", values.type), firsts, sets)


def label_list(lists: pa.Array, names: NDArray[np.uint64]) -> WrittenSegment:
    """Lay out a LABEL_LIST."""
    rows: dict[object, set[int]] = {}
    for row, labels in enumerate(lists.to_pylist()):
        for label in labels or []:
            rows.setdefault(label, set()).add(row)
    keys = pa.array(list(rows), lists.type.value_type)
    sets = [bitmaps_by_fragment(names[sorted(found)]) for found in rows.values()]
    segment = _set_file("LABEL_LIST", pa.field("c", lists.type), keys, sets)
    nulls = names[lists.is_null().to_numpy(zero_copy_only=False)]
    segment.buffers = {"bitmap_page_lookup.lance": [encode_tree_map(bitmaps_by_fragment(nulls))]}
    segment.metadata["bitmap_page_lookup.lance"]["lance:label_list_nulls"] = "1"
    segment.index_version = 1
    return segment


def _set_file(
    kind: str, column: pa.Field, keys: pa.Array, sets: Sequence[FragmentRows]
) -> WrittenSegment:
    table = pa.table(
        {"keys": keys, "bitmaps": pa.array([encode_tree_map(each) for each in sets], pa.binary())}
    )
    stats = {"lance:index_stats": json.dumps({"num_bitmaps": len(sets)})}
    file = "bitmap_page_lookup.lance"
    return WrittenSegment(kind, column, {file: table}, {file: stats})


def sort_keys(values: pa.Array) -> list[Key]:
    """Return what Python sorts as an index does: nulls first, floats in total order."""
    plain = values
    if pa.types.is_floating(values.type):
        width = values.type.bit_width
        signed = np.dtype(f"i{width // 8}")
        bits = [int(each) for each in values.fill_null(0).to_numpy().view(signed)]
        plain = pa.array([each if each >= 0 else -1 - (each + 2 ** (width - 1)) for each in bits])
    elif pa.types.is_temporal(values.type):
        plain = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return [
        (0, 0) if is_null else (1, each.encode() if isinstance(each, str) else each)
        for each, is_null in zip(plain.to_pylist(), values.is_null().to_pylist(), strict=True)
    ]


def holds(query: LeafQuery, values: pa.Array) -> NDArray[np.bool_]:
    """Tell for each value whether a query asks for it; null ones are not, but by `IsNull`."""
    match query:
        case IsNull():
            return np.array(values.is_null().to_pylist(), np.bool_)
        case HasLabels(labels, needs_all):
            wanted = set(labels.to_pylist())
            return np.array(
                [
                    each is not None and (wanted <= set(each) if needs_all else wanted & set(each))
                    for each in values.to_pylist()
                ],
                np.bool_,
            )
    is_wanted = _test(query)
    return np.array([key[0] == 1 and is_wanted(key) for key in sort_keys(values)], np.bool_)


def _test(query: LeafQuery) -> Callable[[Key], bool]:
    """Return what tells of a key that is not null whether it is asked for."""
    match query:
        case AnyOf(values):
            return set(sort_keys(values)).__contains__
        case Between(lower, upper):
            low = (1,) if lower is None else sort_keys(pa.repeat(lower, 1))[0]
            high = (2,) if upper is None else sort_keys(pa.repeat(upper, 1))[0]
            return lambda key: (
                (key > low or (query.includes_lower and key == low))
                and (key < high or (query.includes_upper and key == high))
            )
        case StartsWith(prefix):
            start = prefix.as_py()
            first = start.encode() if isinstance(start, str) else start
            return lambda key: isinstance(key[1], bytes) and key[1].startswith(first)
    raise AssertionError(query)


def is_doubtful(segment: ScalarSegment, query: LeafQuery, values: pa.Array) -> bool:
    """Tell whether a query asks a BITMAP for a NaN, and there are NaNs of both signs."""
    if segment.kind is not IndexKind.BITMAP or not pa.types.is_floating(values.type):
        return False
    numbers = values.drop_null().to_numpy()
    are_nan, are_negative = np.isnan(numbers), np.signbit(numbers)
    wanted = holds(query, values.drop_null())
    return bool((are_nan & are_negative).any() and (are_nan & ~are_negative & wanted).any())


def check_answer(
    segment: ScalarSegment, query: LeafQuery, values: pa.Array, names: NDArray[np.uint64]
) -> None:
    """Check what a segment answers against a look at every value, null rows asked for or not."""
    assert segment.supports(query) == (not is_doubtful(segment, query, values))
    if not segment.supports(query):
        return
    expected = bitmaps_by_fragment(names[holds(query, values)])
    for with_nulls in (False, True):
        answer = found(segment, query, with_nulls=with_nulls)
        assert answer.possible == expected
        is_rough = isinstance(query, StartsWith) and not query.is_exact
        assert answer.certain == ({} if is_rough else expected)
        if with_nulls:
            is_null = np.array(values.is_null().to_pylist(), np.bool_)
            nulls = {} if isinstance(query, IsNull) else bitmaps_by_fragment(names[is_null])
            assert answer.nulls == nulls


def found(segment: ScalarSegment, query: LeafQuery, *, with_nulls: bool = False) -> RowAnswer:
    return segment.search(query, with_nulls=with_nulls, check=lambda: None)


def rows_in(rows: FragmentRows) -> Mapping[int, list[int]]:
    return {key: list(bitmap) for key, bitmap in rows.items()}


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.array([], kind), *parts])
