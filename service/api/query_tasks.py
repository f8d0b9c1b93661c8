"""Answering one query: at once when everything is resident, else with waiting."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.query.deadline import Deadline
from lance_core.query.request import ScanQuery
from service.api.demands import freshness_of, timeout_s
from service.api.identifiers import require_same
from service.api.negotiation import choose_encoding
from service.api.query_answers import answer_result, answer_scan
from service.api.query_bodies import parse_query
from service.api.residency import run_if_resident
from service.api.scan_batches import ScanBatches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.dataset import Dataset
    from lance_core.query.query_result import QueryResult
    from lance_core.query.request import VectorQuery
    from service.api.client_watch import ClientWatch
    from service.api.negotiation import Encoding
    from service.api.query_answers import Answer
    from service.api.table_calls import Call
    from service.catalog.freshness import Freshness
    from service.catalog.names import TableName


@dataclass(frozen=True, slots=True)
class QueryTask:
    """A query, decoded: what to run on which version, how new, how long, in which format.

    ``deadline`` is for the answer to begin; ``stream_deadline``, for what is read while it is sent,
    knows only the caller's own timeout: a long table takes as long as its reader.
    """

    request: VectorQuery | ScanQuery
    table: TableName
    version: int | None
    freshness: Freshness
    deadline: Deadline
    stream_deadline: Deadline
    encoding: Encoding


def decode_task(call: Call, members: Mapping[str, object], watch: ClientWatch) -> QueryTask:
    """Return the query that a body describes."""
    exchange, settings = call.exchange, call.services.settings
    query = parse_query(members, max_k=settings.max_k)
    options = query.options
    require_same(call.parts, options.id)
    now_s, wait_s = time.monotonic(), timeout_s(exchange, options.timeout_ms)
    return QueryTask(
        query.request,
        call.table,
        options.version,
        freshness_of(exchange, options.max_staleness_ms),
        Deadline(now_s + min(wait_s, settings.query_timeout_s), watch.has_left),
        Deadline(now_s + wait_s, watch.has_left),
        choose_encoding(
            call.parameters,
            accept=exchange.header(b"accept"),
            user_agent=exchange.header(b"user-agent"),
            gzip=exchange.header(b"accept-encoding"),
        ),
    )


def begin_query(call: Call, watch: ClientWatch) -> Answer | QueryTask:
    """Decode a query and answer it, if nothing has to be read for that; never waits.

    Returns the task, for ``finish_query``, when the answer needs reading. Plain queries always do:
    they may be long.
    """
    task = decode_task(call, call.members(), watch)
    if isinstance(task.request, ScanQuery):
        return task
    dataset = call.services.catalog.resident(task.table, task.version, task.freshness)
    if dataset is None:
        return task
    result = run_if_resident(dataset, task.request, task.deadline)
    return task if result is None else _answer(call, result, task.encoding)


def finish_query(call: Call, task: QueryTask) -> Answer:
    """Answer a query, reading what it needs."""
    task.deadline.check("waiting for a thread")
    dataset = open_for(call, task)
    if isinstance(task.request, ScanQuery):
        scan = ScanBatches(dataset, task.request, task.deadline, call.exchange.record)
        answer = answer_scan(scan, task.encoding)
        scan.deadline = task.stream_deadline
        return answer
    return _answer(call, dataset.run(task.request, task.deadline), task.encoding)


def open_for(call: Call, task: QueryTask) -> Dataset:
    """Return the dataset that a task runs on; its version is noted for the log."""
    dataset = call.services.catalog.open(task.table, task.version, task.freshness)
    call.exchange.record.version = dataset.version
    return dataset


def _answer(call: Call, result: QueryResult, encoding: Encoding) -> Answer:
    record, stats = call.exchange.record, result.stats
    record.version = stats.version
    record.plan = stats.plan
    record.rows = result.table.num_rows
    record.bytes_read = stats.bytes_read
    record.cache_hits = stats.cache_hits
    return answer_result(result, encoding)
