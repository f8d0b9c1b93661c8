"""A segment that takes the place of others and is built anew, from the rows of its fragments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.operations.build_segment import build_segment

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class SegmentAnew:
    """A segment to build of some fragments, and those that it replaces."""

    index: NewIndex
    fragments: BitMap
    replaced: tuple[table_pb2.IndexMetadata, ...]

    def build(
        self, files: TableFiles, snapshot: Snapshot, memory_bytes: int, progress: Progress
    ) -> table_pb2.IndexMetadata:
        """Write the segment."""
        return build_segment(
            files,
            snapshot,
            self.index,
            self.fragments,
            memory_bytes=memory_bytes,
            progress=progress,
        )
