"""The history of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from service.api.documented import documented
from service.api.json_answers import json_answer
from service.api.models.answers import Versions
from service.api.models.requests import VersionedBody, VersionPageParameters
from service.api.table_calls import Call, on_io_lane

if TYPE_CHECKING:
    from lance_core.table.snapshot import VersionInfo
    from service.catalog.names import TableName

router = APIRouter(tags=["versions"])


@router.post(
    "/v1/table/{id}/version/list",
    openapi_extra=documented(answer=Versions, body=VersionedBody, parameters=VersionPageParameters),
)
async def list_versions(request: Request) -> Response:
    """List the versions of a table, oldest first unless asked otherwise."""
    return await on_io_lane(request, _list)


def _list(call: Call) -> Response:
    body = call.body(VersionedBody)
    wanted = call.query_parameters(VersionPageParameters)
    versions = call.run(body, lambda dataset: dataset.versions())
    if wanted.descending:
        versions = versions[::-1]
    page, token = _page(versions, wanted)
    table = call.table
    return json_answer({"versions": [_entry(info, table) for info in page], "page_token": token})


def _page(
    versions: list[VersionInfo], wanted: VersionPageParameters
) -> tuple[list[VersionInfo], str | None]:
    """Return a page and its token, the number of its last version as text."""
    token = wanted.page_token
    if token is not None:
        sign = -1 if wanted.descending else 1
        versions = [info for info in versions if sign * info.version > sign * token]
    if wanted.limit is None or wanted.limit >= len(versions):
        return versions, None
    page = versions[: wanted.limit]
    return page, str(page[-1].version)


def _entry(info: VersionInfo, table: TableName) -> dict[str, object]:
    return {
        "version": info.version,
        "manifest_path": f"{table.path}/{info.manifest_path}",
        "manifest_size": info.manifest_size,
        "e_tag": info.e_tag,
        "timestamp": info.timestamp.isoformat(),
        "timestamp_millis": int(info.timestamp.timestamp() * 1e3),
        "metadata": {},
    }
