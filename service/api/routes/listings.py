"""Which tables and namespaces there are."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response

from service.api.documented import documented
from service.api.exchange import Dialect
from service.api.json_answers import json_answer
from service.api.models.answers import NamespaceDescription, Namespaces, Tables
from service.api.models.requests import IdBody, PageParameters
from service.api.table_calls import Call, on_io_lane
from service.catalog.names import Namespace, TableName
from service.catalog.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from service.catalog.database import Database

router = APIRouter(tags=["listings"])

_NAME_OF_LANCEDB = re.compile(r"[A-Za-z0-9_.-]+")
"""Names of tables that LanceDB's clients take (rest-api page, section 1)."""
_PYTHON_CLIENT = "LanceDB-Python-Client/"


@router.get(
    "/v1/table",
    openapi_extra=documented(answer=Tables, parameters=PageParameters, has_id=False),
)
async def list_all_tables(request: Request) -> Response:
    """List tables: those of the root (LanceDB's clients), or all with full ids (without slash)."""
    return await on_io_lane(request, _all_tables)


@router.get(
    "/v1/namespace/{id}/table/list",
    openapi_extra=documented(answer=Tables, parameters=PageParameters),
)
async def list_tables(request: Request) -> Response:
    """List the tables of one namespace."""
    return await on_io_lane(request, _tables)


@router.get(
    "/v1/namespace/{id}/list",
    openapi_extra=documented(answer=Namespaces, parameters=PageParameters),
)
async def list_namespaces(request: Request) -> Response:
    """List the child namespaces of one namespace."""
    return await on_io_lane(request, _namespaces)


@router.post(
    "/v1/namespace/{id}/describe",
    openapi_extra=documented(answer=NamespaceDescription, body=IdBody),
)
async def describe_namespace(request: Request) -> Response:
    """Describe a namespace."""
    return await on_io_lane(request, _describe_namespace)


@router.post("/v1/namespace/{id}/exists", openapi_extra=documented(body=IdBody))
async def namespace_exists(request: Request) -> Response:
    """Answer 200 if the namespace exists, else 404."""
    return await on_io_lane(request, _namespace_exists)


def _all_tables(call: Call) -> Response:
    if call.exchange.dialect is Dialect.LANCEDB:
        return _tables(call)
    if call.found is not None:
        return _page(call, "tables", _ids_in(call, call.found))
    databases = call.services.catalog.databases.values()
    return _page(call, "tables", [each for found in databases for each in _ids_in(call, found)])


def _ids_in(call: Call, database: Database) -> Iterator[str]:
    """Yield the identifiers of all tables of a database, as the caller would write them."""
    above = () if call.found is not None or database.name is None else (database.name,)
    depth = len(call.prefix)
    caller = call.exchange.caller
    for namespace, name in database.listing.all_tables(call.namespace):
        if not caller.may_read(database.name, TableName(namespace, name)):
            continue
        parts = (*above, *namespace.parts[depth:], name)
        if not any(call.delimiter in part for part in parts):  # else the identifier leads nowhere
            yield call.delimiter.join(parts)


def _tables(call: Call) -> Response:
    # Tables are in databases, so beside these there are none.
    if call.found is None:
        return _page(call, "tables", [])
    caller, within = call.exchange.caller, call.namespace
    names = call.found.listing.tables(within)
    shown = [each for each in names if caller.may_read(call.found.name, TableName(within, each))]
    return _page(call, "tables", filter(partial(_can_be_named, call), shown))


def _can_be_named(call: Call, name: str) -> bool:
    """Tell whether the caller can name a table.

    LanceDB's Python client 0.40 raises an error for a whole list with a name that it would refuse.
    """
    agent = call.exchange.header(b"user-agent")
    if agent is not None and agent.startswith(_PYTHON_CLIENT):
        return _NAME_OF_LANCEDB.fullmatch(name) is not None
    return True


def _namespaces(call: Call) -> Response:
    caller = call.exchange.caller
    if call.found is None:
        names = [each for each in call.services.catalog.names() if caller.may_enter(each)]
        return _page(call, "namespaces", names)
    within = call.namespace
    found = call.found.listing.namespaces(within)
    shown = [
        each
        for each in found
        if caller.may_enter(call.found.name, Namespace((*within.parts, each)))
    ]
    return _page(call, "namespaces", shown)


def _describe_namespace(call: Call) -> Response:
    _require_namespace(call)
    return json_answer({"properties": None})


def _namespace_exists(call: Call) -> Response:
    _require_namespace(call)
    return Response()


def _require_namespace(call: Call) -> None:
    call.body(IdBody)
    if call.found is not None:
        call.found.listing.require(call.namespace)


def _page(call: Call, member: str, names: Iterable[str]) -> Response:
    wanted = call.query_parameters(PageParameters)
    page = page_of(names, limit=wanted.limit, token=wanted.page_token)
    return json_answer({member: page.names, "page_token": page.next_token})
