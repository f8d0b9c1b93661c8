"""What the routes work with, made once at start-up."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.api.errors import NotReadyError

if TYPE_CHECKING:
    from starlette.requests import Request

    from lance_core import Session
    from service.api.access import Access
    from service.api.connections import Connections
    from service.api.memory_guard import MemoryGuard
    from service.api.recall_samples import RecallSamples
    from service.api.search_threads import Lane
    from service.api.text_models import LoadedModel
    from service.catalog.catalog import Catalog
    from service.limits import QueryLimits
    from service.settings import Settings
    from service.telemetry.metrics import Metrics
    from service.telemetry.tracing import Tracing


@dataclass(frozen=True, slots=True)
class Services:
    """Settings, catalog, access, what datasets share, lanes.

    ``kernels_loaded`` is set when queries can be answered; ``text_model`` is None where no model
    makes vectors of texts.
    """

    settings: Settings
    catalog: Catalog
    access: Access
    session: Session
    search: Lane
    io: Lane
    limits: QueryLimits
    memory: MemoryGuard
    metrics: Metrics
    recall_samples: RecallSamples
    tracing: Tracing | None
    connections: Connections
    version: str
    text_model: LoadedModel | None = None
    kernels_loaded: threading.Event = field(default_factory=threading.Event)

    def require_ready(self) -> None:
        """Raise unless queries can be answered.

        Raises
        ------
        NotReadyError
            Kernels are being compiled or loaded.
        BusyError
            There is no memory for it.
        """
        self.memory.require_room()
        if not self.kernels_loaded.is_set():
            raise NotReadyError("kernels are being loaded; try again shortly")


def services_of(request: Request) -> Services:
    """Return the services of the application that answers a request."""
    services: Services = request.app.state.services
    return services
