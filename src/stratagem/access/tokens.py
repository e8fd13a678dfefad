"""Tokens: what a caller holds, and what is kept of it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import hashlib

__all__ = ["PREFIX", "Token", "digest", "new_secret"]

# So that people, and programs that look for leaked secrets, know one when they see it.
PREFIX: Final = "strat_"
_SECRET_BYTES: Final = 32
ID_BYTES: Final = 6


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token. `roles` are what its holder is in each workspace.

    Times are microseconds since 1970. `rate` is requests in a minute, `concurrency` requests at
    once; None is the server's own measure. `tool_sets` are the named sets of tools that it may
    call; None is every tool. `budget` is how much its calls of tools may come to.
    """

    id: str
    name: str
    hash: str
    scopes: frozenset[str]
    roles: Mapping[str, str] = field(default_factory=dict)
    created_at: int = 0
    expires_at: int | None = None
    revoked_at: int | None = None
    rate: int | None = None
    concurrency: int | None = None
    tool_sets: frozenset[str] | None = None
    budget: Mapping[str, Any] | None = None

    def content(self) -> dict[str, Any]:
        """Return the token as the payload of an event."""
        return {
            "id": self.id,
            "name": self.name,
            "hash": self.hash,
            "scopes": sorted(self.scopes),
            "roles": dict(self.roles),
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "revoked_at": self.revoked_at,
            "rate": self.rate,
            "concurrency": self.concurrency,
            **({} if self.tool_sets is None else {"tool_sets": sorted(self.tool_sets)}),
            **({} if self.budget is None else {"budget": dict(self.budget)}),
        }

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Token:
        """Return the token that a payload holds."""
        sets = content.get("tool_sets")
        return cls(
            **{
                **content,
                "scopes": frozenset(content["scopes"]),
                "tool_sets": None if sets is None else frozenset(sets),
            }
        )

    def state(self, now: int) -> str:
        """Say whether it can be used: active, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


def new_secret(entropy: bytes) -> str:
    """Return a token made of 32 bytes that nobody can guess."""
    assert len(entropy) == _SECRET_BYTES
    return PREFIX + base64.urlsafe_b64encode(entropy).rstrip(b"=").decode()


def digest(secret: str) -> str:
    """Return what a token is known by.

    A plain hash will do: of 256 random bits none can be tried out, unlike a password's few.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
