"""Direct routes are answered without the framework; bodies are read as they come."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response

from lance_core.errors import CancelledByClientError
from service.api.bodies import read_body
from service.api.direct_route import DirectDispatch, DirectRoute


async def show(request: Request) -> Response:
    return Response(request.path_params["id"])


def dispatch() -> DirectDispatch:
    router = APIRouter(route_class=DirectRoute)
    router.post("/v1/{id}/show")(show)
    routes = [route for route in router.routes if isinstance(route, DirectRoute)]

    async def framework(scope: Any, receive: Any, send: Any) -> None:
        await Response("framework")(scope, receive, send)

    return DirectDispatch(framework, routes)


async def answer(method: str, path: str) -> bytes:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": []}
    await dispatch()(scope, receiver([]), send)
    body: bytes = sent[-1]["body"]
    return body


def receiver(messages: list[dict[str, Any]]) -> Any:
    waiting = iter(messages)

    async def receive() -> dict[str, Any]:
        return next(waiting)

    return receive


async def test_a_direct_route_gets_the_undecoded_parts_of_its_path() -> None:
    assert await answer("POST", "/v1/a%2Fb/show") == b"a%2Fb"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/a/show"), ("POST", "/v1/a/b/show"), ("POST", "/v1/a")]
)
async def test_everything_else_goes_to_the_framework(method: str, path: str) -> None:
    assert await answer(method, path) == b"framework"


@pytest.mark.parametrize("parts", [[b"abc"], [b"a", b"", b"bc"], [b""]])
async def test_a_body_is_its_parts_joined(parts: list[bytes]) -> None:
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": part, "more_body": True} for part in parts
    ]
    messages[-1]["more_body"] = False
    assert await read_body(receiver(messages)) == b"".join(parts)


async def test_a_caller_that_leaves_before_its_body_is_complete_is_noticed() -> None:
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.disconnect"},
    ]
    with pytest.raises(CancelledByClientError):
        await read_body(receiver(messages))
