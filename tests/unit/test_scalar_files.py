"""What scalar index files may look like, and what is damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.expr.index_query import (
    AnyOf,
    Between,
    ContainsAll,
    HasLabels,
    IsNull,
    StartsWith,
)
from lance_core.index.registry import IndexKind, UnusableSegmentError
from lance_core.index.scalar.fragment_rows import every_offset
from lance_core.index.scalar.tree_map import encode_tree_map
from tests.scalar_indices import bitmap, btree, check_answer, found, label_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.scalar_indices import WrittenSegment

LOOKUP, DATA, SETS = "page_lookup.lance", "page_data.lance", "bitmap_page_lookup.lance"
VALUES = pa.array([5, None, 3, 3, 9, 1, None, 7, 3, 8], pa.int64())
NAMES = np.arange(10, dtype=np.uint64)
EVERYTHING = Between(None, None)


def written() -> WrittenSegment:
    return btree(VALUES, NAMES, 3)


def with_column(segment: WrittenSegment, file: str, name: str, values: pa.Array) -> WrittenSegment:
    table = segment.files[file]
    segment.files[file] = table.set_column(table.schema.get_field_index(name), name, values)
    return segment


def three(value: int) -> AnyOf:
    return AnyOf(pa.array([value], pa.int64()))


def test_the_id_column_of_older_writers_has_another_name() -> None:
    segment = written()
    segment.files[DATA] = segment.files[DATA].rename_columns(["values", "row_ids"])
    del segment.metadata[LOOKUP]["range_partitioned"]
    check_answer(segment.open(), three(3), VALUES, NAMES)


@pytest.mark.parametrize(("index_version", "names"), [(0, "row_id"), (1, "address")])
def test_the_version_of_a_btree_says_how_it_names_rows(index_version: int, names: str) -> None:
    segment = written()
    segment.index_version = index_version
    assert segment.open().names_rows_by == names
    assert bitmap(VALUES, NAMES).open().names_rows_by == "row_id"


def test_pages_may_lie_in_the_file_in_another_order() -> None:
    segment = btree(VALUES, NAMES, 5)
    table = segment.files[DATA]
    segment.files[DATA] = pa.concat_tables([table.slice(5), table.slice(0, 5)])
    with_column(segment, LOOKUP, "page_idx", pa.array([1, 0], pa.uint32()))
    for query in (three(3), EVERYTHING, IsNull()):
        check_answer(segment.open(), query, VALUES, NAMES)


def test_an_index_of_no_rows_answers_with_none() -> None:
    for kind in (pa.int64(), pa.string()):
        empty, nobody = pa.array([], kind), np.zeros(0, np.uint64)
        for segment in (btree(empty, nobody), bitmap(empty, nobody)):
            check_answer(segment.open(), EVERYTHING, empty, nobody)
            check_answer(segment.open(), IsNull(), empty, nobody)


def test_a_value_may_be_asked_for_twice() -> None:
    twice = AnyOf(pa.array([3, 9, 3], pa.int64()))
    for segment in (btree(VALUES, NAMES, 1), bitmap(VALUES, NAMES)):
        check_answer(segment.open(), twice, VALUES, NAMES)


def test_only_queries_of_its_own_type_are_supported() -> None:
    for segment in (written().open(), bitmap(VALUES, NAMES).open()):
        assert segment.supports(IsNull())
        assert not segment.supports(AnyOf(pa.array([3], pa.int32())))
        assert not segment.supports(Between(pa.scalar(3, pa.int32()), None))
        assert not segment.supports(StartsWith(pa.scalar("a"), is_exact=True))
        assert not segment.supports(ContainsAll(("a",)))
        with pytest.raises(InvalidRequestError):
            found(segment, ContainsAll(("a",)))


def test_a_bitmap_of_nans_of_both_signs_is_not_asked_for_the_positive_one() -> None:
    numbers = pa.array(np.array([1.5, np.nan, -np.nan, 2.5, -np.inf]))
    segment = bitmap(numbers, NAMES[:5]).open()
    for query in (
        Between(None, pa.scalar(2.0)),
        Between(pa.scalar(-np.inf), pa.scalar(np.inf)),
        AnyOf(numbers.slice(2, 2)),
        IsNull(),
    ):
        check_answer(segment, query, numbers, NAMES[:5])
        assert segment.supports(query)
    for query in (AnyOf(numbers.slice(0, 2)), Between(pa.scalar(2.0), None), EVERYTHING):
        assert not segment.supports(query)
    one_sign = bitmap(numbers.take(pa.array([0, 1, 3])), NAMES[:3]).open()
    assert one_sign.supports(EVERYTHING)


def test_labels_of_its_own_type_are_supported_and_no_others() -> None:
    lists = pa.array([["a", "b"], None, ["a", None], []])
    segment = label_list(lists, NAMES[:4]).open()
    assert segment.supports(HasLabels(pa.array(["a", None]), needs_all=True))
    assert not segment.supports(HasLabels(pa.array([], pa.string()), needs_all=True))
    assert not segment.supports(HasLabels(pa.array([1]), needs_all=True))
    assert not segment.supports(IsNull())
    with pytest.raises(InvalidRequestError):
        found(segment, IsNull())


def test_label_lists_of_older_writers_do_not_know_the_null_lists() -> None:
    lists = pa.array([["a", "b"], None, ["a", None]])
    segment = label_list(lists, NAMES[:3])
    segment.buffers.clear()
    del segment.metadata[SETS]["lance:label_list_nulls"]
    segment.index_version = 0
    opened = segment.open()
    assert not opened.knows_nulls
    answer = found(opened, HasLabels(pa.array(["b"]), needs_all=False), with_nulls=True)
    assert answer.certain == {0: BitMap([0])}
    assert answer.nulls is None


@pytest.mark.parametrize("number", ["0", "2", "x", "99999999999999"])
def test_a_buffer_of_null_lists_that_is_not_there_is_damage(number: str) -> None:
    segment = label_list(pa.array([["a"]]), NAMES[:1])
    segment.metadata[SETS]["lance:label_list_nulls"] = number
    with pytest.raises(CorruptFileError):
        segment.open()


@pytest.mark.parametrize(
    ("kind", "expected"), [("BTREE", IndexKind.BTREE), ("BITMAP", IndexKind.BITMAP)]
)
def test_a_segment_of_which_nothing_is_told_is_known_by_its_files(
    kind: str, expected: IndexKind
) -> None:
    segment = written() if kind == "BTREE" else bitmap(VALUES, NAMES)
    segment.type_name = ""
    assert segment.open().kind is expected
    check_answer(segment.open(), three(3), VALUES, NAMES)


def test_labels_of_which_nothing_is_told_are_known_by_their_column() -> None:
    segment = label_list(pa.array([["a"]]), NAMES[:1])
    segment.type_name = ""
    assert segment.open().kind is IndexKind.LABEL_LIST


def test_files_of_no_scalar_index_are_not_used() -> None:
    segment = written()
    segment.type_name = ""
    segment.files = {"index.idx": segment.files[LOOKUP]}
    with pytest.raises(UnusableSegmentError, match="no index that answers"):
        segment.open()


def test_pages_in_several_files_are_refused() -> None:
    segment = written()
    segment.metadata[LOOKUP]["range_partitioned"] = "true"
    with pytest.raises(UnusableSegmentError, match="range_partitioned"):
        segment.open()


def test_keys_of_another_type_than_the_column_are_not_used() -> None:
    for segment in (written(), bitmap(VALUES, NAMES)):
        segment.column = pa.field("c", pa.int32())
        with pytest.raises(UnusableSegmentError, match="int64"):
            segment.open()
    labels = label_list(pa.array([["a"]]), NAMES[:1])
    labels.column = pa.field("c", pa.string())
    with pytest.raises(UnusableSegmentError, match="no labels"):
        labels.open()


def test_keys_without_an_order_are_not_used() -> None:
    kind = pa.struct([("x", pa.int64())])
    keys = pa.array([{"x": 1}], kind)
    segment = written()
    segment.column = pa.field("c", kind)
    ones = pa.array([0], pa.uint32())
    segment.files = {
        LOOKUP: pa.table({"min": keys, "max": keys, "null_count": ones, "page_idx": ones}),
        DATA: pa.table({"values": keys, "ids": pa.array([0], pa.uint64())}),
    }
    with pytest.raises(UnusableSegmentError, match="struct"):
        segment.open()


def numbers(*values: int) -> pa.Array:
    return pa.array(values, pa.uint32())


def wide(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


# The pages are (null, null, 1), (3, 3, 3), (5, 7, 8) and (9).
BAD_LOOKUPS: list[Callable[[WrittenSegment], object]] = [
    lambda s: with_column(s, LOOKUP, "page_idx", numbers(0, 1, 2, 4)),
    lambda s: with_column(s, LOOKUP, "page_idx", numbers(0, 1, 2, 2**32 - 1)),
    lambda s: with_column(s, LOOKUP, "page_idx", numbers(0, 1, 1, 3)),
    lambda s: with_column(s, LOOKUP, "page_idx", pa.array([0, 1, 2, 3], pa.int64())),
    lambda s: with_column(s, LOOKUP, "page_idx", pa.array([0, 1, 2, None], pa.uint32())),
    lambda s: with_column(s, LOOKUP, "null_count", numbers(4, 0, 0, 0)),
    lambda s: with_column(s, LOOKUP, "null_count", numbers(0, 0, 0, 0)),
    lambda s: with_column(s, LOOKUP, "null_count", numbers(2, 0, 0, 1)),
    lambda s: with_column(s, LOOKUP, "min", wide(None, 5, 3, 9)),
    lambda s: with_column(s, LOOKUP, "max", wide(3, 1, 8, 9)),
    lambda s: with_column(s, LOOKUP, "max", wide(1, None, 8, 9)),
    lambda s: with_column(s, LOOKUP, "max", pa.array(["1", "3", "8", "9"])),
    lambda s: s.files.update({LOOKUP: s.files[LOOKUP].slice(0, 3)}),
    lambda s: s.files.update({LOOKUP: s.files[LOOKUP].drop_columns(["max"])}),
    lambda s: s.files.update({DATA: s.files[DATA].drop_columns(["ids"])}),
    lambda s: with_column(s, DATA, "ids", pa.array(range(10), pa.int64())),
    lambda s: s.files.pop(DATA),
    lambda s: s.files.pop(LOOKUP),
    *(
        lambda s, size=size: s.metadata[LOOKUP].update(batch_size=size)
        for size in ("0", "-3", "x", "9" * 30, "2")
    ),
]


@pytest.mark.parametrize("damage", BAD_LOOKUPS, ids=map(str, range(len(BAD_LOOKUPS))))
def test_a_lookup_that_contradicts_itself_or_the_pages_is_damage(
    damage: Callable[[WrittenSegment], object],
) -> None:
    segment = written()
    damage(segment)
    with pytest.raises(CorruptFileError):
        segment.open()


# Row numbers of the file: 0 and 1 are null, then 1 3 3 3 5 7 8 9.
BAD_PAGES: list[Callable[[WrittenSegment], object]] = [
    lambda s: with_column(s, DATA, "values", wide(None, None, 1, 3, 3, 3, 5, 9, 8, 9)),
    lambda s: with_column(s, DATA, "values", wide(None, 1, None, 3, 3, 3, 5, 7, 8, 9)),
    lambda s: with_column(s, DATA, "values", wide(None, 1, 1, 3, 3, 3, 5, 7, 8, 9)),
    lambda s: with_column(s, DATA, "values", wide(None, None, 1, 3, 3, 3, 5, 7, 7, 9)),
    lambda s: with_column(s, DATA, "values", wide(None, None, 1, 3, 3, 3, 6, 7, 8, 9)),
    lambda s: with_column(s, DATA, "ids", pa.array([*range(9), None], pa.uint64())),
]


@pytest.mark.parametrize("damage", BAD_PAGES, ids=map(str, range(len(BAD_PAGES))))
def test_a_page_other_than_its_lookup_says_is_damage(
    damage: Callable[[WrittenSegment], object],
) -> None:
    segment = written()
    damage(segment)
    opened = segment.open()
    with pytest.raises(CorruptFileError):
        found(opened, EVERYTHING, with_nulls=True)


def test_a_key_without_a_set_is_damage() -> None:
    segment = bitmap(VALUES, NAMES)
    sets = segment.files[SETS]["bitmaps"].to_pylist()
    with_column(segment, SETS, "bitmaps", pa.array([*sets[:-1], None], pa.binary()))
    opened = segment.open()
    check_answer(opened, three(3), VALUES, NAMES)
    with pytest.raises(CorruptFileError):
        found(opened, three(9))


def test_a_set_of_hostile_bytes_is_damage() -> None:
    segment = bitmap(VALUES, NAMES)
    sets = segment.files[SETS]["bitmaps"].to_pylist()
    with_column(segment, SETS, "bitmaps", pa.array([*sets[:-1], b"\xff" * 40], pa.binary()))
    with pytest.raises(CorruptFileError):
        found(segment.open(), three(9))


@pytest.mark.parametrize("names", [["keys"], ["bitmaps", "keys"]])
def test_a_file_of_sets_with_other_columns_is_damage(names: list[str]) -> None:
    segment = bitmap(VALUES, NAMES)
    segment.files[SETS] = segment.files[SETS].select(names)
    with pytest.raises(CorruptFileError):
        segment.open()


def test_sets_that_are_no_bytes_are_damage() -> None:
    segment = bitmap(VALUES, NAMES)
    with_column(segment, SETS, "bitmaps", wide(*range(7)))
    with pytest.raises(CorruptFileError):
        segment.open()


def many_keys(num_keys: int) -> tuple[pa.Array, np.ndarray[tuple[int], np.dtype[np.uint64]]]:
    values = np.repeat(np.arange(num_keys), 1 + np.arange(num_keys) % 4)
    names = np.random.default_rng(5).permutation(len(values)).astype(np.uint64)
    return pa.array(values), names << np.uint64(30)


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_many_small_sets_are_found_like_few(is_shuffled: bool) -> None:
    values, names = many_keys(1500)
    segment = bitmap(values, names, is_shuffled=is_shuffled).open()
    for query in (EVERYTHING, AnyOf(pa.array(range(0, 2500, 4))), Between(pa.scalar(700), None)):
        check_answer(segment, query, values, names)


def test_among_many_small_sets_may_be_some_of_other_forms() -> None:
    values, names = many_keys(600)
    segment = bitmap(values, names)
    sets = segment.files[SETS]["bitmaps"].to_pylist()
    runs = BitMap(range(1000))
    runs.run_optimize()
    sets[3] = encode_tree_map({2**32 - 1: runs})
    sets[4] = encode_tree_map({70_077: BitMap(range(0, 20_000, 2))})
    sets[5] = encode_tree_map({70_078: every_offset()})
    with_column(segment, SETS, "bitmaps", pa.array(sets, pa.binary()))
    rows = found(segment.open(), EVERYTHING).certain
    assert len(rows[2**32 - 1]) == 1000
    assert len(rows[70_077]) == 10_000
    assert rows[70_078] is every_offset()


@pytest.mark.parametrize("length", [0, 3, 4, 11, 12, 20, 27, 29, 31])
def test_a_damaged_set_among_many_is_damage(length: int) -> None:
    values, names = many_keys(600)
    segment = bitmap(values, names)
    sets = segment.files[SETS]["bitmaps"].to_pylist()
    sets[3] = encode_tree_map({0: BitMap([1, 2, 3])})[:length] + b"\xff" * (length % 2)
    with_column(segment, SETS, "bitmaps", pa.array(sets, pa.binary()))
    if sets[3] == bytes(4):
        found(segment.open(), EVERYTHING)
        return
    with pytest.raises(CorruptFileError):
        found(segment.open(), EVERYTHING)


def test_a_missing_set_among_many_is_damage() -> None:
    values, names = many_keys(600)
    segment = bitmap(values, names)
    sets = segment.files[SETS]["bitmaps"].to_pylist()
    with_column(segment, SETS, "bitmaps", pa.array([*sets[:-1], None], pa.binary()))
    with pytest.raises(CorruptFileError):
        found(segment.open(), EVERYTHING)


def test_searching_asks_whether_to_stop() -> None:
    class StoppedError(Exception):
        pass

    def stop() -> None:
        raise StoppedError

    values, names = many_keys(600)
    for segment in (btree(values, names), bitmap(values, names)):
        with pytest.raises(StoppedError):
            segment.open().search(EVERYTHING, with_nulls=False, check=stop)


def test_the_cache_counts_what_segments_hold() -> None:
    values, names = many_keys(2000)
    cache = ByteCache(1 << 24)
    for segment in (btree(values, names, 100), bitmap(values, names)):
        opened = segment.open(cache=cache)
        before = cache.stats.used_bytes
        found(opened, EVERYTHING, with_nulls=True)
        held = cache.stats.used_bytes - before
        stored = sum(len(bytes_of) for bytes_of in (values.buffers()[1], names.tobytes()))
        assert stored / 2 < held < 8 * stored
        cache.clear()
