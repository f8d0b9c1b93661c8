"""What one table is: schema, version, location, number of rows."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response

from lance_core.errors import InvalidRequestError
from lance_core.query.deadline import Deadline
from service.api.conditional import tagged
from service.api.demands import timeout_s
from service.api.documented import documented
from service.api.exchange import Dialect
from service.api.json_answers import json_answer
from service.api.models.answers import TableDescription
from service.api.models.figures import Coverage, TableStatistics
from service.api.models.requests import (
    CountBody,
    DescribeBody,
    DescribeParameters,
    PinParameters,
    VersionedBody,
)
from service.api.table_calls import on_io_lane, watched_on_io_lane
from service.api.table_figures import table_coverage, table_statistics
from service.api.type_names import describe_schema

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from service.api.client_watch import ClientWatch
    from service.api.table_calls import Call

router = APIRouter(tags=["tables"])


@router.post(
    "/v1/table/{id}/describe",
    openapi_extra=documented(
        answer=TableDescription, body=DescribeBody, parameters=DescribeParameters, has_tag=True
    ),
)
async def describe_table(request: Request) -> Response:
    """Describe a table; type names are those of the caller's dialect."""
    return await on_io_lane(request, _describe)


@router.post(
    "/v1/table/{id}/stats",
    openapi_extra=documented(
        answer=TableStatistics, body=VersionedBody, parameters=PinParameters, has_tag=True
    ),
)
async def table_stats(request: Request) -> Response:
    """Count bytes, rows, indices and fragments of a table."""
    return await on_io_lane(request, _statistics)


@router.get(
    "/v1/table/{id}/coverage",
    openapi_extra=documented(answer=Coverage, parameters=PinParameters, has_tag=True),
)
async def coverage(request: Request) -> Response:
    """Show which index covers which fragment, and why not the others."""
    return await on_io_lane(request, _coverage)


@router.post("/v1/table/{id}/exists", openapi_extra=documented(body=VersionedBody))
async def table_exists(request: Request) -> Response:
    """Answer 200 if the table exists, else 404."""
    return await on_io_lane(request, _exists)


@router.post(
    "/v1/table/{id}/count_rows",
    openapi_extra=documented(
        answer={"application/json": {"schema": {"type": "integer", "minimum": 0}}},
        body=CountBody,
    ),
)
async def count_rows(request: Request) -> Response:
    """Count the rows of a table, or those for which a predicate is true."""
    return await watched_on_io_lane(request, _count, needs_kernels=False)


def _describe(call: Call) -> Response:
    body = call.body(DescribeBody)
    return call.run(
        body, lambda dataset: tagged(call, dataset, partial(_description, call, body, dataset))
    )


def _statistics(call: Call) -> Response:
    def counted(dataset: Dataset) -> Response:
        return tagged(
            call,
            dataset,
            lambda: json_answer(table_statistics(dataset), version=dataset.version),
        )

    return call.run(call.body(VersionedBody), counted)


def _coverage(call: Call) -> Response:
    def covered(dataset: Dataset) -> Response:
        return tagged(
            call, dataset, lambda: json_answer(table_coverage(dataset), version=dataset.version)
        )

    return call.run(VersionedBody.model_validate({}), covered)


def _description(call: Call, body: DescribeBody, dataset: Dataset) -> Response:
    table = call.table
    location = call.database.location(table)
    is_detailed = _is_detailed(call, body)
    return json_answer(
        {
            "table": table.name,
            "namespace": list(call.parts[:-1]),
            "version": dataset.version if is_detailed else None,
            "location": location,
            "table_uri": location,
            "schema": describe_schema(dataset.schema, call.exchange.dialect)
            if is_detailed
            else None,
            "stats": _stats(dataset),
            "metadata": {},
            "properties": None,
            "storage_options": None,
            "managed_versioning": False,
            "is_only_declared": False,
        },
        version=dataset.version,
    )


def _is_detailed(call: Call, body: DescribeBody) -> bool:
    """LanceDB's clients need version and schema always; others may waive them."""
    wish = body.load_detailed_metadata
    if wish is None:
        wish = call.query_parameters(DescribeParameters).load_detailed_metadata
    return call.exchange.dialect is Dialect.LANCEDB or wish is not False


def _stats(dataset: Dataset) -> dict[str, int]:
    fragments = dataset.snapshot.fragments
    num_rows = sum(fragment.physical_rows for fragment in fragments)
    return {
        "num_deleted_rows": num_rows - dataset.count_rows(),
        "num_fragments": len(fragments),
    }


def _exists(call: Call) -> Response:
    return call.run(
        call.body(VersionedBody),
        lambda dataset: Response(headers={"x-lancedb-version": str(dataset.version)}),
    )


def _count(call: Call, watch: ClientWatch) -> Response:
    body = call.body(CountBody)
    if body.predicate is not None and body.filter is not None:
        raise InvalidRequestError("filter: stands beside predicate, which is the same; give one")
    predicate = body.filter if body.predicate is None else body.predicate
    call.services.limits.require_short_filter(predicate)
    wait_s = min(timeout_s(call.exchange, body.timeout_ms), call.services.settings.query_timeout_s)
    deadline = Deadline(time.monotonic() + wait_s, watch.has_left)

    def counted(dataset: Dataset) -> Response:
        num_rows = dataset.count_rows(predicate, params=body.params, deadline=deadline)
        return json_answer(num_rows, version=dataset.version)

    return call.run(body, counted)
