"""The public keys that sign bearer tokens, from a file or from the issuer (JWKS, RFC 7517)."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.request import urlopen

import jwt

from service.api.errors import UnknownSigningKeyError
from service.api.watched_file import WatchedFile
from service.uri_secrets import without_user_info

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LOGGER = logging.getLogger(__name__)
_MAX_BYTES = 1 << 20
_FETCH_TIMEOUT_S = 10.0
_MAX_AGE_S = 300.0
_FETCH_AGAIN_AFTER_S = 10.0
_LOCAL = ("http://127.0.0.1:", "http://localhost:", "http://[::1]:")

_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By type of key; none where a secret, or nothing, would do for a signature."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key, and the algorithms it is good for."""

    key: Any  # one of the library's many classes
    algorithms: tuple[str, ...]


SigningKeySet = dict[str | None, SigningKey]
"""Keys by their id."""


class SigningKeys(Protocol):
    """Where keys are found."""

    @property
    def generation(self) -> int:
        """Counts the sets there have been."""

    def find(self, key_id: str | None) -> SigningKey:
        """Return a key; raises ``UnknownSigningKeyError`` if ``refresh`` may find it, or not."""

    def refresh(self) -> None:
        """Look for new keys; may wait."""


def parse_keys(document: object) -> SigningKeySet:
    """Return the keys of a key set that verify signatures; others are passed over.

    Raises
    ------
    ValueError
        It is no key set.
    """
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError('a key set is an object with a list "keys"')  # noqa: TRY004 - of a file
    found: SigningKeySet = {}
    for entry in entries:
        if isinstance(entry, dict) and entry.get("use", "sig") == "sig":
            key = _parse_key(entry)
            if key is not None:
                found[entry.get("kid")] = key
    return found


def _parse_key(entry: Mapping[str, object]) -> SigningKey | None:
    algorithms = _ALGORITHMS.get(str(entry.get("kty")), ())
    if entry.get("alg") is not None:
        algorithms = tuple(each for each in algorithms if each == entry["alg"])
    if algorithms == ():
        return None
    try:
        return SigningKey(jwt.PyJWK(dict(entry)).key, algorithms)
    except jwt.PyJWTError as error:
        _LOGGER.warning("passed over a key of the key set: %s", error)
        return None


def _find(keys: SigningKeySet, key_id: str | None) -> SigningKey:
    if key_id is None and len(keys) == 1:
        return next(iter(keys.values()))
    found = keys.get(key_id)
    if found is None:
        raise UnknownSigningKeyError("the bearer token is signed with a key that nobody knows")
    return found


class KeysInFile:
    """A key set in a file, which is read anew when it changes."""

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path, _load_keys)

    @property
    def generation(self) -> int:
        """Counts the sets there have been."""
        self._file.value()
        return self._file.generation

    def find(self, key_id: str | None) -> SigningKey:
        """Return a key."""
        return _find(self._file.value(), key_id)

    def refresh(self) -> None:
        """Read the file."""
        self._file.reload()


class KeysOfIssuer:
    """A key set that the issuer shows at a URL, fetched when first needed and every five minutes.

    When it cannot be fetched, the keys known before stay good. It is asked every ten seconds at
    most, so that tokens signed with invented keys do not make this service a burden.
    """

    def __init__(
        self,
        url: str,
        *,
        fetch: Callable[[str], bytes] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if not url.startswith(("https://", *_LOCAL)):
            raise ValueError("it must be an https URL, or a file")
        self._url = url
        self._fetch = _fetch if fetch is None else fetch
        self._now = now
        self._lock = threading.Lock()
        self._keys: SigningKeySet = {}
        self._asked_s: float | None = None
        self._generation = 0

    @property
    def generation(self) -> int:
        """Counts the sets there have been."""
        return self._generation

    def find(self, key_id: str | None) -> SigningKey:
        """Return a key, of a set that is not too old unless the issuer was asked just now."""
        if self._is_older_than(_MAX_AGE_S):
            raise UnknownSigningKeyError("the key set has to be fetched")
        return _find(self._keys, key_id)

    def refresh(self) -> None:
        """Ask the issuer."""
        with self._lock:
            if not self._is_older_than(_FETCH_AGAIN_AFTER_S):
                return
            self._asked_s = self._now()
            try:
                self._keys = parse_keys(json.loads(self._fetch(self._url)))
            except (OSError, HTTPException, ValueError) as error:
                place = without_user_info(self._url)
                _LOGGER.warning(
                    "the key set at %s could not be fetched: %s", place, type(error).__name__
                )
                return
            self._generation += 1

    def _is_older_than(self, seconds: float) -> bool:
        return self._asked_s is None or self._now() - self._asked_s >= seconds


def open_signing_keys(place: str) -> SigningKeys:
    """Return the keys of a file or a URL.

    Raises
    ------
    ValueError
        The file is no key set, or the URL is not safe.
    """
    return KeysOfIssuer(place) if "://" in place else KeysInFile(Path(place))


def _load_keys(path: Path) -> SigningKeySet:
    try:
        return parse_keys(json.loads(path.read_bytes()))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _fetch(url: str) -> bytes:
    with urlopen(url, timeout=_FETCH_TIMEOUT_S) as answer:  # noqa: S310 - checked by the caller
        body: bytes = answer.read(_MAX_BYTES + 1)
    if len(body) > _MAX_BYTES:
        raise ValueError(f"it is longer than {_MAX_BYTES} bytes")
    return body
