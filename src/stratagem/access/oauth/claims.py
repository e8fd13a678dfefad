"""From the claims of a checked token to who holds it, and what they may do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from stratagem import limits
from stratagem.access.identity import Identity
from stratagem.access.oauth.settings import OAuthSettings
from stratagem.access.scopes import check_scopes, narrowed
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
        raise Unauthenticated("Your token does not say whose it is.", reason="subject")
    scopes = scopes_from(claims)
    # Two holders never share a name in the log, however long theirs are.
    mark = hashlib.sha256(f"{settings.issuer}\x1f{subject}".encode()).hexdigest()
    shown = "".join(filter(str.isprintable, subject))
    room = limits.ACTOR_CHARS_MAX - len("oauth:") - 13
    expires = claims.get("exp")
    return Identity(
        f"oauth:{mark}",
        f"oauth:{shown[:room]}#{mark[:12]}",
        {name: narrowed(scopes, "admin") for name in _workspaces(claims, settings, home)},
        (int(expires) + limits.OAUTH_LEEWAY_SECONDS) * _SECOND
        if isinstance(expires, int | float)
        else None,
    )


def scopes_from(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes of a token that mean something here; others are somebody else's."""
    given: list[Any] = []
    for name in ("scope", "scp"):
        value = claims.get(name)
        given += (
            value.split() if isinstance(value, str) else value if isinstance(value, list) else []
        )
    return frozenset(_known(each for each in given if isinstance(each, str)))


def _known(given: Iterable[str]) -> Iterable[str]:
    for each in given:
        # Some issuers put the audience before it: api://stratagem/memory:read.
        scope = each.rpartition("/")[2]
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
