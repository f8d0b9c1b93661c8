"""Vectors of texts, for tables whose vectors a model of the service has made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time
from starlette.responses import Response  # noqa: TC002 - same

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from service.api.documented import documented
from service.api.json_answers import json_answer
from service.api.models.console import EmbedBody, EmbeddedText, TextModels
from service.api.table_calls import Call, on_io_lane

if TYPE_CHECKING:
    from service.api.text_models import LoadedModel

router = APIRouter(tags=["queries"])

MAX_CHARACTERS = 4096
"""Of a text; the model reads only its beginning anyway."""
_DIGITS = 8
"""Behind the point: numbers of unit vectors in float32 have no more."""


@router.get("/v1/table/{id}/embed", openapi_extra=documented(answer=TextModels))
async def list_text_models(request: Request) -> Response:
    """List the columns for whose vectors this service has the model."""
    return await on_io_lane(request, _list)


@router.post("/v1/table/{id}/embed", openapi_extra=documented(answer=EmbeddedText, body=EmbedBody))
async def embed_text(request: Request) -> Response:
    """Make a vector of a text, to search by what it means."""
    return await on_io_lane(request, _embed)


def _list(call: Call) -> Response:
    found = _model_of(call)
    models = [] if found is None else [{"column": found.place.column, "model": found.place.model}]
    return json_answer({"models": models})


def _embed(call: Call) -> Response:
    body, found = call.body(EmbedBody), _model_of(call)
    if found is None:
        raise UnsupportedFeatureError(
            f"this service has no model for texts about table '{call.table}'; send a vector"
        )
    if body.column is not None and body.column != found.place.column:
        raise InvalidRequestError(f"column: the model is for {found.place.column}")
    if len(body.text) > MAX_CHARACTERS:
        raise InvalidRequestError(f"text: is longer than {MAX_CHARACTERS} characters")
    place, vector = found.place, found.embedder.embed(body.text).tolist()
    rounded = [round(number, _DIGITS) for number in vector]
    return json_answer({"column": place.column, "model": place.model, "vector": rounded})


def _model_of(call: Call) -> LoadedModel | None:
    """Return the model for the table that the path names."""
    table, found = str(call.table), call.services.text_model
    name = table if call.database.name is None else f"{call.database.name}${table}"
    return found if found is not None and found.place.table == name else None
