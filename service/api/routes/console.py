"""The web console: one page and its files, which need no key as they hold no data."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import RedirectResponse, Response

from service.api.exchange import Dialect, exchange_of
from service.console.files import START_PAGE, console_files

router = APIRouter(include_in_schema=False)


@router.get("/console")
async def show_console(request: Request) -> Response:
    """Send the page; from the path without a slash to that with one, as its links are relative.

    Browsers follow; that no other path redirects is for clients that upload.
    """
    if exchange_of(request).dialect is Dialect.NAMESPACE:
        return RedirectResponse("console/", HTTPStatus.PERMANENT_REDIRECT)
    return _file(request, START_PAGE)


@router.get("/console/{path:path}")
async def show_console_file(request: Request) -> Response:
    """Send what the page consists of."""
    return _file(request, request.path_params["path"])


def _file(request: Request, path: str) -> Response:
    found = console_files().get(path)
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=found.headers)
    return Response(found.body, headers=found.headers)
