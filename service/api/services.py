"""What the routes work with, made once at start-up."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.api.errors import NotReadyError

if TYPE_CHECKING:
    from starlette.requests import Request

    from service.api.search_threads import Lane
    from service.catalog.catalog import Catalog
    from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """Settings, catalog and lanes; ``kernels_loaded`` is set when queries can be answered."""

    settings: Settings
    catalog: Catalog
    search: Lane
    io: Lane
    kernels_loaded: threading.Event = field(default_factory=threading.Event)

    def require_ready(self) -> None:
        """Raise ``NotReadyError`` while kernels are being compiled or loaded."""
        if not self.kernels_loaded.is_set():
            raise NotReadyError("kernels are being loaded; try again shortly")


def services_of(request: Request) -> Services:
    """Return the services of the application that answers a request."""
    services: Services = request.app.state.services
    return services
