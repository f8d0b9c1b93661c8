"""What the service is, whether the process runs, and whether it answers queries."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response

from service.api.demands import freshness_of
from service.api.documented import documented
from service.api.exchange import exchange_of
from service.api.json_answers import json_answer
from service.api.models.answers import Health, Readiness, Welcome
from service.api.models.requests import ReadyParameters
from service.api.readings import readings_of
from service.api.services import services_of
from service.api.table_calls import Call, on_io_lane
from service.catalog.pins import LATEST
from service.telemetry.metrics import CONTENT_TYPE

router = APIRouter(tags=["operations"])


@router.get("/", openapi_extra=documented(answer=Welcome, has_id=False))
async def welcome(request: Request) -> Response:
    """Say what this service is and where to read on."""
    return json_answer(
        {
            "service": "lance-serve",
            "version": request.app.version,
            "openapi": "/openapi.json",
            "health": "/health",
            "ready": "/ready",
            "documentation": "README.md of lance-serve",
        }
    )


@router.get("/health", openapi_extra=documented(answer=Health, has_id=False))
async def health() -> Response:
    """Say that the process runs."""
    return json_answer({"status": "ok"})


@router.get(
    "/ready",
    openapi_extra=documented(answer=Readiness, parameters=ReadyParameters, has_id=False),
)
async def ready(request: Request) -> Response:
    """Say that queries can be answered, of one table if one is named; 503 while kernels load."""
    # Waiting for the service asks again and again; that it is not ready yet is no fault.
    exchange_of(request).record.is_expected = True
    services_of(request).require_ready()
    table = request.query_params.get("table")
    if table is None:
        return json_answer({"status": "ready"})
    request.path_params["id"] = quote(table, safe="")
    return await on_io_lane(request, _open_table)


def _open_table(call: Call) -> Response:
    dataset = call.database.open(call.table, LATEST, freshness_of(call.exchange))
    name = call.exchange.record.table  # with the database, where it has a name
    return json_answer({"status": "ready", "table": name, "version": dataset.version})


@router.get(
    "/metrics",
    openapi_extra=documented(answer={CONTENT_TYPE: {"schema": {"type": "string"}}}, has_id=False),
)
async def metrics(request: Request) -> Response:
    """Return the metrics of all workers in the text format of Prometheus."""
    services = services_of(request)
    services.metrics.publish(readings_of(services))
    return Response(services.metrics.text(), headers={"content-type": CONTENT_TYPE})
