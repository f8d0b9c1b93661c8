"""Names of versions: tags and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from service.api.documented import documented, reference_to
from service.api.exchange import Dialect
from service.api.json_answers import json_answer
from service.api.models.figures import Branches, NamespaceTags, TagEntry, TagVersion
from service.api.models.requests import IdBody, PageParameters, TagBody, VersionedBody
from service.api.table_calls import Call, on_io_lane
from service.catalog.paging import page_of

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from lance_core.table.refs import Branch, Tag

router = APIRouter(tags=["versions"])

_TAG = {"branch": None, "version": 1, "manifestSize": 811}
_TAGS = {
    "application/json": {
        "schema": {
            "anyOf": [
                {"$ref": reference_to(NamespaceTags)},
                {"type": "object", "additionalProperties": {"$ref": reference_to(TagEntry)}},
            ]
        },
        "examples": {
            "namespace": {
                "summary": "Without a slash at the end of the path",
                "value": {"tags": {"v1": _TAG}, "page_token": None},
            },
            "lancedb": {"summary": "With one", "value": {"v1": _TAG}},
        },
    }
}
_LATEST = VersionedBody.model_validate({})


@router.post(
    "/v1/table/{id}/tags/list",
    openapi_extra=documented(answer=_TAGS, body=IdBody, parameters=PageParameters),
)
async def list_tags(request: Request) -> Response:
    """List the tags of a table, with a slash at the end of the path as a bare object."""
    return await on_io_lane(request, _tags)


@router.post(
    "/v1/table/{id}/tags/version", openapi_extra=documented(answer=TagVersion, body=TagBody)
)
async def version_of_tag(request: Request) -> Response:
    """Tell which version a tag names."""
    return await on_io_lane(request, _version)


@router.post("/v1/table/{id}/branches/list", openapi_extra=documented(answer=Branches, body=IdBody))
async def list_branches(request: Request) -> Response:
    """List the branches of a table but the main one."""
    return await on_io_lane(request, _branches)


def _tags(call: Call) -> Response:
    call.body(IdBody)
    wanted = call.query_parameters(PageParameters)
    tags = {tag.name: tag for tag in call.run(_LATEST, lambda dataset: dataset.tags())}
    page = page_of(tags, limit=wanted.limit, token=wanted.page_token)
    entries = {name: _entry(tags[name]) for name in page.names}
    if call.exchange.dialect is Dialect.LANCEDB:
        return json_answer(entries)
    return json_answer({"tags": entries, "page_token": page.next_token})


def _entry(tag: Tag) -> dict[str, object]:
    return {"branch": tag.branch, "version": tag.version, "manifestSize": tag.manifest_size}


def _version(call: Call) -> Response:
    name = call.body(TagBody).tag

    def found(dataset: Dataset) -> Response:
        tag = dataset.tag(name)
        return json_answer({"version": tag.version, "branch": tag.branch})

    return call.run(_LATEST, found)


def _branches(call: Call) -> Response:
    call.body(IdBody)
    branches = call.run(_LATEST, lambda dataset: dataset.branches())
    return json_answer({"branches": {each.name: _branch_entry(each) for each in branches}})


def _branch_entry(branch: Branch) -> dict[str, object]:
    return {
        "parentBranch": branch.parent_branch,
        "parentVersion": branch.parent_version,
        "createAt": int(branch.created_at.timestamp()),
        "manifestSize": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
