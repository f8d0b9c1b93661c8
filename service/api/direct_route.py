"""A route whose function takes the request and returns the response, with nothing in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.routing import APIRoute

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.requests import Request
    from starlette.responses import Response


class DirectRoute(APIRoute):
    """Skips the framework's parameter handling, which costs a tenth of a warm query.

    For functions that take the request and nothing else.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function itself."""
        return self.endpoint
