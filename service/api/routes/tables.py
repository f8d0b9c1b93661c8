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
from service.api.client_watch import ClientWatch
from service.api.demands import timeout_s
from service.api.documented import documented
from service.api.exchange import Dialect
from service.api.json_answers import json_answer
from service.api.models.answers import TableDescription
from service.api.models.requests import (
    CountBody,
    DescribeBody,
    DescribeParameters,
    VersionedBody,
)
from service.api.table_calls import Call, on_io_lane
from service.api.type_names import describe_schema

if TYPE_CHECKING:
    from lance_core.dataset import Dataset

router = APIRouter(tags=["tables"])


@router.post(
    "/v1/table/{id}/describe",
    openapi_extra=documented(
        answer=TableDescription, body=DescribeBody, parameters=DescribeParameters
    ),
)
async def describe_table(request: Request) -> Response:
    """Describe a table; type names are those of the caller's dialect."""
    return await on_io_lane(request, _describe)


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
    call = await Call.read(request)
    with ClientWatch(request.receive) as watch:
        return await call.services.io.run(partial(_count, call, watch))


def _describe(call: Call) -> Response:
    body = call.body(DescribeBody)
    return call.run(body, partial(_description, call, body))


def _description(call: Call, body: DescribeBody, dataset: Dataset) -> Response:
    table = call.table
    location = call.services.catalog.location(table)
    is_detailed = _is_detailed(call, body)
    return json_answer(
        {
            "table": table.name,
            "namespace": list(table.namespace.parts[len(call.prefix) :]),
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
    return call.run(call.body(VersionedBody), lambda _: Response())


def _count(call: Call, watch: ClientWatch) -> Response:
    body = call.body(CountBody)
    if body.predicate is not None and body.filter is not None:
        raise InvalidRequestError("filter: stands beside predicate, which is the same; give one")
    predicate = body.filter if body.predicate is None else body.predicate
    wait_s = min(timeout_s(call.exchange, body.timeout_ms), call.services.settings.query_timeout_s)
    deadline = Deadline(time.monotonic() + wait_s, watch.has_left)

    def counted(dataset: Dataset) -> Response:
        num_rows = dataset.count_rows(predicate, params=body.params, deadline=deadline)
        return json_answer(num_rows, version=dataset.version)

    return call.run(body, counted)
