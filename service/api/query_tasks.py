"""Answering one query: at once when everything is resident, else with waiting."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lance_core.errors import InvalidRequestError
from lance_core.query.deadline import Deadline
from lance_core.query.request import ScanQuery
from service.api.answer_limits import (
    may_be_too_large,
    require_small_answer,
    require_small_rows,
)
from service.api.demands import freshness_of, timeout_s
from service.api.identifiers import require_same
from service.api.known_bodies import known_query
from service.api.negotiation import Encoding, choose_encoding
from service.api.pins import pin_of
from service.api.query_answers import answer_result, answer_scan
from service.api.query_bodies import parse_query
from service.api.residency import run_if_resident
from service.api.scan_batches import ScanBatches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.dataset import Dataset
    from lance_core.query.engine import Request
    from lance_core.query.query_result import QueryResult
    from service.api.client_watch import ClientWatch
    from service.api.query_answers import Answer
    from service.api.query_bodies import WireQuery
    from service.api.table_calls import Call
    from service.catalog.database import Database
    from service.catalog.freshness import Freshness
    from service.catalog.names import TableName
    from service.catalog.pins import Pin

T = TypeVar("T")

_PLAIN = Encoding()


@dataclass(frozen=True, slots=True)
class QueryTask:
    """A query, decoded: what to run on which version, how new, how long, in which format.

    ``deadline`` is for the answer to begin; ``stream_deadline``, for what is read while it is sent,
    knows only the caller's own timeout: a long table takes as long as its reader. ``encoding`` is
    that of rows, if any are asked for.
    """

    request: Request
    database: Database
    table: TableName
    pin: Pin
    freshness: Freshness
    deadline: Deadline
    stream_deadline: Deadline
    encoding: Encoding


def decode_task(
    call: Call,
    members: Mapping[str, object],
    watch: ClientWatch,
    encoding: Encoding = _PLAIN,
) -> QueryTask:
    """Return the query that a body describes."""
    query = parse_query(members, limits=call.services.limits)
    return _to_task(call, query, watch, encoding)


def _to_task(call: Call, query: WireQuery, watch: ClientWatch, encoding: Encoding) -> QueryTask:
    exchange, settings, options = call.exchange, call.services.settings, query.options
    require_same(call.parts, options.id)
    now_s, wait_s = time.monotonic(), timeout_s(exchange, options.timeout_ms)
    return QueryTask(
        query.request,
        call.database,
        call.table,
        pin_of(options, call.parameters),
        freshness_of(exchange, options.max_staleness_ms),
        Deadline(now_s + min(wait_s, settings.query_timeout_s), watch.has_left),
        Deadline(now_s + wait_s, watch.has_left),
        encoding,
    )


def _encoding(call: Call) -> Encoding:
    header = call.exchange.header
    return choose_encoding(
        call.parameters,
        accept=header(b"accept"),
        user_agent=header(b"user-agent"),
        gzip=header(b"accept-encoding"),
    )


def begin_query(call: Call, watch: ClientWatch) -> Answer | QueryTask:
    """Decode a query and answer it, if nothing has to be read for that; never waits.

    Returns the task, for ``finish_query``, when the answer needs reading. Plain queries always do:
    they may be long.
    """
    limits = call.services.limits
    known = known_query(call.raw_body, limits=limits)
    if known is None:
        members = call.members()
        if members.get("query") is not None:
            raise InvalidRequestError("query: a query's members stand in the body itself")
        task = decode_task(call, members, watch, _encoding(call))
    else:
        task = _to_task(call, known, watch, _encoding(call))
    if isinstance(task.request, ScanQuery) or may_be_too_large(task.request, limits):
        return task
    dataset = task.database.resident(task.table, task.pin, task.freshness)
    if dataset is None:
        return task
    result = run_if_resident(dataset, task.request, task.deadline)
    return task if result is None else _answer(call, dataset, result, task)


def finish_query(call: Call, task: QueryTask) -> Answer:
    """Answer a query, reading what it needs."""
    task.deadline.check("waiting for a thread")
    return run_task(call, task, partial(_finish, call, task))


def run_task(call: Call, task: QueryTask, work: Callable[[Dataset], T]) -> T:
    """Return what ``work`` makes of the dataset that a task is for; may wait for the store."""

    def noted(dataset: Dataset) -> T:
        call.exchange.record.version = dataset.version
        require_small_answer(task.request, dataset, call.services.limits)
        return work(dataset)

    return task.database.run(task.table, task.pin, task.freshness, noted)


def _finish(call: Call, task: QueryTask, dataset: Dataset) -> Answer:
    if isinstance(task.request, ScanQuery):
        scan = ScanBatches(dataset, task.request, task.deadline, call.exchange.record)
        answer = answer_scan(scan, task.encoding)
        scan.deadline = task.stream_deadline
        return answer
    return _answer(call, dataset, dataset.run(task.request, task.deadline), task)


def _answer(call: Call, dataset: Dataset, result: QueryResult, task: QueryTask) -> Answer:
    require_small_rows(result.rows, call.services.limits)
    task.deadline.check("encoding the answer")
    record, stats = call.exchange.record, result.stats
    record.version = stats.version
    record.plan = stats.plan
    record.rows = result.rows.num_rows
    record.bytes_read = stats.bytes_read
    record.cache_hits = stats.cache_hits
    if stats.plan == "ann":
        call.services.recall_samples.consider(dataset, task.request)
    return answer_result(result, task.encoding)
