"""How good the answers of a table are, and making them quick."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from lance_core.io.metering import metered
from lance_core.query.deadline import Deadline
from lance_core.query.request import ScanQuery, VectorQuery
from service.api.bodies import given_or
from service.api.demands import timeout_s
from service.api.documented import documented
from service.api.json_answers import json_answer
from service.api.models.figures import PageCacheAnswer, RecallAnswer
from service.api.models.requests import PageCacheBody, PinParameters, RecallBody
from service.api.recall import measure_recall
from service.api.table_calls import watched_on_io_lane

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from service.api.client_watch import ClientWatch
    from service.api.table_calls import Call

router = APIRouter(tags=["quality"])

_ANY_ROW = 0
"""Stands for the row of a query until it is known."""


@router.post(
    "/v1/table/{id}/recall",
    openapi_extra=documented(answer=RecallAnswer, body=RecallBody, parameters=PinParameters),
)
async def recall(request: Request) -> Response:
    """Measure which share of the true neighbours an index finds, on sampled rows."""
    return await watched_on_io_lane(request, _recall)


@router.post(
    "/v1/table/{id}/page_cache/prewarm",
    openapi_extra=documented(answer=PageCacheAnswer, body=PageCacheBody, parameters=PinParameters),
)
async def prewarm_page_cache(request: Request) -> Response:
    """Read columns once, so that the system's memory and the disk cache hold their files."""
    return await watched_on_io_lane(request, _prewarm)


def _recall(call: Call, watch: ClientWatch) -> Response:
    body = call.body(RecallBody)
    call.services.limits.require("max_k", body.k, "k")
    call.services.limits.require("max_probes", body.nprobes, "nprobes")
    call.services.limits.require("max_ef", body.ef, "ef")
    query = VectorQuery(
        vectors=None,
        row_ids=(_ANY_ROW,),
        k=body.k,
        column=body.column,
        columns=("_rowid",),
        min_probes=body.nprobes,
        max_probes=body.nprobes,
        refine_factor=body.refine_factor,
        ef=body.ef,
    )
    wait_s = min(timeout_s(call.exchange, body.timeout_ms), call.services.settings.query_timeout_s)
    deadline = Deadline(time.monotonic() + wait_s, watch.has_left)

    def measured(dataset: Dataset) -> Response:
        found = measure_recall(dataset, query, body.sample, deadline)
        return json_answer(
            {
                "version": dataset.version,
                "column": found.column,
                "recall": found.recall,
                "sample": found.sample,
                "k": body.k,
                "p50_ms": found.p50_ms,
                "exact_p50_ms": found.exact_p50_ms,
            },
            version=dataset.version,
        )

    return call.run(body, measured)


def _prewarm(call: Call, watch: ClientWatch) -> Response:
    body = call.body(PageCacheBody)
    columns = given_or(body.columns, [])
    deadline = Deadline(
        time.monotonic() + timeout_s(call.exchange, body.timeout_ms), watch.has_left
    )

    def warmed(dataset: Dataset) -> Response:
        query = ScanQuery(columns=None if columns == [] else tuple(columns), limit=None)
        started = time.perf_counter()
        with metered() as meter:
            scan = dataset.scan_of(query, lambda: deadline)
            num_rows = sum(batch.num_rows for batch in scan.batches())
        call.exchange.record.bytes_read = meter.bytes_read
        return json_answer(
            {
                "version": dataset.version,
                "columns": scan.schema.names,
                "rows": num_rows,
                "bytes_read": meter.bytes_read,
                "store_requests": meter.store_requests,
                "elapsed_ms": round((time.perf_counter() - started) * 1e3, 3),
            },
            version=dataset.version,
        )

    return call.run(body, warmed)
