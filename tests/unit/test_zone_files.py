"""Files of zone-based indices and of NGRAM, sound ones of any release and damaged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import CorruptFileError
from lance_core.expr.index_query import AnyOf, Between, ContainsAll, IsNull
from lance_core.file.writer import LanceFileWriter
from lance_core.ids import FieldId
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.scalar.fragment_rows import every_offset
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.scalar.tree_map import encode_tree_map
from lance_core.index.scalar.value_hashes import value_hashes
from lance_core.index.scalar.zone_segment import ZoneSegment
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.table.base_paths import Place
from lance_core.table.index_metadata import IndexMetadata
from lance_core.table.treemap import encode_treemap
from tests.opened_scalar import CACHE_BYTES, ask, names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.index.scalar.segment import ScalarSegment

FILES = {
    "ZoneMap": "zonemap.lance",
    "BloomFilter": "bloomfilter.lance",
    "NGram": "ngram_postings.lance",
}
PLACES = {"fragment_id": [0, 0, 3], "zone_start": [0, 10, 5], "zone_length": [10, 10, 20]}
NULLS = encode_tree_map({0: BitMap([12]), 3: every_offset()})


def written(kind: str, table: pa.Table, *, column: pa.DataType, **metadata: bytes) -> ScalarSegment:
    """Open a segment of one file; values of ``metadata`` become buffers that it names."""
    store = MemoryStore()
    with LanceFileWriter(store, f"_indices/one/{FILES[kind]}", table.schema) as writer:
        writer.write_batch(table)
        for key, data in metadata.items():
            writer.add_schema_metadata(key, str(writer.add_global_buffer(data)))
    index = IndexMetadata(
        "one",
        "index",
        (FieldId(0),),
        1,
        BitMap([0, 3]),
        f"{kind}IndexDetails",
        b"",
        0,
        None,
        (),
        None,
    )
    folder = Place(RangeScheduler(store), "_indices/one")
    field = schema_from_arrow(pa.schema({"c": column})).by_id(FieldId(0))
    return open_scalar_segment(folder, index, ByteCache(CACHE_BYTES), field)


def places(**changed: Any) -> dict[str, pa.Array]:
    return {name: pa.array(numbers, pa.uint64()) for name, numbers in {**PLACES, **changed}.items()}


def zone_map(
    minima: list[Any],
    maxima: list[Any],
    kind: pa.DataType,
    null_counts: tuple[int, ...] = (0, 2, 0),
    nan_counts: tuple[int, ...] = (0, 0, 0),
    **changed: Any,
) -> pa.Table:
    return pa.table(
        {
            "min": pa.array(minima, kind),
            "max": pa.array(maxima, kind),
            "null_count": pa.array(null_counts, pa.uint32()),
            "nan_count": pa.array(nan_counts, pa.uint32()),
            **places(**changed),
        }
    )


def bloom_filters(kind: pa.DataType, values: list[list[Any]], num_blocks: int) -> pa.Table:
    """Return filters of some zones, made bit by bit as the format says."""
    salts = np.frombuffer(
        bytes.fromhex("47b6137b44974d918824ad5ba2b7289d705495c72df1424b9efc49475c6bfb31"), ">u4"
    )
    filters = []
    for members in values:
        bits = np.zeros((num_blocks, 8, 32), np.bool_)
        for number in value_hashes(pa.array(members, kind)).tolist():
            block = (number >> 32) * num_blocks >> 32
            for word, salt in enumerate(salts.tolist()):
                bits[block, word, ((number & 0xFFFFFFFF) * salt & 0xFFFFFFFF) >> 27] = True
        filters.append(np.packbits(bits.ravel(), bitorder="little").tobytes())
    has_null = pa.array([False, True, False])
    return pa.table({**places(), "has_null": has_null, "bloom_filter_data": pa.array(filters)})


def spans(answer_rows: Any) -> dict[int, tuple[int, int, int]]:
    return {key: (rows.min(), rows.max(), len(rows)) for key, rows in answer_rows.items()}


INTS = pa.int32()


def test_zones_that_meet_a_range_are_found_whole() -> None:
    segment = written("ZoneMap", zone_map([0, 5, 50], [9, 20, 60], INTS), column=INTS)
    found = ask(segment, Between(pa.scalar(8, INTS), pa.scalar(20, INTS)))
    assert spans(found.possible) == {0: (0, 19, 20)}
    assert spans(ask(segment, AnyOf(pa.array([4, 55], INTS))).possible) == {
        0: (0, 9, 10),
        3: (5, 24, 20),
    }


def test_open_and_exclusive_bounds_count() -> None:
    segment = written("ZoneMap", zone_map([0, 5, 50], [9, 20, 60], INTS), column=INTS)
    behind = Between(pa.scalar(20, INTS), None, includes_lower=False)
    assert spans(ask(segment, behind).possible) == {3: (5, 24, 20)}
    before = Between(None, pa.scalar(5, INTS), includes_upper=False)
    assert spans(ask(segment, before).possible) == {0: (0, 9, 10)}
    assert len(ask(segment, Between(None, None)).possible) == 2


def test_without_a_set_of_nulls_their_zones_are_looked_at() -> None:
    segment = written("ZoneMap", zone_map([0, 5, 50], [9, 20, 60], INTS), column=INTS)
    assert not segment.knows_nulls
    answer = ask(segment, IsNull(), with_nulls=True)
    assert spans(answer.possible) == {0: (10, 19, 10)}
    assert not answer.is_exact
    assert ask(segment, AnyOf(pa.array([1], INTS)), with_nulls=True).nulls is None


def test_a_set_of_nulls_answers_exactly_and_may_name_whole_fragments() -> None:
    table = zone_map([0, 5, 50], [9, 20, 60], INTS)
    segment = written("ZoneMap", table, column=INTS, null_bitmap=NULLS)
    answer = ask(segment, IsNull())
    assert answer.is_exact
    assert answer.certain[0] == BitMap([12])
    assert answer.certain[3] is every_offset()
    assert ask(segment, AnyOf(pa.array([1], INTS)), with_nulls=True).nulls == answer.certain


def test_zones_of_nothing_but_nulls_are_left_out_and_zones_without_bounds_are_not() -> None:
    table = zone_map([None, None, 50], [None, None, 60], INTS, null_counts=(10, 3, 0))
    segment = written("ZoneMap", table, column=INTS)
    assert spans(ask(segment, AnyOf(pa.array([1], INTS))).possible) == {0: (10, 19, 10)}


def test_nans_of_either_sign_are_looked_for_only_where_a_range_is_open() -> None:
    nan, kind = float("nan"), pa.float64()
    table = zone_map([1.0, None, 5.0], [nan, nan, 6.0], kind, (0, 0, 0), (3, 10, 0))
    segment = written("ZoneMap", table, column=kind)

    def found(lower: float | None, upper: float | None) -> list[tuple[int, int]]:
        low, high = (None if each is None else pa.scalar(each, kind) for each in (lower, upper))
        rows = ask(segment, Between(low, high)).possible
        return [(key, start) for key, start, _ in _zones_of(rows)]

    nan_zones, all_zones = [(0, 0), (0, 10)], [(0, 0), (0, 10), (3, 5)]
    assert found(5.5, 5.5) == [(0, 0), (3, 5)]  # how far the first reaches is not known
    assert found(-9.0, 0.5) == []
    assert found(100.0, None) == nan_zones
    assert found(None, -100.0) == nan_zones
    assert found(None, None) == all_zones
    assert found(nan, None) == nan_zones
    assert found(None, -nan) == nan_zones
    assert found(-nan, 0.5) == nan_zones
    assert found(0.5, nan) == all_zones
    rows = ask(segment, AnyOf(pa.array([nan]))).possible
    assert [(key, start) for key, start, _ in _zones_of(rows)] == nan_zones


def _zones_of(rows: Any) -> list[tuple[int, int, int]]:
    """Return the zones of `PLACES` that a set consists of."""
    return [
        (key, start, length)
        for key, start, length in zip(*PLACES.values(), strict=True)
        if key in rows and start in rows[key]
    ]


def test_zeros_are_found_whichever_sign_the_bounds_have() -> None:
    for bound in (0.0, -0.0):
        table = zone_map([bound, 1.0, 2.0], [bound, 1.0, 2.0], pa.float32())
        segment = written("ZoneMap", table, column=pa.float32())
        for zero in (0.0, -0.0):
            value = pa.scalar(zero, pa.float32())
            assert spans(ask(segment, Between(value, value)).possible) == {0: (0, 9, 10)}


@pytest.mark.parametrize(
    "kind", [pa.binary(2), pa.dictionary(pa.int32(), pa.string()), pa.list_(INTS)]
)
def test_columns_without_bounds_are_asked_for_nulls_only(kind: pa.DataType) -> None:
    empty = [None, None, None]
    segment = written("ZoneMap", zone_map(empty, empty, kind), column=kind)
    assert segment.supports(IsNull())
    assert not segment.supports(AnyOf(pa.array([None], kind)))
    assert not segment.supports(Between(None, None))


def test_values_of_another_type_are_not_looked_for() -> None:
    segment = written("ZoneMap", zone_map([0, 5, 50], [9, 20, 60], INTS), column=INTS)
    assert not segment.supports(AnyOf(pa.array([1], pa.int64())))
    assert not segment.supports(ContainsAll(("abc",)))


@pytest.mark.parametrize("kind", ["ZoneMap", "BloomFilter"])
@pytest.mark.parametrize(
    "changed",
    [
        {"zone_start": [0, 2**32, 5]},
        {"fragment_id": [0, 0, 2**32]},
        {"fragment_id": [0, None, 3]},
    ],
)
def test_zones_outside_all_fragments_are_damage(kind: str, changed: dict[str, Any]) -> None:
    if kind == "ZoneMap":
        table = zone_map([0, 5, 50], [9, 20, 60], INTS, **changed)
    else:
        table = bloom_filters(INTS, [[1], [2], [3]], 1)
        for name, numbers in places(**changed).items():
            table = table.set_column(table.schema.get_field_index(name), name, numbers)
    with pytest.raises(CorruptFileError):
        written(kind, table, column=INTS)


@pytest.mark.parametrize("length", [2**32 - 9, 2**64 - 1])
def test_zones_that_end_before_they_begin_make_a_segment_unusable(length: int) -> None:
    table = zone_map([0, 5, 50], [9, 20, 60], INTS, zone_length=[10, length, 20])
    with pytest.raises(UnusableSegmentError, match="rebuild"):
        written("ZoneMap", table, column=INTS)


def test_zones_without_rows_find_nothing() -> None:
    table = zone_map([0, 5, 50], [9, 20, 60], INTS, zone_length=[0, 10, 20])
    segment = written("ZoneMap", table, column=INTS)
    assert ask(segment, AnyOf(pa.array([3], INTS))).possible == {}


@pytest.mark.parametrize("kind", ["ZoneMap", "BloomFilter"])
def test_a_segment_without_zones_finds_nothing(kind: str) -> None:
    tables = {
        "ZoneMap": zone_map([0, 5, 50], [9, 20, 60], INTS),
        "BloomFilter": bloom_filters(INTS, [[1], [2], [3]], 1),
    }
    segment = written(kind, tables[kind].slice(0, 0), column=INTS)
    assert ask(segment, IsNull()).possible == {}
    if segment.supports(AnyOf(pa.array([3], INTS))):
        assert ask(segment, AnyOf(pa.array([3], INTS))).possible == {}


@pytest.mark.parametrize("text", ["0", "2", "x", "-1", ""])
def test_a_set_of_nulls_that_is_not_there_is_damage(text: str) -> None:
    table = zone_map([0, 5, 50], [9, 20, 60], INTS).replace_schema_metadata({"null_bitmap": text})
    with pytest.raises(CorruptFileError, match="null_bitmap"):
        written("ZoneMap", table, column=INTS)


def test_columns_that_are_missing_or_of_another_type_make_a_segment_unusable() -> None:
    table = zone_map([0, 5, 50], [9, 20, 60], INTS)
    with pytest.raises(UnusableSegmentError, match="nan_count"):
        written("ZoneMap", table.drop_columns(["nan_count"]), column=INTS)
    with pytest.raises(UnusableSegmentError, match="min"):
        written("ZoneMap", table, column=pa.int64())


@pytest.mark.parametrize("num_blocks", [1, 3, 64])
def test_filters_of_any_number_of_blocks_are_asked(num_blocks: int) -> None:
    table = bloom_filters(pa.string(), [["a", "b"], ["c"], []], num_blocks)
    segment = written("BloomFilter", table, column=pa.string())
    assert spans(ask(segment, AnyOf(pa.array(["b"]))).possible) == {0: (0, 9, 10)}
    assert spans(ask(segment, AnyOf(pa.array(["x", "c"]))).possible) == {0: (10, 19, 10)}
    assert ask(segment, AnyOf(pa.array(["x"]))).possible == {}
    assert spans(ask(segment, IsNull()).possible) == {0: (10, 19, 10)}
    assert not segment.supports(Between(None, pa.scalar("x")))


@pytest.mark.parametrize("data", [b"", b"1234", bytes(33), None])
def test_filters_of_a_wrong_length_are_damage(data: bytes | None) -> None:
    table = bloom_filters(INTS, [[1], [2], [3]], 1)
    filters = pa.array([bytes(32), data, bytes(32)], pa.binary())
    place = table.schema.get_field_index("bloom_filter_data")
    segment = written(
        "BloomFilter", table.set_column(place, "bloom_filter_data", filters), column=INTS
    )
    with pytest.raises(CorruptFileError):
        ask(segment, AnyOf(pa.array([1], INTS)))


def ngram(tokens: pa.Array, postings: Sequence[bytes | None]) -> pa.Table:
    return pa.table({"tokens": tokens, "posting_list": pa.array(postings, pa.binary())})


QUI = [38129]


def test_postings_of_several_fragments_and_forms_are_read() -> None:
    rows = {0: BitMap([1, 5]), 7: BitMap(range(70_000))}
    table = ngram(pa.array([0, *QUI], pa.uint32()), [encode_treemap({}), encode_treemap(rows)])
    segment = written("NGram", table, column=pa.string())
    assert ask(segment, ContainsAll(("QUI",))).possible == rows
    assert names(ask(segment, ContainsAll(("quix",))).possible) == []


def test_files_that_name_trigrams_by_letters_ask_for_a_rebuild() -> None:
    table = ngram(pa.array(["qui"]), [encode_treemap({0: BitMap([1])})])
    with pytest.raises(UnusableSegmentError, match="rebuild"):
        written("NGram", table, column=pa.string())


def test_trigrams_out_of_order_are_damage() -> None:
    postings = [encode_treemap({0: BitMap([1])})] * 2
    for tokens in ([5, 5], [7, 5], [None, 5]):
        with pytest.raises(CorruptFileError):
            written("NGram", ngram(pa.array(tokens, pa.uint32()), postings), column=pa.string())


@pytest.mark.parametrize("data", [b"", b"\1", None, encode_treemap({0: BitMap([1])})[:-1]])
def test_postings_that_cannot_be_read_are_damage(data: bytes | None) -> None:
    segment = written("NGram", ngram(pa.array(QUI, pa.uint32()), [data]), column=pa.string())
    with pytest.raises(CorruptFileError):
        ask(segment, ContainsAll(("qui",)))


@pytest.mark.parametrize(
    ("starts", "lengths", "lacks_rows"),
    [
        ([0, 10, 0], [10, 10, 9], False),  # nothing was deleted
        ([2, 12, 0], [8, 8, 9], False),  # some rows were, at the start and between
        ([0, 10, 0], [10, 8, 9], True),  # the last ones were, or any by 0.39
        ([0, 10, 0], [10, 10, 4], True),  # the last zone begins in one fragment and ends in another
    ],
)
def test_zones_of_early_releases_may_lack_rows(
    starts: list[int], lengths: list[int], lacks_rows: bool
) -> None:
    table = zone_map([0, 5, 50], [9, 20, 60], INTS, zone_start=starts, zone_length=lengths)
    num_rows = {0: 20, 3: 9}
    old = written("ZoneMap", table, column=INTS)
    assert isinstance(old, ZoneSegment)
    assert old.may_lack_rows(num_rows) is lacks_rows
    assert not old.may_lack_rows({9: 100})
    recent = written("ZoneMap", table, column=INTS, null_bitmap=NULLS)
    assert isinstance(recent, ZoneSegment)
    assert not recent.may_lack_rows(num_rows)


def test_a_fragment_without_any_zone_lacks_rows() -> None:
    table = zone_map([0, 5, 50], [9, 20, 60], INTS, fragment_id=[0, 0, 0], zone_start=[0, 10, 20])
    segment = written("ZoneMap", table, column=INTS)
    assert isinstance(segment, ZoneSegment)
    assert not segment.may_lack_rows({0: 40})
    assert segment.may_lack_rows({0: 40, 3: 1})


def test_zones_may_stand_in_any_order() -> None:
    table = zone_map([0, 5, 50], [9, 20, 60], INTS, fragment_id=[3, 0, 3], zone_start=[5, 0, 0])
    table = table.set_column(6, "zone_length", pa.array([5, 10, 5], pa.uint64()))
    segment = written("ZoneMap", table, column=INTS)
    assert spans(ask(segment, Between(None, None)).possible) == {0: (0, 9, 10), 3: (0, 9, 10)}
    assert isinstance(segment, ZoneSegment)
    assert not segment.may_lack_rows({0: 10, 3: 10})
    assert segment.may_lack_rows({0: 10, 3: 11})
