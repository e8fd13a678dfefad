"""An issuer of tokens on loopback: its metadata, its keys, and tokens that are right or forged."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.surfaces.serving import Service, as_json

AUDIENCE = "https://stratagem.example/mcp"
Key = Any


def wall_clock() -> int:
    return int(time.time())  # noqa: TID251 -- what the library compares with is the real clock


class Issuer:
    """Signs tokens; `keys` are those it shows."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.url = service.url("/tenant")
        self.private: dict[str, Key] = {}
        self.keys: list[dict[str, Any]] = []
        self.add("first")
        service.answers["/.well-known/oauth-authorization-server/tenant"] = lambda _said: as_json(
            {"issuer": self.url, "jwks_uri": service.url("/keys")}
        )
        service.answers["/keys"] = lambda _said: as_json({"keys": self.keys})

    def add(self, name: str, kind: str = "RSA") -> None:
        made: Key
        if kind == "RSA":
            made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            shown = json.loads(RSAAlgorithm.to_jwk(made.public_key()))
        elif kind == "EC":
            made = ec.generate_private_key(ec.SECP256R1())
            shown = json.loads(ECAlgorithm.to_jwk(made.public_key()))
        else:
            made = ed25519.Ed25519PrivateKey.generate()
            shown = json.loads(OKPAlgorithm.to_jwk(made.public_key()))
        self.private[name] = made
        self.keys.append({**shown, "kid": name, "use": "sig"})

    def public_text(self, name: str) -> bytes:
        key = self.private[name].public_key()
        text: bytes = key.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return text

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = wall_clock()
        given = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "alice",
            "iat": now,
            "exp": now + 300,
            "scope": "openid memory:write",
            **changes,
        }
        return {name: value for name, value in given.items() if value is not None}

    def token(
        self, key: str = "first", algorithm: str = "RS256", headers: Any = None, **changes: Any
    ) -> str:
        return jwt.encode(
            self.claims(**changes),
            self.private[key],
            algorithm=algorithm,
            headers={"kid": key, **(headers or {})},
        )
