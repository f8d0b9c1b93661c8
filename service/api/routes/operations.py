"""What the service is, whether the process runs, and whether it answers queries."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from service.api.documented import documented
from service.api.exchange import exchange_of
from service.api.json_answers import json_answer
from service.api.models.answers import Health, Readiness, Welcome
from service.api.services import services_of

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


@router.get("/ready", openapi_extra=documented(answer=Readiness, has_id=False))
async def ready(request: Request) -> Response:
    """Say that queries can be answered; 503 while kernels are being loaded."""
    # Waiting for the service asks again and again; that it is not ready yet is no fault.
    exchange_of(request).record.is_expected = True
    services_of(request).require_ready()
    return json_answer({"status": "ready"})
