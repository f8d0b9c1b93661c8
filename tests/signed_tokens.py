"""Keys that sign tokens, and tokens signed by them."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE, ISSUER = "lance-serve", "https://issuer.example"

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()

KEYS: dict[str, tuple[Any, Any]] = {
    "RS256": (RSA_KEY, RSAAlgorithm),
    "PS384": (RSA_KEY, RSAAlgorithm),
    "ES256": (EC_KEY, ECAlgorithm),
    "EdDSA": (ED_KEY, OKPAlgorithm),
}
"""By algorithm: the private key, and what writes its public one."""


def public_key(algorithm: str, key_id: str | None, **members: Any) -> dict[str, Any]:
    private, form = KEYS[algorithm]
    entry: dict[str, Any] = json.loads(form.to_jwk(private.public_key()))
    return entry | ({} if key_id is None else {"kid": key_id}) | members


def key_set(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(entries)}).encode()


def token(
    *, algorithm: str = "ES256", key_id: str | None = "k1", key: Any = None, **claims: Any
) -> str:
    """Return a token that is good; ``claims`` win, those that are None are left out."""
    now_s = int(time.time())
    good = {"aud": AUDIENCE, "iss": ISSUER, "exp": now_s + 300, "sub": "somebody", "lance": {}}
    payload = {name: value for name, value in (good | claims).items() if value is not None}
    headers = {} if key_id is None else {"kid": key_id}
    signing = KEYS[algorithm][0] if key is None else key
    return jwt.encode(payload, signing, algorithm=algorithm, headers=headers)
