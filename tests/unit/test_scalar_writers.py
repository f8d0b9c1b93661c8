"""Writers of scalar indices at their edges, read back by our readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.encodings.version import FileVersion
from lance_core.expr.index_query import AnyOf, Between, HasLabels, IsNull
from lance_core.ids import FieldId
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.scalar.writers.bloom_filter import filter_bytes
from lance_core.index.scalar.writers.indexed_rows import IndexedRows
from lance_core.index.scalar.writers.segment_writer import segment_writer
from lance_core.index.segment_files import SegmentFiles
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.table.base_paths import Place
from lance_core.table.index_metadata import IndexMetadata
from tests.scalar_indices import check_answer, found, rows_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.index.scalar.segment import ScalarSegment

MEMORY = 1 << 20
KINDS = ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"]


def written(kind: str, column: pa.Array, pieces: Iterable[IndexedRows]) -> ScalarSegment:
    """Write a segment of a column and open it."""
    store = MemoryStore()
    files = SegmentFiles(store, "segment", FileVersion.V2_2)
    writer = segment_writer(IndexKind(kind), column.type, {}, has_stable_row_ids=False)
    writer.write(pieces, files, MEMORY)
    metadata = IndexMetadata(
        uuid="00000000-0000-0000-0000-00000000000a",
        name="c_idx",
        field_ids=(FieldId(0),),
        dataset_version=1,
        fragment_bitmap=BitMap([0]),
        type_name=writer.details.type_url.rpartition(".")[2],
        details=writer.details.value,
        index_version=writer.details.index_version,
        created_at_ms=None,
        files=files.finished,
        base_id=None,
    )
    field = schema_from_arrow(pa.schema([("c", column.type)])).fields[0]
    place = Place(RangeScheduler(store), "segment")
    return open_scalar_segment(place, metadata, ByteCache(1 << 24), field)


def whole(column: pa.Array) -> list[IndexedRows]:
    return [IndexedRows(column, np.arange(len(column), dtype=np.uint64))]


@pytest.mark.parametrize("kind", [*KINDS, "LABEL_LIST", "NGRAM"])
def test_a_segment_of_no_rows_can_be_opened_and_finds_none(kind: str) -> None:
    types = {"LABEL_LIST": pa.list_(pa.int32()), "NGRAM": pa.string()}
    column = pa.array([], types.get(kind, pa.int32()))
    segment = written(kind, column, [])
    assert str(segment.kind) == kind
    if kind in KINDS:
        assert rows_in(found(segment, IsNull()).possible) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_nulls_is_found_by_is_null_only(kind: str) -> None:
    column = pa.nulls(5, pa.int32())
    segment = written(kind, column, whole(column))
    assert rows_in(found(segment, IsNull()).certain) == {0: [0, 1, 2, 3, 4]}
    assert rows_in(found(segment, AnyOf(pa.array([0], pa.int32()))).certain) == {}


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_pieces_may_be_slices_of_larger_arrays(kind: str) -> None:
    column = pa.array(["x", "b", None, "a", "b", "y", "a"])
    names = np.arange(7, dtype=np.uint64)
    pieces = [IndexedRows(column.slice(n, 2), names[n : n + 2]) for n in (1, 3, 5)]
    segment = written(kind, column, pieces)
    for query in (Between(None, None), AnyOf(pa.array(["a", "b"])), IsNull()):
        check_answer(segment, query, column.slice(1), names[1:])


def test_a_null_list_counts_as_null_whatever_elements_it_hides() -> None:
    values, offsets = pa.array([1, 2, 3, 4, 5]), pa.array([0, 2, 3, 5], pa.int32())
    column = pa.ListArray.from_arrays(offsets, values, mask=pa.array([False, True, False]))
    segment = written("LABEL_LIST", column, whole(column))
    query = HasLabels(pa.array([3, 4]), needs_all=False)
    answer = found(segment, query, with_nulls=True)
    assert rows_in(answer.certain) == {0: [2]}
    assert answer.nulls is not None
    assert rows_in(answer.nulls) == {0: [1]}


@pytest.mark.parametrize(
    ("values", "probability", "size"),
    [(1, 0.01, 32), (17, 1e-5, 128), (500, 0.3, 512), (8192, 0.00057, 32768)],
)
def test_a_filter_is_as_large_as_that_of_pylance(
    values: int, probability: float, size: int
) -> None:
    assert filter_bytes(values, probability) == size  # as pylance 14.0.2 chose


def test_a_filter_has_128_mebibytes_at_most() -> None:
    assert filter_bytes(1 << 30, 1e-9) == 128 << 20
