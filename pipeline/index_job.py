"""What jobs that write segments have in common: their commit, and what outlives a conflict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import CommitConflictError, InvalidRequestError
from lance_core.operations.commit_segments import commit_segments
from lance_core.operations.index_state import index_states
from lance_core.operations.segments_there import check_there
from lance_core.query.describe_indices import no_such_index
from lance_core.table.index_upkeep import coverage
from pipeline.index_items import IndexItem, Source, segment_from_bytes
from pipeline.job import JOB_ID, find_commit, transaction_uuid
from pipeline.touched import touched_between

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.dataset import Dataset
    from lance_core.operations.index_state import IndexState
    from lance_core.proto import table_pb2
    from pipeline.job import JobContext
    from pipeline.touched import Touched

    Segment = table_pb2.IndexMetadata


class IndexJob:
    """Part of a job whose results are segments of one index.

    Parameters
    ----------
    context
        Where the job runs.
    name
        The index.
    """

    def __init__(self, context: JobContext, name: str) -> None:
        self.context = context
        self.name = name
        self.source = Source.of(context)

    def describe(self, item: bytes) -> str:
        """Return what people call an item."""
        return f"{self.name}: {IndexItem.parse(item)}"

    def weigh(self, item: bytes) -> int:
        """Return about how many rows an item has."""
        return IndexItem.parse(item).num_rows

    def has_files(self, result: bytes) -> bool:
        """Tell whether the files of a segment are there, as large as they were."""
        segment = segment_from_bytes(result)
        return are_there(self.source.open(segment.dataset_version), [segment])

    def check_standing(self, segments: Sequence[Segment]) -> None:
        """Make sure, before more is made of segments, that their commit has a chance.

        Raises ``CommitConflictError`` where a compaction moved their rows out of reach.
        """
        newest = self.context.open()
        touched = {
            version: touched_between(newest, version)
            for version in {each.dataset_version for each in segments}
        }
        if any(touched[each.dataset_version].lost & coverage(each) for each in segments):
            raise CommitConflictError(
                "a compaction moved rows of new segments",
                version=newest.version,
                is_retryable=True,
            )

    def commit_all(
        self,
        dataset: Dataset,
        segments: Sequence[Segment],
        properties: Mapping[str, str],
        *,
        replace_all: bool = False,
    ) -> int:
        """Commit segments on top of the latest version, unless this job has done so before.

        Parameters
        ----------
        dataset
            The version that was planned for.
        segments
            Of the index.
        properties
            Of the transaction.
        replace_all
            Whether nothing else of the index stays.

        Notes
        -----
        Spark page, section 10.3. Deferred compactions leave the coverage of segments as it is, for
        the reuse history leads through them; values that others changed in place take their
        fragments out of it; other compactions are conflicts. All that is done by the commit.
        """
        newest = self.context.open()
        found = find_commit(newest, properties[JOB_ID], dataset.version)
        if found is not None:
            return found
        try:
            after = commit_segments(
                newest.snapshot,
                self.name,
                without_empty(segments),
                replace_all=replace_all,
                properties=properties,
                transaction_uuid=transaction_uuid(properties),
            )
        except InvalidRequestError as error:
            if newest.version == dataset.version:
                raise
            raise CommitConflictError(  # it was right for the version that was planned for
                str(error), version=newest.version, is_retryable=True
            ) from error
        state = index_states(after)[self.name]
        self.context.progress.event(
            "coverage",
            index=self.name,
            segments=len(state.useful),
            fragments=len(after.fragments) - len(state.uncovered),
            of_fragments=len(after.fragments),
            uncovered_rows=sum(f.num_live_rows for f in after.fragments if f.id in state.uncovered),
        )
        return after.version


def are_there(dataset: Dataset, segments: Sequence[Segment]) -> bool:
    """Tell whether the files of segments are in a dataset."""
    try:
        check_there(dataset.snapshot, segments)
    except InvalidRequestError:
        return False
    return True


def without_empty(segments: Sequence[Segment]) -> list[Segment]:
    """Leave out segments without rows, for which there were too few vectors; one stays of none."""
    kept = [each for each in segments if len(coverage(each)) > 0]
    return kept or list(segments[:1])


def standing_groups(
    dataset: Dataset, items: Sequence[bytes], results: Sequence[bytes]
) -> list[tuple[bytes, bytes | None]]:
    """Keep the segments of groups of fragments that nobody touched, and renew the items of others.

    Parameters
    ----------
    dataset
        The newest version.
    items, results
        Items without segments, and what came of each.

    Returns
    -------
    list[tuple[bytes, bytes | None]]
        What `pipeline.job.Replans` returns. Segments that stand are as of the newest version, so
        that conflicts up to it are over. Others are built of the fragments that have their rows
        now.
    """
    kept: list[tuple[bytes, bytes | None]] = []
    lost: list[tuple[IndexItem, Touched]] = []
    for item, result in zip(items, results, strict=True):
        request, segment = IndexItem.parse(item), segment_from_bytes(result)
        touched = touched_between(dataset, segment.dataset_version)
        if touched.is_touched(BitMap(request.fragments)):
            lost.append((request, touched))
        else:
            kept.append((item, as_of(dataset, segment)))
    taken = BitMap.union(BitMap(), *(BitMap(IndexItem.parse(item).fragments) for item, _ in kept))
    for request, touched in lost:
        fragments = touched.followed(request.fragments) & BitMap(dataset.snapshot.fragments_by_id)
        own = fragments - taken
        taken |= own
        if len(own) > 0:
            moved = replace(request, version=dataset.version, fragments=tuple(own))
            kept.append((moved.to_bytes(), None))
    return kept


def as_of(dataset: Dataset, segment: Segment) -> bytes:
    """Return a segment that nobody touched as one that was built from a later version."""
    later = type(segment)()
    later.CopyFrom(segment)
    later.dataset_version = dataset.version
    data: bytes = later.SerializeToString()
    return data


def state_of(dataset: Dataset, name: str) -> IndexState | None:
    """Return what the segments of an index cover, None if there is no such index."""
    return index_states(dataset.snapshot).get(name)


def known_state(dataset: Dataset, name: str) -> IndexState:
    """Return what the segments of an index cover; ``IndexNotFoundError`` if there is none."""
    state = state_of(dataset, name)
    if state is None:
        raise no_such_index(dataset.snapshot, name)
    return state
