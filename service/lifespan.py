"""What goes on beside requests, from the start of a server process to its end."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from service.api.connections import CONNECTIONS
from service.api.readings import readings_of
from service.telemetry.json_logging import write_lines_at_once
from service.telemetry.systemd import READY, STOPPING, notify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from fastapi import FastAPI

    from service.api.connections import Connections
    from service.api.services import Services

_LOGGER = logging.getLogger(__name__)
_PUBLISH_EVERY_S = 2.0
_RELEASE_EVERY_S = 15.0


@asynccontextmanager
async def lifespan(
    app: FastAPI, load_kernels: Callable[[], None]
) -> AsyncIterator[dict[str, Connections]]:
    """Run what goes on beside requests; the server's connections find out where to register."""
    services: Services = app.state.services
    services.search.start()
    services.io.start()
    services.recall_samples.start()
    _reload_on_hangup(services)
    loader = threading.Thread(
        target=_get_ready, args=(services, load_kernels), name="kernels", daemon=True
    )
    loader.start()
    beside = [
        asyncio.create_task(services.connections.watch()),
        asyncio.create_task(_keep_publishing(services)),
        asyncio.create_task(_keep_releasing(services)),
    ]
    yield {CONNECTIONS: services.connections}
    for task in beside:
        task.cancel()
    notify(STOPPING)
    services.recall_samples.stop()
    if services.tracing is not None:
        services.tracing.stop()
    services.search.stop()
    services.io.stop()
    write_lines_at_once()


async def _keep_publishing(services: Services) -> None:
    """Let other workers, which may be asked for the metrics, know those of this one."""
    while services.metrics.is_shared:
        services.metrics.publish(readings_of(services))
        await asyncio.sleep(_PUBLISH_EVERY_S)


async def _keep_releasing(services: Services) -> None:
    """Let old versions go that nobody uses; their memory is for others."""
    while True:
        await asyncio.sleep(_RELEASE_EVERY_S)
        await asyncio.to_thread(services.catalog.release_unused)


def _reload_on_hangup(services: Services) -> None:
    """Read key files when SIGHUP comes, where signals can be listened to."""
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(
            signal.SIGHUP, lambda: loop.run_in_executor(None, services.access.reload)
        )


def _get_ready(services: Services, load_kernels: Callable[[], None]) -> None:
    try:
        load_kernels()
    except Exception:
        _LOGGER.exception("kernels could not be loaded; this process answers no queries")
        return
    services.kernels_loaded.set()
    notify(READY)
    _LOGGER.info("ready")
