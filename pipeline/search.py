"""Offline batches of nearest-neighbour queries: what ``lance-pipeline search`` does.

The driver reads the queries once and keeps them in blocks beside the journal. A filter is judged
once, fragment by fragment. Then tasks share either the queries (plan A: every worker searches the
whole dataset) or the index (plan B: every piece of it is read by one task and searched by all
queries, and what the pieces found is joined block by block). Both answer as
`lance_core.dataset.Dataset.search` does.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.query.deadline import NO_DEADLINE
from lance_core.query.row_filter import read_filter
from pipeline.job import ITEM_COUNT, JOB_ID, KIND as KIND_PROPERTY
from pipeline.journal import check_same
from pipeline.kept_stage import run_kept
from pipeline.lease import Lease
from pipeline.plan import neighbours_up_to
from pipeline.search_plan import HELD_BYTES, block_rows, choose_plan, partition_ranges
from pipeline.search_queries import load_block, read_queries, store_queries
from pipeline.search_work import (
    FILTERED,
    FOLDERS,
    FOUND,
    PROBED,
    SearchTask,
    answer_block,
    answer_lists,
    join_block,
    judge_fragments,
    probe_block,
    probe_counts,
    search_piece,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from lance_core.dataset import Dataset
    from lance_core.query.split_search import SplitSearch
    from lance_core.table.snapshot import Snapshot
    from pipeline.job import JobContext
    from pipeline.journal import Journal
    from pipeline.search_output import AnswerOutput
    from pipeline.search_plan import PlanName
    from pipeline.search_queries import QueryBlock, StoredQueries
    from pipeline.search_work import BatchSearch

KIND = "search"
_ANSWER = "answer.json"
_JUDGED_ROWS = 1 << 22
_FLOAT_BYTES = 4
_LEAST_SCANNED = 1 << 16


@dataclass(frozen=True, slots=True)
class QuerySource:
    """Where the queries come from.

    Parameters
    ----------
    name
        What people call it; a job is only resumed with the same.
    batches
        Opens the rows.
    column, id_column
        See `store_queries`.
    """

    name: str
    batches: Callable[[], Iterable[pa.RecordBatch]]
    column: str | None = None
    id_column: str | None = None


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """What a batch has come to: the version that was searched, how, and by how many queries."""

    version: int
    plan: str
    num_queries: int


def batch_search(
    context: JobContext,
    search: BatchSearch,
    queries: QuerySource,
    output: AnswerOutput,
    *,
    plan: PlanName = "auto",
    query_block: int = 4096,
) -> BatchAnswer:
    """Search for the nearest rows of many vectors, and write the answers; done once, resumable.

    Parameters
    ----------
    context
        The dataset, whose newest version is searched, and how to run.
    search
        What to search for.
    queries
        The vectors.
    output
        Where the answers go.
    plan
        ``A`` = tasks share the queries, ``B`` = the index; ``auto`` = by their sizes.
    query_block
        Queries of a task at most.

    Raises
    ------
    InvalidRequestError
        A parameter or the queries do not fit the dataset, the place of the answers is taken, or
        the job was begun with other parameters.
    JobRunningError
        Another driver is at work on it.
    StageFailedError
        Tasks failed for good. What was done is kept for the next run.
    """
    if context.dry_run:
        return _told_plan(context, search, queries, plan)
    journal = context.journal
    params: dict[str, object] = {
        **asdict(search),
        "queries": [queries.name, queries.column, queries.id_column],
        "out": output.uri,
        "plan": plan,
        "query_block": query_block,
    }
    stored = journal.plan()
    if stored is not None:
        check_same(stored, KIND, params, context.job_id)
    if journal.committed() is not None:
        _discard(journal)
        return _read_answer(journal.get(_ANSWER))
    with Lease(journal) as lease:
        if stored is None:
            output.check_free()
            stored = journal.begin(KIND, params, context.open().version, [])
        task = SearchTask(
            context.uri, stored.read_version, _pairs(context), journal, search, output
        )
        rows = block_rows(query_block, search.k)
        kept = store_queries(
            journal,
            queries.batches(),
            rows,
            column=queries.column,
            id_column=queries.id_column,
        )
        run = _Run(context, task, kept, plan)
        results = run.blocks()
        lease.check()
        answer = BatchAnswer(stored.read_version, run.plan, kept.num_queries)
        output.finish(results, _properties(context, kept))
        journal.put(_ANSWER, json.dumps(asdict(answer)).encode())
        journal.mark_committed(answer.version)
        _discard(journal)
    return answer


def _discard(journal: Journal) -> None:
    """Remove what workers of a job that is done have left for one another."""
    for folder in FOLDERS:
        journal.discard(folder)


def _told_plan(
    context: JobContext, search: BatchSearch, queries: QuerySource, asked: PlanName
) -> BatchAnswer:
    """Say what would be done, but for what the filter makes of it; no row is judged."""
    dataset = context.open()
    num_queries, first = 0, None
    for block in read_queries(queries.batches(), queries.column, queries.id_column):
        num_queries += len(block)
        first = block.slice(0, 1) if first is None else first
    if first is None:
        raise InvalidRequestError("there is no query vector in what is given to search by")
    split = _split(dataset, replace(search, filter=None), first)
    if search.filter is not None:
        read_filter(search.filter, dataset.snapshot.schema, NO_DEADLINE)
    sizes = _Sizes(dataset.snapshot, split)
    plan = choose_plan(
        asked,
        num_queries=num_queries,
        index_bytes=sizes.all_bytes(first.vectors.shape[1]),
        has_parts=split.has_parts,
    )
    answer = BatchAnswer(dataset.version, plan, num_queries)
    context.progress.event("plan", kind=KIND, **asdict(answer))
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class _Sizes:
    """How large what a search reads is."""

    snapshot: Snapshot
    split: SplitSearch

    def segment_bytes(self) -> list[int]:
        """Return the bytes of each segment's files."""
        indices = self.snapshot.indices
        sizes = {each.uuid: sum(f.size for f in each.files) for each in indices}
        return [sizes[search.segment.uuid] for search in self.split.plan.searches]

    def flat_rows(self) -> dict[int, int]:
        """Return the rows of each fragment that no index covers."""
        flat = self.split.plan.flat
        if flat is None:
            return {}
        fragments = self.snapshot.fragments
        return {each.id: each.physical_rows for each in fragments if each.id in flat.fragments}

    def all_bytes(self, dimension: int) -> int:
        """Return the bytes of segments, and of vectors without index."""
        vectors = sum(self.flat_rows().values()) * dimension * _FLOAT_BYTES
        return sum(self.segment_bytes()) + vectors


class _Run:
    """The stages of one batch, each of which an earlier run may have done."""

    def __init__(
        self, context: JobContext, task: SearchTask, queries: StoredQueries, asked: PlanName
    ) -> None:
        self._context = context
        self._task = task
        self._snapshot = context.open(task.version).snapshot
        self._queries = queries
        self._blocks = [str(number).encode() for number in range(queries.num_blocks)]
        if task.search.filter is not None:
            self._judge(task.search.filter)
        self._split = self._first_query()
        self._sizes = _Sizes(self._snapshot, self._split)
        self.plan = choose_plan(
            asked,
            num_queries=queries.num_queries,
            index_bytes=self._sizes.all_bytes(queries.dimension),
            has_parts=self._split.has_parts,
        )

    def blocks(self) -> list[bytes]:
        """Answer all blocks; return what each has told of its output."""
        if self.plan == "A":
            work = answer_lists if self._split.takes_lists else answer_block
            return self._stage("answer", self._blocks, work)
        probes = self._stage("probe", self._blocks, probe_block)
        self._list(PROBED, probes)
        pieces = [
            *self._index_pieces([each.decode() for each in probes]),
            *self._flat_pieces(),
        ]
        self._list(FOUND, self._stage("scan", pieces, search_piece))
        return self._stage("join", self._blocks, join_block)

    def _judge(self, text: str) -> None:
        """Have the rows judged by the filter; nothing is done for one that is wrong."""
        read_filter(text, self._snapshot.schema, NO_DEADLINE)
        fragments = self._snapshot.fragments
        groups = neighbours_up_to([each.physical_rows for each in fragments], _JUDGED_ROWS)
        items = [json.dumps([fragments[n].id for n in group]).encode() for group in groups]
        self._list(FILTERED, self._stage("filter", items, judge_fragments))

    def _first_query(self) -> SplitSearch:
        """Return the search by one query: it tells how all are going to be searched."""
        first = load_block(self._task.journal, 0).slice(0, 1)
        return _split(self._task.dataset(), self._task.search, first)

    def _stage(
        self,
        name: str,
        items: Sequence[bytes],
        work: Callable[[SearchTask, bytes], bytes],
    ) -> list[bytes]:
        return run_kept(self._context, name, items, partial(work, self._task))

    def _list(self, name: str, results: Sequence[bytes]) -> None:
        """Tell the following stages what one has left for them."""
        text = json.dumps([each.decode() for each in results])
        self._task.journal.put(name, text.encode())

    def _index_pieces(self, probes: Sequence[str]) -> list[bytes]:
        lengths = self._split.lengths
        probed = [probe_counts(self._task.journal, probes, n) for n in range(len(lengths))]
        own_bytes = [
            size / max(int(own.sum()), 1)
            for size, own in zip(self._sizes.segment_bytes(), lengths, strict=True)
        ]
        are_whole = [self._split.is_whole(place) for place in range(len(lengths))]
        ranges = partition_ranges(lengths, probed, own_bytes, are_whole)
        return [json.dumps(asdict(each)).encode() for each in ranges]

    def _flat_pieces(self) -> list[bytes]:
        rows = self._sizes.flat_rows()
        most = max(_LEAST_SCANNED, HELD_BYTES // (self._queries.dimension * _FLOAT_BYTES))
        ids = list(rows)
        groups = neighbours_up_to([rows[each] for each in ids], most)
        return [json.dumps({"fragments": [ids[n] for n in group]}).encode() for group in groups]


def _split(dataset: Dataset, search: BatchSearch, first: QueryBlock) -> SplitSearch:
    """Return the search by one query, which must be of the kind that the column takes."""
    split = dataset.split(search.request(first.vectors))
    if first.counts is not None and not split.takes_lists:
        raise InvalidRequestError(
            f'each query is a list of vectors, rows of column "{split.plan.column}" hold one;'
            " give a vector for each query"
        )
    return split


def _properties(context: JobContext, queries: StoredQueries) -> dict[str, str]:
    return {
        JOB_ID: context.job_id,
        KIND_PROPERTY: KIND,
        ITEM_COUNT: str(queries.num_blocks),
    }


def _pairs(context: JobContext) -> tuple[tuple[str, str], ...]:
    options = context.storage_options
    return () if options is None else tuple(sorted(options.items()))


def _read_answer(data: bytes | None) -> BatchAnswer:
    if data is None:
        raise CorruptFileError(_ANSWER, "is gone, though the job is done")
    return BatchAnswer(**json.loads(data))
