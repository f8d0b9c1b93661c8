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
from lance_core.operations.compact_indices import (
    IndexTreatment,
    check_treatment,
    graphs_over_deletions,
    segments_over,
)
from lance_core.operations.compact_remap import discard_remapped, remapped
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.proto import table_pb2
from lance_core.row_set import bitmap_from_bytes
from lance_core.table.commit import commit
from lance_core.table.reuse_of_version import group_of, with_compaction
from lance_core.table.snapshot import Snapshot, open_snapshot
from lance_core.table.transaction import (
    NO_PROPERTIES,
    ReserveFragments,
    Rewrite,
    RewriteGroup,
    Transaction,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from lance_core.operations.compact_group import RewriteResult
    from lance_core.operations.compact_remap import Remap, RewrittenIndex
    from lance_core.table.manifest import Manifest
    from lance_core.table.reuse_history import ReuseGroup

_MAX_ATTEMPTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """The version of a compaction, and the groups that it has not: others changed their rows."""

    snapshot: Snapshot
    lost: tuple[RewriteResult, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the version has all groups."""
        return len(self.lost) == 0


def commit_compaction(
    snapshot: Snapshot,
    results: Sequence[RewriteResult],
    treatment: IndexTreatment,
    *,
    memory_bytes: int = MEMORY_BYTES,
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
    memory_bytes
        About how much memory may be taken to write indices anew.

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
    return commit_standing(snapshot, results, treatment, memory_bytes).snapshot


def commit_standing(
    snapshot: Snapshot,
    results: Sequence[RewriteResult],
    treatment: IndexTreatment,
    memory_bytes: int,
) -> Committed:
    """Commit the groups that nobody has changed, and remove what was written of others.

    Otherwise as `commit_compaction`.
    """
    store = snapshot.scheduler.store
    try:
        done = commit_groups(snapshot, results, treatment, memory_bytes=memory_bytes)
    except (CommitConflictError, UnsupportedFeatureError, InvalidRequestError, CorruptFileError):
        discard_results(store, results)
        raise
    discard_results(store, done.lost)
    return done


def commit_groups(
    snapshot: Snapshot,
    results: Sequence[RewriteResult],
    treatment: IndexTreatment,
    *,
    memory_bytes: int = MEMORY_BYTES,
    remap: Remap = remapped,
    properties: Mapping[str, str] = NO_PROPERTIES,
    part_properties: Mapping[str, str] = NO_PROPERTIES,
) -> Committed:
    """Commit the groups that nobody has changed; files of the others stay where they are.

    That is for whoever may be one of several that commit the same results: what one of them lost,
    another one may have committed. After a conflict, groups whose fragments the newest version
    still has as they were need not be written anew: only then is a later version than the one
    planned for what the commit says that it read.

    Parameters
    ----------
    remap
        What writes indices anew, where they are.
    properties
        What the transaction of the rewrite says about itself; that of the reservation says nothing.
    part_properties
        What it says where groups are left out.

    Other parameters and errors as `commit_compaction`.
    """
    standing = list(_numbered(results, _reserved(snapshot, results)))
    lost: list[RewriteResult] = []
    for number in range(1, _MAX_ATTEMPTS + 1):
        told = part_properties if lost else properties
        try:
            after = _commit(
                snapshot, standing, treatment, partial(remap, memory_bytes=memory_bytes), told
            )
        except CommitConflictError as error:
            newest = open_snapshot(snapshot.scheduler, None, snapshot.open_base)
            left = [each for each in standing if _stands(each, snapshot, newest, treatment)]
            if not error.is_retryable or len(left) == 0 or number == _MAX_ATTEMPTS:
                raise
            lost += (each for each in standing if each not in left)
            snapshot, standing = newest, left
        else:
            return Committed(after, tuple(lost))
    raise AssertionError  # the last attempt returns or raises


def _stands(
    result: RewriteResult, read: Snapshot, newest: Snapshot, treatment: IndexTreatment
) -> bool:
    """Tell whether a later version has the rows of a group as they were read.

    And, of a deferred one, whether indices that came since can follow.
    """
    present = {each.id: each for each in newest.manifest.message.fragments}
    has_same_columns = read.manifest.message.fields == newest.manifest.message.fields
    has_same_rows = all(present.get(old.id) == old for old in result.old_fragments)
    if not has_same_columns or not has_same_rows or treatment is not IndexTreatment.DEFER:
        return has_same_columns and has_same_rows
    return len(graphs_over_deletions(newest, _old_ids([result]))) == 0


def _commit(
    snapshot: Snapshot,
    results: Sequence[RewriteResult],
    treatment: IndexTreatment,
    remap: Callable[[Snapshot, Sequence[ReuseGroup]], tuple[RewrittenIndex, ...]],
    properties: Mapping[str, str],
) -> Snapshot:
    check_treatment(snapshot, _old_ids(results), treatment)
    groups = tuple(RewriteGroup(each.old_fragments, each.new_fragments) for each in results)
    defers, remaps = (treatment is each for each in (IndexTreatment.DEFER, IndexTreatment.REMAP))
    described = _described(results, groups) if defers or remaps else []
    indices = remap(snapshot, described) if remaps else ()
    try:
        return commit(
            snapshot.scheduler,
            Transaction(snapshot.version, Rewrite(groups, indices), properties=properties),
            reuse=partial(_reuse_entry, snapshot, results, described) if defers else None,
            open_base=snapshot.open_base,
        )
    except (CommitConflictError, UnsupportedFeatureError, InvalidRequestError):
        discard_remapped(snapshot.scheduler.store, indices)
        raise


def _reuse_entry(
    read: Snapshot,
    results: Sequence[RewriteResult],
    described: Sequence[ReuseGroup],
    newest: Manifest,
) -> table_pb2.IndexMetadata | None:
    """Add to the newest history, unless no index is on the rows.

    Fails where a graph has come meanwhile that could not follow.
    """
    snapshot = Snapshot(read.scheduler, "", newest, read.open_base)  # nothing of it is cached
    moved = _old_ids(results)
    if not any(True for _ in segments_over(snapshot, moved)):
        return None
    for name in graphs_over_deletions(snapshot, moved):
        raise CommitConflictError(
            f'index "{name}" is a graph that cannot follow',
            version=newest.version,
            is_retryable=True,
        )
    return with_compaction(read.scheduler, described, newest)


def _old_ids(results: Iterable[RewriteResult]) -> BitMap:
    return BitMap(old.id for result in results for old in result.old_fragments)


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
