"""Compaction: fragments that are small or full of deleted rows become few whole ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    LanceError,
    UnsupportedFeatureError,
)
from lance_core.operations.compact_group import discard_results, execute_group
from lance_core.operations.compact_indices import IndexTreatment, check_treatment
from lance_core.operations.compact_plan import CompactionOptions, plan_compaction
from lance_core.proto import table_pb2
from lance_core.row_set import bitmap_from_bytes
from lance_core.table.commit import commit
from lance_core.table.reuse_of_version import group_of, with_compaction
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import ReserveFragments, Rewrite, RewriteGroup, Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance_core.operations.compact_group import RewriteResult
    from lance_core.operations.compact_plan import CompactionTask
    from lance_core.table.commit import ReuseWriter
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_MAX_ROUNDS = 10


def compact(
    files: TableFiles,
    snapshot: Snapshot,
    options: CompactionOptions | None = None,
    treatment: IndexTreatment = IndexTreatment.REMAP,
) -> Snapshot:
    """Compact a dataset: plan, write, commit; planned anew when others changed the same rows.

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

    Returns
    -------
    Snapshot
        The version committed, or the one given where nothing is to be gained.

    Raises
    ------
    UnsupportedFeatureError
        Indices cannot follow in that way, or rows cannot be read or written.
    CommitConflictError
        Others changed the same rows again and again. No file is left then.
    """
    for number in range(1, _MAX_ROUNDS + 1):
        wanted = CompactionOptions.of_config(snapshot.manifest.config)
        tasks = plan_compaction(files, snapshot, wanted if options is None else options)
        if len(tasks) == 0:
            return snapshot
        check_treatment(
            snapshot, BitMap(each for task in tasks for each in task.fragment_ids), treatment
        )
        results = _executed(files, snapshot, tasks)
        try:
            return commit_compaction(snapshot, results, treatment)
        except CommitConflictError as error:
            if not error.is_retryable or number == _MAX_ROUNDS:
                raise
        snapshot = open_snapshot(snapshot.scheduler, None, snapshot.open_base)
    raise AssertionError  # the last round returns or raises


def commit_compaction(
    snapshot: Snapshot, results: Sequence[RewriteResult], treatment: IndexTreatment
) -> Snapshot:
    """Commit what the tasks of a plan wrote, all at once.

    Ids of the new fragments are reserved by a commit of its own, since the rewrite and the reuse
    history name them.

    Parameters
    ----------
    snapshot
        The version that was planned for.
    results
        Of some or all of the tasks.
    treatment
        What becomes of indices.

    Returns
    -------
    Snapshot
        The version committed.

    Raises
    ------
    CommitConflictError
        Others changed the same rows. What the tasks wrote is gone then.
    InvalidRequestError
        The results are of another version, or there are none.
    UnsupportedFeatureError
        Indices cannot follow in that way; what the tasks wrote is gone then.
    """
    if len(results) == 0 or any(each.read_version != snapshot.version for each in results):
        raise InvalidRequestError(f"give results of tasks planned for version {snapshot.version}")
    try:
        return _commit(snapshot, results, treatment)
    except (CommitConflictError, UnsupportedFeatureError, InvalidRequestError):
        discard_results(snapshot.scheduler.store, results)
        raise


def _commit(
    snapshot: Snapshot, results: Sequence[RewriteResult], treatment: IndexTreatment
) -> Snapshot:
    old_ids = BitMap(old.id for result in results for old in result.old_fragments)
    check_treatment(snapshot, old_ids, treatment)
    groups = tuple(_numbered(results, _reserved(snapshot, results)))
    reuse = _reuse_writer(snapshot, results, groups) if treatment is IndexTreatment.DEFER else None
    return commit(
        snapshot.scheduler,
        Transaction(snapshot.version, Rewrite(groups)),
        reuse=reuse,
        open_base=snapshot.open_base,
    )


def _reserved(snapshot: Snapshot, results: Sequence[RewriteResult]) -> int:
    """Reserve ids for all new fragments; return the first."""
    num_new = sum(len(result.new_fragments) for result in results)
    if num_new == 0:
        return 0
    after = commit(
        snapshot.scheduler,
        Transaction(snapshot.version, ReserveFragments(num_new)),
        open_base=snapshot.open_base,
    )
    return after.manifest.message.max_fragment_id + 1 - num_new


def _numbered(results: Sequence[RewriteResult], first_id: int) -> Iterator[RewriteGroup]:
    for result in results:
        new = []
        for fragment in result.new_fragments:
            numbered = table_pb2.DataFragment()
            numbered.CopyFrom(fragment)
            numbered.id = first_id
            new.append(numbered)
            first_id += 1
        yield RewriteGroup(result.old_fragments, tuple(new))


def _reuse_writer(
    snapshot: Snapshot, results: Sequence[RewriteResult], groups: Sequence[RewriteGroup]
) -> ReuseWriter:
    described = [
        group_of(
            group,
            {each: bitmap_from_bytes(data, "a result") for each, data in result.deleted.items()},
        )
        for result, group in zip(results, groups, strict=True)
    ]
    return partial(with_compaction, snapshot.scheduler, described)


def _executed(
    files: TableFiles, snapshot: Snapshot, tasks: Sequence[CompactionTask]
) -> list[RewriteResult]:
    results: list[RewriteResult] = []
    try:
        results.extend(execute_group(files, snapshot, task) for task in tasks)
    except LanceError:
        discard_results(
            snapshot.scheduler.store, results
        )  # of the tasks before the one that failed
        raise
    return results
