"""One request about one table or namespace: identifier, body and the dataset behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from service.api.bodies import check, load_object, read_body
from service.api.demands import freshness_of
from service.api.exchange import exchange_of
from service.api.identifiers import (
    DEFAULT_DELIMITER,
    parse_parts,
    require_same,
    to_namespace,
    to_table,
)
from service.api.models.requests import IdBody, Parameters
from service.api.not_yet import require_no_later_feature
from service.api.services import services_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from lance_core.dataset import Dataset
    from service.api.exchange import Exchange
    from service.api.models.requests import VersionedBody
    from service.api.services import Services
    from service.catalog.names import Namespace, TableName

B = TypeVar("B", bound=IdBody)
P = TypeVar("P", bound=Parameters)
T = TypeVar("T")

_DATABASE_PREFIX = b"x-lancedb-database-prefix"
_PINS = ("branch", "tag")


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its body read; ``parts`` is the identifier in the path.

    All methods are meant for a lane: decoding a large body would block the event loop.
    """

    services: Services
    exchange: Exchange
    delimiter: str
    parts: tuple[str, ...]
    prefix: tuple[str, ...]
    parameters: Mapping[str, str]
    raw_body: bytes

    @classmethod
    async def read(cls, request: Request) -> Call:
        """Read the request; its identifier may be absent."""
        exchange = exchange_of(request)
        parameters = dict(request.query_params) if request.scope["query_string"] else {}
        require_no_later_feature({name: parameters.get(name) for name in _PINS})
        prefix = exchange.header(_DATABASE_PREFIX)
        delimiter = parameters.get("delimiter", DEFAULT_DELIMITER)
        raw_id: str | None = request.path_params.get("id")
        return cls(
            services_of(request),
            exchange,
            delimiter,
            () if raw_id is None else parse_parts(raw_id, delimiter),
            () if prefix is None else tuple(part for part in prefix.split("/") if part != ""),
            parameters,
            await read_body(request.receive),
        )

    @property
    def table(self) -> TableName:
        """The table that the path names; noted for the log."""
        table = to_table(self.parts, self.prefix)
        self.exchange.record.table = str(table)
        return table

    @property
    def namespace(self) -> Namespace:
        """The namespace that the path names."""
        return to_namespace(self.parts, self.prefix)

    def members(self) -> dict[str, object]:
        """Return the members of the JSON body."""
        return load_object(self.raw_body)

    def body(self, model: type[B]) -> B:
        """Return the JSON body as a model; its ``id`` must agree with the path."""
        body = check(model, self.members())
        require_same(self.parts, body.id)
        return body

    def query_parameters(self, model: type[P]) -> P:
        """Return the query parameters as a model."""
        return check(model, self.parameters)

    def run(self, pin: VersionedBody, work: Callable[[Dataset], T]) -> T:
        """Return what ``work`` makes of the table at the version that a body asks for."""

        def noted(dataset: Dataset) -> T:
            self.exchange.record.version = dataset.version
            return work(dataset)

        return self.services.catalog.run(
            self.table, pin.version, freshness_of(self.exchange), noted
        )


async def on_io_lane(request: Request, answer: Callable[[Call], Response]) -> Response:
    """Answer a request by a function that may wait."""
    call = await Call.read(request)
    return await call.services.io.run(partial(answer, call))
