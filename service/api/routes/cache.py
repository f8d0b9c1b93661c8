"""What the service holds in memory."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from service.api.cached_tables import cached_tables
from service.api.documented import documented
from service.api.exchange import exchange_of
from service.api.json_answers import json_answer
from service.api.models.console import CacheContents
from service.api.services import services_of

router = APIRouter(tags=["operations"])


@router.get("/v1/cache", openapi_extra=documented(answer=CacheContents, has_id=False))
async def describe_cache(request: Request) -> Response:
    """Tell how full the cache of the answering process is, and what it holds of each table."""
    services = services_of(request)
    cache, disk = services.session.cache, services.session.disk_cache_stats
    told = cached_tables(cache.figures(), services.settings, exchange_of(request).caller)
    on_disk = None if disk is None else asdict(disk)
    return json_answer({**asdict(cache.stats), "disk": on_disk, "tables": told})
