"""What jobs share whose segments take the place of those that they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_core.table.index_upkeep import coverage
from pipeline.index_items import IndexItem, segment_from_bytes
from pipeline.index_job import IndexJob, as_of, state_of
from pipeline.touched import touched_between

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.dataset import Dataset


class SegmentReplacement(IndexJob, ABC):
    """Part of a job whose items are segments that become one, and fragments that join them."""

    @abstractmethod
    def plan(self, dataset: Dataset) -> list[bytes]:
        """Return an item for each segment that is to be written."""

    def commit(
        self, dataset: Dataset, results: Sequence[bytes], properties: Mapping[str, str]
    ) -> int:
        """Commit the segments in place of those that they are made of."""
        segments = [segment_from_bytes(each) for each in results]
        return self.commit_all(dataset, segments, properties)

    def replan(
        self, dataset: Dataset, items: Sequence[bytes], results: Sequence[bytes]
    ) -> list[tuple[bytes, bytes | None]]:
        """Keep segments that are wanted again, of inputs that are there with rows nobody touched.

        Parameters
        ----------
        dataset
            The newest version.
        items, results
            Items as they were planned before, and what came of each.
        """
        state = state_of(dataset, self.name)
        there = set() if state is None else {str(each.metadata.uuid) for each in state.segments}
        kept: dict[bytes, bytes] = {}
        for item, result in zip(items, results, strict=True):
            request, segment = IndexItem.parse(item), segment_from_bytes(result)
            touched = touched_between(dataset, request.version)
            if there.issuperset(request.segments) and not touched.is_touched(coverage(segment)):
                again = replace(request, version=dataset.version)
                kept[again.to_bytes()] = as_of(dataset, segment)
        return [(each, kept.get(each)) for each in self.plan(dataset)]
