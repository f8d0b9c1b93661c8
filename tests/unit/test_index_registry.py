from __future__ import annotations

from dataclasses import replace

import pytest
from pyroaring import BitMap

from lance_core.ids import FieldId, FragmentId
from lance_core.index.coverage import effective_coverage
from lance_core.index.registry import IndexKind, Unusable, classify
from lance_core.index.vector.metric import Metric, metric_in_details
from lance_core.table.index_metadata import IndexMetadata
from lance_core.table.reuse_history import FragmentDigest, ReuseGroup, ReuseHistory, ReuseVersion

SEGMENT = IndexMetadata(
    uuid="00000000-0000-0000-0000-000000000001",
    name="vector_idx",
    field_ids=(FieldId(1),),
    dataset_version=1,
    fragment_bitmap=BitMap([0, 1, 5]),
    type_name="VectorIndexDetails",
    details=b"",
    index_version=1,
    created_at_ms=None,
    files=(),
    base_id=None,
)
REUSE = replace(SEGMENT, name="__lance_frag_reuse", type_name="FragmentReuseIndexDetails")


def reason(segment: IndexMetadata) -> str:
    answer = classify(segment)
    assert isinstance(answer, Unusable)
    return answer.reason


@pytest.mark.parametrize("index_version", [0, 1, 2])
@pytest.mark.parametrize(
    ("type_name", "kind"),
    [("VectorIndexDetails", IndexKind.VECTOR), ("", IndexKind.UNTOLD)],
)
def test_vector_segments_of_known_versions_are_usable(
    type_name: str, kind: IndexKind, index_version: int
) -> None:
    segment = replace(SEGMENT, type_name=type_name, index_version=index_version)
    assert classify(segment) is kind
    assert kind.may_be_vector


@pytest.mark.parametrize(
    ("type_name", "kind", "newest"),
    [
        ("BTreeIndexDetails", IndexKind.BTREE, 1),
        ("BitmapIndexDetails", IndexKind.BITMAP, 0),
        ("LabelListIndexDetails", IndexKind.LABEL_LIST, 1),
        ("NGramIndexDetails", IndexKind.NGRAM, 0),
        ("ZoneMapIndexDetails", IndexKind.ZONEMAP, 0),
        ("BloomFilterIndexDetails", IndexKind.BLOOMFILTER, 0),
    ],
)
def test_scalar_segments_are_usable_up_to_the_version_that_is_known(
    type_name: str, kind: IndexKind, newest: int
) -> None:
    segment = replace(SEGMENT, type_name=type_name, index_version=newest)
    assert classify(segment) is kind
    assert kind.may_be_scalar
    assert not kind.may_be_vector
    assert f"newer than {newest}" in reason(replace(segment, index_version=newest + 1))


@pytest.mark.parametrize("index_version", [-1, 3, 99])
def test_other_versions_are_skipped(index_version: int) -> None:
    assert "version" in reason(replace(SEGMENT, index_version=index_version))


def test_an_unknown_type_is_skipped_by_name() -> None:
    assert "HashIndexDetails" in reason(replace(SEGMENT, type_name="HashIndexDetails"))


def test_unknown_coverage_cannot_be_used() -> None:
    assert "not recorded" in reason(replace(SEGMENT, fragment_bitmap=None))


def test_a_vector_index_on_two_columns_is_skipped() -> None:
    assert "2 columns" in reason(replace(SEGMENT, field_ids=(FieldId(1), FieldId(2))))


def test_a_reuse_index_answers_no_query() -> None:
    assert "table itself" in reason(REUSE)


def test_coverage_leaves_out_fragments_that_are_gone() -> None:
    assert effective_coverage(SEGMENT, BitMap([1, 2, 5]), None) == BitMap([1, 5])


def test_coverage_is_led_through_compactions() -> None:
    old = [FragmentDigest(FragmentId(0), 5, 0), FragmentDigest(FragmentId(1), 5, 0)]
    group = ReuseGroup(b"", tuple(old), (FragmentDigest(FragmentId(6), 10, 0),))
    history = ReuseHistory((ReuseVersion(3, (group,)),))
    assert effective_coverage(SEGMENT, BitMap([5, 6, 7]), history) == BitMap([5, 6])


def test_unknown_coverage_covers_nothing() -> None:
    assert not effective_coverage(replace(SEGMENT, fragment_bitmap=None), BitMap([1]), None)


@pytest.mark.parametrize(
    ("details", "metric"),
    [
        (b"", None),
        (b"\x42\x00", Metric.L2),
        (b"\x08\x01", Metric.COSINE),
        (b"\x08\x02\x22\x04\x08\x08\x10\x08", Metric.DOT),
        (b"\x08\x03", Metric.HAMMING),
        (b"\x08\x04", None),
        (b"\xff", None),
    ],
)
def test_the_metric_in_the_details_is_read(details: bytes, metric: Metric | None) -> None:
    assert metric_in_details(details) == metric
