"""Answers for paths and methods that no route takes."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.api.exchange import exchange_of
from service.api.problems import Problem, unknown_path, wrong_method

if TYPE_CHECKING:
    from starlette.requests import Request


async def answer_path_error(request: Request, error: Exception) -> Response:
    """Return what the router's own 404 and 405 look like in this interface."""
    if not isinstance(error, HTTPException):
        raise error
    exchange = exchange_of(request)
    problem = _to_problem(request, error)
    exchange.record.code = problem.code
    response = Response(
        problem.body(exchange.request_id), problem.status, media_type="application/json"
    )
    response.raw_headers.extend(problem.headers)
    return response


def _to_problem(request: Request, error: HTTPException) -> Problem:
    path: str = request.scope["path"]
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return wrong_method(request.method, path, error.headers or {})
    return unknown_path(path)
