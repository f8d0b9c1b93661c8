"""What the segments of an index cover at a version, and so what is to be done to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyroaring import BitMap

from lance_core.index.coverage import effective_coverage
from lance_core.table.reuse_of_version import reuse_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.schema.field import LanceField
    from lance_core.table.files import TableFiles
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class SegmentState:
    """A segment of the version: as a value, as the manifest has it, and what it covers."""

    metadata: IndexMetadata
    entry: table_pb2.IndexMetadata
    covered: BitMap


@dataclass(frozen=True, slots=True, eq=False)
class IndexState:
    """All segments of an index, the oldest first, and the fragments that none covers."""

    segments: Sequence[SegmentState]
    uncovered: BitMap

    @property
    def name(self) -> str:
        """The index."""
        return self.segments[-1].metadata.name

    @property
    def useful(self) -> Sequence[SegmentState]:
        """Segments that cover something."""
        return [each for each in self.segments if len(each.covered) > 0]

    def field(self, snapshot: Snapshot) -> LanceField:
        """Return the field that the index is on."""
        return snapshot.schema.by_id(self.segments[-1].metadata.field_ids[0])

    def replaced(self, merged: Sequence[SegmentState]) -> tuple[table_pb2.IndexMetadata, ...]:
        """Return the entries that go when some become one: those that are of no use too."""
        return tuple(
            each.entry for each in self.segments if len(each.covered) == 0 or each in merged
        )


class IndexWork(Protocol):
    """A segment that is to be built, and those in whose place it comes."""

    @property
    def replaced(self) -> tuple[table_pb2.IndexMetadata, ...]:
        """Entries that go."""

    def build(
        self, files: TableFiles, snapshot: Snapshot, memory_bytes: int, progress: Progress
    ) -> table_pb2.IndexMetadata:
        """Write the segment."""


def index_states(snapshot: Snapshot) -> Mapping[str, IndexState]:
    """Return the indices of a version by name, without those that serve the table itself."""
    live = BitMap(snapshot.fragments_by_id)
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    by_name: dict[str, list[SegmentState]] = {}
    entries = snapshot.manifest.index_section.indices
    for metadata, entry in zip(snapshot.indices, entries, strict=True):
        if not metadata.is_system:
            state = SegmentState(metadata, entry, effective_coverage(metadata, live, history))
            by_name.setdefault(metadata.name, []).append(state)
    return {
        name: IndexState(segments, live - union(each.covered for each in segments))
        for name, segments in by_name.items()
    }


def union(sets: Iterable[BitMap]) -> BitMap:
    """Return what is in any of some sets."""
    return BitMap.union(BitMap(), *sets)
