"""Bringing a scalar index up to date: it is built anew, from the rows of its fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import LanceError
from lance_core.file.reader import LanceFileReader
from lance_core.index.registry import IndexKind, classify
from lance_core.index.scalar.writers.stored_parameters import file_of_parameters, parameters_in
from lance_core.operations.index_state import union
from lance_core.operations.new_index import NewIndex
from lance_core.operations.segment_anew import SegmentAnew

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.operations.index_state import IndexState, SegmentState
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot


def scalar_work(
    snapshot: Snapshot, state: IndexState, merged: Sequence[SegmentState]
) -> SegmentAnew:
    """Tell what to build so that some segments become one with the fragments that none covers."""
    newest = state.segments[-1].metadata
    return SegmentAnew(
        NewIndex(
            newest.name,
            snapshot.schema.path_of(newest.field_ids[0]),
            str(classify(newest)),
            _parameters(snapshot, newest),
        ),
        state.uncovered | union(each.covered for each in merged),
        state.replaced(merged),
    )


def is_scalar(state: IndexState) -> bool:
    """Tell whether all segments of an index are of one scalar kind that is built here."""
    kinds = {classify(each.metadata) for each in state.segments}
    known = {kind for kind in kinds if isinstance(kind, IndexKind)}
    builds = known - {IndexKind.VECTOR, IndexKind.UNTOLD}
    return len(kinds) == 1 and len(builds) == 1


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
