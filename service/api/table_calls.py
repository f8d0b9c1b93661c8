"""One request about one table or namespace: identifier, body and the dataset behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lance_core.errors import InvalidRequestError
from service.api.bodies import check, load_object, read_body
from service.api.client_watch import ClientWatch
from service.api.demands import freshness_of
from service.api.exchange import exchange_of
from service.api.gzip_answers import shrunk
from service.api.identifiers import (
    DEFAULT_DELIMITER,
    parse_parts,
    require_same,
    to_namespace,
    to_table,
)
from service.api.models.requests import IdBody, Parameters
from service.api.pins import pin_of
from service.api.services import services_of
from service.catalog.errors import NamespaceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from lance_core.dataset import Dataset
    from service.api.exchange import Exchange
    from service.api.models.requests import VersionedBody
    from service.api.services import Services
    from service.catalog.database import Database
    from service.catalog.names import Namespace, TableName

B = TypeVar("B", bound=IdBody)
P = TypeVar("P", bound=Parameters)
T = TypeVar("T")

_DATABASE = b"x-lancedb-database"
_DATABASE_PREFIX = b"x-lancedb-database-prefix"


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its body read.

    All methods are meant for a lane: decoding a large body would block the event loop.

    Parameters
    ----------
    delimiter
        What stands between the parts of identifiers.
    parts
        The identifier in the path.
    found
        The database that it is about; None = it is about all of them.
    inside
        What of the identifier is left inside the database.
    prefix
        Folders below the root of the database that all identifiers are below of.
    parameters
        Of the query.
    """

    services: Services
    exchange: Exchange
    delimiter: str
    parts: tuple[str, ...]
    found: Database | None
    inside: tuple[str, ...]
    prefix: tuple[str, ...]
    parameters: Mapping[str, str]
    raw_body: bytes

    @classmethod
    async def read(cls, request: Request) -> Call:
        """Read the request; its identifier may be absent."""
        exchange, services = exchange_of(request), services_of(request)
        parameters = dict(request.query_params) if request.scope["query_string"] else {}
        prefix = exchange.header(_DATABASE_PREFIX)
        delimiter = parameters.get("delimiter", DEFAULT_DELIMITER)
        if delimiter == "":
            raise InvalidRequestError("the delimiter is empty; leave it out to use $")
        raw_id: str | None = request.path_params.get("id")
        parts = () if raw_id is None else parse_parts(raw_id, delimiter)
        found, inside = services.catalog.find(
            exchange.header(_DATABASE), parts, exchange.caller.require_namespace
        )
        return cls(
            services,
            exchange,
            delimiter,
            parts,
            found,
            inside,
            () if prefix is None else tuple(part for part in prefix.split("/") if part != ""),
            parameters,
            await read_body(request.receive),
        )

    @property
    def database(self) -> Database:
        """The database that the request is about."""
        if self.found is None:
            raise NamespaceNotFoundError(
                "name a database: in the first part of the identifier, or as x-lancedb-database"
            )
        return self.found

    @property
    def table(self) -> TableName:
        """The table that the path names; noted for the log."""
        table, database = to_table(self.inside, self.prefix), self.database.name
        self.exchange.record.table = str(table) if database is None else f"{database}${table}"
        self.exchange.caller.require_table(database, table)
        return table

    @property
    def namespace(self) -> Namespace:
        """The namespace that the path names, in the database."""
        namespace = to_namespace(self.inside, self.prefix)
        if self.found is not None:
            self.exchange.caller.require_namespace(self.found.name, namespace)
        return namespace

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

    def run(self, body: VersionedBody, work: Callable[[Dataset], T]) -> T:
        """Return what ``work`` makes of the table at the version that a request asks for."""

        def noted(dataset: Dataset) -> T:
            self.exchange.record.version = dataset.version
            return work(dataset)

        demand = freshness_of(self.exchange, body.max_staleness_ms)
        return self.database.run(self.table, pin_of(body, self.parameters), demand, noted)


async def on_io_lane(request: Request, answer: Callable[[Call], Response]) -> Response:
    """Answer a request by a function that may wait."""
    call = await Call.read(request)
    return await call.services.io.run(lambda: shrunk(answer(call), call.exchange))


async def watched_on_io_lane(
    request: Request, answer: Callable[[Call, ClientWatch], Response], *, needs_kernels: bool = True
) -> Response:
    """Answer a request by a function that may work long, and stops when the caller goes away."""
    call = await Call.read(request)
    if needs_kernels:
        call.services.require_ready()
    with ClientWatch(request.receive) as watch:
        return await call.services.io.run(lambda: shrunk(answer(call, watch), call.exchange))
