"""Which fragments a compaction job joins, and what becomes of the indices on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_number
from lance_core.operations.compact_indices import (
    IndexTreatment,
    check_treatment,
    graphs_over_deletions,
)
from lance_core.operations.compact_plan import CompactionOptions, plan_compaction
from lance_core.operations.compact_remap import check_memory
from lance_core.operations.write_segment import MEMORY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lance_core.dataset import Dataset
    from lance_core.operations.compact_plan import CompactionTask

_LEAST_JOINED = 2


@dataclass(frozen=True, slots=True)
class CompactionWish:
    """What a compaction job is to make of a dataset.

    Parameters
    ----------
    options
        Sizes of fragments, and how many deleted rows are too many.
    defers
        Whether indices are left as they are, and the Fragment Reuse Index says where rows are now;
        not where readers could not follow.
    otherwise
        What becomes of indices where nothing is deferred.
    max_source_fragments
        So many fragments are read at most; None = all that are worth it.
    among
        Ids of the fragments that may be read; None = all.
    memory_bytes
        About how much a worker may take to write an index segment anew.

    Raises
    ------
    InvalidRequestError
        Something makes no sense.
    """

    options: CompactionOptions
    defers: bool = True
    otherwise: IndexTreatment = IndexTreatment.REMAP
    max_source_fragments: int | None = None
    among: tuple[int, ...] | None = None
    memory_bytes: int = MEMORY_BYTES

    def __post_init__(self) -> None:
        if self.otherwise is IndexTreatment.DEFER:
            raise InvalidRequestError('otherwise is "defer"; take "remap" or "drop_coverage"')
        checked_number("memory_bytes", self.memory_bytes, 1)
        most = self.max_source_fragments
        if most is not None and most < _LEAST_JOINED:
            raise InvalidRequestError(
                f"max_source_fragments is {most}; give {_LEAST_JOINED} or more"
            )

    def of(self, fragment_ids: Iterable[int]) -> CompactionWish:
        """Return the same wish for some fragments only."""
        return replace(self, among=tuple(sorted(fragment_ids)), max_source_fragments=None)

    def to_params(self) -> dict[str, object]:
        """Return the wish as JSON."""
        options = self.options
        return {
            "target_rows_per_fragment": options.target_rows_per_fragment,
            "deletions_threshold": options.deletions_threshold,
            "max_bytes_per_file": options.max_bytes_per_file,
            "defer_index_remap": self.defers,
            "otherwise": self.otherwise.value,
            "max_source_fragments": self.max_source_fragments,
            "among": None if self.among is None else list(self.among),
            "memory_bytes": self.memory_bytes,
        }


@dataclass(frozen=True, slots=True)
class Bin:
    """Fragments that become new ones together; ``num_rows`` counts those in their files."""

    task: CompactionTask
    treatment: IndexTreatment
    num_rows: int


def plan_bins(dataset: Dataset, wish: CompactionWish) -> list[Bin]:
    """Find the bins of a version; none where nothing would be gained.

    Parameters
    ----------
    dataset
        The version.
    wish
        What is wanted.

    Returns
    -------
    list[Bin]
        Neighbours in the manifest, in its order. Bins have no fragment in common, and their
        fragments are covered by the same index segments.

    Raises
    ------
    UnsupportedFeatureError
        Indices cannot follow bins that are not deferred in the way that is wanted there.
    InvalidRequestError
        Indices of vectors cannot be written anew in so little memory.

    Notes
    -----
    Spark page, section 10.5. Deferred is no bin of a table with stable row ids, and none with rows
    that were deleted since an HNSW index over them was built, which pylance 14.0.2 could not search
    any more.
    """
    files, snapshot = dataset.session.files, dataset.snapshot
    among = None if wish.among is None else BitMap(wish.among)
    tasks = _limited(
        plan_compaction(files, snapshot, wish.options, among=among), wish.max_source_fragments
    )
    if wish.defers and not snapshot.has_stable_row_ids:
        every = BitMap(each for task in tasks for each in task.fragment_ids)
        kept = BitMap.union(BitMap(), *graphs_over_deletions(snapshot, every).values())
    else:
        kept = BitMap(snapshot.fragments_by_id)
    bins = []
    for task in tasks:
        is_deferred = kept.isdisjoint(BitMap(task.fragment_ids))
        rows = sum(snapshot.fragments_by_id[each].physical_rows for each in task.fragment_ids)
        treatment = IndexTreatment.DEFER if is_deferred else wish.otherwise
        bins.append(Bin(task, treatment, rows))
    _check(dataset, bins, wish)
    return bins


def _limited(tasks: Sequence[CompactionTask], most: int | None) -> list[CompactionTask]:
    """Take tasks from the front while they have few enough fragments, at least a part of one."""
    if most is None:
        return list(tasks)
    taken: list[CompactionTask] = []
    left = most
    for task in tasks:
        if len(task.fragment_ids) > left:
            break
        taken.append(task)
        left -= len(task.fragment_ids)
    if len(taken) == 0 and len(tasks) > 0:
        return [replace(tasks[0], fragment_ids=tasks[0].fragment_ids[:most])]
    return taken


def _check(dataset: Dataset, bins: Sequence[Bin], wish: CompactionWish) -> None:
    """Refuse before anything is written what would be refused at the end."""
    moved = BitMap(
        each
        for one in bins
        if one.treatment is not IndexTreatment.DEFER
        for each in one.task.fragment_ids
    )
    if len(moved) == 0:
        return
    check_treatment(dataset.snapshot, moved, wish.otherwise)
    if wish.otherwise is IndexTreatment.REMAP:
        check_memory(dataset.snapshot, moved, wish.memory_bytes)
