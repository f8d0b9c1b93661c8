"""Creating an index over all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import CommitConflictError, InvalidRequestError
from lance_core.file.arguments import checked_flag
from lance_core.index.vector.build.parameters import VectorParameters
from lance_core.operations.build_segment import build_segment
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.commit_segments import segments_of
from lance_core.operations.index_arguments import checked_memory, checked_progress
from lance_core.operations.new_index import recipe_of
from lance_core.operations.progress import halves, no_progress
from lance_core.operations.train_model import train_model
from lance_core.operations.write_segment import MEMORY_BYTES, discard_segment
from lance_core.table.transaction import CreateIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def create_index(
    files: TableFiles,
    snapshot: Snapshot,
    index: NewIndex,
    *,
    replace: bool = True,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress = no_progress,
) -> Snapshot:
    """Build an index of one segment over all fragments, and commit it.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows are read first; after a conflict those of the newest one are.
    index
        What to build.
    replace
        Whether an index of the name, which is on the same column, is replaced.
    memory_bytes
        As `build_segment` takes it.
    progress
        Called with how many rows were read, and of how many; begins anew after a conflict. Of
        vectors in thousandths: a half is for training a model.

    Returns
    -------
    Snapshot
        The version committed.

    Raises
    ------
    InvalidRequestError
        There is an index of the name that must not be replaced, an argument is none, and what
        `build_segment` raises.
    CommitConflictError
        Others moved rows, or changed the index, again and again. No file of the segment is left.
    """
    replace, memory_bytes = checked_flag("replace", replace), checked_memory(memory_bytes)
    progress = checked_progress(progress)
    recipe = recipe_of(snapshot, index)
    _check_replaced(snapshot, segments_of(snapshot, index.name), index, replace=replace)
    model = None
    if isinstance(recipe, VectorParameters):  # what was learnt stays true after a conflict
        learning, progress = halves(progress)
        model = train_model(files, snapshot, index, memory_bytes=memory_bytes, progress=learning)
    with NewSegments(snapshot) as new:

        def plan(newest: Snapshot) -> CreateIndex:
            new.discard()
            old = segments_of(newest, index.name)
            _check_replaced(newest, old, index, replace=replace)
            segment = build_segment(
                files, newest, index, model=model, memory_bytes=memory_bytes, progress=progress
            )
            new.keep(segment)
            return CreateIndex((segment,), old)

        return commit_planned(snapshot, plan)


def _check_replaced(
    snapshot: Snapshot,
    old: Sequence[table_pb2.IndexMetadata],
    index: NewIndex,
    *,
    replace: bool,
) -> None:
    """Refuse to replace an index of another column, as pylance 14.0.2 does, or any at all."""
    if len(old) > 0 and not replace:
        raise InvalidRequestError(
            f"there is an index {index.name!r} already; take another name, or replace=True"
        )
    column = snapshot.schema.field(index.column)
    if any(list(each.fields) != [column.id] for each in old):
        raise InvalidRequestError(
            f"index {index.name!r} is on another column; take another name, or drop it first"
        )


class NewSegments:
    """Segments that are going to be committed, whose files go if it is known that they are not."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._store = snapshot.scheduler.store
        self._segments: list[table_pb2.IndexMetadata] = []

    def keep(self, segment: table_pb2.IndexMetadata) -> None:
        """Take a segment."""
        self._segments.append(segment)

    @property
    def segments(self) -> tuple[table_pb2.IndexMetadata, ...]:
        """The segments taken so far."""
        return tuple(self._segments)

    def discard(self) -> None:
        """Delete the files of all segments taken so far: a commit of them failed."""
        for segment in self._segments:
            discard_segment(self._store, segment)
        self._segments.clear()

    def __enter__(self) -> NewSegments:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # A store that failed may have committed all the same: then a cleanup decides.
        if isinstance(error, CommitConflictError | InvalidRequestError):
            self.discard()
