"""What can be done with an index of a table."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from lance_core.query.deadline import Deadline
from service.api.bodies import given_or
from service.api.conditional import tagged
from service.api.demands import timeout_s
from service.api.documented import documented
from service.api.identifiers import parse_name
from service.api.index_answers import index_entry, index_statistics
from service.api.json_answers import json_answer
from service.api.models.answers import IndexStatistics, Indices, PrewarmAnswer
from service.api.models.requests import (
    IndexListBody,
    IndexPageParameters,
    PageParameters,
    PinParameters,
    PrewarmBody,
    VersionedBody,
)
from service.api.table_calls import on_io_lane, watched_on_io_lane
from service.catalog.paging import page_of

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from service.api.client_watch import ClientWatch
    from service.api.table_calls import Call

router = APIRouter(tags=["indices"])


@router.post(
    "/v1/table/{id}/index/list",
    openapi_extra=documented(
        answer=Indices, body=IndexListBody, parameters=IndexPageParameters, has_tag=True
    ),
)
async def list_indices(request: Request) -> Response:
    """List the indices of a table, and how many rows they cover."""
    return await on_io_lane(request, _list)


@router.post(
    "/v1/table/{id}/index/{name}/stats",
    openapi_extra=documented(
        answer=IndexStatistics, body=VersionedBody, parameters=PinParameters, has_index=True
    ),
)
async def describe_index(request: Request) -> Response:
    """Tell the kind of an index, and how many rows it covers."""
    name = parse_name(request.path_params["name"])
    return await on_io_lane(request, partial(_describe, name))


@router.post(
    "/v1/table/{id}/index/{name}/prewarm",
    openapi_extra=documented(
        answer=PrewarmAnswer, body=PrewarmBody, parameters=PinParameters, has_index=True
    ),
)
async def prewarm_index(request: Request) -> Response:
    """Load an index into memory, as far as the cache goes; stops when the caller goes away."""
    name = parse_name(request.path_params["name"])
    return await watched_on_io_lane(request, partial(_prewarm, name))


def _list(call: Call) -> Response:
    body = call.body(IndexListBody)
    return call.run(
        body, lambda dataset: tagged(call, dataset, partial(_listed, call, body, dataset))
    )


def _listed(call: Call, body: IndexListBody, dataset: Dataset) -> Response:
    # Clients raise an error for an index on a column that the schema has not.
    by_name = {each.name: each for each in dataset.list_indices() if each.has_columns}
    beside = call.query_parameters(PageParameters)
    page = page_of(
        by_name,
        limit=given_or(body.limit, beside.limit),
        token=given_or(body.page_token, beside.page_token),
    )
    entries = [index_entry(by_name[name]) for name in page.names]
    return json_answer({"indexes": entries, "page_token": page.next_token}, version=dataset.version)


def _describe(name: str, call: Call) -> Response:
    def described(dataset: Dataset) -> Response:
        return tagged(
            call,
            dataset,
            lambda: json_answer(
                index_statistics(dataset.index_statistics(name)), version=dataset.version
            ),
        )

    return call.run(call.body(VersionedBody), described)


def _prewarm(name: str, call: Call, watch: ClientWatch) -> Response:
    body = call.body(PrewarmBody)
    deadline = Deadline(
        time.monotonic() + timeout_s(call.exchange, body.timeout_ms), watch.has_left
    )

    def warm(dataset: Dataset) -> Response:
        done = dataset.prewarm(name, body.partitions, deadline=deadline)
        call.exchange.record.bytes_read = done.bytes_read
        return json_answer(
            {
                "version": dataset.version,
                "index": done.index_name,
                "is_complete": done.is_complete,
                "stopped": done.stopped,
                "partitions": done.partitions,
                "partitions_total": done.partitions_total,
                "rows": done.rows,
                "bytes": done.nbytes,
                "bytes_read": done.bytes_read,
                "store_requests": done.store_requests,
                "elapsed_ms": done.elapsed_ms,
                "skipped": [{"segment": s.uuid, "reason": s.reason} for s in done.skipped],
            },
            version=dataset.version,
        )

    return call.run(body, warm)
