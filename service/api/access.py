"""Who may ask: keys by header, and bearer tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from service.api.callers import ANYONE, Caller
from service.api.errors import UnauthenticatedError
from service.api.key_file import load_keys
from service.api.signing_keys import open_signing_keys
from service.api.tokens import TokenCheck
from service.api.watched_file import WatchedFile
from service.catalog.errors import PermissionDeniedError
from service.console.files import console_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.settings import Settings

_BEARER = b"bearer "
_DOTS = 2
"""In a token."""
_CONSOLE = "/console"
_OPEN_PATHS = frozenset({"/", "/health", "/ready", "/openapi.json", _CONSOLE}).union(
    f"{_CONSOLE}/{name}" for name in console_files()
)
"""What holds no data; the console asks for a key itself."""
_READY = "/ready"
"""Open as long as it is not asked about a table."""
_METRICS = "/metrics"

_CHANGES = frozenset(
    (
        "create",
        "insert",
        "merge_insert",
        "update",
        "delete",
        "add_columns",
        "alter_columns",
        "drop_columns",
        "update_field_metadata",
        "restore",
        "drop",
        "rename",
        "create_index",
        "create_scalar_index",
        "complete",
        "abort",
        "clone",
        "register",
        "deregister",
        "declare",
        "cherry_pick",
        "backfill_column",
        "batch-create",
        "batch-commit",
        "alter",
    )
)
"""Last parts of paths that change something; the others only read."""


class Access:
    """Recognises callers; belongs to the event loop.

    Parameters
    ----------
    settings
        Keys, their file, and what tokens must say.

    Raises
    ------
    ValueError
        A file cannot be read; says which setting names it.
    """

    def __init__(self, settings: Settings) -> None:
        self._is_open = not settings.asks_for_keys
        self._keys = {key: Caller(f"key {key[:15]}") for key in settings.api_keys}
        self._file = (
            None if settings.api_keys_file is None else _watched(Path(settings.api_keys_file))
        )
        self._tokens = _token_check(settings)
        self._open_paths = _OPEN_PATHS if settings.metrics_need_key else _OPEN_PATHS | {_METRICS}

    def caller_of(self, path: str, query: bytes, headers: Mapping[bytes, bytes]) -> Caller:
        """Return who asks.

        ``x-api-key`` and ``Authorization: Bearer`` are both read; either one is enough.

        Raises
        ------
        UnauthenticatedError
            Nobody we know, where only they may ask.
        UnknownSigningKeyError
            Perhaps somebody: see ``refresh``.
        PermissionDeniedError
            Somebody who may not read anything here, or not change what is to be changed.
        """
        if self._is_open or (path in self._open_paths and (path != _READY or query == b"")):
            return ANYONE
        caller = self._recognised(headers)
        if not caller.can_write and path[path.rfind("/") + 1 :] in _CHANGES:
            raise PermissionDeniedError("this key may read only")
        return caller

    def refresh(self) -> None:
        """Look for keys that sign tokens; may wait, so not for the event loop."""
        if self._tokens is not None:
            self._tokens.refresh()

    def reload(self) -> None:
        """Read the files now."""
        if self._file is not None:
            self._file.reload()
        self.refresh()

    def _recognised(self, headers: Mapping[bytes, bytes]) -> Caller:
        key, bearer = headers.get(b"x-api-key"), _bearer(headers.get(b"authorization"))
        for given in (key, bearer):
            if given is not None and (found := self._with_key(given)) is not None:
                return found
        if bearer is not None and self._tokens is not None and bearer.count(b".") == _DOTS:
            return self._tokens.caller_of(bearer)
        raise UnauthenticatedError("no valid key; send it as x-api-key or as Authorization: Bearer")

    def _with_key(self, given: bytes) -> Caller | None:
        """Return who has a key.

        What is looked up is the digest: how long that takes tells nothing about any key, and does
        not depend on how many there are.
        """
        digest = f"sha256:{hashlib.sha256(given).hexdigest()}"
        found = self._keys.get(digest)
        if found is None and self._file is not None:
            found = self._file.value().get(digest)
        return found


def _watched(path: Path) -> WatchedFile[Mapping[str, Caller]]:
    try:
        return WatchedFile(path, load_keys)
    except ValueError as error:
        raise ValueError(f"api_keys_file: {error}") from error


def _token_check(settings: Settings) -> TokenCheck | None:
    place, audience, issuer = settings.jwt_keys, settings.jwt_audience, settings.jwt_issuer
    if place is None or audience is None or issuer is None:
        return None
    try:
        keys = open_signing_keys(place)
    except ValueError as error:
        raise ValueError(f"jwt_keys: {error}") from error
    return TokenCheck(keys, audience=audience, issuer=issuer, claim=settings.jwt_claim)


def _bearer(value: bytes | None) -> bytes | None:
    if value is None or value[: len(_BEARER)].lower() != _BEARER:
        return None
    return value[len(_BEARER) :].strip()
