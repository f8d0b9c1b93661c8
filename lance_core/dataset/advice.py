"""What is wrong with the shape of a dataset and its indices, and which command mends it.

Pure: from measured facts to advice. Nothing is read here and nothing is changed.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lance_core.index.registry import IndexKind
from lance_core.index.scalar.writers.segment_writer import SCALAR_KINDS
from lance_core.index.vector.build.parameters import QUANTISERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance_core.query.index_statistics import IndexStatistics, PartitionSizes
    from lance_core.table.reuse_trim import ReuseGrowth

_COMMAND = "lance-serve"
_STALE_SHARE = 0.05
"""Of the rows, in no segment: about where scanning them costs as much as searching the others."""

_MANY_SEGMENTS = 4
_SKEW = 10
"""Rows of the largest partition over the mean: so many times a probe may cost more."""

_EMPTY_SHARE = 0.25
_MANY_FRAGMENTS = 10
"""That a compaction would write anew."""

_DELETED_SHARE = 0.1
_OF_STRETCHES = frozenset((IndexKind.ZONEMAP, IndexKind.BLOOMFILTER))


class Finding(StrEnum):
    """What is wrong."""

    NOT_BUILT = "not_built"
    """An index of vectors waits for enough of them."""

    STALE = "stale"
    """Many rows are in no segment."""

    FRAGMENTED = "fragmented"
    """An index has many segments."""

    DEAD_SEGMENTS = "dead_segments"
    """Segments answer nothing, as their fragments are gone."""

    SKEWED = "skewed"
    """A partition is much larger than others."""

    EMPTY_PARTITIONS = "empty_partitions"
    """Many partitions hold nothing."""

    LEFT_BEHIND = "left_behind"
    """Deferred compactions are to be folded into an index."""

    UNUSED = "unused"
    """Queries do not use a segment."""

    REMOVABLE_COMPACTIONS = "removable_compactions"
    """The Fragment Reuse Index keeps what all indices have followed."""

    SMALL_FRAGMENTS = "small_fragments"
    """Few whole fragments could be made of many small ones."""

    DELETED_ROWS = "deleted_rows"
    """Many rows in the files are deleted."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that is wrong, and what mends it.

    Parameters
    ----------
    finding
        What is wrong.
    index
        The index that it is wrong with; None = the dataset.
    text
        The same as words, with figures.
    command
        The command line that mends it, quoted as shells take it; None if no command of this release
        does.
    """

    finding: Finding
    index: str | None
    text: str
    command: str | None


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What the fragments look like.

    Parameters
    ----------
    num_fragments
        All of them.
    num_rows, num_deleted_rows
        Rows in their files, and those of them that are deleted.
    num_compactable
        Fragments that a compaction, as the dataset is configured for, would write anew.
    """

    num_fragments: int
    num_rows: int
    num_deleted_rows: int
    num_compactable: int


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """The dataset that commands are for: its place, and the branch, None of the main one."""

    uri: str
    branch: str | None = None

    def command(self, verb: str, *arguments: str) -> str:
        """Return a command line; ``verb`` may be two words, and comes before the dataset."""
        pinned = () if self.branch is None else ("--branch", self.branch)
        return shlex.join((_COMMAND, *verb.split(), self.uri, *arguments, *pinned))


def advise(
    target: CommandTarget,
    indices: Sequence[IndexStatistics],
    reuse: ReuseGrowth | None,
    rows: RowFacts,
) -> tuple[Advice, ...]:
    """Return what there is to mend, index by index and then of the dataset; nothing is best.

    Parameters
    ----------
    target
        What commands are to name.
    indices
        All indices.
    reuse
        The Fragment Reuse Index, None if there is none.
    rows
        The fragments.
    """
    of_indices = (each for index in indices for each in _of_index(target, index))
    return (*of_indices, *_of_dataset(target, reuse, rows))


def _of_index(target: CommandTarget, index: IndexStatistics) -> Iterator[Advice]:
    yield from _of_coverage(target, index)
    yield from _of_segments(target, index)
    yield from _of_partitions(target, index)
    reasons = {each.unused for each in index.segments if each.covered and each.unused is not None}
    for reason in sorted(reasons):
        text = f"queries do not use it: {reason}"
        yield Advice(Finding.UNUSED, index.name, text, _rebuild(target, index))


def _of_coverage(target: CommandTarget, index: IndexStatistics) -> Iterator[Advice]:
    """Advise on rows that no segment is for."""
    missing = index.num_unindexed_rows
    share = missing / max(missing + index.num_indexed_rows, 1)
    if share <= _STALE_SHARE:
        return
    has_files = any(each.num_bytes > 0 for each in index.segments)
    if index.index_type in QUANTISERS and not has_files:
        text = "it is not built: there were too few vectors to train it"
        yield Advice(Finding.NOT_BUILT, index.name, text, _extend(target, index))
        return
    text = f"{missing:,} rows ({100 * share:.0f} %) are in no segment and have to be scanned"
    yield Advice(Finding.STALE, index.name, text, _extend(target, index))


def _of_segments(target: CommandTarget, index: IndexStatistics) -> Iterator[Advice]:
    """Advise on segments that are too many, answer nothing or have compactions to follow."""
    useful = [each for each in index.segments if each.covered]
    num_dead = len(index.segments) - len(useful)
    if len(useful) > _MANY_SEGMENTS:
        text = f"it has {len(useful)} segments, and a search looks into each"
        command = _extend(target, index, "--merge", str(len(useful)))
        yield Advice(Finding.FRAGMENTED, index.name, text, command)
    if num_dead > 0 and len(useful) > 0:
        text = f"{_segments(num_dead)} of it answer nothing: their fragments are gone"
        yield Advice(Finding.DEAD_SEGMENTS, index.name, text, _extend(target, index))
    num_behind = sum(each.num_compactions_behind > 0 for each in index.segments)
    if num_behind > 0:
        text = f"{_segments(num_behind)} of it have deferred compactions to follow"
        yield Advice(Finding.LEFT_BEHIND, index.name, text, _follow(target, index))


def _of_partitions(target: CommandTarget, index: IndexStatistics) -> Iterator[Advice]:
    """Advise on partitions of the worst segment."""
    known = [each.partitions for each in index.segments if each.partitions is not None]
    if len(known) == 0:
        return
    worst = max(known, key=_skew)
    if _skew(worst) > _SKEW:
        text = (
            f"its largest partition has {worst.largest:,} rows, {_skew(worst):.0f} times the mean;"
            " new centroids may spread them better"
        )
        yield Advice(Finding.SKEWED, index.name, text, _rebuild(target, index))
    emptiest = max(known, key=_empty_share)
    if _empty_share(emptiest) > _EMPTY_SHARE:
        text = f"{emptiest.num_empty:,} of {emptiest.num_partitions:,} partitions are empty"
        yield Advice(Finding.EMPTY_PARTITIONS, index.name, text, _rebuild(target, index))


def _of_dataset(
    target: CommandTarget, reuse: ReuseGrowth | None, rows: RowFacts
) -> Iterator[Advice]:
    if reuse is not None and reuse.num_removable > 0:
        text = f"{reuse.num_removable} deferred compactions are remembered that no index needs"
        command = target.command("index remap")
        yield Advice(Finding.REMOVABLE_COMPACTIONS, None, text, command)
    if rows.num_compactable == 0:
        return
    share = rows.num_deleted_rows / max(rows.num_rows, 1)
    if share > _DELETED_SHARE:
        text = f"{100 * share:.0f} % of the rows in the files are deleted"
        yield Advice(Finding.DELETED_ROWS, None, text, target.command("compact"))
    if rows.num_compactable >= _MANY_FRAGMENTS:
        text = (
            f"{rows.num_compactable} of {rows.num_fragments} fragments could be fewer, larger ones"
        )
        yield Advice(Finding.SMALL_FRAGMENTS, None, text, target.command("compact"))


def _extend(target: CommandTarget, index: IndexStatistics, *options: str) -> str | None:
    if not _is_built_here(index):
        return None
    if index.type_url == "" and index.index_type in SCALAR_KINDS:
        return _create(target, index)
    return target.command("index optimize", index.name, *options)


def _rebuild(target: CommandTarget, index: IndexStatistics) -> str | None:
    return _extend(target, index, "--retrain")


def _follow(target: CommandTarget, index: IndexStatistics) -> str | None:
    if index.index_type in _OF_STRETCHES:
        return _rebuild(target, index)
    return target.command("index remap", index.name) if _is_built_here(index) else None


def _create(target: CommandTarget, index: IndexStatistics) -> str:
    """Return how to make an index anew of which the manifest does not tell how it was made."""
    kind = index.index_type.lower()
    return target.command("index create", index.columns[0], "--type", kind, "--name", index.name)


def _is_built_here(index: IndexStatistics) -> bool:
    known = (*QUANTISERS, *SCALAR_KINDS, IndexKind.INVERTED)
    return index.index_type in known


def _segments(number: int) -> str:
    return "1 segment" if number == 1 else f"{number} segments"


def _skew(sizes: PartitionSizes) -> float:
    return sizes.largest / sizes.mean if sizes.num_rows > 0 else 0.0


def _empty_share(sizes: PartitionSizes) -> float:
    return sizes.num_empty / max(sizes.num_partitions, 1)
