"""An index built in pieces: on many machines, or some fragments at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.dataset.reads import DatasetReads
from lance_core.file.arguments import checked_text
from lance_core.operations.build_segment import build_segment
from lance_core.operations.commit_segments import commit_segments, segments_of
from lance_core.operations.merge_segments import merge_segments
from lance_core.operations.progress import no_progress
from lance_core.operations.train_model import train_model
from lance_core.operations.write_segment import MEMORY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from lance_core.index.vector.build.model import VectorModel
    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2


class DatasetSegments(DatasetReads):
    """How the indices of a dataset are built in pieces.

    A segment answers for some fragments, and those of one index for different ones. Segments are
    messages that can be pickled; until `commit_segments` no version knows of them, and their files
    go with a cleanup.
    """

    def train_model(
        self,
        index: NewIndex,
        fragment_ids: Iterable[int] | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        progress: Progress = no_progress,
    ) -> VectorModel | None:
        """Learn the centroids and codes of a vector index; see `operations.train_model`."""
        return train_model(
            self.session.files,
            self.snapshot,
            index,
            fragment_ids,
            memory_bytes=memory_bytes,
            progress=progress,
        )

    def build_segment(
        self,
        index: NewIndex,
        fragment_ids: Iterable[int] | None = None,
        *,
        model: VectorModel | None = None,
        memory_bytes: int = MEMORY_BYTES,
        progress: Progress = no_progress,
    ) -> table_pb2.IndexMetadata:
        """Write a segment over some fragments; see `operations.build_segment`."""
        return build_segment(
            self.session.files,
            self.snapshot,
            index,
            fragment_ids,
            model=model,
            memory_bytes=memory_bytes,
            progress=progress,
        )

    def merge_segments(
        self, segments: Sequence[table_pb2.IndexMetadata], *, memory_bytes: int = MEMORY_BYTES
    ) -> table_pb2.IndexMetadata:
        """Write a segment that has the rows of others; see `operations.merge_segments`."""
        return merge_segments(
            self.session.files, self.snapshot, segments, memory_bytes=memory_bytes
        )

    def segments_of(self, name: str) -> tuple[table_pb2.IndexMetadata, ...]:
        """Return the segments of an index in this version; none if there is no such index."""
        return segments_of(self.snapshot, checked_text("name", name))

    def commit_segments(self, name: str, segments: Sequence[table_pb2.IndexMetadata]) -> Self:
        """Let segments answer queries; see `operations.commit_segments`.

        They take the place of segments of the index over the same fragments; others stay.
        """
        return type(self)(self.session, commit_segments(self.snapshot, name, segments))
