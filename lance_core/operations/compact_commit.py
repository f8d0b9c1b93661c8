"""Committing what the tasks of a compaction wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import (
    CommitConflictError,
    CorruptFileError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from lance_core.operations.compact_group import discard_results
from lance_core.operations.compact_indices import IndexTreatment, check_treatment
from lance_core.operations.compact_remap import discard_remapped, remapped
from lance_core.proto import table_pb2
from lance_core.row_set import bitmap_from_bytes
from lance_core.table.commit import commit
from lance_core.table.reuse_of_version import group_of, with_compaction
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import ReserveFragments, Rewrite, RewriteGroup, Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance_core.operations.compact_group import RewriteResult
    from lance_core.table.reuse_history import ReuseGroup
    from lance_core.table.snapshot import Snapshot

_MAX_ATTEMPTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """The version of a compaction, and whether it has all groups."""

    snapshot: Snapshot
    is_whole: bool


def commit_compaction(
    snapshot: Snapshot, results: Sequence[RewriteResult], treatment: IndexTreatment
) -> Snapshot:
    """Commit what the tasks of a plan wrote, all at once.

    Groups that others have changed since are left out, and what was written of them is removed.
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
        Others changed rows of every group, or the schema. What the tasks wrote is gone then.
    InvalidRequestError
        The results are of another version, or there are none.
    UnsupportedFeatureError
        Indices cannot follow in that way; what the tasks wrote is gone then.
    CorruptFileError
        An index that is to be written anew contradicts the format; as before.
    """
    if len(results) == 0 or any(each.read_version != snapshot.version for each in results):
        raise InvalidRequestError(f"give results of tasks planned for version {snapshot.version}")
    return commit_standing(snapshot, results, treatment).snapshot


def commit_standing(
    snapshot: Snapshot, results: Sequence[RewriteResult], treatment: IndexTreatment
) -> Committed:
    """Commit the groups that nobody has changed; otherwise as `commit_compaction`.

    After a conflict, groups whose fragments the newest version still has as they were need not be
    written anew.
    """
    standing, num_attempts = list(results), 0
    try:
        standing = list(_numbered(results, _reserved(snapshot, results)))
        while True:
            num_attempts += 1
            try:
                after = _commit(snapshot, standing, treatment)
            except CommitConflictError as error:
                newest = open_snapshot(snapshot.scheduler, None, snapshot.open_base)
                left = [each for each in standing if _stands(each, snapshot, newest)]
                if not error.is_retryable or len(left) == 0 or num_attempts == _MAX_ATTEMPTS:
                    raise
                discard_results(snapshot.scheduler.store, (r for r in standing if r not in left))
                snapshot, standing = newest, left
            else:
                return Committed(after, len(standing) == len(results))
    except (CommitConflictError, UnsupportedFeatureError, InvalidRequestError):
        discard_results(snapshot.scheduler.store, standing)
        raise


def _stands(result: RewriteResult, read: Snapshot, newest: Snapshot) -> bool:
    """Tell whether a later version has the rows of a group as they were read."""
    present = {each.id: each for each in newest.manifest.message.fragments}
    has_same_columns = read.manifest.message.fields == newest.manifest.message.fields
    return has_same_columns and all(present.get(old.id) == old for old in result.old_fragments)


def _commit(
    snapshot: Snapshot, results: Sequence[RewriteResult], treatment: IndexTreatment
) -> Snapshot:
    old_ids = BitMap(old.id for result in results for old in result.old_fragments)
    check_treatment(snapshot, old_ids, treatment)
    groups = tuple(RewriteGroup(each.old_fragments, each.new_fragments) for each in results)
    defers, remaps = (treatment is each for each in (IndexTreatment.DEFER, IndexTreatment.REMAP))
    described = _described(results, groups) if defers or remaps else []
    try:
        indices = remapped(snapshot, described) if remaps else ()
    except CorruptFileError:
        discard_results(snapshot.scheduler.store, results)
        raise
    try:
        return commit(
            snapshot.scheduler,
            Transaction(snapshot.version, Rewrite(groups, indices)),
            reuse=partial(with_compaction, snapshot.scheduler, described) if defers else None,
            open_base=snapshot.open_base,
        )
    except (CommitConflictError, UnsupportedFeatureError, InvalidRequestError):
        discard_remapped(snapshot.scheduler.store, indices)
        raise


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


def _numbered(results: Sequence[RewriteResult], first_id: int) -> Iterator[RewriteResult]:
    for result in results:
        new = []
        for fragment in result.new_fragments:
            numbered = table_pb2.DataFragment()
            numbered.CopyFrom(fragment)
            numbered.id = first_id
            new.append(numbered)
            first_id += 1
        yield replace(result, new_fragments=tuple(new))


def _described(
    results: Sequence[RewriteResult], groups: Sequence[RewriteGroup]
) -> list[ReuseGroup]:
    return [
        group_of(
            group,
            {each: bitmap_from_bytes(data, "a result") for each, data in result.deleted.items()},
        )
        for result, group in zip(results, groups, strict=True)
    ]
