"""Making few segments of many by tasks: each copies rows as files hold them, with their codes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_number
from lance_core.operations.write_segment import MEMORY_BYTES
from pipeline.index_items import IndexItem
from pipeline.index_job import known_state
from pipeline.index_replacement import SegmentReplacement
from pipeline.plan import neighbours_up_to

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from pipeline.index_items import Source
    from pipeline.job import JobContext
    from pipeline.stages import Worker

KIND = "merge"
MERGE_TO_ROWS = 1 << 27
"""Rows of a segment that others are merged into, at most."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What is to be merged.

    Parameters
    ----------
    name
        The index.
    merge_to_rows
        Neighbours are joined as long as they have not more rows than this.
    memory_bytes
        As `merge_segments` takes it.

    Raises
    ------
    InvalidRequestError
        A number is out of range.
    """

    name: str
    merge_to_rows: int = MERGE_TO_ROWS
    memory_bytes: int = MEMORY_BYTES

    def __post_init__(self) -> None:
        checked_number("merge_to_rows", self.merge_to_rows, 1)
        checked_number("memory_bytes", self.memory_bytes, 1)


class MergeSegments(SegmentReplacement):
    """The job that makes few segments of the many that an index has.

    Parameters
    ----------
    context
        Where it runs.
    request
        What is merged.
    """

    kind = KIND

    def __init__(self, context: JobContext, request: MergeRequest) -> None:
        super().__init__(context, request.name)
        self.request = request

    def params(self) -> dict[str, object]:
        """Return what was asked for."""
        return {"index": self.name, "merge_to_rows": self.request.merge_to_rows}

    def plan(self, dataset: Dataset) -> list[bytes]:
        """Return an item for each group of segments that become one.

        Raises ``IndexNotFoundError`` if there is no such index.
        """
        state = known_state(dataset, self.name)
        rows = {int(each.id): each.num_live_rows for each in dataset.snapshot.fragments}
        useful = sorted(state.useful, key=lambda each: each.covered[0])
        sizes = [sum(rows[each] for each in segment.covered) for segment in useful]
        items = []
        for group in neighbours_up_to(sizes, self.request.merge_to_rows):
            if len(group) > 1:
                uuids = tuple(str(useful[each].metadata.uuid) for each in group)
                own = sum(sizes[each] for each in group)
                items.append(IndexItem(dataset.version, (), uuids, own).to_bytes())
        return items

    def worker(self) -> Worker:
        """Return what merges the committed segments of an item."""
        return partial(merge_committed, self.source, self.name, self.request.memory_bytes)


def merge_committed(source: Source, name: str, memory_bytes: int, item: bytes) -> bytes:
    """Merge segments that a version has; runs in a worker."""
    request = IndexItem.parse(item)
    dataset = source.open(request.version)
    by_uuid = {uuid.UUID(bytes=each.uuid.uuid): each for each in dataset.segments_of(name)}
    wanted = [uuid.UUID(each) for each in request.segments]
    lost = [str(each) for each in wanted if each not in by_uuid]
    if lost:
        raise InvalidRequestError(f"version {request.version} has no segment {lost[0]}")
    segment = dataset.merge_segments([by_uuid[each] for each in wanted], memory_bytes=memory_bytes)
    data: bytes = segment.SerializeToString()
    return data
