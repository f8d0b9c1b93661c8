"""What every part of the edge knows about the request in hand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from service.api.callers import ANYONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import Scope

    from service.api.callers import Caller
    from service.telemetry.request_log import RequestRecord

_SCOPE_KEY = "lance_serve.exchange"


class Dialect(Enum):
    """The two client families: paths of LanceDB's clients end in a slash, the others' do not."""

    LANCEDB = "L"
    NAMESPACE = "N"


@dataclass(slots=True)
class Exchange:
    """One request: its id, headers (lower case, last one wins), dialect and log record.

    ``caller`` is known once the edge has looked at the headers.
    """

    request_id: str
    headers: Mapping[bytes, bytes]
    dialect: Dialect
    record: RequestRecord
    caller: Caller = ANYONE

    def header(self, name: bytes) -> str | None:
        """Return a header as text, None when it is absent."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


def attach(scope: Scope, exchange: Exchange) -> None:
    """Make the exchange known to the routes."""
    scope[_SCOPE_KEY] = exchange


def exchange_of(request: Request) -> Exchange:
    """Return the exchange of a request."""
    exchange: Exchange = request.scope[_SCOPE_KEY]
    return exchange
