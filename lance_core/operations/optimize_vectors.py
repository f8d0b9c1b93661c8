"""Bringing a vector index up to date: by the model that it has, or by one that is trained anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.build.model_form import index_details
from lance_core.index.vector.build.parameters import VectorParameters
from lance_core.index.vector.build.same_model import same_model
from lance_core.index.vector.build.stored_model import stored_model
from lance_core.index.vector.build.stored_parameters import stored_parameters, with_files
from lance_core.index.vector.build.stored_rows import stored_columns
from lance_core.index.vector.rabit import RabitQuantizer
from lance_core.index.vector.segment import VectorSegment
from lance_core.operations.index_state import union
from lance_core.operations.indexed_column import indexed_rows
from lance_core.operations.new_index import NewIndex, recipe_of
from lance_core.operations.row_moves import RowMoves
from lance_core.operations.segment_anew import SegmentAnew
from lance_core.operations.write_vector_segment import CodedSegment, write_vector_segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyroaring import BitMap

    from lance_core.index.vector.build.model import VectorModel
    from lance_core.operations.index_state import IndexState, SegmentState
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """A segment whose model can be used further, and its coded rows."""

    state: SegmentState
    segment: VectorSegment
    model: VectorModel


@dataclass(frozen=True, slots=True, eq=False)
class _Extension:
    """A segment of coded rows and of rows that the same model is to code."""

    name: str
    column: str
    model: VectorModel
    coded: Sequence[_Opened]
    fresh: BitMap
    details: bytes
    replaced: tuple[table_pb2.IndexMetadata, ...]

    def build(
        self, files: TableFiles, snapshot: Snapshot, memory_bytes: int, progress: Progress
    ) -> table_pb2.IndexMetadata:
        """Write the segment."""
        moves = RowMoves.of(files, snapshot)
        return write_vector_segment(
            snapshot,
            self.name,
            snapshot.schema.field(self.column).id,
            self.fresh | union(each.state.covered for each in self.coded),
            self.model,
            asked=self.details,
            coded=[
                CodedSegment(each.segment, moves.route(each.state.covered, "row_id").follow)
                for each in self.coded
            ],
            rows=indexed_rows(files, snapshot, self.column, "row_id", self.fresh, progress),
            memory_bytes=memory_bytes,
        )


def vector_work(
    files: TableFiles,
    snapshot: Snapshot,
    state: IndexState,
    merged: Sequence[SegmentState],
    *,
    retrain: bool,
) -> _Extension | SegmentAnew | None:
    """Tell what to build for an index.

    Rows of segments that become one keep their codes where these are of the same model; others are
    read and coded anew, by the model that most rows have.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version.
    state
        The index.
    merged
        Segments that become one with the fragments that none covers.
    retrain
        Whether a new model is trained, with as many partitions as the rows ask for.

    Returns
    -------
    _Extension | SegmentAnew | None
        None where there are too few rows to train what has to be trained.

    Raises
    ------
    InvalidRequestError
        A model would have to be trained, and nothing tells how.
    """
    opened = [_opened(snapshot, each) for each in merged or state.useful[-1:]]
    usable = [each for each in opened if each is not None]
    if retrain or len(usable) == 0:
        return _retraining(files, snapshot, state, merged, usable)
    model = max(usable, key=lambda each: each.segment.num_rows).model
    coded = [each for each in usable if each.state in merged and same_model(each.model, model)]
    kept = [each.state for each in coded]
    return _Extension(
        state.name,
        snapshot.schema.path_of(state.field(snapshot).id),
        model,
        coded,
        state.uncovered | union(each.covered for each in merged if each not in kept),
        state.segments[-1].metadata.details,
        state.replaced(merged),
    )


def _opened(snapshot: Snapshot, state: SegmentState) -> _Opened | None:
    """Open a segment; None if its rows have to be coded anew."""
    metadata = state.metadata
    try:
        segment = VectorSegment.open(snapshot.index_place(metadata), metadata.uuid, metadata.files)
        stored_columns(segment)
        return _Opened(state, segment, stored_model(segment))
    except (UnusableSegmentError, CorruptFileError):
        return None


def _retraining(
    files: TableFiles,
    snapshot: Snapshot,
    state: IndexState,
    merged: Sequence[SegmentState],
    usable: Sequence[_Opened],
) -> _Extension | SegmentAnew | None:
    index_type, parameters = _request(snapshot, state, usable)
    column = snapshot.schema.path_of(state.field(snapshot).id)
    index = NewIndex(state.name, column, index_type, parameters)
    fresh = state.uncovered | union(each.covered for each in merged)
    recipe = recipe_of(snapshot, index)
    least = recipe.least_vectors if isinstance(recipe, VectorParameters) else 0
    fragments = (each for each in snapshot.fragments if each.id in fresh)
    if sum(files.num_live_rows(snapshot, each) for each in fragments) < least:
        return None
    return SegmentAnew(index, fresh, state.replaced(merged))


def _request(
    snapshot: Snapshot, state: IndexState, usable: Sequence[_Opened]
) -> tuple[str, dict[str, object]]:
    """Return the type of an index and its parameters, by its files if these can be read."""
    newest = state.segments[-1].metadata
    details = newest.details
    if len(usable) > 0:
        details = with_files(details, index_details(usable[-1].model).value)
    try:
        if len(details) > 0:
            return stored_parameters(details)
        return _of_old_files(snapshot, newest)
    except (UnusableSegmentError, CorruptFileError) as error:
        raise InvalidRequestError(
            f"index {state.name!r} has to be trained anew, but {error}; create it again"
        ) from error


def _of_old_files(snapshot: Snapshot, metadata: IndexMetadata) -> tuple[str, dict[str, object]]:
    """Return what files tell whose writer left the details out: those of RaBitQ up to 7.1."""
    segment = VectorSegment.open(snapshot.index_place(metadata), metadata.uuid, metadata.files)
    parameters: dict[str, object] = {"metric": str(segment.metric)}
    if isinstance(segment.quantizer, RabitQuantizer):
        parameters["num_bits"] = segment.quantizer.codes.num_extra_bits + 1
    return segment.kind, parameters
