"""What is advised for which state of indices and fragments; the command line is part of it."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from typer.main import get_command

from lance_core.dataset.advice import CommandTarget, Finding, RowFacts, advise
from lance_core.index.scalar.writers.segment_writer import SCALAR_KINDS
from lance_core.index.vector.build.parameters import QUANTISERS
from lance_core.query.index_statistics import IndexStatistics, PartitionSizes, SegmentStatistics
from lance_core.table.reuse_trim import ReuseGrowth
from service.cli.index_create import IndexType
from service.cli.main import app

TARGET = CommandTarget("/data/my set.lance")
SOUND_ROWS = RowFacts(num_fragments=20, num_rows=1000, num_deleted_rows=0, num_compactable=0)
EVEN = PartitionSizes(num_partitions=10, num_empty=0, num_rows=1000, largest=200)


def segment(**changes: Any) -> SegmentStatistics:
    facts = {
        "uuid": "u",
        "index_type": "IVF_PQ",
        "metric": "l2",
        "dataset_version": 1,
        "num_bytes": 100,
        "covered": (0,),
        "partitions": None,
        "num_compactions_behind": 0,
        "unused": None,
    }
    return SegmentStatistics(**{**facts, **changes})


def index(*segments: SegmentStatistics, **changes: Any) -> IndexStatistics:
    facts = {
        "name": "v_idx",
        "columns": ("v",),
        "has_columns": True,
        "index_type": "IVF_PQ",
        "metric": "l2",
        "type_url": "/lance.index.pb.VectorIndexDetails",
        "index_version": 1,
        "created_at_ms": None,
        "num_indexed_rows": 1000,
        "num_unindexed_rows": 0,
        "segments": segments or (segment(partitions=EVEN),),
    }
    return IndexStatistics(**{**facts, **changes})


def advised(*indices, reuse=None, rows=SOUND_ROWS, target=TARGET):
    return [(each.finding, each.command) for each in advise(target, indices, reuse, rows)]


def on_index(verb: str, *more: str) -> str:
    return shlex.join(["lance-serve", "index", verb, TARGET.uri, *more])


def test_nothing_is_advised_for_what_is_sound() -> None:
    assert advised(index()) == []


@pytest.mark.parametrize(("missing", "is_stale"), [(52, False), (53, True), (1_000_000, True)])
def test_an_index_is_stale_where_more_than_a_twentieth_of_the_rows_is_missing(
    missing: int, is_stale: bool
) -> None:
    found = advised(index(num_unindexed_rows=missing))
    assert found == ([(Finding.STALE, on_index("optimize", "v_idx"))] if is_stale else [])


def test_an_index_that_could_not_be_trained_says_so() -> None:
    waiting = segment(num_bytes=0, covered=(), unused="it covers no fragment")
    found = advised(index(waiting, num_indexed_rows=0, num_unindexed_rows=10))
    assert found == [(Finding.NOT_BUILT, on_index("optimize", "v_idx"))]


def test_an_index_of_no_rows_at_all_is_fine() -> None:
    assert advised(index(segment(covered=()), num_indexed_rows=0)) == []


def test_many_segments_are_merged_into_one() -> None:
    assert advised(index(*[segment()] * 4)) == []
    found = advised(index(*[segment()] * 5))
    assert found == [(Finding.FRAGMENTED, on_index("optimize", "v_idx", "--merge", "5"))]


def test_segments_that_answer_nothing_are_told_from_useful_ones() -> None:
    dead = segment(covered=(), unused="it covers no fragment of this version")
    found = advise(TARGET, [index(segment(), dead)], None, SOUND_ROWS)
    assert [each.finding for each in found] == [Finding.DEAD_SEGMENTS]
    assert found[0].text.startswith("1 segment of it answer")


def test_the_worst_segment_tells_of_partitions_that_are_too_large_or_empty() -> None:
    skewed = PartitionSizes(num_partitions=100, num_empty=0, num_rows=1000, largest=101)
    hollow = PartitionSizes(num_partitions=10, num_empty=3, num_rows=1000, largest=200)
    segments = [segment(partitions=each) for each in (EVEN, skewed, hollow)]
    command = on_index("optimize", "v_idx", "--retrain")
    wanted = [(Finding.SKEWED, command), (Finding.EMPTY_PARTITIONS, command)]
    assert advised(index(*segments)) == wanted


def test_one_partition_is_never_skewed_and_no_rows_neither() -> None:
    one = PartitionSizes(num_partitions=1, num_empty=0, num_rows=1000, largest=1000)
    assert advised(index(segment(partitions=one))) == []
    none = PartitionSizes(num_partitions=1, num_empty=0, num_rows=0, largest=0)
    assert advised(index(segment(partitions=none))) == []


@pytest.mark.parametrize("kind", [*SCALAR_KINDS, *QUANTISERS, "INVERTED"])
def test_compactions_are_followed_or_the_index_built_anew_where_it_cannot_follow(kind: str) -> None:
    behind = index(segment(num_compactions_behind=2), index_type=kind, name="a")
    cannot = kind in {"ZONEMAP", "BLOOMFILTER"}
    command = on_index("optimize", "a", "--retrain") if cannot else on_index("remap", "a")
    assert advised(behind) == [(Finding.LEFT_BEHIND, command)]


def test_each_reason_why_segments_are_not_used_is_told_once() -> None:
    segments = [segment(unused=reason) for reason in ("b", "a", "b", None)]
    found = advise(TARGET, [index(*segments)], None, SOUND_ROWS)
    wanted = ["queries do not use it: a", "queries do not use it: b"]
    assert [each.text for each in found] == wanted
    assert {each.command for each in found} == {on_index("optimize", "v_idx", "--retrain")}


def test_no_command_is_named_for_kinds_that_are_not_built_here() -> None:
    of_places = index(segment(unused="x"), index_type="RTREE", num_unindexed_rows=500)
    assert advised(of_places) == [(Finding.STALE, None), (Finding.UNUSED, None)]


def test_an_old_scalar_index_that_does_not_say_how_it_was_made_is_created_again() -> None:
    old = index(index_type="BTREE", type_url="", num_unindexed_rows=500)
    command = on_index("create", "v", "--type", "btree", "--name", "v_idx")
    assert advised(old) == [(Finding.STALE, command)]


def test_compactions_that_all_have_followed_are_to_be_forgotten() -> None:
    reuse = ReuseGrowth(3, 2, 10, 1000, 1)
    assert advised(reuse=reuse) == [(Finding.REMOVABLE_COMPACTIONS, on_index("remap"))]
    assert advised(reuse=ReuseGrowth(3, 0, 10, 1000, 1)) == []


def test_a_compaction_is_advised_only_where_one_would_do_something() -> None:
    command = "lance-serve compact '/data/my set.lance'"
    many_small = RowFacts(20, 1000, 0, 10)
    assert advised(rows=many_small) == [(Finding.SMALL_FRAGMENTS, command)]
    deleted = RowFacts(20, 1000, 101, 1)
    assert advised(rows=deleted) == [(Finding.DELETED_ROWS, command)]
    assert advised(rows=RowFacts(20, 1000, 101, 0)) == []
    assert advised(rows=RowFacts(20, 1000, 100, 9)) == []


def test_commands_name_the_branch() -> None:
    target = CommandTarget("s3://b/a.lance", "dev")
    found = advised(index(num_unindexed_rows=500), target=target)
    wanted = "lance-serve index optimize s3://b/a.lance v_idx --branch dev"
    assert found == [(Finding.STALE, wanted)]


def test_every_command_that_is_advised_is_one_that_there_is() -> None:
    worst = index(
        *[segment(num_compactions_behind=1, unused="x", partitions=EVEN)] * 5,
        segment(covered=(), partitions=PartitionSizes(100, 50, 1000, 500)),
        num_unindexed_rows=500,
    )
    old = index(index_type="BTREE", type_url="", num_unindexed_rows=500)
    rows = RowFacts(20, 1000, 500, 20)
    found = advise(TARGET, [worst, old], ReuseGrowth(3, 2, 10, 1000, 1), rows)
    assert {each.finding for each in found} == set(Finding) - {Finding.NOT_BUILT}
    for each in found:
        assert each.command is not None
        _, *words = shlex.split(each.command)
        command: Any = get_command(app)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        assert command.make_context("x", words).params["dataset"] == TARGET.uri


def test_the_command_line_knows_every_kind_that_is_built() -> None:
    kinds = {*SCALAR_KINDS, *QUANTISERS, "INVERTED", "FTS"}
    assert {each.value.upper() for each in IndexType} == kinds
