"""In which format a query is answered (rest-api section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast, get_args

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Format(Enum):
    """Formats of a query answer; the value is the media type."""

    ARROW_FILE = "application/vnd.apache.arrow.file"
    ARROW_STREAM = "application/vnd.apache.arrow.stream"
    JSON = "application/json"


Compression = Literal["lz4", "zstd"]

_BY_PARAMETER = {
    "arrow": Format.ARROW_FILE,
    "arrow_stream": Format.ARROW_STREAM,
    "json": Format.JSON,
}
_PLAN_FORMATS = ("text", "json")
_ARROW_FORMATS = (Format.ARROW_FILE, Format.ARROW_STREAM)
# Sends "Accept: application/json" for queries and yet expects Arrow bytes.
_GENERATED_CLIENT = "OpenAPI-Generator/"
_KNOWN_CLIENTS = 256


@dataclass(frozen=True, slots=True)
class Encoding:
    """Format of an answer, the compression of its Arrow buffers, and whether gzip is understood."""

    format: Format = Format.ARROW_FILE
    compression: Compression | None = None
    accepts_gzip: bool = False


def choose_encoding(
    parameters: Mapping[str, str], *, accept: str | None, user_agent: str | None, gzip: str | None
) -> Encoding:
    """Return how to encode the answer.

    ``accept``, ``user_agent`` and ``gzip`` are the headers Accept, User-Agent and Accept-Encoding.
    """
    wish = parameters.get("format")
    chosen = _by_accept(accept, user_agent) if wish is None else _by_parameter(wish)
    return Encoding(chosen, _compression(parameters.get("compression")), accepts_gzip(gzip))


def accepts_gzip(header: str | None) -> bool:
    """Tell whether an Accept-Encoding allows gzip; a quality of 0 forbids it."""
    if header is None or "gzip" not in header:
        return False
    return header == "gzip" or _qualities(header).get("gzip", 0.0) > 0


def wants_json_plan(parameters: Mapping[str, str]) -> bool:
    """Tell whether a plan is to be answered as an object, not as text.

    Headers say nothing about it: the text is a JSON value too, and clients that expect it accept
    just JSON.
    """
    wish = parameters.get("format", _PLAN_FORMATS[0])
    if wish not in _PLAN_FORMATS:
        known = ", ".join(_PLAN_FORMATS)
        raise InvalidRequestError(f'unknown format "{wish}" of a plan; use one of: {known}')
    return wish == "json"


def _by_parameter(wish: str) -> Format:
    if wish not in _BY_PARAMETER:
        known = ", ".join(_BY_PARAMETER)
        raise InvalidRequestError(f'unknown format "{wish}"; use one of: {known}')
    return _BY_PARAMETER[wish]


@lru_cache(_KNOWN_CLIENTS)  # a client sends the same headers with every request
def _by_accept(accept: str | None, user_agent: str | None) -> Format:
    qualities = _qualities("" if accept is None else accept)
    wanted = [(qualities.get(arrow.value, 0.0), arrow) for arrow in _ARROW_FORMATS]
    quality, best = max(wanted, key=lambda pair: pair[0])
    if quality > 0:
        return best
    is_generated = user_agent is not None and user_agent.startswith(_GENERATED_CLIENT)
    if qualities.get(Format.JSON.value, 0.0) > 0 and not is_generated:
        return Format.JSON
    return Format.ARROW_FILE


def _qualities(accept: str) -> dict[str, float]:
    """Return what an Accept header names, with q values; bad q values count as 1."""
    qualities: dict[str, float] = {}
    for item in accept.split(","):
        media_type, *parameters = [part.strip().lower() for part in item.split(";")]
        qualities[media_type] = _quality(parameters)
    return qualities


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0


def _compression(wish: str | None) -> Compression | None:
    if wish is None:
        return None
    known = get_args(Compression)
    if wish not in known:
        raise InvalidRequestError(f'unknown compression "{wish}"; use one of: {", ".join(known)}')
    return cast("Compression", wish)
