"""Request bodies: JSON objects, checked by a model, with nothing ignored that would matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from lance_core.errors import CancelledByClientError, InvalidRequestError
from service.api.json_spellings import as_json, as_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive

M = TypeVar("M", bound=BaseModel)
V = TypeVar("V")

_INT64_BOUND = 2**63
_OBJECT_TYPES = frozenset(("model_type", "model_attributes_type", "dict_type"))
_WHOLE = "Input should be an integer of at most 64 bits"


async def read_body(receive: Receive) -> bytes:
    """Return the whole body; nearly always it comes as one message.

    Raises
    ------
    CancelledByClientError
        The caller went away before its body was complete.
    """
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        whole: bytes = message.get("body", b"")
        return whole
    parts: list[bytes] = []
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()
    raise CancelledByClientError("the caller went away in the middle of its body")


def load_object(body: bytes) -> dict[str, object]:
    """Return a JSON object; an empty body is an empty object.

    Raises
    ------
    InvalidRequestError
        The body is no JSON, or no object. NaN, infinities and numbers beyond float64 are no JSON.
    """
    if body == b"":
        return {}
    try:
        loaded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidRequestError(f"the body is no valid JSON: {error}") from error
    if not isinstance(loaded, dict):
        raise InvalidRequestError("the body must be a JSON object")
    return loaded


def check(model: type[M], members: Mapping[str, object], *place: str) -> M:
    """Return the members as a model, or raise ``InvalidRequestError`` naming the first mistake.

    ``place`` leads to where in the body the members stand.
    """
    try:
        return model.model_validate(members)
    except ValidationError as error:
        raise InvalidRequestError(_first_mistake(error, place)) from error


def given_or(value: V | None, default: V) -> V:
    """Return a member, or what it is where it is absent."""
    return default if value is None else value


def _first_mistake(error: ValidationError, place: tuple[str, ...]) -> str:
    mistake = error.errors(include_url=False, include_context=False)[0]
    given = mistake["input"]
    wanted = _WHOLE if _is_too_long_integer(mistake["type"], given) else mistake["msg"]
    if mistake["type"] in _OBJECT_TYPES:  # its text names a class of ours
        wanted = "Input should be an object"
    return f"{as_path((*place, *mistake['loc']))}: {wanted}, not {as_json(given)}"


def _is_too_long_integer(mistake: str, given: object) -> bool:
    """Tell integers of more than 64 bits, which the JSON reader makes floats of."""
    return mistake == "int_type" and isinstance(given, float) and abs(given) >= _INT64_BOUND
