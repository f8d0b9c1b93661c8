"""Which segments of which indices are asked about a column, and for which fragments."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.expr.index_query import AnyOf, ContainsAll, IndexLeaf, StartsWith
from lance_core.index.registry import IndexKind, UnusableSegmentError
from lance_core.io.memory_store import MemoryStore
from lance_core.query import scalar_indices
from lance_core.query.scalar_indices import ScalarIndices

if TYPE_CHECKING:
    from lance_core.expr.index_query import LeafQuery

EQUAL = AnyOf(pa.array([1]))
PREFIX = StartsWith(pa.scalar("ab"), is_exact=False)
PARTS = ContainsAll(("abc",))


@dataclass(frozen=True)
class Metadata:
    name: str
    uuid: str
    type_name: str
    covered: list[int] | None
    created_at_ms: int | None = 0
    field_ids: tuple[int, ...] = (3,)
    index_version: int = 0
    failure: Exception | None = None
    asked: tuple[type, ...] = (AnyOf,)
    is_system: bool = False
    files: tuple[()] = field(default=())

    @property
    def fragment_bitmap(self) -> BitMap | None:
        return None if self.covered is None else BitMap(self.covered)


@dataclass(frozen=True)
class Segment:
    uuid: str
    kind: IndexKind
    asked: tuple[type, ...]

    def supports(self, query: LeafQuery) -> bool:
        return isinstance(query, self.asked)


def indices(monkeypatch: pytest.MonkeyPatch, *segments: Metadata) -> ScalarIndices:
    def opened(_: object, metadata: Any, *__: object) -> Segment:
        if metadata.failure is not None:
            raise metadata.failure
        kind = metadata.type_name.removesuffix("IndexDetails").upper()
        return Segment(metadata.uuid, IndexKind[kind], metadata.asked)

    monkeypatch.setattr(scalar_indices, "open_condition_segment", opened)
    fragments = [SimpleNamespace(id=each, physical_rows=10) for each in range(4)]
    snapshot: Any = SimpleNamespace(
        incarnation="one",
        scheduler=SimpleNamespace(store=MemoryStore()),
        indices=segments,
        fragments=fragments,
        fragments_by_id={each.id: each for each in fragments},
        schema=SimpleNamespace(by_id=lambda _: None),
        index_place=lambda _: None,
    )
    session: Any = SimpleNamespace(cache=ByteCache(1 << 20))
    return ScalarIndices(session, snapshot, None)


def asked(found: ScalarIndices, *queries: LeafQuery) -> list[tuple[str, LeafQuery, list[int]]]:
    return [
        (each.segment.uuid, each.query, list(each.coverage))  # type: ignore[attr-defined]
        for each in found.queries(IndexLeaf(3, queries or (EQUAL,)))
    ]


def test_segments_of_an_index_are_asked_for_the_live_fragments_they_cover(monkeypatch):
    found = indices(
        monkeypatch,
        Metadata("i", "a", "BTreeIndexDetails", [0, 1, 77]),
        Metadata("i", "b", "BTreeIndexDetails", [2]),
        Metadata("other", "c", "BTreeIndexDetails", [3], field_ids=(4,)),
    )
    assert asked(found) == [("a", EQUAL, [0, 1]), ("b", EQUAL, [2])]


def test_another_index_is_asked_for_what_the_first_does_not_cover(monkeypatch):
    found = indices(
        monkeypatch,
        Metadata("zones", "z", "ZoneMapIndexDetails", [0, 1, 2, 3], created_at_ms=1),
        Metadata("tree", "t", "BTreeIndexDetails", [0, 1], created_at_ms=5),
        Metadata("early", "e", "BTreeIndexDetails", [0, 2], created_at_ms=None),
    )
    assert asked(found) == [("e", EQUAL, [0, 2]), ("t", EQUAL, [1]), ("z", EQUAL, [3])]


def test_the_better_coverage_comes_first(monkeypatch):
    found = indices(
        monkeypatch,
        Metadata("a", "a", "BTreeIndexDetails", [0, 1], created_at_ms=1),
        Metadata("b", "b", "BTreeIndexDetails", [0, 1, 2], created_at_ms=2),
    )
    assert asked(found) == [("b", EQUAL, [0, 1, 2])]


def test_fragments_that_two_segments_claim_are_scanned(monkeypatch):
    found = indices(
        monkeypatch,
        Metadata("i", "a", "BTreeIndexDetails", [0, 1]),
        Metadata("i", "b", "BTreeIndexDetails", [1, 2]),
        Metadata("j", "c", "BTreeIndexDetails", [3]),
        Metadata("j", "d", "BTreeIndexDetails", [3]),
    )
    assert asked(found) == [("a", EQUAL, [0]), ("b", EQUAL, [2])]
    skipped = found.skipped([3])
    assert [each.uuid for each in skipped] == ["c", "d"]
    assert "claim the same fragments" in skipped[0].reason


def test_each_segment_is_asked_the_first_query_that_it_answers(monkeypatch):
    found = indices(
        monkeypatch,
        Metadata("n", "n", "NGramIndexDetails", [0, 1], asked=(ContainsAll,)),
        Metadata("t", "t", "BTreeIndexDetails", [0], asked=(StartsWith, ContainsAll)),
    )
    assert asked(found, PREFIX, PARTS) == [("t", PREFIX, [0]), ("n", PARTS, [1])]
    assert asked(found) == []


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (Metadata("i", "a", "BTreeIndexDetails", [0], index_version=9), "index version 9"),
        (Metadata("i", "a", "BTreeIndexDetails", [9]), "covers no fragment"),
        (Metadata("i", "a", "BTreeIndexDetails", None), "is not recorded"),
        (Metadata("i", "a", "VectorIndexDetails", [0]), "answers no condition"),
        (Metadata("i", "a", "NewIndexDetails", [0]), "not supported"),
        (
            Metadata("i", "a", "BTreeIndexDetails", [0], failure=UnusableSegmentError("legacy")),
            "legacy",
        ),
        (
            Metadata("i", "a", "BTreeIndexDetails", [0], failure=UnsupportedFeatureError("odd")),
            "odd",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_segments_that_cannot_be_used_are_told(monkeypatch, metadata, reason):
    found = indices(monkeypatch, metadata)
    assert asked(found) == []
    assert asked(found) == []
    (skipped,) = found.skipped([3, 3])
    assert (skipped.index_name, skipped.uuid) == ("i", "a")
    assert reason in skipped.reason


def test_damage_is_an_error(monkeypatch):
    damage = CorruptFileError("page_lookup.lance", "cut off")
    found = indices(monkeypatch, Metadata("i", "a", "BTreeIndexDetails", [0], failure=damage))
    with pytest.raises(CorruptFileError, match="cut off"):
        asked(found)


def test_entries_of_the_table_itself_are_no_indices(monkeypatch):
    entry = Metadata("__lance_frag_reuse", "a", "FragmentReuseIndexDetails", [0], is_system=True)
    found = indices(monkeypatch, entry)
    assert (asked(found), found.skipped([3])) == ([], ())
