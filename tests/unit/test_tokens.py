"""Bearer tokens: whom we believe, and what we let them do."""

from __future__ import annotations

import math
import time
from http.client import IncompleteRead, InvalidURL
from typing import Any

import jwt
import pytest

from service.api.errors import UnauthenticatedError, UnknownSigningKeyError
from service.api.signing_keys import KeysOfIssuer, SigningKeySet, parse_keys
from service.api.tokens import TokenCheck
from service.catalog.errors import PermissionDeniedError
from tests.signed_tokens import AUDIENCE, ISSUER, KEYS, key_set, public_key, token

NOW = time.time()


class Keys:
    """Keys that a test may change."""

    def __init__(self, keys: SigningKeySet) -> None:
        self.keys = keys
        self.generation = 0

    def find(self, key_id: str | None) -> Any:
        if key_id not in self.keys:
            raise UnknownSigningKeyError("not known")
        return self.keys[key_id]

    def refresh(self) -> None:
        raise AssertionError


class Clock:
    now_s = NOW

    def __call__(self) -> float:
        return self.now_s


def keys_of(*algorithms: str) -> SigningKeySet:
    return parse_keys({"keys": [public_key(each, "k1") for each in algorithms]})


def check_of(keys: Any, now: Any = time.time) -> TokenCheck:
    return TokenCheck(keys, audience=AUDIENCE, issuer=ISSUER, claim="lance", now=now)


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_signed_token_tells_who_asks_and_what_they_may(algorithm: str) -> None:
    check = check_of(Keys(keys_of(algorithm)))
    rights = {"databases": ["one"], "tables": ["a$*"], "write": True}
    given = token(algorithm=algorithm, lance=rights).encode()
    for _ in range(2):  # verified, then known
        caller = check.caller_of(given)
        assert (caller.name, caller.databases, caller.beginnings, caller.can_write) == (
            "somebody",
            frozenset({"one"}),
            ("a$",),
            True,
        )


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1_000_000_000},
        {"exp": None},
        {"nbf": 4_000_000_000},
        {"aud": "another"},
        {"aud": None},
        {"iss": "https://another.example"},
        {"iss": None},
        {"exp": "soon"},
        {"exp": 10**400},
        {"exp": math.inf},
        {"exp": math.nan},
        {"nbf": -(10**400)},
        {"iat": 10**400},
        {"sub": 7},
    ],
    ids=repr,
)
def test_a_token_for_another_time_or_place_is_refused(claims: Any) -> None:
    with pytest.raises(UnauthenticatedError, match="not accepted"):
        check_of(Keys(keys_of("ES256"))).caller_of(token(**claims).encode())


def test_a_token_that_is_signed_otherwise_is_refused() -> None:
    check = check_of(Keys(keys_of("RS256")))
    unsigned = jwt.encode({"aud": AUDIENCE, "iss": ISSUER}, "", algorithm="none")
    good = token(algorithm="RS256")
    tampered = good[:-8] + ("A" * 8)
    head, body, _ = good.split(".")
    for wrong in (unsigned, tampered, f"{head}.{body}.", "a.b.c", "..", token(algorithm="ES256")):
        with pytest.raises(UnauthenticatedError):
            check.caller_of(wrong.encode())


def test_a_public_key_is_no_secret_that_signs() -> None:
    """The oldest trick: HMAC with the public key as the secret."""
    public = KEYS["RS256"][0].public_key()
    secret = public.public_numbers().n.to_bytes(256, "big")
    payload = {"aud": AUDIENCE, "iss": ISSUER, "exp": int(time.time()) + 99, "lance": {}}
    forged = jwt.encode(payload, secret, algorithm="HS256", headers={"kid": "k1"})
    with pytest.raises(UnauthenticatedError):
        check_of(Keys(keys_of("RS256"))).caller_of(forged.encode())


@pytest.mark.parametrize("claim", [None, [], "all", {"table": ["t"]}, {"tables": "t"}], ids=repr)
def test_a_token_without_rights_here_is_refused_as_such(claim: Any) -> None:
    with pytest.raises(PermissionDeniedError, match="lance"):
        check_of(Keys(keys_of("ES256"))).caller_of(token(lance=claim).encode())


def test_a_known_token_ends_in_time_and_with_its_key() -> None:
    keys, clock, now_s = Keys(keys_of("ES256")), Clock(), time.time()
    clock.now_s = now_s
    check = check_of(keys, clock)
    given = token(exp=int(now_s) + 300).encode()
    assert check.caller_of(given).name == "somebody"
    keys.keys, keys.generation = {}, 1
    with pytest.raises(UnknownSigningKeyError):
        check.caller_of(given)
    keys.keys, keys.generation = keys_of("ES256"), 2
    assert check.caller_of(given).name == "somebody"
    ended = token(exp=int(now_s) + 1).encode()
    assert check.caller_of(ended).name == "somebody"
    clock.now_s = now_s + 3600
    # what was known is good no more: the library, on the true clock, still takes it
    keys.keys, keys.generation = {}, 2
    with pytest.raises(UnknownSigningKeyError):
        check.caller_of(ended)


def test_a_token_that_is_too_long_is_not_looked_at() -> None:
    with pytest.raises(UnauthenticatedError, match="too long"):
        check_of(Keys({})).caller_of(b"a" * 20_000)


def test_only_keys_that_verify_signatures_are_taken() -> None:
    found = parse_keys(
        {
            "keys": [
                public_key("ES256", "good"),
                public_key("RS256", "for encryption", use="enc"),
                public_key("RS256", "one algorithm", alg="PS256", use="sig"),
                {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"},
                {"kty": "EC", "kid": "broken"},
                "nonsense",
            ]
        }
    )
    assert set(found) == {"good", "one algorithm"}
    assert found["one algorithm"].algorithms == ("PS256",)


@pytest.mark.parametrize("wrong", [[], {}, {"keys": {}}, 7, None], ids=repr)
def test_what_is_no_key_set_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="key set"):
        parse_keys(wrong)


class Issuer:
    """Shows a key set, or fails."""

    def __init__(self) -> None:
        self.body = key_set(public_key("ES256", "k1"))
        self.asked = 0

    def __call__(self, url: str) -> bytes:
        self.asked += 1
        if self.body == b"":
            raise OSError("away")
        return self.body


def test_the_issuer_is_asked_when_a_key_is_not_known_and_not_too_often() -> None:
    issuer, clock = Issuer(), Clock()
    keys = KeysOfIssuer("https://issuer.example/jwks", fetch=issuer, now=clock)
    with pytest.raises(UnknownSigningKeyError):
        keys.find("k1")
    keys.refresh()
    assert keys.find("k1").algorithms[0] == "ES256"
    assert keys.find(None) is keys.find("k1")
    for _ in range(3):
        with pytest.raises(UnknownSigningKeyError):
            keys.find("k2")
        keys.refresh()
    assert (issuer.asked, keys.generation) == (1, 1)
    issuer.body = key_set(public_key("RS256", "k2"))
    clock.now_s += 11
    keys.refresh()
    assert keys.find("k2").algorithms[0] == "RS256"
    with pytest.raises(UnknownSigningKeyError):
        keys.find("k1")


def test_keys_stay_good_while_the_issuer_is_away() -> None:
    issuer, clock = Issuer(), Clock()
    keys = KeysOfIssuer("https://issuer.example/jwks", fetch=issuer, now=clock)
    keys.refresh()
    for body in (b"", b"no JSON", b"{}"):
        issuer.body = body
        clock.now_s += 301
        with pytest.raises(UnknownSigningKeyError):
            keys.find("k1")
        keys.refresh()
        assert keys.find("k1").algorithms[0] == "ES256"


@pytest.mark.parametrize(
    "fault", [OSError, ValueError, IncompleteRead(b"half"), InvalidURL("port: 'letters@host'")]
)
def test_an_issuer_that_answers_wrongly_is_logged_without_passwords(
    fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fetch(url: str) -> bytes:
        raise fault

    KeysOfIssuer("https://me:letters@issuer.example/jwks", fetch=fetch).refresh()
    assert "issuer.example/jwks could not be fetched" in caplog.text
    assert "letters" not in caplog.text


@pytest.mark.parametrize("url", ["http://issuer.example/jwks", "ftp://x/y", "file:///etc/passwd"])
def test_keys_are_not_fetched_over_what_others_can_change(url: str) -> None:
    with pytest.raises(ValueError, match="https") as caught:
        KeysOfIssuer(url)
    assert url not in str(caught.value)
