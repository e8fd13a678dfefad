"""From the claims of a checked token to who holds it, and what they may do."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from stratagem import limits
from stratagem.access.identity import Identity
from stratagem.access.oauth.settings import OAuthSettings
from stratagem.access.scopes import check_scopes, intersect_with_role
from stratagem.access.workspaces import check_workspace
from stratagem.errors import Unauthenticated, ValidationFailed

__all__ = ["identity_from", "scopes_from"]

_PREFIXES: Final = ("stratagem:", "stratagem.")
_SECOND: Final = 1_000_000


def identity_from(claims: Mapping[str, Any], settings: OAuthSettings, home: str) -> Identity:
    """Return who holds a token with these claims.

    Raises:
        Unauthenticated: They do not say who it is.
    """
    subject = next(
        (claims[name] for name in ("sub", "client_id", "azp") if isinstance(claims.get(name), str)),
        "",
    )
    if not subject:
        raise Unauthenticated("Your token does not name its subject (`sub`).", reason="subject")
    scopes = scopes_from(claims, settings.audiences)
    # Two holders never share a name in the log, however long theirs are.
    named = f"{settings.issuer}\x1f{subject}".encode("utf-8", "surrogatepass")
    mark = hashlib.sha256(named).hexdigest()
    shown = "".join(filter(str.isprintable, subject))
    room = limits.ACTOR_CHARS_MAX - len("oauth:") - 13
    return Identity(
        f"oauth:{mark}",
        f"oauth:{shown[:room]}#{mark[:12]}",
        {
            name: intersect_with_role(scopes, "admin")
            for name in _workspaces(claims, settings, home)
        },
        (_expiry(claims) + limits.OAUTH_LEEWAY_SECONDS) * _SECOND,
    )


def _expiry(claims: Mapping[str, Any]) -> int:
    """Return when a token ends; a text that reads like a number is none."""
    expires = claims.get("exp")
    if not isinstance(expires, int | float) or isinstance(expires, bool):
        raise Unauthenticated("Your token does not say when it expires (`exp`).", reason="expiry")
    return int(expires)


def scopes_from(claims: Mapping[str, Any], audiences: Iterable[str] = ()) -> frozenset[str]:
    """Return the scopes of a token that mean something here; others are somebody else's.

    Some issuers put the audience before each: api://stratagem/memory:read.
    """
    given: list[Any] = []
    for name in ("scope", "scp"):
        value = claims.get(name)
        given += (
            value.split() if isinstance(value, str) else value if isinstance(value, list) else []
        )
    own = {"", *(audience.rstrip("/") for audience in audiences)}
    return frozenset(_known_scopes((each for each in given if isinstance(each, str)), own))


def _known_scopes(given: Iterable[str], own: Container[str]) -> Iterable[str]:
    for each in given:
        place, _, scope = each.rpartition("/")
        if place not in own:
            continue
        for prefix in _PREFIXES:
            scope = scope.removeprefix(prefix)
        try:
            yield from check_scopes([scope])
        except ValidationFailed:
            continue


def _workspaces(claims: Mapping[str, Any], settings: OAuthSettings, home: str) -> list[str]:
    value = claims.get(settings.workspaces_claim)
    if value is None:
        return [home]
    given = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    try:
        names = [check_workspace(each) for each in given if isinstance(each, str)]
    except ValidationFailed as error:
        raise Unauthenticated(error.message, reason="workspaces") from error
    if not names:
        raise Unauthenticated("Your token opens no workspace.", reason="workspaces")
    return names
