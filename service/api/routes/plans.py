"""Plans of queries, before and after they were run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from lance_core.errors import InvalidRequestError
from service.api.bodies import check
from service.api.client_watch import ClientWatch
from service.api.documented import documented
from service.api.identifiers import require_same
from service.api.json_answers import json_answer
from service.api.models.requests import ExplainBody, ExplainOptions, QueryBody
from service.api.not_yet import require_no_later_feature
from service.api.query_tasks import decode_task, run_task
from service.api.table_calls import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

router = APIRouter(tags=["plans"])

_TEXT = {"application/json": {"schema": {"type": "string"}}}


@router.post(
    "/v1/table/{id}/explain_plan",
    openapi_extra=documented(answer=_TEXT, body=ExplainBody),
)
async def explain_plan(request: Request) -> Response:
    """Return the plan of a query as text."""
    return await _with_watch(request, _explain)


@router.post(
    "/v1/table/{id}/analyze_plan",
    openapi_extra=documented(answer=_TEXT, body=QueryBody),
)
async def analyze_plan(request: Request) -> Response:
    """Run a query and return its plan with what was measured."""
    return await _with_watch(request, _analyze)


async def _with_watch(
    request: Request, answer: Callable[[Call, ClientWatch], Response]
) -> Response:
    call = await Call.read(request)
    call.services.require_ready()
    with ClientWatch(request.receive) as watch:
        return await call.services.io.run(lambda: answer(call, watch))


def _explain(call: Call, watch: ClientWatch) -> Response:
    members = call.members()
    task = decode_task(call, _wrapped_query(members), watch)
    require_same(call.parts, check(ExplainOptions, members).id)
    return run_task(
        call,
        task,
        lambda dataset: json_answer(dataset.explain(task.request), version=dataset.version),
    )


def _wrapped_query(members: Mapping[str, object]) -> Mapping[str, object]:
    query = members.get("query")
    if not isinstance(query, dict):
        raise InvalidRequestError("query: the query to explain must stand here, as an object")
    require_no_later_feature(query)
    return query


def _analyze(call: Call, watch: ClientWatch) -> Response:
    task = decode_task(call, call.members(), watch)
    return run_task(
        call,
        task,
        lambda dataset: json_answer(
            dataset.analyze(task.request, task.deadline), version=dataset.version
        ),
    )
