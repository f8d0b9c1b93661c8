"""Letting indices follow a compaction at once: their files are written anew before its commit."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import LanceError
from lance_core.index.registry import IndexKind, UnusableSegmentError, classify
from lance_core.index.vector.build.budget import Budget
from lance_core.operations.compact_indices import is_graph, segments_over
from lance_core.operations.rewrite_segments import rewrite_segments
from lance_core.operations.row_moves import RowMoves
from lance_core.operations.write_segment import discard_segment
from lance_core.proto import table_pb2
from lance_core.proto.transaction_pb2 import Transaction
from lance_core.table.files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lance_core.io.store import ObjectStore
    from lance_core.table.reuse_history import ReuseGroup
    from lance_core.table.snapshot import Snapshot

RewrittenIndex = Transaction.Rewrite.RewrittenIndex


class Remap(Protocol):
    """Writes segments anew that name rows which are going to move, as `remapped` does."""

    def __call__(
        self, snapshot: Snapshot, groups: Sequence[ReuseGroup], memory_bytes: int
    ) -> tuple[RewrittenIndex, ...]:
        """Return what the transaction is to say of them."""


_LOGGER = logging.getLogger(__name__)
_CACHE_BYTES = 64 << 20


def check_memory(snapshot: Snapshot, moved: BitMap, memory_bytes: int) -> None:
    """Refuse a compaction whose indices cannot be written anew in the memory there is.

    Raises ``InvalidRequestError`` before anything is written.
    """
    for segment, _ in segments_over(snapshot, moved):
        if classify(segment) is IndexKind.VECTOR:
            Budget(memory_bytes).check(has_graphs=is_graph(snapshot, segment))


def remapped(
    snapshot: Snapshot, groups: Sequence[ReuseGroup], memory_bytes: int
) -> tuple[RewrittenIndex, ...]:
    """Write segments anew that name rows which are going to move.

    Parameters
    ----------
    snapshot
        The version that is compacted.
    groups
        What is compacted; the new fragments have their ids.
    memory_bytes
        As `build_segment` takes it.

    Returns
    -------
    tuple[RewrittenIndex, ...]
        For the transaction. Segments that cannot be followed are not among them, so that they lose
        the coverage of the fragments: zone maps and Bloom filters, which name stretches of rows,
        and those whose files cannot be relied on.

    Raises
    ------
    CorruptFileError
        A segment, or the history of deferred compactions, contradicts the format. No file is left.
    UnsupportedFeatureError
        The history is tagged.
    """
    moves = RowMoves.of(TableFiles(ByteCache(_CACHE_BYTES)), snapshot, groups)
    found: list[RewrittenIndex] = []
    try:
        for entry in entries_to_remap(snapshot, groups):
            new = remapped_entry(moves, entry, memory_bytes)
            if new is not None:
                found.append(new)
    except LanceError:
        discard_remapped(snapshot.scheduler.store, found)
        raise
    return tuple(found)


def entries_to_remap(
    snapshot: Snapshot, groups: Sequence[ReuseGroup]
) -> list[table_pb2.IndexMetadata]:
    """Return the segments, as the manifest has them, that name rows which are going to move."""
    moved = BitMap(old.id for group in groups for old in group.old_fragments)
    return [entry for _, entry in segments_over(snapshot, moved)]


def remapped_entry(
    moves: RowMoves, entry: table_pb2.IndexMetadata, memory_bytes: int
) -> RewrittenIndex | None:
    """Write one segment anew, or return None if it cannot be followed; errors as `remapped`.

    ``moves`` has the groups that are compacted.
    """
    try:
        return _rewritten(entry, rewrite_segments(moves, [entry], memory_bytes))
    except UnusableSegmentError as error:
        _LOGGER.debug("index %s loses what is compacted: %s", entry.name, error.reason)
        return None


def discard_remapped(store: ObjectStore, indices: Iterable[RewrittenIndex]) -> None:
    """Delete the files of segments that are not going to be committed."""
    for each in indices:
        discard_segment(store, table_pb2.IndexMetadata(uuid=each.new_id))


def _rewritten(old: table_pb2.IndexMetadata, new: table_pb2.IndexMetadata) -> RewrittenIndex:
    return RewrittenIndex(
        old_id=old.uuid,
        new_id=new.uuid,
        new_index_details=new.index_details,
        new_index_version=new.index_version,
        new_index_files=new.files,
    )
