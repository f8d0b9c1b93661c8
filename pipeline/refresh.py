"""Covering fragments that came since an index was built, by the model that it has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_number
from lance_core.operations.index_state import IndexState
from lance_core.operations.optimize_indices import index_work
from lance_core.operations.segment_anew import SegmentAnew
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.scan.vector_type import vector_type
from pipeline.fragment_groups import group_items
from pipeline.index_items import IndexItem, segment_from_bytes
from pipeline.index_job import IndexJob, known_state, standing_groups, without_empty
from pipeline.merge import MERGE_TO_ROWS
from pipeline.merge_built import merged_segments
from pipeline.plan import GroupSizes
from pipeline.vector_details import has_graphs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.dataset import Dataset
    from pipeline.index_items import Source
    from pipeline.job import JobContext
    from pipeline.stages import Worker

KIND = "refresh-index"

_LEAST_SEGMENTS = 8


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """What is to be brought up to date.

    Parameters
    ----------
    name
        The index.
    num_segments, segment_rows
        Groups of fragments that a task reads each, as `BuildRequest` has them; what they build
        becomes one segment unless it has too many rows for that.
    memory_bytes
        What a task may take, about.

    Raises
    ------
    InvalidRequestError
        A number is out of range.
    """

    name: str
    num_segments: int | None = None
    segment_rows: int = 1 << 24
    memory_bytes: int = MEMORY_BYTES

    def __post_init__(self) -> None:
        GroupSizes(self.segment_rows, self.num_segments)  # checks them
        checked_number("memory_bytes", self.memory_bytes, 1)


class RefreshIndex(IndexJob):
    """The job that builds segments of the fragments that an index does not cover.

    Parameters
    ----------
    context
        Where it runs.
    request
        What is brought up to date.
    """

    kind = KIND

    def __init__(self, context: JobContext, request: RefreshRequest) -> None:
        super().__init__(context, request.name)
        self.request = request

    def params(self) -> dict[str, object]:
        """Return what was asked for."""
        request = self.request
        return {
            "index": request.name,
            "num_segments": request.num_segments,
            "segment_rows": request.segment_rows,
        }

    def plan(self, dataset: Dataset) -> list[bytes]:
        """Return an item for each group of fragments; none where all is covered.

        Nor are there any where there are too few vectors to train a model that is not there yet.

        Raises
        ------
        IndexNotFoundError
            There is no such index.
        InvalidRequestError
            Its type is not built here.
        """
        state = known_state(dataset, self.name)
        if len(state.uncovered) == 0:
            return []
        work = index_work(dataset.session.files, dataset.snapshot, state, ())
        if work is None:
            return []
        is_trained_anew = isinstance(work, SegmentAnew) and is_of_vectors(dataset, state)
        request = self.request
        least = 1 if is_trained_anew or self._has_graphs(state) else _LEAST_SEGMENTS
        number = 1 if is_trained_anew else request.num_segments
        sizes = GroupSizes(request.segment_rows, number, least)
        return group_items(dataset, state.uncovered, sizes)

    def worker(self) -> Worker:
        """Return what builds a segment by the model of those that are there."""
        return partial(extend_index, self.source, self.name, self.request.memory_bytes)

    def commit(
        self, dataset: Dataset, results: Sequence[bytes], properties: Mapping[str, str]
    ) -> int:
        """Commit the segments beside those that are there, small ones as one."""
        segments = without_empty([segment_from_bytes(each) for each in results])
        if not self._has_graphs(known_state(dataset, self.name)):
            self.check_standing(segments)
            segments = merged_segments(
                self.context, dataset.version, segments, MERGE_TO_ROWS, self.request.memory_bytes
            )
        return self.commit_all(dataset, segments, properties)

    def replan(
        self, dataset: Dataset, items: Sequence[bytes], results: Sequence[bytes]
    ) -> list[tuple[bytes, bytes | None]]:
        """Keep the segments of groups that nobody touched."""
        return standing_groups(dataset, items, results)

    def _has_graphs(self, state: IndexState) -> bool:
        """Tell whether segments have graphs, which a merge would make anew."""
        return any(has_graphs(each.entry) for each in state.segments)


def extend_index(source: Source, name: str, memory_bytes: int, item: bytes) -> bytes:
    """Write a segment of fragments and of committed segments; runs in a worker."""
    request = IndexItem.parse(item)
    dataset = source.open(request.version)
    state = known_state(dataset, name)
    merged = [each for each in state.useful if str(each.metadata.uuid) in request.segments]
    if len(merged) < len(request.segments):
        raise InvalidRequestError(f"version {request.version} lacks a segment of {name!r}")
    own = IndexState(state.segments, BitMap(request.fragments))
    files, snapshot = dataset.session.files, dataset.snapshot
    work = index_work(files, snapshot, own, merged)
    if work is None:
        raise InvalidRequestError(f"index {name!r} has no model, and too few vectors for one")
    segment = work.build(files, snapshot, memory_bytes, request.progress())
    data: bytes = segment.SerializeToString()
    return data


def is_of_vectors(dataset: Dataset, state: IndexState) -> bool:
    """Tell whether an index is on vectors."""
    return vector_type(state.field(dataset.snapshot)) is not None
