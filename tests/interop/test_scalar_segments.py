"""Scalar index segments that pylance wrote, against a look at every value."""

from __future__ import annotations

import decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.indices import IndexConfig
from pyroaring import BitMap

import lance_core
from lance_core.cache.byte_cache import ByteCache
from lance_core.expr.index_query import AnyOf, Between, HasLabels, IsNull, StartsWith
from lance_core.index.registry import IndexKind, UnusableSegmentError
from lance_core.index.scalar.answer import united
from lance_core.index.scalar.fragment_rows import intersect
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.io.metering import metered
from lance_core.kernels.warm import warm_kernels
from lance_core.row_set import bitmaps_by_fragment
from tests.kernel_signatures import num_signatures
from tests.scalar_indices import found, holds, is_doubtful

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.answer import RowAnswer
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.segment import ScalarSegment
    from lance_core.table.snapshot import Snapshot
    from tests.interop.conftest import OldDataset

pytestmark = pytest.mark.interop

ROWS, ROWS_LATER = 600, 150
PAGE_ROWS = 64
LABELS = {"labels": pa.list_(pa.string()), "wide_labels": pa.large_list(pa.int32())}
OLD_RELEASES = ["0.20.0", "1.0.4", "10.0.0"]


def with_nulls(values: pa.Array) -> pa.Array:
    is_kept = pa.array(np.arange(len(values)) % 17 != 3)
    return pc.if_else(is_kept, values, pa.scalar(None, values.type))


def typed_table(num_rows: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    whole = generator.integers(-40, 40, num_rows)
    natural = pa.array(whole + 40)
    texts = pa.array([f"k{each:02d}" if each % 7 else "" for each in whole + 40])
    halves = whole / 2
    halves[::13], halves[1::29] = np.nan, -np.nan
    halves[[5, 6, 8, 9]] = [-0.0, 0.0, np.inf, -np.inf]
    decimals = [decimal.Decimal(int(each)) / 4 for each in whole]
    columns = {
        **{f"i{n}": pa.array(whole).cast(f"int{n}") for n in (8, 16, 32, 64)},
        **{f"u{n}": natural.cast(f"uint{n}") for n in (8, 16, 32, 64)},
        **{f"f{n}": pa.array(halves.astype(f"float{n}")) for n in (16, 32, 64)},
        "bool": pa.array(whole > 0),
        **{name: texts.cast(name) for name in ("string", "large_string", "binary", "large_binary")},
        "fixed": pa.array([bytes([each, 255 - each]) for each in whole + 40], pa.binary(2)),
        "decimal": pa.array(decimals, pa.decimal128(12, 2)),
        "wide_decimal": pa.array(decimals, pa.decimal256(50, 2)),
        "date": pa.array(whole.astype(np.int32)).cast(pa.date32()),
        "long_date": pa.array(whole * 86_400_000).cast(pa.date64()),
        "time": natural.cast(pa.int32()).cast(pa.time32("s")),
        "long_time": natural.cast(pa.time64("us")),
        **{f"ts_{unit}": pa.array(whole).cast(pa.timestamp(unit)) for unit in ("s", "ms", "ns")},
        "zoned": pa.array(whole).cast(pa.timestamp("us", "America/New_York")),
        "duration": pa.array(whole).cast(pa.duration("ms")),
    }
    lengths = generator.integers(0, 6, num_rows)
    labels = [[None if n == 3 else n for n in generator.integers(0, 9, size)] for size in lengths]
    columns["labels"] = pa.array(
        [[None if n is None else f"l{n}" for n in each] for each in labels], LABELS["labels"]
    )
    columns["wide_labels"] = pa.array(labels, LABELS["wide_labels"])
    return pa.table({name: with_nulls(values) for name, values in columns.items()})


def build(root: Path, version: Any) -> None:
    """Write two fragments, index each column, and index a third fragment in segments of its own."""
    dataset = lance.write_dataset(
        typed_table(ROWS, 1), str(root), max_rows_per_file=ROWS // 2, data_storage_version=version
    )
    dataset.delete("i64 = 13")
    for name in dataset.schema.names:
        if name in LABELS:
            dataset.create_scalar_index(name, "LABEL_LIST", name=f"{name}_labels")
        else:
            btree = IndexConfig("btree", {"zone_size": PAGE_ROWS})
            dataset.create_scalar_index(name, btree, name=f"{name}_btree")
            dataset.create_scalar_index(name, "BITMAP", name=f"{name}_bitmap")
    dataset = lance.write_dataset(typed_table(ROWS_LATER, 2), str(root), mode="append")
    dataset.optimize.optimize_indices(num_indices_to_merge=0)


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def snapshot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    root = tmp_path_factory.mktemp(f"typed-{request.param}") / "t.lance"
    build(root, request.param)
    return lance_core.open_dataset(str(root)).snapshot


def segments_of(snapshot: Snapshot, name: str) -> list[ScalarSegment]:
    metadata = [each for each in snapshot.indices if each.name == name]
    fields = {field.id: field for field in snapshot.schema.fields}
    cache = ByteCache(1 << 24)
    return [
        open_scalar_segment(snapshot.index_place(each), each, cache, fields[each.field_ids[0]])
        for each in metadata
    ]


def answer_of(segments: list[ScalarSegment], query: LeafQuery) -> RowAnswer:
    assert all(segment.supports(query) for segment in segments)
    return united([found(segment, query, with_nulls=True) for segment in segments])


@cache
def live_values(snapshot: Snapshot) -> pa.Table:
    dataset = lance.dataset(str(snapshot.scheduler.store.key).removeprefix("file://"))
    return dataset.to_table(with_row_address=True)


def queries_of(values: pa.Array) -> Iterator[LeafQuery]:
    some = values.drop_null()
    first, other = some[0], some[20]
    yield AnyOf(some.slice(3, 1))
    yield AnyOf(some.slice(0, 30))
    yield Between(first, other)
    yield Between(other, first, includes_lower=False)
    yield Between(None, first, includes_upper=False)
    yield Between(other, None, includes_lower=False, includes_upper=False)
    yield Between(None, None)
    yield IsNull()
    if pa.types.is_floating(values.type):
        for each in (0.0, -0.0, np.nan, -np.nan):
            number = np.array([each], values.type.to_pandas_dtype())
            yield AnyOf(pa.array(number, values.type))
            yield Between(None, pa.array(number, values.type)[0], includes_upper=False)
    if values.type in {pa.string(), pa.large_binary()}:
        for prefix in (b"k1", b"", b"zzz", b"\xff"):
            if prefix != b"\xff" or values.type != pa.string():
                yield StartsWith(pa.scalar(prefix, pa.binary()).cast(values.type), is_exact=True)


def label_queries(values: pa.Array) -> Iterator[LeafQuery]:
    known = values.flatten().unique()
    for size, needs_all in ((1, True), (2, True), (3, False), (len(known), False)):
        yield HasLabels(known.slice(0, size), needs_all=needs_all)
    yield HasLabels(pa.array([None], known.type), needs_all=False)


def test_every_type_is_found_by_every_index(snapshot: Snapshot) -> None:
    table = live_values(snapshot)
    names = table["_rowaddr"].to_numpy()
    for index in sorted({each.name for each in snapshot.indices}):
        column = index.rpartition("_")[0]
        values = table[column].combine_chunks()
        segments = segments_of(snapshot, index)
        assert len(segments) == 2
        queries = label_queries(values) if column in LABELS else queries_of(values)
        for query in queries:
            if any(is_doubtful(segment, query, values) for segment in segments):
                assert not all(segment.supports(query) for segment in segments)
                continue
            answer = answer_of(segments, query)
            assert answer.certain == rows_of(names, holds(query, values)), (index, query)
            assert answer.is_exact
            if not isinstance(query, IsNull):
                is_null = values.is_null().to_numpy(zero_copy_only=False)
                assert answer.nulls == rows_of(names, is_null), (index, query)


def rows_of(names: NDArray[np.uint64], wanted: NDArray[np.bool_]) -> FragmentRows:
    return bitmaps_by_fragment(names[wanted])


@pytest.mark.parametrize("release", OLD_RELEASES)
def test_segments_of_older_writers_find_the_same_rows(
    release: str, old_dataset: OldDataset
) -> None:
    snapshot = lance_core.open_dataset(str(old_dataset(release, "scalar"))).snapshot
    table = live_values(snapshot)
    names = table["_rowaddr"].to_numpy()
    fields = {field.id: field.name for field in snapshot.schema.fields}
    everything = rows_of(names, names >= 0)
    kinds = set()
    for metadata in snapshot.indices:
        values = table[fields[metadata.field_ids[0]]].combine_chunks()
        if metadata.type_name.startswith(("Inverted", "ZoneMap")):
            continue
        if release == "0.20.0" and metadata.type_name == "BTreeIndexDetails":
            with pytest.raises(UnusableSegmentError, match=r"0\.2"):
                segments_of(snapshot, metadata.name)
            continue
        (segment,) = segments_of(snapshot, metadata.name)
        kinds.add(segment.kind)
        coverage = metadata.fragment_bitmap or BitMap()
        covered = {key: rows for key, rows in everything.items() if key in coverage}
        is_list = segment.kind is IndexKind.LABEL_LIST
        for query in label_queries(values) if is_list else queries_of(values):
            answer = found(segment, query, with_nulls=True)
            expected = rows_of(names, holds(query, values))
            assert intersect(answer.certain, covered) == intersect(expected, covered), query
            if segment.knows_nulls and not isinstance(query, IsNull):
                nulls = rows_of(names, values.is_null().to_numpy(zero_copy_only=False))
                assert intersect(answer.nulls or {}, covered) == intersect(nulls, covered)
    expected_kinds = {IndexKind.BITMAP, IndexKind.LABEL_LIST}
    assert kinds == (expected_kinds if release == "0.20.0" else {IndexKind.BTREE, *expected_kinds})


def test_on_stable_row_ids_a_btree_names_addresses_and_a_bitmap_ids(tmp_path: Path) -> None:
    root = tmp_path / "t.lance"
    table = pa.table({"a": np.arange(90), "b": np.arange(90) % 4})
    dataset = lance.write_dataset(table, root, max_rows_per_file=30, enable_stable_row_ids=True)
    dataset.delete("a % 7 = 0")
    dataset.optimize.compact_files()
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("b", "BITMAP")
    stored = dataset.to_table(with_row_id=True, with_row_address=True)
    snapshot = lance_core.open_dataset(str(root)).snapshot
    for column, column_of_names, names in (("a", "_rowaddr", "address"), ("b", "_rowid", "row_id")):
        (segment,) = segments_of(snapshot, f"{column}_idx")
        assert segment.names_rows_by == names
        values = stored[column].combine_chunks()
        query = AnyOf(pa.array([1, 3, 50]))
        expected = rows_of(stored[column_of_names].to_numpy(), holds(query, values))
        assert found(segment, query).certain == expected


def test_a_search_reads_the_small_part_and_what_it_hits_once(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    num_rows = 200_000
    table = pa.table(
        {
            "a": generator.permutation(num_rows),
            "b": generator.integers(0, 200, num_rows),
            "tags": pa.array([[f"t{n}"] for n in generator.integers(0, 50, num_rows)]),
        }
    )
    root = tmp_path / "t.lance"
    dataset = lance.write_dataset(table, root, max_rows_per_file=num_rows // 2)
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("b", "BITMAP")
    dataset.create_scalar_index("tags", "LABEL_LIST")
    snapshot = lance_core.open_dataset(str(root)).snapshot
    tails = 64 << 10  # of each file, which at once says where everything is
    for column, query, most_bytes in (
        ("a", AnyOf(pa.array([77])), tails + (40 << 10)),
        ("b", AnyOf(pa.array([7])), tails + (12 << 10)),
        ("tags", HasLabels(pa.array(["t7"]), needs_all=False), tails + (40 << 10)),
    ):
        sizes = [file.size for each in snapshot.indices for file in each.files]
        assert len(sizes) == 4
        with metered() as meter:
            (segment,) = segments_of(snapshot, f"{column}_idx")
            assert len(found(segment, query).certain) > 0
        assert 0 < meter.bytes_read <= most_bytes
        with metered() as meter:
            found(segment, query)
        assert meter.bytes_read == 0


def test_no_kernel_is_compiled_during_a_search(tmp_path: Path) -> None:
    num_rows = 100_000
    table = pa.table(
        {
            "a": np.arange(num_rows),
            "b": np.arange(num_rows) % 20_000,
            "c": [f"key {n % 3000}" for n in range(num_rows)],
        }
    )
    dataset = lance.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=num_rows // 2)
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("b", "BITMAP")
    dataset.create_scalar_index("c", "BTREE")
    snapshot = lance_core.open_dataset(str(tmp_path / "t.lance")).snapshot
    warm_kernels()
    before = num_signatures()
    for column in ("a", "b", "c"):
        (segment,) = segments_of(snapshot, f"{column}_idx")
        values = table[column].combine_chunks()
        for query in (AnyOf(values.slice(50, 900)), Between(values[7], None), Between(None, None)):
            assert len(found(segment, query).certain) > 0
    assert num_signatures() == before


def test_null_rows_are_read_only_if_they_are_asked_for(tmp_path: Path) -> None:
    values = pa.array([None] * 20_000 + list(range(20_000)))
    root = tmp_path / "t.lance"
    dataset = lance.write_dataset(pa.table({"a": values, "b": values}), root)
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("b", "BITMAP")
    snapshot = lance_core.open_dataset(str(root)).snapshot
    for name in ("a_idx", "b_idx"):
        (segment,) = segments_of(snapshot, name)
        query = AnyOf(pa.array([15_000]))
        assert found(segment, query).nulls is None
        with metered() as meter:
            answer = found(segment, query, with_nulls=True)
        assert meter.bytes_read > 0
        assert answer.nulls == bitmaps_by_fragment(np.arange(20_000, dtype=np.uint64))
        with metered() as meter:
            found(segment, query, with_nulls=True)
        assert meter.bytes_read == 0
