"""Plans of queries, before and after they were run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from lance_core.errors import InvalidRequestError
from lance_core.query.request import VectorQuery
from lance_core.query.text_request import TextQuery
from service.api.bodies import check
from service.api.documented import documented, reference_to
from service.api.identifiers import require_same
from service.api.json_answers import json_answer
from service.api.models.answers import PlanAnswer, WhyNotAnswer
from service.api.models.requests import (
    AnalyzeBody,
    ExplainBody,
    ExplainOptions,
    IdBody,
    PlanParameters,
    WhyNotBody,
    WhyNotOptions,
)
from service.api.negotiation import wants_json_plan
from service.api.plan_bodies import query_of
from service.api.query_tasks import decode_task, run_task
from service.api.routes.plan_examples import (
    EXAMPLE_HYBRID_TEXT,
    EXAMPLE_PLAN,
    EXAMPLE_REASON,
    EXAMPLE_TEXT,
)
from service.api.table_calls import watched_on_io_lane

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from lance_core.query.explain import PlanReport
    from service.api.client_watch import ClientWatch
    from service.api.table_calls import Call

router = APIRouter(tags=["plans"])

_PLAN = {
    "application/json": {
        "schema": {
            "oneOf": [
                {"type": "string", "description": "For people."},
                {"$ref": reference_to(PlanAnswer)},
            ]
        },
        "examples": {
            "text": {"summary": "By default", "value": EXAMPLE_TEXT},
            "hybrid": {"summary": "Of a vector and a text", "value": EXAMPLE_HYBRID_TEXT},
            "json": {"summary": "With `?format=json`", "value": EXAMPLE_PLAN},
        },
    }
}
_WHY_NOT = {
    "application/json": {
        "schema": {"$ref": reference_to(WhyNotAnswer)},
        "example": EXAMPLE_REASON,
    }
}


@router.post(
    "/v1/table/{id}/explain_plan",
    openapi_extra=documented(answer=_PLAN, body=ExplainBody, parameters=PlanParameters),
)
async def explain_plan(request: Request) -> Response:
    """Return the plan of a query: text, or an object with `?format=json`."""
    return await watched_on_io_lane(request, _explain)


@router.post(
    "/v1/table/{id}/analyze_plan",
    openapi_extra=documented(answer=_PLAN, body=AnalyzeBody, parameters=PlanParameters),
)
async def analyze_plan(request: Request) -> Response:
    """Run a query and return its plan with what was measured, in the forms of `explain_plan`."""
    return await watched_on_io_lane(request, _analyze)


@router.post(
    "/v1/table/{id}/why_not",
    openapi_extra=documented(answer=_WHY_NOT, body=WhyNotBody),
)
async def why_not(request: Request) -> Response:
    """Tell what keeps a row out of the answer to a query, or where it stands in it."""
    return await watched_on_io_lane(request, _why_not)


def _explain(call: Call, watch: ClientWatch) -> Response:
    members = call.members()
    require_same(call.parts, check(ExplainOptions, members).id)
    query = query_of(members)
    if query is None:
        raise InvalidRequestError("query: the query to explain must stand here, as an object")
    is_json = wants_json_plan(call.parameters)
    task = decode_task(call, query, watch)
    return run_task(
        call,
        task,
        lambda dataset: _answer(dataset.explain_plan(task.request, task.deadline), is_json=is_json),
    )


def _analyze(call: Call, watch: ClientWatch) -> Response:
    members = call.members()
    require_same(call.parts, check(IdBody, members).id)
    query = query_of(members)
    is_json = wants_json_plan(call.parameters)
    task = decode_task(call, members if query is None else query, watch)
    return run_task(
        call,
        task,
        lambda dataset: _answer(dataset.analyze_plan(task.request, task.deadline), is_json=is_json),
    )


def _answer(report: PlanReport, *, is_json: bool) -> Response:
    return json_answer(report.to_dict() if is_json else report.text(), version=report.version)


def _why_not(call: Call, watch: ClientWatch) -> Response:
    members = call.members()
    options = check(WhyNotOptions, members)
    require_same(call.parts, options.id)
    row_id, given = options.row.row_id, query_of(members)
    task = decode_task(call, members if given is None else given, watch)
    query = task.request
    if not isinstance(query, VectorQuery | TextQuery):
        raise InvalidRequestError(
            "give a vector, row_id or full_text_query, and not both; other queries tell no reasons"
        )

    def answer(dataset: Dataset) -> Response:
        found = dataset.why_not(query, row_id, task.deadline)
        return json_answer(
            {
                "version": dataset.version,
                "row_id": found.row_id,
                "reason": found.reason,
                "detail": dict(found.detail),
                "text": found.text(),
            },
            version=dataset.version,
        )

    return run_task(call, task, answer)
