"""Queries of all kinds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response, StreamingResponse

from service.api.client_watch import ClientWatch
from service.api.direct_route import DirectRoute
from service.api.documented import documented
from service.api.models.requests import AnswerParameters, QueryBody
from service.api.negotiation import Format
from service.api.query_tasks import QueryTask, begin_query, finish_query
from service.api.routes.query_examples import QUERY_EXAMPLES
from service.api.table_calls import Call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from service.api.query_answers import Answer
    from service.api.search_threads import Lane

router = APIRouter(tags=["queries"], route_class=DirectRoute)

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT = {
    Format.ARROW_FILE.value: _BINARY,
    Format.ARROW_STREAM.value: _BINARY,
    Format.JSON.value: {"schema": {"$ref": "#/components/schemas/Rows"}},
}


@router.post(
    "/v1/table/{id}/query",
    openapi_extra=documented(
        answer=_CONTENT, body=QueryBody, parameters=AnswerParameters, examples=QUERY_EXAMPLES
    ),
)
async def query_table(request: Request) -> Response:
    """Answer a query: by a vector, by a text, by both, or a plain one."""
    call = await Call.read(request)
    call.services.require_ready()
    with ClientWatch(request.receive) as watch:
        answer = await call.services.search.run(partial(begin_query, call, watch))
        if isinstance(answer, QueryTask):
            answer = await call.services.io.run(partial(finish_query, call, answer))
    return _respond(answer, call.services.io)


def _respond(answer: Answer, lane: Lane) -> Response:
    if answer.rest is None:
        return Response(answer.body, media_type=answer.media_type, headers=answer.headers)
    chunks = _pull(answer.rest, lane)
    return StreamingResponse(chunks, media_type=answer.media_type, headers=answer.headers)


async def _pull(chunks: Iterator[bytes], lane: Lane) -> AsyncIterator[bytes]:
    """Yield chunks, each made when the one before is on its way.

    No thread waits for a slow reader, and no more than one chunk of an answer is in memory.
    """
    while (chunk := await lane.run(partial(next, chunks, None))) is not None:
        yield chunk
