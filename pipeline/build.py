"""Building an index by tasks: a segment for each group of fragments, by one model for all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_number
from lance_core.operations.indexed_column import checked_fragments
from lance_core.operations.new_index import NewIndex, recipe_of
from lance_core.operations.write_segment import MEMORY_BYTES
from pipeline.fragment_groups import group_items
from pipeline.index_items import IndexItem, Source, model_at, request_of, segment_from_bytes
from pipeline.index_job import IndexJob, standing_groups, state_of, without_empty
from pipeline.merge import MERGE_TO_ROWS
from pipeline.merge_built import merged_segments
from pipeline.plan import GroupSizes
from pipeline.sample import TrainOptions
from pipeline.train import TrainedModel, train_model, trained_model
from pipeline.vector_details import with_training

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.dataset import Dataset
    from lance_core.operations.index_state import IndexState
    from pipeline.job import JobContext
    from pipeline.stages import Worker

KIND = "build-index"

_LEAST_SEGMENTS = 8


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is to be built.

    Parameters
    ----------
    index
        The index; its parameters are JSON.
    model
        URI of a model that `train_model` stored; None = one is trained first.
    is_independent
        Whether each segment trains a model of its own, so that they cannot be merged.
    fragments
        Fragments to cover; None = all.
    num_segments
        Groups of fragments that are built by a task each; None = by ``segment_rows``, and more
        while the rows are worth it.
    segment_rows
        Rows wanted in such a group.
    merge_to_rows
        Built segments are merged as long as they have not more rows; 0 = not at all. None = 134
        million; not at all for graphs, which are made anew by a merge.
    replace
        Whether an index of the name is replaced; else only fragments are built that it does not
        cover.
    train
        How a model is trained.
    memory_bytes
        What a task may take, about.

    Raises
    ------
    InvalidRequestError
        A number is out of range, or there are both a model and independent ones.
    """

    index: NewIndex
    model: str | None = None
    is_independent: bool = False
    fragments: tuple[int, ...] | None = None
    num_segments: int | None = None
    segment_rows: int = 1 << 24
    merge_to_rows: int | None = None
    replace: bool = False
    train: TrainOptions = field(default_factory=TrainOptions)
    memory_bytes: int = MEMORY_BYTES

    def __post_init__(self) -> None:
        if self.model is not None and self.is_independent:
            raise InvalidRequestError("segments have one model or independent ones, not both")
        GroupSizes(self.segment_rows, self.num_segments)  # checks them
        if self.merge_to_rows is not None:
            checked_number("merge_to_rows", self.merge_to_rows, 0)
        checked_number("memory_bytes", self.memory_bytes, 1)


class BuildIndex(IndexJob):
    """The job that builds an index, or what is missing of one.

    Parameters
    ----------
    context
        Where it runs.
    request
        What is built.
    """

    kind = KIND

    def __init__(self, context: JobContext, request: BuildRequest) -> None:
        super().__init__(context, request.index.name)
        self.request = request

    def params(self) -> dict[str, object]:
        """Return what was asked for."""
        request = self.request
        return {
            **request_of(request.index),
            "model": request.model,
            "is_independent": request.is_independent,
            "fragments": None if request.fragments is None else list(request.fragments),
            "num_segments": request.num_segments,
            "segment_rows": request.segment_rows,
            "merge_to_rows": request.merge_to_rows,
            "replace": request.replace,
        }

    def plan(self, dataset: Dataset) -> list[bytes]:
        """Return an item for each group of fragments; none where all is covered already.

        Raises
        ------
        InvalidRequestError
            The index does not take the column or a parameter, there is one of the name on another
            column, or there is no such fragment or model.
        """
        request, snapshot = self.request, dataset.snapshot
        recipe_of(snapshot, request.index)
        if request.model is not None:
            self._given_model(request.model)
        state = state_of(dataset, self.name)
        _check_column(dataset, state, request.index)
        wanted = checked_fragments(snapshot, request.fragments)
        if state is not None and not request.replace:
            wanted &= state.uncovered
            if len(wanted) == 0:
                self.context.progress.event("covered", index=self.name)
                return []
            self._check_model()
        return group_items(dataset, wanted, self._sizes())

    def worker(self) -> Worker:
        """Return what builds a segment; the model is trained before, if none is given."""
        trained = self._trained()
        uri = None if trained is None else trained.uri
        return partial(build_group, self.source, self.request.index, uri, self.request.memory_bytes)

    def commit(
        self, dataset: Dataset, results: Sequence[bytes], properties: Mapping[str, str]
    ) -> int:
        """Merge the segments by tasks, and commit them."""
        request = self.request
        trained = self._trained()
        segments = without_empty([segment_from_bytes(each) for each in results])
        if trained is not None:
            segments = [with_training(each, trained.training) for each in segments]
        merge_to_rows = self._merge_to_rows()
        if merge_to_rows > 0:
            self.check_standing(segments)
            segments = merged_segments(
                self.context, dataset.version, segments, merge_to_rows, request.memory_bytes
            )
        return self.commit_all(dataset, segments, properties, replace_all=request.replace)

    def replan(
        self, dataset: Dataset, items: Sequence[bytes], results: Sequence[bytes]
    ) -> list[tuple[bytes, bytes | None]]:
        """Keep the segments of groups that nobody touched."""
        return standing_groups(dataset, items, results)

    def _check_model(self) -> None:
        request = self.request
        if self._is_of_vectors() and request.model is None and not request.is_independent:
            raise InvalidRequestError(
                f"index {self.name!r} has a model already: refresh-index covers new fragments by"
                " it; else give a model, let models be independent, or replace the index"
            )

    def _sizes(self) -> GroupSizes:
        request = self.request
        least = 1 if request.is_independent or self._has_graphs else _LEAST_SEGMENTS
        return GroupSizes(request.segment_rows, request.num_segments, least)

    @property
    def _has_graphs(self) -> bool:
        return "HNSW" in self.request.index.index_type.upper()

    def _merge_to_rows(self) -> int:
        request = self.request
        if request.is_independent:
            return 0
        if request.merge_to_rows is not None:
            return request.merge_to_rows
        return 0 if self._has_graphs else MERGE_TO_ROWS

    def _trained(self) -> TrainedModel | None:
        """Return the model that all segments share, training it if need be; None if there is none.

        It is a job of its own, which the next run of this one finds.
        """
        request = self.request
        if request.is_independent or not self._is_of_vectors():
            return None
        if request.model is not None:
            return self._given_model(request.model)
        plan = self.context.journal.plan()
        own = replace(self.context, job_id=f"{self.context.job_id}.model")
        version = None if plan is None else plan.read_version
        return train_model(own, request.index, request.fragments, request.train, version=version)

    def _given_model(self, uri: str) -> TrainedModel:
        found = trained_model(uri, self.context.storage_options)
        if found is None or found.uri is None:
            raise InvalidRequestError(f"there is no model at {uri}; train one")
        return found

    def _is_of_vectors(self) -> bool:
        return self.request.index.index_type.upper().startswith("IVF_")


def build_group(
    source: Source, index: NewIndex, model: str | None, memory_bytes: int, item: bytes
) -> bytes:
    """Build the segment of a group of fragments; runs in a worker."""
    request = IndexItem.parse(item)
    segment = source.open(request.version).build_segment(
        index,
        request.fragments,
        model=None if model is None else model_at(model, source.storage_options),
        memory_bytes=memory_bytes,
        progress=request.progress(),
    )
    data: bytes = segment.SerializeToString()
    return data


def _check_column(dataset: Dataset, state: IndexState | None, index: NewIndex) -> None:
    if state is None:
        return
    if state.field(dataset.snapshot).id != dataset.snapshot.schema.field(index.column).id:
        raise InvalidRequestError(
            f"index {index.name!r} is on another column; take another name, or drop it first"
        )
