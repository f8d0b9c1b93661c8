"""The application: everything put together."""

from __future__ import annotations

from functools import partial
from importlib import metadata
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import Response

import lance_core
from lance_core.kernels.warm import warm_kernels
from service.api.access import Access
from service.api.connections import Connections
from service.api.direct_route import DirectDispatch, DirectRoute
from service.api.documented import build_openapi
from service.api.edge import Edge
from service.api.memory_guard import MemoryGuard
from service.api.path_errors import answer_path_error
from service.api.recall_samples import RecallSamples
from service.api.routes import (
    cache,
    console,
    embed,
    indices,
    later,
    listings,
    operations,
    plans,
    quality,
    queries,
    references,
    tables,
    versions,
)
from service.api.search_threads import Lane
from service.api.services import Services
from service.api.text_models import load_text_model
from service.catalog.catalog import Catalog
from service.lifespan import lifespan
from service.limits import QueryLimits
from service.settings_sources import load_settings
from service.start_up import load_kernels_for_good, share_heaps
from service.telemetry.json_logging import configure_logging
from service.telemetry.metrics import Metrics
from service.telemetry.store_reads import StoreReads

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from service.catalog.datasets import OpenAnyDataset
    from service.settings import Settings
    from service.telemetry.tracing import Tracing

_VERSION = metadata.version("lance-serve")
_ROUTERS = (
    queries,
    tables,
    listings,
    plans,
    versions,
    references,
    indices,
    quality,
    embed,
    operations,
    cache,
    console,
    later,
)

DESCRIPTION = """\
Query service over Lance datasets.

Paths also exist with a trailing slash; with it, `describe` and the root listing answer in the form
that LanceDB's clients expect. Every answer carries `x-request-id` and `phalanx-version`."""


def create_app(
    settings: Settings,
    *,
    open_dataset: OpenAnyDataset | None = None,
    load_kernels: Callable[[], None] = warm_kernels,
    tracing: Tracing | None = None,
) -> FastAPI:
    """Return the application for some settings.

    Parameters
    ----------
    settings
        Everything that can be chosen.
    open_dataset
        Opens datasets; None = those of ``lance_core``, which share one cache.
    load_kernels
        Called on a thread at start-up; the service is ready when it returns.
    tracing
        Makes traces; None = as the settings say.

    Raises
    ------
    ValueError
        A file that the settings name cannot be read, or an extra is not installed.
    """
    app = _App(
        title="lance-serve",
        version=_VERSION,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Response,
        generate_unique_id_function=attrgetter("name"),
        lifespan=partial(lifespan, load_kernels=load_kernels),
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    metrics = Metrics(_operations())
    if tracing is None:
        tracing = _make_tracing(settings)
    session = _make_session(settings, StoreReads(metrics, tracing))
    if open_dataset is None:
        open_dataset = partial(lance_core.open_dataset, session=session)
    app.state.services = _make_services(settings, session, open_dataset, metrics, tracing)
    app.add_exception_handler(StarletteHTTPException, answer_path_error)
    for module in _ROUTERS:
        app.include_router(module.router)
    _replace_openapi(app)
    return app


class _App(FastAPI):
    """The framework's application, with nothing around the edge.

    What the framework puts around all middleware has nothing to do here, since errors end at the
    edge, which also bounds bodies; it costs a query a tenth of its time on the event loop.
    """

    def build_middleware_stack(self) -> ASGIApp:
        """Return the layers, outermost first."""
        services: Services = self.state.services
        settings = services.settings
        routed = ExceptionMiddleware(AsyncExitStackMiddleware(self.router), self.exception_handlers)
        return Edge(
            DirectDispatch(routed, _direct_routes()),
            services.access,
            services.metrics,
            services.tracing,
            settings.max_body_bytes,
        )


def create_app_from_environment() -> FastAPI:
    """Return the application of a server process."""
    share_heaps()
    settings = load_settings()
    configure_logging(settings.log_level)
    return create_app(settings, load_kernels=load_kernels_for_good)


def _operations() -> set[str]:
    """Return the names of the functions that answer requests."""
    routes = [route for module in _ROUTERS for route in module.router.routes]
    return {route.endpoint.__name__ for route in routes if isinstance(route, APIRoute)}


def _direct_routes() -> list[DirectRoute]:
    routes = [route for module in _ROUTERS for route in module.router.routes]
    return [route for route in routes if isinstance(route, DirectRoute)]


def _make_services(
    settings: Settings,
    session: lance_core.Session,
    open_dataset: OpenAnyDataset,
    metrics: Metrics,
    tracing: Tracing | None,
) -> Services:
    waiting = settings.max_queued_requests
    return Services(
        settings,
        Catalog(settings, open_dataset),
        Access(settings),
        session,
        search=Lane(
            "search", num_threads=settings.search_threads, max_waiting=waiting, tracing=tracing
        ),
        io=Lane("io", num_threads=settings.io_threads, max_waiting=waiting, tracing=tracing),
        limits=QueryLimits.of(settings),
        memory=MemoryGuard(settings.max_resident_bytes),
        metrics=metrics,
        recall_samples=RecallSamples(settings.recall_sample_rate, metrics.recall),
        tracing=tracing,
        connections=Connections(settings.max_connections, settings.stall_timeout_s),
        version=_VERSION,
        text_model=load_text_model(settings),
    )


def _make_tracing(settings: Settings) -> Tracing | None:
    if settings.tracing_endpoint is None:
        return None
    try:
        from service.telemetry.tracing import export_to  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise ValueError("tracing_endpoint: install lance-serve[tracing]") from error
    return export_to(settings.tracing_endpoint, _VERSION, settings.tracing_sample_rate)


def _make_session(settings: Settings, reads: StoreReads) -> lance_core.Session:
    return lance_core.Session(
        settings.cache_bytes,
        settings.max_concurrency,
        disk_cache=settings.disk_cache,
        disk_cache_bytes=settings.disk_cache_bytes,
        observer=reads,
    )


def _replace_openapi(app: FastAPI) -> None:
    """Complete the framework's document once, and serve that."""
    make = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = build_openapi(make())
        return app.openapi_schema

    app.openapi = complete  # type: ignore[method-assign]  # the way FastAPI documents
