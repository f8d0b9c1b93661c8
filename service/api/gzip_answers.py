"""Compressing JSON answers that are worth it, for callers that understand gzip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.api.json_bodies import gzip_chunks, is_worth_gzip
from service.api.negotiation import accepts_gzip

if TYPE_CHECKING:
    from starlette.responses import Response

    from service.api.exchange import Exchange

_JSON = "application/json"


def shrunk(response: Response, exchange: Exchange) -> Response:
    """Return an answer, its body compressed if it is long JSON and the caller can read that."""
    body = bytes(response.body)
    if response.media_type != _JSON or not is_worth_gzip(len(body)):
        return response
    response.headers["vary"] = "accept-encoding"
    if not accepts_gzip(exchange.header(b"accept-encoding")):
        return response
    response.body = b"".join(gzip_chunks([body]))
    response.headers["content-encoding"] = "gzip"
    response.headers["content-length"] = str(len(response.body))
    return response
