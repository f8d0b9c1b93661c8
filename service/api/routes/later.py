"""Paths that later releases serve."""

from __future__ import annotations

from typing import NoReturn

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time

from lance_core.errors import UnsupportedFeatureError
from service.api.not_yet import LATER_PATHS

router = APIRouter()


async def refuse(request: Request) -> NoReturn:
    """Say that this release does not serve the path."""
    raise UnsupportedFeatureError(f"{request.scope['path']} is not supported by this release")


for _method, _path in LATER_PATHS:
    router.add_api_route(
        _path, refuse, methods=[_method], response_model=None, include_in_schema=False
    )
