"""Compaction: fragments that are small or full of deleted rows become few whole ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import CommitConflictError, LanceError
from lance_core.operations.compact_commit import commit_standing
from lance_core.operations.compact_group import discard_results, execute_group
from lance_core.operations.compact_indices import IndexTreatment, check_treatment
from lance_core.operations.compact_plan import CompactionOptions, plan_compaction
from lance_core.operations.compact_remap import check_memory
from lance_core.operations.index_arguments import checked_memory
from lance_core.operations.progress import no_progress
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from lance_core.operations.compact_group import RewriteResult
    from lance_core.operations.progress import Progress
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_MAX_ROUNDS = 10


def compact(
    files: TableFiles,
    snapshot: Snapshot,
    options: CompactionOptions | None = None,
    treatment: IndexTreatment = IndexTreatment.REMAP,
    *,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress = no_progress,
) -> Snapshot:
    """Compact a dataset: plan, write, commit.

    Groups of fragments that others change meanwhile are planned and written anew.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version to begin with.
    options
        What is wanted; None = what the configuration of the dataset says.
    treatment
        What becomes of indices.
    memory_bytes
        As `build_segment` takes it, to write indices anew.
    progress
        Called with how many groups are written, and of how many.

    Returns
    -------
    Snapshot
        The version committed, or the one given where nothing is to be gained.

    Raises
    ------
    UnsupportedFeatureError
        Indices cannot follow in that way, or rows cannot be read or written.
    InvalidRequestError
        Indices of vectors cannot be written anew in so little memory.
    CommitConflictError
        Others changed the same rows again and again. No file is left then.
    """
    memory_bytes = checked_memory(memory_bytes)
    for number in range(1, _MAX_ROUNDS + 1):
        results = _written(files, snapshot, options, treatment, memory_bytes, progress)
        if len(results) == 0:
            return snapshot
        try:
            done = commit_standing(snapshot, results, treatment, memory_bytes)
        except CommitConflictError as error:
            if not error.is_retryable or number == _MAX_ROUNDS:
                raise
            snapshot = open_snapshot(snapshot.scheduler, None, snapshot.open_base)
            continue
        snapshot = done.snapshot
        if done.is_whole:
            break
    return snapshot


def _written(
    files: TableFiles,
    snapshot: Snapshot,
    options: CompactionOptions | None,
    treatment: IndexTreatment,
    memory_bytes: int,
    progress: Progress,
) -> list[RewriteResult]:
    """Plan, and write all groups; none where nothing is to be gained."""
    if options is None:
        options = CompactionOptions.of_config(snapshot.manifest.config)
    tasks = plan_compaction(files, snapshot, options)
    moved = BitMap(fragment_id for task in tasks for fragment_id in task.fragment_ids)
    check_treatment(snapshot, moved, treatment)
    if treatment is IndexTreatment.REMAP:
        check_memory(snapshot, moved, memory_bytes)
    results: list[RewriteResult] = []
    try:
        for task in tasks:
            progress(len(results), len(tasks))
            results.append(execute_group(files, snapshot, task))
    except LanceError:
        discard_results(
            snapshot.scheduler.store, results
        )  # of the tasks before the one that failed
        raise
    return results
