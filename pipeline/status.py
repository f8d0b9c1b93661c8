"""``status``: what jobs there are, and what a dataset needs; nothing of it starts Spark."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.operations.cleanup_plan import STREAM_PREFIX
from lance_core.operations.compact_plan import CompactionOptions, plan_compaction
from lance_core.operations.compact_trim import reuse_growth
from pipeline.job_states import JobState, job_reports
from pipeline.trim import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lance_core.dataset import Dataset
    from lance_core.query.index_statistics import IndexStatistics
    from lance_core.table.reuse_trim import ReuseGrowth
    from pipeline.job import JobContext
    from pipeline.job_states import JobReport

MAX_SEGMENTS = 8
"""What `optimize-index` leaves at most unless it is told otherwise."""

_MAX_COMPACTIONS = 8
_OF_STRETCHES = frozenset(("ZONEMAP", "BLOOMFILTER"))
_STREAM_PARTS = frozenset(("epoch", "version"))


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """An index: ``num_behind`` of its segments have deferred compactions to follow."""

    name: str
    index_type: str
    num_segments: int
    num_indexed_rows: int
    num_unindexed_rows: int
    num_behind: int


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """A stream: cleanups keep versions from ``version`` on; None where it does not say."""

    query_id: str
    epoch: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """Everything.

    Parameters
    ----------
    uri, version
        The dataset at its newest version.
    num_rows, num_fragments
        Live rows, and the fragments that they are in.
    num_small_fragments
        Fragments that a compaction would write anew.
    indices
        By name.
    reuse
        Deferred compactions that are remembered.
    streams
        That the configuration tells of.
    jobs
        The last one active first.
    warnings
        What others must not do.
    advice
        What there is to do: command lines.
    """

    uri: str
    version: int
    num_rows: int
    num_fragments: int
    num_small_fragments: int
    indices: tuple[IndexStatus, ...]
    reuse: ReuseGrowth
    streams: tuple[StreamStatus, ...]
    jobs: tuple[JobReport, ...]
    warnings: tuple[str, ...]
    advice: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the status as plain values, ready for JSON."""
        facts = asdict(self)
        return {**facts, "jobs": [each.to_dict() for each in self.jobs]}


def status_of(context: JobContext) -> Status:
    """Look at a dataset and at the journals of its jobs.

    Raises
    ------
    CorruptFileError
        A manifest cannot be read.
    """
    dataset = context.open()
    indices = tuple(map(_index_status, dataset.list_indices()))
    reuse = reuse_growth(dataset.snapshot)
    num_small = _num_small_fragments(dataset)
    return Status(
        uri=context.uri,
        version=dataset.version,
        num_rows=dataset.count_rows(),
        num_fragments=len(dataset.snapshot.fragments),
        num_small_fragments=num_small,
        indices=indices,
        reuse=reuse,
        streams=_streams(dataset.config),
        jobs=(jobs := tuple(job_reports(context.state_uri, context.storage_options))),
        warnings=tuple(_warnings(indices, reuse)),
        advice=tuple(_advice(context, indices, reuse, num_small, jobs)),
    )


def _index_status(index: IndexStatistics) -> IndexStatus:
    return IndexStatus(
        name=index.name,
        index_type=index.index_type,
        num_segments=len(index.segments),
        num_indexed_rows=index.num_indexed_rows,
        num_unindexed_rows=index.num_unindexed_rows,
        num_behind=sum(each.num_compactions_behind > 0 for each in index.segments),
    )


def _num_small_fragments(dataset: Dataset) -> int:
    snapshot = dataset.snapshot
    try:
        options = CompactionOptions.of_config(snapshot.manifest.config)
    except InvalidRequestError:  # a configuration that means nothing, as a compaction will say
        options = CompactionOptions()
    tasks = plan_compaction(dataset.session.files, snapshot, options)
    return sum(len(task.fragment_ids) for task in tasks)


def _streams(config: Mapping[str, str]) -> tuple[StreamStatus, ...]:
    found: dict[str, dict[str, str]] = {}
    for key, value in config.items():
        query_id, _, part = key.removeprefix(STREAM_PREFIX).rpartition(".")
        if key.startswith(STREAM_PREFIX) and part in _STREAM_PARTS:
            found.setdefault(query_id, {})[part] = value
    return tuple(
        StreamStatus(query_id, found[query_id].get("epoch"), found[query_id].get("version"))
        for query_id in sorted(found)
    )


def _warnings(indices: Sequence[IndexStatus], reuse: ReuseGrowth) -> Iterator[str]:
    if reuse.num_versions > 0:
        yield (
            "deferred compactions are pending: compact_files() of pylance, without"
            " defer_index_remap, makes BTREE, NGRAM and INVERTED indices lose rows until they are"
            " followed"
        )
    for each in indices:
        if each.num_behind > 0 and each.index_type in _OF_STRETCHES:
            yield (
                f"index {each.name} cannot follow deferred compactions, which stay remembered for"
                " it: build it anew"
            )


def _advice(
    context: JobContext,
    indices: Sequence[IndexStatus],
    reuse: ReuseGrowth,
    num_small: int,
    jobs: Sequence[JobReport],
) -> Iterator[str]:
    if num_small > 0:
        yield _command(context, "compact")
    for each in indices:
        if each.num_unindexed_rows > 0:
            yield _command(context, "refresh-index", "--name", each.name)
        if each.num_segments > MAX_SEGMENTS:
            yield _command(context, "optimize-index", "--name", each.name)
    if reuse.num_versions > _MAX_COMPACTIONS or reuse.num_bytes > MAX_BYTES:
        yield _command(context, "trim-fri")
    for job in jobs:
        if job.state in {JobState.INTERRUPTED, JobState.FAILED}:
            yield _command(context, job.kind, "--job-id", job.job_id, "...")


def _command(context: JobContext, verb: str, *options: str) -> str:
    return shlex.join(("lance-pipeline", verb, "--uri", context.uri, *options))
