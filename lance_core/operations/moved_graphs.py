"""Graphs whose rows were deleted and then left out by a compaction, before they were committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import CommitConflictError
from lance_core.operations.compact_indices import deletions_at, is_graph
from lance_core.table.index_metadata import index_from_proto
from lance_core.table.index_upkeep import coverage
from lance_core.table.transaction import Rewrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.proto import table_pb2
    from lance_core.table.commit import CommitCheck
    from lance_core.table.commits_since import Commit
    from lance_core.table.snapshot import Snapshot


def refuse_moved_graphs(
    snapshot: Snapshot, segments: Sequence[table_pb2.IndexMetadata]
) -> CommitCheck:
    """Return what refuses to commit graphs that a compaction has come before.

    All other segments follow deferred compactions through the Fragment Reuse Index. So do graphs,
    unless rows were left out that were deleted since they were built.

    Parameters
    ----------
    snapshot
        A version of the dataset.
    segments
        What is to be committed.

    Returns
    -------
    CommitCheck
        For `commit`; raises ``CommitConflictError``, to be retried.

    Notes
    -----
    Vector index page, section "Row ids": pylance 14.0.2 fails on such an index.
    """
    path = snapshot.manifest.path
    graphs = [each for each in segments if is_graph(snapshot, index_from_proto(each, path))]

    def check(theirs: Commit) -> None:
        operation = theirs.transaction.operation
        if not isinstance(operation, Rewrite):
            return
        moved = {
            old.id: old.deletion_file
            for group in operation.groups
            for old in group.old_fragments
            if old.HasField("deletion_file")
        }
        for graph in graphs:
            built = deletions_at(snapshot, graph.dataset_version)
            if any(moved[each] != built.get(each) for each in coverage(graph) & BitMap(moved)):
                raise CommitConflictError(
                    f"a compaction left out rows that index {graph.name!r} holds in a graph",
                    version=theirs.version,
                    is_retryable=True,
                )

    return check
