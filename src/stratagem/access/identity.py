"""Who calls a server, once that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratagem.access.scopes import intersect_with_role
from stratagem.access.tokens import Token
from stratagem.access.workspaces import check_workspace
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import MissingRequired, PermissionDenied

__all__ = ["Identity", "identity_of"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody, and what they may do where.

    `key` tells holders of tokens apart and holds no secret. `actor` is the name that events are
    written under. `rights` are the scopes in each workspace; times are microseconds. `tool_sets`
    are the sets of tools that may be called, `budget` how much.
    """

    key: str
    actor: str
    rights: Mapping[str, frozenset[str]]
    expires_at: int | None = None
    rate: int | None = None
    concurrency: int | None = None
    tool_sets: frozenset[str] | None = None
    budget: Mapping[str, Any] | None = None

    def choose(self, asked: str | None, home: str) -> str:
        """Return the workspace that a request is about.

        Raises:
            MissingRequired: There are several, and none was asked for.
            PermissionDenied: It is not one of the holder's; whether it exists stays untold.
        """
        if asked is None:
            if len(self.rights) == 1:
                return next(iter(self.rights))
            if home in self.rights:
                return home
            raise MissingRequired(
                "Your token opens several workspaces: choose one.",
                field="workspace",
                hint=f"Send X-Stratagem-Workspace: {' or '.join(sorted(self.rights))}.",
            )
        if asked not in self.rights:
            raise PermissionDenied(
                f"Your token does not open the workspace {check_workspace(asked)!r}.",
                workspace=asked,
                hint="Ask an administrator for a token that does.",
            )
        return asked

    def choose_for_page(self, asked: str | None, home: str) -> str:
        """Return the workspace that a page is about: a link names it, an address that is typed not.

        Raises:
            PermissionDenied: It is not one of the holder's.
        """
        if asked is None and home not in self.rights:
            asked = min(self.rights)
        return self.choose(asked, home)


def identity_of(token: Token) -> Identity:
    """Return who holds a token."""
    return Identity(
        f"token:{token.id}",
        f"token:{token.name}",
        {name: intersect_with_role(token.scopes, role) for name, role in token.roles.items()},
        token.expires_at,
        token.rate,
        token.concurrency,
        token.tool_sets,
        token.budget,
    )
