"""Committing segments of an index, and dropping indices."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import CommitConflictError, InvalidRequestError
from lance_core.file.arguments import checked_text
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.build.stored_parameters import stored_parameters
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.index_arguments import checked_segments
from lance_core.operations.moved_graphs import refuse_moved_graphs
from lance_core.operations.same_tokens import check_same_tokens
from lance_core.operations.segments_there import check_there
from lance_core.query.describe_indices import no_such_index
from lance_core.table.commit import commit
from lance_core.table.commits_since import Lineage
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.index_upkeep import coverage, is_system
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.transaction import (
    NO_PROPERTIES,
    Append,
    CreateIndex,
    Delete,
    ReserveFragments,
    Transaction,
    Update,
    UpdateConfig,
    UpdateMode,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot
    from lance_core.table.transaction import Operation

_VECTORS = "vectorindexdetails"


def commit_segments(
    snapshot: Snapshot,
    name: str,
    segments: Sequence[table_pb2.IndexMetadata],
    *,
    replace_all: bool = False,
    properties: Mapping[str, str] = NO_PROPERTIES,
    transaction_uuid: str | None = None,
) -> Snapshot:
    """Commit segments that together are a logical index, or become part of it.

    Segments of the index that are there and cover fragments of the new ones are replaced; those
    that cover others stay.

    Parameters
    ----------
    snapshot
        A version that has the index as it is to be changed; the newest one, unless others must not
        come between.
    name
        The index.
    segments
        As `build_segment` returned them, on any machine, at this version or before.
    replace_all
        Whether all segments of the index that are there go, of whatever kind they are and whatever
        they cover.
    properties
        What the transaction is to say of where it came from.
    transaction_uuid
        Of the transaction, where several may commit the same: only the first of them does, and all
        get its version. None = a new one.

    Returns
    -------
    Snapshot
        The version committed.

    Raises
    ------
    InvalidRequestError
        Segments are not of one index, cover fragments twice or not known which, or would leave
        fragments uncovered that a segment to be replaced covers; the index of the name is on
        another column; segments of texts make other tokens than one of them, or one that stays;
        or the files or the column of a segment are not in the dataset, as it was built from
        another one, or a cleanup took it for left behind.
    CommitConflictError
        Since the segments were built, others moved the rows that they cover, or changed the index:
        build them anew. Their files stay until a cleanup.

    Notes
    -----
    Lance table format, section "Distributed build flow". The version read is the one that the
    oldest segment was built from, so that whatever came since is looked at, or a later one up to
    which nobody moved rows or changed values: so other segments of the index may have come first.
    """
    name, segments = checked_text("the name of an index", name), checked_segments(segments)
    check_there(snapshot, segments)
    replaced = _replaced(snapshot, name, segments, replace_all=replace_all)
    kept = [each for each in segments_of(snapshot, name) if each not in replaced]
    check_same_tokens(snapshot, [*kept, *segments])
    operation = CreateIndex(segments, replaced)
    try:
        own = str(uuid.uuid4()) if transaction_uuid is None else transaction_uuid
        transaction = Transaction(_read_version(snapshot, segments), operation, own, properties)
        return commit(
            snapshot.scheduler,
            transaction,
            check=refuse_moved_graphs(snapshot, segments),
            open_base=snapshot.open_base,
        )
    except CommitConflictError as error:
        raise CommitConflictError(  # the same segments would not do at the newest version either
            error.reason,
            version=error.version,
            is_retryable=error.is_retryable,
            remedy="build the segments anew",
        ) from error


def drop_index(snapshot: Snapshot, name: str) -> Snapshot:
    """Remove an index, with all its segments; their files stay for older versions.

    Raises
    ------
    IndexNotFoundError
        There is no index of the name.
    InvalidRequestError
        The name is none, or that of an entry that serves the table itself.
    CommitConflictError
        Others changed the index again and again.
    """
    if checked_text("the name of an index", name) == REUSE_INDEX_NAME:
        raise InvalidRequestError(
            "indices need the fragment reuse index; trim_reuse_index removes what none needs"
        )

    def plan(newest: Snapshot) -> CreateIndex:
        removed = segments_of(newest, name)
        if len(removed) == 0:
            raise no_such_index(newest, name)
        return CreateIndex(removed_indices=removed)

    return commit_planned(snapshot, plan)


def segments_of(snapshot: Snapshot, name: str) -> tuple[table_pb2.IndexMetadata, ...]:
    """Return the entries of an index; of one that serves the table itself none."""
    entries = snapshot.manifest.index_section.indices
    return tuple(each for each in entries if each.name == name and not is_system(each))


def _read_version(snapshot: Snapshot, segments: Sequence[table_pb2.IndexMetadata]) -> int:
    """Return the newest version known to the caller at which segments still are as if just built.

    The caller's version shows which segments other commits have brought.
    """
    version = min(segment.dataset_version for segment in segments)
    lineage = Lineage(snapshot.scheduler)
    lineage.refresh()
    for each in lineage.commits_after(version):
        if each.version > snapshot.version or not _leaves_rows(each.transaction.operation):
            break
        version = each.version
    return version


def _leaves_rows(operation: Operation) -> bool:
    """Tell whether an operation leaves rows where they were with the values that they had.

    It may add rows, and delete some: segments may name deleted ones.
    """
    if isinstance(operation, Update):
        return operation.mode is UpdateMode.REWRITE_ROWS
    return isinstance(operation, Append | CreateIndex | Delete | ReserveFragments | UpdateConfig)


def _replaced(
    snapshot: Snapshot,
    name: str,
    segments: Sequence[table_pb2.IndexMetadata],
    *,
    replace_all: bool,
) -> tuple[table_pb2.IndexMetadata, ...]:
    """Check segments, and return the entries that they replace."""
    covered = _checked_coverage(name, segments)
    live = BitMap(snapshot.fragments_by_id)
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    replaced: list[table_pb2.IndexMetadata] = []
    for entry in segments_of(snapshot, name):
        if list(entry.fields) != list(segments[0].fields):
            raise InvalidRequestError(
                f"index {name!r} is on another column; drop it first, or take another name"
            )
        if replace_all:
            replaced.append(entry)
            continue
        old = history.fold(coverage(entry)) & live if entry.fragment_bitmap else BitMap()
        shared = old & history.fold(covered.copy())
        if len(shared) == 0 and len(old) > 0:
            if not _are_alike(entry, segments[0]):
                raise InvalidRequestError(
                    f"index {name!r} is of another kind, and covers other fragments;"
                    " drop it first, or take another name"
                )
            continue
        if shared != old:
            raise InvalidRequestError(
                f"a segment of index {name!r} to be replaced covers fragments"
                f" {sorted(old - shared)} too, which no new segment does; build one over them"
            )
        replaced.append(entry)
    return tuple(replaced)


def _checked_coverage(name: str, segments: Sequence[table_pb2.IndexMetadata]) -> BitMap:
    covered = BitMap()
    for segment in segments:
        if segment.name != name or not _are_alike(segment, segments[0]):
            raise InvalidRequestError(
                f"segments of one index {name!r} are committed together: of one kind and column, of"
                " vectors by one type and metric"
            )
        if not segment.fragment_bitmap:
            raise InvalidRequestError("which fragments a segment covers is not recorded")
        own = coverage(segment)
        if own.intersect(covered):
            raise InvalidRequestError(
                f"several segments cover fragments {sorted(own & covered)}; commit one for each"
            )
        covered |= own
    return covered


def _are_alike(one: table_pb2.IndexMetadata, other: table_pb2.IndexMetadata) -> bool:
    """Tell whether two segments may be of one index."""
    kinds = [each.index_details.type_url.rpartition(".")[2] for each in (one, other)]
    if kinds[0] != kinds[1] or list(one.fields) != list(other.fields):
        return False
    ways = [_way_of_vectors(each) for each in (one, other)]
    return None in ways or ways[0] == ways[1]


def _way_of_vectors(segment: table_pb2.IndexMetadata) -> tuple[str, object] | None:
    """Return type and metric of a segment of vectors, whose distances compare with no others.

    None for scalar ones, and where an old writer left them out.
    """
    details = segment.index_details
    if details.type_url.rpartition(".")[2].lower() != _VECTORS:
        return None
    try:
        index_type, parameters = stored_parameters(details.value)
    except UnusableSegmentError:
        return None
    return index_type, parameters["metric"]
