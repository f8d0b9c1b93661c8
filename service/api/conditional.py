"""Answers that stay the same as long as the version does: their tags, and 304 for who has them.

Versions never change, so the same request about the same one gets the same answer; callers that ask
with ``If-None-Match`` are spared it. The reads that are POST here are safe, and so treated alike.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.dataset import Dataset
    from service.api.table_calls import Call

_NOT_MODIFIED = 304
_TAG_BYTES = 12


def tagged(call: Call, dataset: Dataset, answer: Callable[[], Response]) -> Response:
    """Return an answer with its tag, or 304 without it when the caller names that tag."""
    tag = _tag_of(call, dataset)
    given = call.exchange.header(b"if-none-match")
    if given is not None and _names(given, tag):
        headers = {"etag": tag, "x-lancedb-version": str(dataset.version)}
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    response = answer()
    response.headers["etag"] = tag
    return response


def _tag_of(call: Call, dataset: Dataset) -> str:
    """Return a weak tag: the bytes may differ, as by gzip."""
    told = (
        dataset.snapshot.incarnation,
        call.exchange.record.path,
        call.exchange.dialect.value,
        *(f"{name}={value}" for name, value in sorted(call.parameters.items())),
    )
    digest = blake2b("\n".join(told).encode(), digest_size=_TAG_BYTES)
    digest.update(call.raw_body)
    return f'W/"{digest.hexdigest()}"'


def _names(given: str, tag: str) -> bool:
    """Tell whether an ``If-None-Match`` names a tag; weakness does not count."""
    tags = {each.strip().removeprefix("W/") for each in given.split(",")}
    return "*" in tags or tag.removeprefix("W/") in tags
