"""Ready JSON answers."""

from __future__ import annotations

import orjson
from starlette.responses import Response


def json_answer(value: object, *, version: int | None = None) -> Response:
    """Return a value as a JSON answer; ``version`` is the dataset version that it reflects."""
    headers = {} if version is None else {"x-lancedb-version": str(version)}
    return Response(orjson.dumps(value), media_type="application/json", headers=headers)
