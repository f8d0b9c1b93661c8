"""Keeping an index in shape: new fragments, few segments, current places, a model that fits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_number
from lance_core.operations.index_state import index_states
from lance_core.operations.optimize_indices import index_work
from lance_core.operations.segment_anew import SegmentAnew
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.reuse_trim import trimmed
from pipeline.build import BuildIndex, BuildRequest
from pipeline.fragment_groups import fragment_sizes, group_items
from pipeline.index_items import IndexItem
from pipeline.index_job import known_state
from pipeline.index_replacement import SegmentReplacement
from pipeline.job import run_job
from pipeline.plan import GroupSizes, newest_run
from pipeline.refresh import RefreshIndex, RefreshRequest, extend_index
from pipeline.retraining import reason_to_retrain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.dataset import Dataset
    from lance_core.operations.index_state import SegmentState
    from lance_core.operations.new_index import NewIndex
    from pipeline.job import JobContext
    from pipeline.stages import Worker

KIND = "optimize-index"

_NAME_BYTES = 8


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """How indices are kept in shape.

    Parameters
    ----------
    max_segments
        Segments that an index may have.
    min_segment_rows
        Neighbours of fewer rows at the end of an index are joined.
    retrain
        Whether the index is built anew, of vectors by a new model.
    retrain_if_growth
        Of vectors: an index is built anew when there are more rows than so many times those that
        its model was trained with; None = never. Only segments that this pipeline built tell.
    retrain_if_error
        Of vectors too: it is built anew when new rows, a tenth of all or more, are on average so
        many times as far from their centroids as those that the model was trained with; None =
        never.
    segment_rows
        Rows wanted in a group of fragments that a task reads.
    memory_bytes
        What a task may take, about.

    Raises
    ------
    InvalidRequestError
        A number is out of range.
    """

    max_segments: int = 8
    min_segment_rows: int = 1_000_000
    retrain: bool = False
    retrain_if_growth: float | None = 2.0
    retrain_if_error: float | None = 1.2
    segment_rows: int = 1 << 24
    memory_bytes: int = MEMORY_BYTES

    def __post_init__(self) -> None:
        if self.max_segments < 1:
            raise InvalidRequestError(f"max_segments is {self.max_segments}; an index has one")
        checked_number("min_segment_rows", self.min_segment_rows, 0)
        checked_number("segment_rows", self.segment_rows, 1)
        checked_number("memory_bytes", self.memory_bytes, 1)
        for name in ("retrain_if_growth", "retrain_if_error"):
            factor = getattr(self, name)
            if factor is not None and not factor > 1:  # nor NaN
                raise InvalidRequestError(f"{name} is {factor}; give more than 1, or None")


class OptimizeIndex(SegmentReplacement):
    """The job that covers new fragments and joins small segments, by the model that there is.

    Parameters
    ----------
    context
        Where it runs.
    name
        The index.
    request
        How.
    """

    kind = KIND

    def __init__(self, context: JobContext, name: str, request: OptimizeRequest) -> None:
        super().__init__(context, name)
        self.request = request

    def params(self) -> dict[str, object]:
        """Return what was asked for."""
        request = self.request
        return {
            "index": self.name,
            "max_segments": request.max_segments,
            "min_segment_rows": request.min_segment_rows,
            "segment_rows": request.segment_rows,
        }

    def plan(self, dataset: Dataset) -> list[bytes]:
        """Return an item for each segment that is to be written; none where all is well.

        Raises
        ------
        IndexNotFoundError
            There is no such index.
        InvalidRequestError
            Its type is not built here.

        Notes
        -----
        Spark page, section 10.4: the newest first, so that large segments are rarely written anew.
        Segments whose rows a deferred compaction moved are written anew all the same.
        """
        state = known_state(dataset, self.name)
        if index_work(dataset.session.files, dataset.snapshot, state, ()) is None:
            return []
        rows = {each.id: each.num_rows for each in fragment_sizes(dataset, _live(dataset))}
        useful = sorted(state.useful, key=lambda each: each.covered[0])
        sizes = [sum(rows[each] for each in segment.covered) for segment in useful]
        fresh = sum(rows[each] for each in state.uncovered)
        joins = len(state.uncovered) > 0 and fresh <= self.request.segment_rows
        first = newest_run(
            [*sizes, fresh] if joins else sizes,
            self.request.max_segments,
            self.request.min_segment_rows,
        )
        run = useful[first:]
        items: list[bytes] = []
        if len(run) > 0:
            fragments = tuple(state.uncovered) if joins else ()
            own = sum(sizes[first:]) + (fresh if joins else 0)
            items.append(_item(dataset, fragments, run, own))
        if len(state.uncovered) > 0 and not (joins and len(run) > 0):
            items += group_items(dataset, state.uncovered, GroupSizes(self.request.segment_rows))
        behind = _left_behind(dataset, useful[:first])
        return [*items, *(_item(dataset, (), [each], 0) for each in behind)]

    def worker(self) -> Worker:
        """Return what writes a segment."""
        return partial(extend_index, self.source, self.name, self.request.memory_bytes)


def optimize_indices(
    context: JobContext, names: Sequence[str] | None, request: OptimizeRequest
) -> int:
    """Keep indices in shape, each by a job and a commit of its own.

    Parameters
    ----------
    context
        Where the jobs run; the id is what theirs begin with.
    names
        The indices; None = all that are built here.
    request
        How.

    Returns
    -------
    int
        The last version that was committed, or the latest one.

    Raises
    ------
    IndexNotFoundError
        There is no index of a name.
    """
    return _for_each(context, names, lambda own, name: _optimize(own, name, request))


def refresh_indices(
    context: JobContext, names: Sequence[str] | None, request: RefreshRequest
) -> int:
    """Cover the fragments that indices do not, each by a job and a commit of its own.

    Parameters, results and errors as `optimize_indices`; the name in the request is not looked at.
    """
    return _for_each(
        context,
        names,
        lambda own, name: run_job(own, RefreshIndex(own, replace(request, name=name))),
    )


def _optimize(context: JobContext, name: str, request: OptimizeRequest) -> int:
    plan = context.journal.plan()
    dataset = context.open(None if plan is None else plan.read_version)
    index = None
    if plan is None or plan.kind != KIND:  # what was begun is gone on with
        index = _index_to_retrain(context, dataset, name, request)
    if index is None:
        return run_job(context, OptimizeIndex(context, name, request))
    build = BuildRequest(
        index, segment_rows=request.segment_rows, replace=True, memory_bytes=request.memory_bytes
    )
    return run_job(context, BuildIndex(context, build))


def _index_to_retrain(
    context: JobContext, dataset: Dataset, name: str, request: OptimizeRequest
) -> NewIndex | None:
    """Return an index as it was asked for if it is to be built anew, else None."""
    state = known_state(dataset, name)
    if not request.retrain:
        reason = reason_to_retrain(
            dataset, state, request.retrain_if_growth, request.retrain_if_error
        )
        if reason is None:
            return None
        context.progress.event("retrain", index=name, reason=reason)
    files, snapshot = dataset.session.files, dataset.snapshot
    work = index_work(files, snapshot, state, state.useful, retrain=True)
    return work.index if isinstance(work, SegmentAnew) else None


def _for_each(
    context: JobContext, names: Sequence[str] | None, work: Callable[[JobContext, str], int]
) -> int:
    known = list(index_states(context.open().snapshot))
    if names is not None and len(names) == 1:
        return work(context, names[0])
    version = context.open().version
    for name in known if names is None else names:
        digest = hashlib.sha256(name.encode()).hexdigest()[: 2 * _NAME_BYTES]
        own = replace(context, job_id=f"{context.job_id}.{digest}")
        try:
            version = max(version, work(own, name))
        except InvalidRequestError as error:
            if names is not None:
                raise
            context.progress.event("warning", message=f"index {name!r} is left as it is: {error}")
    return version


def _left_behind(dataset: Dataset, segments: Sequence[SegmentState]) -> list[SegmentState]:
    """Return the segments whose files need a deferred compaction to be found right."""
    snapshot = dataset.snapshot
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    return [each for each in segments if len(trimmed(history, [each.metadata]).versions) > 0]


def _item(
    dataset: Dataset, fragments: tuple[int, ...], segments: Sequence[SegmentState], num_rows: int
) -> bytes:
    uuids = tuple(str(each.metadata.uuid) for each in segments)
    return IndexItem(dataset.version, fragments, uuids, num_rows).to_bytes()


def _live(dataset: Dataset) -> BitMap:
    return BitMap(dataset.snapshot.fragments_by_id)
