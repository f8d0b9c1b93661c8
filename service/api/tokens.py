"""Bearer tokens: signed by somebody we know, for us, now; and what they allow (RFC 7519)."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import jwt
from cachetools import LRUCache
from pydantic import ValidationError

from service.api.callers import Caller, Rights
from service.api.errors import UnauthenticatedError
from service.catalog.errors import PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.api.signing_keys import SigningKeys

_LEEWAY_S = 30
_REFUSED = "the bearer token is not accepted"
"""By how much clocks may differ."""
_MAX_KNOWN = 4096
_MAX_TOKEN_BYTES = 16 << 10


class _Known(NamedTuple):
    """A token that was verified, and until when with which keys it is good."""

    caller: Caller
    generation: int
    from_s: float
    until_s: float


class TokenCheck:
    """Tells who sends a token; belongs to the event loop.

    Verifying a signature takes as long as a search: what was verified is kept while it is good.

    Parameters
    ----------
    keys
        The keys that sign.
    audience, issuer
        What tokens must name.
    claim
        The one that holds the rights.
    now
        The time, in seconds since 1970.
    """

    def __init__(
        self,
        keys: SigningKeys,
        *,
        audience: str,
        issuer: str,
        claim: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._audience = audience
        self._issuer = issuer
        self._claim = claim
        self._now = now
        self._known: LRUCache[bytes, _Known] = LRUCache(_MAX_KNOWN)

    def caller_of(self, token: bytes) -> Caller:
        """Return who sends a token.

        Raises
        ------
        UnknownSigningKeyError
            It may be good, but the key has to be looked for: see ``refresh``.
        UnauthenticatedError
            It is not good.
        PermissionDeniedError
            It is good, and says nothing about rights here.
        """
        if len(token) > _MAX_TOKEN_BYTES:
            raise UnauthenticatedError("the bearer token is too long")
        name = hashlib.sha256(token).digest()
        known = self._known.get(name)
        if known is not None and self._is_good(known):
            return known.caller
        generation = self._keys.generation
        claims = self._verified(token)
        from_s, until_s = _times_of(claims)
        caller = self._to_caller(claims)
        self._known[name] = _Known(caller, generation, from_s, until_s)
        return caller

    def refresh(self) -> None:
        """Look for new keys; may wait, so not for the event loop."""
        self._keys.refresh()

    def _is_good(self, known: _Known) -> bool:
        is_now = known.from_s <= self._now() < known.until_s
        return is_now and known.generation == self._keys.generation

    def _verified(self, token: bytes) -> dict[str, Any]:
        try:
            key = self._keys.find(jwt.get_unverified_header(token).get("kid"))
            return jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "aud", "iss"]},
            )
        except jwt.InvalidSignatureError as error:
            raise UnauthenticatedError(f"{_REFUSED}: it is signed otherwise") from error
        except (jwt.DecodeError, ValueError) as error:  # whose texts tell of the library's insides
            raise UnauthenticatedError(f"{_REFUSED}: it is no JWT") from error
        except jwt.PyJWTError as error:
            raise UnauthenticatedError(f"{_REFUSED}: {error}") from error

    def _to_caller(self, claims: Mapping[str, object]) -> Caller:
        given = claims.get(self._claim)
        if given is None:
            raise PermissionDeniedError(f'the bearer token has no claim "{self._claim}"')
        try:
            rights = Rights.model_validate(given)
        except ValidationError as error:
            mistake = error.errors(include_input=False, include_url=False)[0]
            raise PermissionDeniedError(
                f'the claim "{self._claim}" of the bearer token is not as it should be:'
                f" {mistake['msg']}"
            ) from error
        return Caller.of(str(claims.get("sub", "token without subject")), rights)


def _times_of(claims: Mapping[str, Any]) -> tuple[float, float]:
    """Return from when until when a token is good, in seconds since 1970."""
    try:
        return float(claims.get("nbf", 0.0)) - _LEEWAY_S, float(claims["exp"]) + _LEEWAY_S
    except OverflowError as error:
        raise UnauthenticatedError(f"{_REFUSED}: exp, nbf are too large") from error
