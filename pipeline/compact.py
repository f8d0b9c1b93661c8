"""The job ``compact``: bins of fragments are written anew by workers, and committed by the driver.

Appends, deletions of other rows and builds of indices are committed meanwhile without any conflict.
A bin whose rows others change is planned and written anew, and no other one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import CommitConflictError, InvalidRequestError
from lance_core.operations.compact_commit import commit_groups
from lance_core.operations.compact_group import execute_group
from lance_core.operations.compact_indices import IndexTreatment
from pipeline.compact_messages import (
    bin_from_bytes,
    bin_to_bytes,
    result_from_bytes,
    result_to_bytes,
)
from pipeline.compact_plan import plan_bins
from pipeline.compact_remap import StagedRemap
from pipeline.job import run_job
from pipeline.journal import check_same
from pipeline.lease import Lease
from pipeline.parts import part_properties
from pipeline.worker import dataset_at
from pipeline.written_files import are_there, data_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.dataset import Dataset
    from lance_core.operations.compact_group import RewriteResult
    from lance_core.operations.compact_plan import CompactionOptions
    from pipeline.compact_plan import Bin, CompactionWish
    from pipeline.job import JobContext
    from pipeline.journal import JournalPlan
    from pipeline.stages import Worker

    Options = Mapping[str, str] | None

KIND = "compact"

_IN_ORDER = (IndexTreatment.DROP_COVERAGE, IndexTreatment.REMAP, IndexTreatment.DEFER)
"""Eager commits come first: none is then over what the job itself has deferred."""


def compact(context: JobContext, wish: CompactionWish, *, commit_every: int = 0) -> int:
    """Compact a dataset, or go on with it; return the version that it ends with.

    Parameters
    ----------
    context
        Where and how.
    wish
        What is wanted.
    commit_every
        Commit after so many bins, so that no more are lost with the machine; 0 = all at once. Each
        commit becomes a version, also of the Fragment Reuse Index, which all readers follow.

    Raises
    ------
    CommitConflictError
        Others changed rows of some bins again and again; the other bins are committed.
    LanceError
        As `run_job`, and as `plan_bins`.
    """
    if commit_every < 0:
        raise InvalidRequestError(f"commit_every is {commit_every}; give 0 or more")
    if commit_every == 0 or context.dry_run:
        return run_job(context, CompactJob(context, wish))
    return _compact_in_parts(context, wish, commit_every)


@dataclass(frozen=True, slots=True)
class CompactJob:
    """One compaction, for `run_job`."""

    context: JobContext
    wish: CompactionWish

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return KIND

    def params(self) -> dict[str, object]:
        """Return what was asked for."""
        return self.wish.to_params()

    def plan(self, dataset: Dataset) -> list[bytes]:
        """Return an item per bin."""
        return [bin_to_bytes(each) for each in plan_bins(dataset, self.wish)]

    def worker(self) -> Worker:
        """Return what writes the rows of a bin anew."""
        context = self.context
        return partial(write_bin, context.uri, context.storage_options, self.wish.options)

    def describe(self, item: bytes) -> str:
        """Name a bin by its fragments."""
        found = self._bin(item)
        ids = found.task.fragment_ids
        many = "" if len(ids) == 1 else f" to {ids[-1]} ({len(ids)})"
        return f"fragment {ids[0]}{many}, {found.num_rows} rows, indices: {found.treatment.value}"

    def weigh(self, item: bytes) -> int:
        """Return how many rows the files of a bin have."""
        return self._bin(item).num_rows

    def has_files(self, result: bytes) -> bool:
        """Tell whether the new files of a bin are there."""
        _, found = result_from_bytes(result)
        files = data_files(found.new_fragments)
        return are_there(self.context.uri, self.context.storage_options, files)

    def commit(
        self, dataset: Dataset, results: Sequence[bytes], properties: Mapping[str, str]
    ) -> int:
        """Commit what stands, each treatment of indices by itself.

        Raises ``CommitConflictError`` for bins that do not stand, once the others are committed.
        """
        groups: dict[IndexTreatment, list[RewriteResult]] = defaultdict(list)
        for result in results:
            treatment, found = result_from_bytes(result)
            groups[treatment].append(found)
        part = part_properties(properties)
        version, num_lost = dataset.version, 0
        treatments = [each for each in _IN_ORDER if each in groups]
        for treatment in treatments:
            is_end = treatment is treatments[-1] and num_lost == 0
            try:
                done = commit_groups(
                    dataset.snapshot,
                    groups[treatment],
                    treatment,
                    memory_bytes=self.wish.memory_bytes,
                    remap=StagedRemap(self.context),
                    properties=properties if is_end else part,
                    part_properties=part,
                )
            except CommitConflictError as error:
                if not error.is_retryable:
                    raise
                version, num_lost = error.version, num_lost + len(groups[treatment])
            else:
                version, num_lost = done.snapshot.version, num_lost + len(done.lost)
        if num_lost > 0:
            raise CommitConflictError(
                f"others changed rows of {num_lost} of {len(results)} bins",
                version=version,
                is_retryable=True,
            )
        return version

    def replan(
        self, dataset: Dataset, items: Sequence[bytes], results: Sequence[bytes]
    ) -> list[tuple[bytes, bytes | None]]:
        """Plan anew, of all bins, the fragments that no commit has taken away."""
        ids = BitMap(each for item in items for each in self._bin(item).task.fragment_ids)
        left = self.wish.of(ids & BitMap(dataset.snapshot.fragments_by_id))
        return [(bin_to_bytes(each), None) for each in plan_bins(dataset, left)]

    def _bin(self, item: bytes) -> Bin:
        return bin_from_bytes(item, self.wish.options)


def write_bin(uri: str, storage_options: Options, options: CompactionOptions, item: bytes) -> bytes:
    """Write the live rows of a bin to new fragments; a worker calls it."""
    found = bin_from_bytes(item, options)
    dataset = dataset_at(uri, found.task.read_version, storage_options)
    result = execute_group(dataset.session.files, dataset.snapshot, found.task)
    return result_to_bytes(found.treatment, result)


def _compact_in_parts(context: JobContext, wish: CompactionWish, commit_every: int) -> int:
    """Plan all bins at once, and let jobs of their own do some of them each."""
    journal, params = context.journal, wish.to_params() | {"commit_every": commit_every}
    with Lease(journal):
        plan = journal.plan()
        if plan is None:
            dataset = context.open()
            items = CompactJob(context, wish).plan(dataset)
            plan = journal.begin(KIND, params, dataset.version, items)
        else:
            check_same(plan, KIND, params, context.job_id)
        version = plan.read_version
        for number, part in enumerate(_parts(plan, wish, commit_every)):
            own = replace(context, job_id=f"{context.job_id}.part-{number:04d}")
            version = run_job(own, CompactJob(own, part))
        if journal.committed() is None:
            journal.mark_committed(version)
    return version


def _parts(plan: JournalPlan, wish: CompactionWish, commit_every: int) -> list[CompactionWish]:
    bins = [bin_from_bytes(item, wish.options) for item in plan.items]
    return [
        wish.of(
            each for one in bins[start : start + commit_every] for each in one.task.fragment_ids
        )
        for start in range(0, len(bins), commit_every)
    ]
