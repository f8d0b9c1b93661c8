from __future__ import annotations

from dataclasses import replace

import pytest
from pyroaring import BitMap

from lance_core.ids import FieldId, FragmentId
from lance_core.table.index_metadata import REUSE_INDEX_NAME, IndexMetadata
from lance_core.table.reuse_history import (
    FragmentDigest,
    ReuseGroup,
    ReuseHistory,
    ReuseVersion,
)
from lance_core.table.reuse_trim import ReuseGrowth, growth, trimmed


def segment(stored: list[int] | None, dataset_version: int) -> IndexMetadata:
    return IndexMetadata(
        uuid="00000000-0000-0000-0000-000000000001",
        name="k_idx",
        field_ids=(FieldId(1),),
        dataset_version=dataset_version,
        fragment_bitmap=None if stored is None else BitMap(stored),
        type_name="BTreeIndexDetails",
        details=b"",
        index_version=0,
        created_at_ms=None,
        files=(),
        base_id=None,
    )


def compaction(dataset_version: int, old: list[int], new: list[int]) -> ReuseVersion:
    digests = [tuple(FragmentDigest(FragmentId(f), 0, 0) for f in ids) for ids in (old, new)]
    return ReuseVersion(dataset_version, (ReuseGroup(b"ten bytes!", *digests),))


def kept(versions: list[ReuseVersion], *segments: IndexMetadata) -> list[int]:
    left = trimmed(ReuseHistory(tuple(versions)), segments)
    return [version.dataset_version for version in left.versions]


@pytest.mark.parametrize(
    ("built_from", "compacted_at", "is_kept"),
    [(5, 7, True), (6, 7, True), (5, 6, True), (6, 6, True), (7, 7, True), (7, 6, False)],
    ids=[
        "plan version, committed between reservation and rewrite",
        "reservation, committed between reservation and rewrite",
        "plan version, committed after the rewrite",
        "reservation, committed after the rewrite",
        "append after the reservation, committed after the rewrite",
        "the rewrite itself",
    ],
)
def test_the_forced_cases_of_the_format_page(
    built_from: int, compacted_at: int, is_kept: bool
) -> None:
    versions = [compaction(compacted_at, [0, 1, 2, 3], [4])]
    assert kept(versions, segment([4], built_from)) == ([compacted_at] if is_kept else [])


def test_an_old_fragment_in_the_bitmap_needs_the_compaction_whatever_the_version() -> None:
    assert kept([compaction(6, [0, 1], [4])], segment([1, 4], 99)) == [6]


def test_unknown_coverage_needs_everything() -> None:
    versions = [compaction(6, [0], [4]), compaction(8, [1], [5])]
    assert kept(versions, segment(None, 99)) == [6, 8]


def test_a_segment_of_other_fragments_needs_nothing() -> None:
    assert kept([compaction(6, [0], [4])], segment([2, 3], 1)) == []


def test_fragments_reached_by_later_compactions_count() -> None:
    versions = [compaction(6, [0, 1], [4]), compaction(8, [4, 2], [5])]
    assert kept(versions, segment([5], 3)) == [6, 8]
    assert kept(versions, segment([5], 7)) == [8]
    assert kept(versions, segment([5], 9)) == []


def test_a_bitmap_that_nobody_led_on_needs_the_second_compaction_too() -> None:
    versions = [compaction(6, [0, 1], [4]), compaction(8, [4], [5])]
    assert kept(versions, segment([0, 1, 2], 3)) == [6, 8]


def test_one_segment_in_need_is_enough() -> None:
    versions = [compaction(6, [0], [4]), compaction(8, [1], [5])]
    assert kept(versions, segment([4, 5], 9), segment([4], 6)) == [6]


def test_system_entries_and_tables_without_indices_need_nothing() -> None:
    entry = replace(segment([0, 4], 1), name=REUSE_INDEX_NAME)
    assert kept([compaction(6, [0], [4])], entry) == []
    assert kept([compaction(6, [0], [4])]) == []


def test_growth_counts_what_there_is_and_what_could_go() -> None:
    history = ReuseHistory((compaction(6, [0, 1], [4]), compaction(8, [2], [5])))
    assert growth(history, [segment([4, 5], 7)]) == ReuseGrowth(
        num_versions=2, num_removable=1, num_fragments=3, num_bytes=20, oldest_version=6
    )
    assert growth(ReuseHistory(()), []) == ReuseGrowth(0, 0, 0, 0, None)
