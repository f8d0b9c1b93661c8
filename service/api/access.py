"""Who may ask: keys by header, compared in constant time."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from service.api.errors import UnauthenticatedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BEARER = b"bearer "
_OPEN_PATHS = frozenset({"/", "/health", "/ready", "/openapi.json"})


class KeyCheck:
    """Accepts requests that carry one of the configured keys; no keys = accepts all."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [key.encode() for key in keys]

    def require(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Raise ``UnauthenticatedError`` unless a key is not needed or a valid one is there.

        ``x-api-key`` and ``Authorization: Bearer`` are both read; either one is enough.
        """
        if self._keys == [] or path in _OPEN_PATHS:
            return
        given = [headers.get(b"x-api-key"), _bearer(headers.get(b"authorization"))]
        if not any([self._is_known(key) for key in given if key is not None]):  # noqa: C419
            raise UnauthenticatedError(
                "no valid key; send it as x-api-key or as Authorization: Bearer"
            )

    def _is_known(self, given: bytes) -> bool:
        # Every key is compared, so that the time taken does not tell which one matched.
        return any([hmac.compare_digest(given, key) for key in self._keys])  # noqa: C419


def _bearer(value: bytes | None) -> bytes | None:
    if value is None or value[: len(_BEARER)].lower() != _BEARER:
        return None
    return value[len(_BEARER) :].strip()
