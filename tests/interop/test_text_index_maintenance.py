"""Inverted indices over time: merged, brought up to date and moved, by us and by pylance."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from lance.query import DocumentGranularity, MatchQuery, PhraseQuery

import lance_core
from lance_core.errors import InvalidRequestError, StoreUnavailableError
from lance_core.index.text.queries import MatchQuery as Match
from lance_core.operations.new_index import NewIndex
from lance_core.query.text_request import TextQuery
from tests.failing_store import fail_at
from tests.text_indices import (
    PLAIN,
    held_by_all,
    occurrences,
    open_text_segments,
    rows_of,
    texts,
    without_positions,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.proto import table_pb2
    from tests.interop.conftest import OldDataset

pytestmark = pytest.mark.interop

NUM_ROWS, NUM_MORE = 600, 100
PARAMETERS: dict[str, Any] = {**PLAIN, "with_position": True}
QUERIES = [MatchQuery("aaw0 caw2 often", "t"), PhraseQuery("aaw0 baw1", "t")]


def write(folder: Path, *, stable: bool = False) -> None:
    table = pa.table({"t": pa.array(texts(NUM_ROWS), pa.string())})
    lance.write_dataset(table, str(folder), max_rows_per_file=200, enable_stable_row_ids=stable)


def append(folder: Path, seed: int = 2) -> None:
    lance.dataset(str(folder)).insert(pa.table({"t": pa.array(texts(NUM_MORE, seed), pa.string())}))


def table(folder: Path) -> lance_core.Dataset:
    return lance_core.open_dataset(folder)


def pylance_finds(folder: Path) -> list[set[int]]:
    """Return the rows that pylance finds through the index alone, by query."""
    theirs = lance.dataset(str(folder))
    return [
        set(
            theirs.to_table(columns=[], full_text_query=query, with_row_id=True, fast_search=True)[
                "_rowid"
            ].to_pylist()
        )
        for query in QUERIES
    ]


def check_holds(folder: Path, rows: dict[int, str | None] | None = None) -> None:
    """Check that an index has the given rows, all live ones if none, and that pylance sees it so.

    Live rows that it has to have; those of deleted ones may be there.
    """
    live = rows_of(folder)
    wanted = occurrences(live if rows is None else rows)
    held = held_by_all(open_text_segments(folder))
    alive = {
        token: found
        for token, places in held.items()
        if (found := {row: each for row, each in places.items() if row in live})
    }
    assert alive == wanted
    either = set(wanted.get("aaw0", ())) | set(wanted.get("caw2", ())) | set(wanted["often"])
    pairs = {
        row
        for row, first in wanted["aaw0"].items()
        if set(first) & {each - 1 for each in wanted["baw1"].get(row, ())}
    }
    assert pylance_finds(folder) == [either, pairs]


def segments(folder: Path) -> list[list[int]]:
    found = table(folder).snapshot.indices
    return [sorted(each.fragment_bitmap or ()) for each in found if each.name == "t_idx"]


def build(folder: Path, fragments: list[int], **parameters: Any) -> table_pb2.IndexMetadata:
    index = NewIndex("t_idx", "t", "INVERTED", {**PARAMETERS, **parameters})
    return table(folder).build_segment(index, fragments)


def test_segments_of_some_fragments_become_one_that_holds_all_rows(tmp_path: Path) -> None:
    write(tmp_path)
    parts = [build(tmp_path, [0]), build(tmp_path, [1], block_size=256), build(tmp_path, [2])]
    dataset = table(tmp_path)
    merged = dataset.merge_segments(parts)
    dataset.commit_segments("t_idx", [merged])
    assert segments(tmp_path) == [[0, 1, 2]]
    (opened,) = open_text_segments(tmp_path)
    assert [each.block_size for each in opened.partitions] == [128]
    check_holds(tmp_path)


def test_segments_that_make_tokens_in_other_ways_do_not_become_one(tmp_path: Path) -> None:
    write(tmp_path)
    parts = [build(tmp_path, [0]), build(tmp_path, [1], stem=True)]
    with pytest.raises(InvalidRequestError, match="different ways"):
        table(tmp_path).merge_segments(parts)


def test_segments_of_both_writers_are_one_index_and_one_segment(tmp_path: Path) -> None:
    write(tmp_path)
    theirs = lance.dataset(str(tmp_path))
    theirs.create_scalar_index("t", "INVERTED", fragment_ids=[0, 1], **PARAMETERS)
    own = build(tmp_path, [2])
    table(tmp_path).commit_segments("t_idx", [own])
    append(tmp_path)
    lance.dataset(str(tmp_path)).optimize.optimize_indices(num_indices_to_merge=0)
    check_holds(tmp_path)
    table(tmp_path).optimize_indices(num_segments_to_merge=9)
    assert len(segments(tmp_path)) == 1
    check_holds(tmp_path)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[0, 1, 2, 3]]),
        ({"num_segments_to_merge": 0}, [[0, 1, 2], [3]]),
        ({"retrain": True}, [[0, 1, 2, 3]]),
    ],
)
def test_new_rows_get_into_an_index_and_deleted_ones_out(
    tmp_path: Path, stable: bool, options: dict[str, Any], expected: list[list[int]]
) -> None:
    write(tmp_path, stable=stable)
    table(tmp_path).create_index("t", "INVERTED", **PARAMETERS)
    lance.dataset(str(tmp_path)).delete("t LIKE '%baw1%' AND t LIKE '%daw3%'")
    append(tmp_path)
    after = table(tmp_path).optimize_indices(**options)
    assert segments(tmp_path) == expected
    check_holds(tmp_path)
    held = held_by_all(open_text_segments(tmp_path))
    is_whole = len(expected) == 1
    assert (held == occurrences(rows_of(tmp_path))) == is_whole
    assert after.optimize_indices(["t_idx"]).version >= after.version


@pytest.mark.parametrize("by_us", [False, True])
@pytest.mark.parametrize("memory_bytes", [1 << 15, 1 << 28])
def test_an_index_of_ours_follows_its_rows_through_a_compaction(
    tmp_path: Path, by_us: bool, memory_bytes: int
) -> None:
    write(tmp_path)
    table(tmp_path).create_index("t", "INVERTED", memory_bytes=memory_bytes, **PARAMETERS)
    lance.dataset(str(tmp_path)).delete("t LIKE '%caw2%' AND t LIKE '%daw3%'")
    if by_us:
        table(tmp_path).compact()
    else:
        lance.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=5000)
    assert segments(tmp_path) == [[3]]
    check_holds(tmp_path)
    assert held_by_all(open_text_segments(tmp_path)) == occurrences(rows_of(tmp_path))


def test_an_index_of_pylance_follows_its_rows_through_our_compaction(tmp_path: Path) -> None:
    write(tmp_path)
    lance.dataset(str(tmp_path)).create_scalar_index("t", "INVERTED", **PARAMETERS)
    lance.dataset(str(tmp_path)).delete("t LIKE '%caw2%' AND t LIKE '%daw3%'")
    table(tmp_path).compact()
    assert segments(tmp_path) == [[3]]
    check_holds(tmp_path)


def test_an_index_catches_up_with_a_deferred_compaction(tmp_path: Path) -> None:
    write(tmp_path)
    table(tmp_path).create_index("t", "INVERTED", **PARAMETERS)
    theirs = lance.dataset(str(tmp_path))
    theirs.delete("t LIKE '%caw2%' AND t LIKE '%daw3%'")
    theirs.optimize.compact_files(target_rows_per_fragment=5000, defer_index_remap=True)
    table(tmp_path).remap_indices()
    assert segments(tmp_path) == [[3]]
    check_holds(tmp_path)


@pytest.mark.parametrize("memory_bytes", [1 << 15, 1 << 28])
def test_pylance_brings_our_index_up_to_date_and_we_its_own(
    tmp_path: Path, memory_bytes: int
) -> None:
    write(tmp_path)
    table(tmp_path).create_index("t", "INVERTED", memory_bytes=memory_bytes, **PARAMETERS)
    for seed in (2, 3):
        append(tmp_path, seed)
        lance.dataset(str(tmp_path)).optimize.optimize_indices()
        check_holds(tmp_path)
        append(tmp_path, 10 + seed)
        table(tmp_path).optimize_indices()
        check_holds(tmp_path)
    assert len(segments(tmp_path)) == 1


def test_memory_bounds_what_is_merged_by_more_partitions(tmp_path: Path) -> None:
    write(tmp_path)
    table(tmp_path).create_index("t", "INVERTED", **PARAMETERS)
    append(tmp_path)
    table(tmp_path).optimize_indices(memory_bytes=1 << 15)
    (opened,) = open_text_segments(tmp_path)
    assert len(opened.partitions) > 1
    check_holds(tmp_path)


def test_an_index_without_positions_stays_so(tmp_path: Path) -> None:
    write(tmp_path)
    table(tmp_path).create_index("t", "INVERTED", **PLAIN)
    append(tmp_path)
    table(tmp_path).optimize_indices()
    (opened,) = open_text_segments(tmp_path)
    assert not opened.has_positions
    expected = occurrences(rows_of(tmp_path))
    assert held_by_all([opened]) == without_positions(expected)


def test_documents_that_are_elements_of_lists_are_not_made_to_be_rows(tmp_path: Path) -> None:
    lists = pa.array([["red fox", "blue"], ["red"]], pa.list_(pa.string()))
    theirs = lance.write_dataset(pa.table({"t": lists}), str(tmp_path))
    granularity = DocumentGranularity.LIST_ELEMENT
    theirs.create_scalar_index("t", "INVERTED", "t_idx", document_granularity=granularity)
    theirs.insert(pa.table({"t": lists}))
    dataset = table(tmp_path)
    with pytest.raises(InvalidRequestError, match="each element"):
        dataset.optimize_indices(["t_idx"])
    assert dataset.optimize_indices().version == dataset.version


def test_it_is_told_that_an_index_of_elements_of_lists_is_not_kept_up_to_date(
    tmp_path: Path,
) -> None:
    lists = pa.array([["red fox", "blue"], ["red"]], pa.list_(pa.string()))
    theirs = lance.write_dataset(pa.table({"t": lists}), str(tmp_path), max_rows_per_file=1)
    granularity = DocumentGranularity.LIST_ELEMENT
    theirs.create_scalar_index("t", "INVERTED", "t_idx", document_granularity=granularity)
    request = TextQuery(Match("red", "t"))
    assert "kept up to date" not in table(tmp_path).explain(request)
    theirs.insert(pa.table({"t": lists}))
    told = "documents are elements of lists is not kept up to date here"
    assert told in table(tmp_path).explain(request)
    table(tmp_path).compact()
    assert told in table(tmp_path).explain(request)
    (index,) = table(tmp_path).list_indices()
    assert index.segments[0].unused is not None
    assert told in index.segments[0].unused


@pytest.mark.parametrize("release", ["0.20.0", "1.0.4", "10.0.0"])
def test_indices_of_old_releases_take_new_rows(
    tmp_path: Path, old_dataset: OldDataset, release: str
) -> None:
    path = tmp_path / "d"
    shutil.copytree(old_dataset(release, "scalar"), path)
    theirs = lance.dataset(str(path))
    theirs.insert(theirs.to_table().slice(0, 50))
    table(path).optimize_indices(["text_idx"])
    (opened,) = open_text_segments(path, "text_idx")
    table(path).optimize_indices(["text_idx"], retrain=True)
    assert held_by_all([opened]) == held_by_all(open_text_segments(path, "text_idx"))
    theirs = lance.dataset(str(path))
    assert theirs.stats.index_stats("text_idx")["num_unindexed_rows"] == 0


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_every_format_of_pylance_stays_what_it_is(tmp_path: Path, format_version: int) -> None:
    write(tmp_path)
    theirs = lance.dataset(str(tmp_path))
    theirs.create_scalar_index("t", "INVERTED", format_version=format_version, **PARAMETERS)
    append(tmp_path)
    table(tmp_path).optimize_indices()
    (metadata,) = table(tmp_path).snapshot.indices
    assert metadata.index_version == format_version
    check_holds(tmp_path)


def test_an_index_made_while_rows_are_moved_is_built_anew(tmp_path: Path) -> None:
    write(tmp_path)
    before = table(tmp_path)
    lance.dataset(str(tmp_path)).delete("t LIKE '%caw2%' AND t LIKE '%daw3%'")
    lance.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=5000)
    before.create_index("t", "INVERTED", **PARAMETERS)
    assert segments(tmp_path) == [[3]]
    assert len(list(tmp_path.glob("_indices/*"))) == 1
    check_holds(tmp_path)


def test_an_index_brought_up_to_date_while_rows_are_moved_follows_them(tmp_path: Path) -> None:
    write(tmp_path)
    before = table(tmp_path).create_index("t", "INVERTED", **PARAMETERS)
    append(tmp_path)
    behind = table(tmp_path)
    lance.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=5000)
    behind.optimize_indices()
    assert before.version < table(tmp_path).version
    check_holds(tmp_path)


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_build_that_fails_leaves_nothing_and_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    write(tmp_path)
    dataset = table(tmp_path)
    fail_at(monkeypatch, type(dataset.snapshot.scheduler.store), at)
    with pytest.raises(StoreUnavailableError):
        dataset.create_index("t", "INVERTED", **PARAMETERS)
    monkeypatch.undo()
    assert list(table(tmp_path).verify()) == []
    table(tmp_path).create_index("t", "INVERTED", **PARAMETERS)
    check_holds(tmp_path)
    assert len(list(tmp_path.glob("_indices/*"))) == 1


def test_segments_that_make_other_tokens_are_not_committed_as_one_index(tmp_path: Path) -> None:
    write(tmp_path)
    first, other = build(tmp_path, [0]), build(tmp_path, [1], lower_case=False)
    with pytest.raises(InvalidRequestError, match=r"tokens in other ways: .* fragments \[1\]"):
        table(tmp_path).commit_segments("t_idx", [first, other])
    table(tmp_path).commit_segments("t_idx", [first])
    with pytest.raises(InvalidRequestError, match=r"tokens in other ways: .* fragments \[1\]"):
        table(tmp_path).commit_segments("t_idx", [other])
    assert segments(tmp_path) == [[0]]
    without = build(tmp_path, [1], with_position=False, block_size=256)
    table(tmp_path).commit_segments("t_idx", [without])
    assert segments(tmp_path) == [[0], [1]]
    anew = [build(tmp_path, [fragment], lower_case=False) for fragment in (0, 1, 2)]
    table(tmp_path).commit_segments("t_idx", anew)
    assert segments(tmp_path) == [[0], [1], [2]]
