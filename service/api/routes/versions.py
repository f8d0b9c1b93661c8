"""The history of a table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from lance_core.table.refs import branch_root
from service.api.documented import documented
from service.api.json_answers import json_answer
from service.api.models.answers import Versions
from service.api.models.requests import VersionedBody, VersionPageParameters
from service.api.table_calls import Call, on_io_lane

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from lance_core.table.snapshot import VersionInfo

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
    return call.run(body, partial(_listed, call, wanted))


def _listed(call: Call, wanted: VersionPageParameters, dataset: Dataset) -> Response:
    versions, has_more = dataset.version_page(
        after=wanted.page_token, limit=wanted.limit, descending=wanted.descending
    )
    branch = dataset.branch
    folder = call.table.path if branch is None else f"{call.table.path}/{branch_root(branch)}"
    return json_answer(
        {
            "versions": [_entry(info, folder) for info in versions],
            "page_token": str(versions[-1].version) if has_more else None,
        }
    )


def _entry(info: VersionInfo, folder: str) -> dict[str, object]:
    return {
        "version": info.version,
        "manifest_path": f"{folder}/{info.manifest_path}",
        "manifest_size": info.manifest_size,
        "e_tag": info.e_tag,
        "timestamp": info.timestamp.isoformat(),
        "timestamp_millis": int(info.timestamp.timestamp() * 1e3),
        "metadata": {},
    }
