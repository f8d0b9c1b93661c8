"""The application: everything put together."""

from __future__ import annotations

import logging
import threading
from contextlib import asynccontextmanager
from functools import partial
from importlib import metadata
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import Response

import lance_core
from lance_core.io.open import open_store
from lance_core.kernels.warm import warm_kernels
from service.api.access import KeyCheck
from service.api.direct_route import DirectDispatch, DirectRoute
from service.api.documented import build_openapi
from service.api.edge import Edge
from service.api.path_errors import answer_path_error
from service.api.routes import (
    indices,
    later,
    listings,
    operations,
    plans,
    queries,
    tables,
    versions,
)
from service.api.search_threads import Lane
from service.api.services import Services
from service.catalog.catalog import Catalog
from service.catalog.confinement import Confinement
from service.settings import load_settings
from service.start_up import load_kernels_for_good, share_heaps
from service.telemetry.json_logging import configure_logging

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import ASGIApp

    from service.catalog.datasets import OpenDataset
    from service.settings import Settings

_LOGGER = logging.getLogger(__name__)
_ROUTERS = (queries, tables, listings, plans, versions, indices, operations, later)

DESCRIPTION = """\
Query service over Lance datasets.

Paths also exist with a trailing slash; with it, `describe` and the root listing answer in the form
that LanceDB's clients expect. Every answer carries `x-request-id` and `phalanx-version`."""


def create_app(
    settings: Settings,
    *,
    open_dataset: OpenDataset | None = None,
    load_kernels: Callable[[], None] = warm_kernels,
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
    """
    app = _App(
        title="lance-serve",
        version=metadata.version("lance-serve"),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Response,
        generate_unique_id_function=attrgetter("name"),
        lifespan=partial(_lifespan, load_kernels=load_kernels),
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.services = _make_services(
        settings, _opener(settings) if open_dataset is None else open_dataset
    )
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
            KeyCheck(settings.api_keys),
            settings.max_body_bytes,
        )


def create_app_from_environment() -> FastAPI:
    """Return the application of a server process."""
    share_heaps()
    settings = load_settings()
    configure_logging(settings.log_level)
    return create_app(settings, load_kernels=load_kernels_for_good)


def _direct_routes() -> list[DirectRoute]:
    routes = [route for module in _ROUTERS for route in module.router.routes]
    return [route for route in routes if isinstance(route, DirectRoute)]


def _make_services(settings: Settings, open_dataset: OpenDataset) -> Services:
    waiting = settings.max_queued_requests
    store = open_store(settings.root, settings.storage_options)
    return Services(
        settings,
        Catalog(settings, store, open_dataset),
        search=Lane("search", num_threads=settings.search_threads, max_waiting=waiting),
        io=Lane("io", num_threads=settings.io_threads, max_waiting=waiting),
    )


def _opener(settings: Settings) -> OpenDataset:
    session = lance_core.Session(
        settings.cache_bytes,
        settings.max_concurrency,
        disk_cache=settings.disk_cache,
        disk_cache_bytes=settings.disk_cache_bytes,
    )
    return partial(
        lance_core.open_dataset,
        session=session,
        storage_options=settings.storage_options,
        check_base=Confinement(settings.root, settings.allowed_roots).check_base,
    )


@asynccontextmanager
async def _lifespan(app: FastAPI, load_kernels: Callable[[], None]) -> AsyncIterator[None]:
    services: Services = app.state.services
    services.search.start()
    services.io.start()
    loader = threading.Thread(
        target=_get_ready, args=(services, load_kernels), name="kernels", daemon=True
    )
    loader.start()
    yield
    services.search.stop()
    services.io.stop()


def _get_ready(services: Services, load_kernels: Callable[[], None]) -> None:
    try:
        load_kernels()
    except Exception:
        _LOGGER.exception("kernels could not be loaded; this process answers no queries")
        return
    services.kernels_loaded.set()
    _LOGGER.info("ready")


def _replace_openapi(app: FastAPI) -> None:
    """Complete the framework's document once, and serve that."""
    make = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = build_openapi(make())
        return app.openapi_schema

    app.openapi = complete  # type: ignore[method-assign]  # the way FastAPI documents
