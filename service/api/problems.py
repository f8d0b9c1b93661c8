"""Errors as HTTP answers: one table from error class to status and code, one body.

Codes and body members: rest-api section 2 (Lance Namespace error model, with ``title`` and
``status`` added).
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import orjson

from lance_core.errors import (
    BranchNotFoundError,
    CancelledByClientError,
    DatasetNotFoundError,
    DeadlineExceededError,
    IndexNotFoundError,
    InvalidRequestError,
    LanceError,
    MemoryBudgetError,
    StoreThrottledError,
    StoreUnavailableError,
    TagNotFoundError,
    UnknownColumnError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from service.api.errors import BodyTooLargeError, BusyError, NotReadyError, UnauthenticatedError
from service.catalog.damaged_files import damaged_part
from service.catalog.errors import NamespaceNotFoundError, PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.catalog.damaged_files import Part

CLIENT_CLOSED_REQUEST = 499
"""Logged for a request whose caller went away; never sent."""

_ANSWER: dict[type[BaseException], tuple[int, int]] = {
    InvalidRequestError: (HTTPStatus.BAD_REQUEST, 13),
    UnknownColumnError: (HTTPStatus.BAD_REQUEST, 12),
    BodyTooLargeError: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 13),
    NamespaceNotFoundError: (HTTPStatus.NOT_FOUND, 1),
    DatasetNotFoundError: (HTTPStatus.NOT_FOUND, 4),
    IndexNotFoundError: (HTTPStatus.NOT_FOUND, 6),
    VersionNotFoundError: (HTTPStatus.NOT_FOUND, 11),
    TagNotFoundError: (HTTPStatus.NOT_FOUND, 8),
    BranchNotFoundError: (HTTPStatus.NOT_FOUND, 22),
    UnsupportedFeatureError: (HTTPStatus.NOT_ACCEPTABLE, 0),
    PermissionDeniedError: (HTTPStatus.FORBIDDEN, 15),
    UnauthenticatedError: (HTTPStatus.UNAUTHORIZED, 16),
    # 504 would make clients repeat the work.
    DeadlineExceededError: (HTTPStatus.REQUEST_TIMEOUT, 17),
    CancelledByClientError: (CLIENT_CLOSED_REQUEST, 17),
    StoreThrottledError: (HTTPStatus.SERVICE_UNAVAILABLE, 17),
    StoreUnavailableError: (HTTPStatus.SERVICE_UNAVAILABLE, 17),
    MemoryBudgetError: (HTTPStatus.SERVICE_UNAVAILABLE, 17),
    BusyError: (HTTPStatus.TOO_MANY_REQUESTS, 21),
    NotReadyError: (HTTPStatus.SERVICE_UNAVAILABLE, 17),
    LanceError: (HTTPStatus.INTERNAL_SERVER_ERROR, 18),
    BaseException: (HTTPStatus.INTERNAL_SERVER_ERROR, 18),
}

_HEADERS: dict[int, tuple[tuple[bytes, bytes], ...]] = {
    HTTPStatus.UNAUTHORIZED: ((b"www-authenticate", b"Bearer"),),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ((b"connection", b"close"),),
    HTTPStatus.TOO_MANY_REQUESTS: ((b"retry-after", b"1"),),
    HTTPStatus.SERVICE_UNAVAILABLE: ((b"retry-after", b"1"),),
}

_NO_CODE = 0

_DAMAGE: Mapping[Part, str] = {
    "table": "a file of this table is damaged or missing; the server's log names it under request"
    " id {request_id}",
    "index": "a file of an index of this table is damaged or missing; the server's log names it"
    " under request id {request_id}; queries with bypass_vector_index are answered without"
    " the index",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One error answer."""

    status: int
    code: int
    error: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def body(self, request_id: str) -> bytes:
        """Return the JSON body; ``request_id`` finds the occurrence in the log.

        What a text quotes of a request may hold half a surrogate pair, which is no UTF-8.
        """
        members: dict[str, object] = {
            "error": self.error.encode(errors="backslashreplace").decode(),
            "code": self.code,
            "detail": None,
            "instance": request_id,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
        }
        return orjson.dumps(members)


def to_problem(error: BaseException, request_id: str) -> Problem:
    """Return the answer for an error; the text of server faults stays inside.

    It may name places that callers have no business with; they learn what they can do about it.
    """
    status, code = next(_ANSWER[kind] for kind in type(error).__mro__ if kind in _ANSWER)
    if _is_for_callers(error, status):
        text = str(error)
    elif (damaged := damaged_part(error)) is not None:
        text = _DAMAGE[damaged].format(request_id=request_id)
    else:
        text = HTTPStatus(status).phrase
    return Problem(status, code, text, _HEADERS.get(status, ()))


def _is_for_callers(error: BaseException, status: int) -> bool:
    """Tell texts about the request, or by this layer about itself, from internal ones."""
    return status < HTTPStatus.INTERNAL_SERVER_ERROR or isinstance(error, NotReadyError)


def unknown_path(path: str) -> Problem:
    """Return the answer for a path that no release of this interface has."""
    return Problem(HTTPStatus.NOT_FOUND, _NO_CODE, f"there is nothing at {path}")


def wrong_method(method: str, path: str, headers: Mapping[str, str]) -> Problem:
    """Return the answer for a method that the path does not take."""
    allowed = ", ".join(
        "GET, HEAD" if each == "GET" else each for each in headers.get("Allow", "").split(", ")
    )
    return Problem(
        HTTPStatus.METHOD_NOT_ALLOWED,
        _NO_CODE,
        f"{path} does not take {method}; it takes {allowed}",
        ((b"allow", allowed.encode()),),
    )
