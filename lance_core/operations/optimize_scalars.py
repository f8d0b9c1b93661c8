"""Bringing a scalar index up to date: new fragments are read, and merged with what files hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, InvalidRequestError, LanceError
from lance_core.file.reader import LanceFileReader
from lance_core.index.registry import IndexKind, UnusableSegmentError, classify
from lance_core.index.scalar.writers.segment_writer import SCALAR_KINDS
from lance_core.index.scalar.writers.stored_parameters import file_of_parameters, parameters_in
from lance_core.operations.index_state import union
from lance_core.operations.new_index import NewIndex
from lance_core.operations.rewrite_segments import rewrite_segments
from lance_core.operations.row_moves import RowMoves
from lance_core.operations.segment_anew import SegmentAnew
from lance_core.operations.write_segment import discard_segment
from lance_core.table.index_upkeep import coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyroaring import BitMap

    from lance_core.operations.index_state import IndexState, SegmentState
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class _Merge:
    """Segments that become one with fragments that none covers; only these are read."""

    whole: SegmentAnew
    merged: Sequence[SegmentState]
    fresh: BitMap

    @property
    def replaced(self) -> tuple[table_pb2.IndexMetadata, ...]:
        """Entries that go."""
        return self.whole.replaced

    def build(
        self, files: TableFiles, snapshot: Snapshot, memory_bytes: int, progress: Progress
    ) -> table_pb2.IndexMetadata:
        """Write the segment; from the rows of all fragments where files cannot be relied on."""
        found = self._merged(files, snapshot, memory_bytes, progress)
        if found is not None:
            return found
        return self.whole.build(files, snapshot, memory_bytes, progress)

    def _merged(
        self, files: TableFiles, snapshot: Snapshot, memory_bytes: int, progress: Progress
    ) -> table_pb2.IndexMetadata | None:
        parts = [each.entry for each in self.merged]
        new: list[table_pb2.IndexMetadata] = []
        store = snapshot.scheduler.store
        try:
            if len(self.fresh) > 0:
                fresh = SegmentAnew(self.whole.index, self.fresh, ())
                new.append(fresh.build(files, snapshot, memory_bytes, progress))
            found = rewrite_segments(RowMoves.of(files, snapshot), [*parts, *new], memory_bytes)
        except (UnusableSegmentError, InvalidRequestError, CorruptFileError):
            return None
        finally:
            for each in new:
                discard_segment(store, each)
        if coverage(found) != self.whole.fragments:
            discard_segment(store, found)
            return None
        found.dataset_version = snapshot.version  # rows are named as it has them
        return found


def scalar_work(
    snapshot: Snapshot, state: IndexState, merged: Sequence[SegmentState], *, retrain: bool
) -> SegmentAnew | _Merge:
    """Tell what to build so that some segments become one with the fragments that none covers.

    Parameters
    ----------
    snapshot
        The version.
    state
        The index.
    merged
        Segments that become one.
    retrain
        Whether all rows are read anew.

    Notes
    -----
    pylance 14.0.2 reads new fragments only, too. Zones that have followed a deferred compaction, or
    differ in size, are cut anew.
    """
    newest = state.segments[-1].metadata
    kind = classify(newest)
    whole = SegmentAnew(
        NewIndex(
            newest.name,
            snapshot.schema.path_of(newest.field_ids[0]),
            str(kind),
            _parameters(snapshot, newest),
        ),
        state.uncovered | union(each.covered for each in merged),
        state.replaced(merged),
    )
    if retrain or len(merged) == 0:
        return whole
    return _Merge(whole, merged, state.uncovered)


def is_scalar(state: IndexState) -> bool:
    """Tell whether all segments of an index are of one scalar kind that is built here."""
    kinds = {classify(each.metadata) for each in state.segments}
    return len(kinds) == 1 and kinds <= set(SCALAR_KINDS)


def _parameters(snapshot: Snapshot, segment: IndexMetadata) -> dict[str, object]:
    """Return the parameters of a segment; of one that cannot be read none, so the usual ones."""
    kind = classify(segment)
    file_name = file_of_parameters(kind) if isinstance(kind, IndexKind) else None
    if file_name is None or not isinstance(kind, IndexKind):
        return {}
    place = snapshot.index_place(segment).below(file_name)
    try:
        reader = LanceFileReader.open(place.scheduler, place.path)
    except LanceError:
        return {}
    return parameters_in(kind, reader.schema.metadata)
