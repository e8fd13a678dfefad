"""Scopes: what a token allows, as `TOOLSET:RIGHT`.

`memory:read` is one toolset, `*:read` all of them. `write` includes `read`, `admin` includes
everything. A role is the most that a token may do in a workspace, whatever its scopes say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

from stratagem.deferred_modules import difflib
from stratagem.errors import ValidationFailed
from stratagem.operation import Caller, Right

__all__ = [
    "PRESETS",
    "ROLES",
    "TOOLSETS",
    "Role",
    "check_role",
    "check_scopes",
    "intersect_with_role",
]

Role = Literal["reader", "member", "admin"]

# What scopes can name. `registry` is the gateway's; `admin` is what no other toolset has.
TOOLSETS: Final = ("memory", "debugging", "knowledge", "gateway", "admin")
RIGHTS: Final[tuple[Right, ...]] = get_args(Right)

ROLES: Final[Mapping[str, frozenset[str]]] = {
    "reader": frozenset({"*:read"}),
    "member": frozenset({"*:write", "*:execute"}),
    "admin": frozenset({"*:admin"}),
}
PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "read-only": ("*:read",),
    "full": ("*:write", "*:execute"),
    "admin": ("*:admin",),
}


def check_scopes(given: Iterable[str]) -> frozenset[str]:
    """Return scopes as they are kept.

    Raises:
        ValidationFailed: One of them is no scope, or there is none.
    """
    scopes = frozenset(each.strip() for each in given if each.strip())
    if not scopes:
        raise ValidationFailed(
            "A token needs at least one scope.", field="scopes", hint="Such as memory:read."
        )
    for scope in sorted(scopes):
        toolset, _, right = scope.partition(":")
        if toolset not in {*TOOLSETS, "*"} or right not in RIGHTS:
            raise _no_scope(scope)
    return scopes


def check_role(given: str) -> Role:
    """Return a role.

    Raises:
        ValidationFailed: There is no such role.
    """
    if given not in ROLES:
        raise ValidationFailed(
            f"There is no role {given[:100]!r}.",
            field="role",
            allowed=list(ROLES),
            hint=f"Choose one of: {', '.join(ROLES)}.",
        )
    role: Role = given  # type: ignore[assignment]
    return role


def intersect_with_role(scopes: Iterable[str], role: str) -> frozenset[str]:
    """Return what scopes and role allow together."""
    one = Caller(scopes=frozenset(scopes))
    other = Caller(scopes=ROLES[role])
    return frozenset(
        f"{toolset}:{right}"
        for toolset in TOOLSETS
        for right in RIGHTS
        if one.may(toolset, right) and other.may(toolset, right)
    )


def _no_scope(scope: str) -> ValidationFailed:
    every = [f"{toolset}:{right}" for toolset in (*TOOLSETS, "*") for right in RIGHTS]
    near = difflib.get_close_matches(scope, every, n=2)
    return ValidationFailed(
        f"There is no scope {scope!r}.",
        field="scopes",
        hint=f"Did you mean {' or '.join(near)}?"
        if near
        else f"TOOLSET:RIGHT, of {', '.join(TOOLSETS)} or *, and {', '.join(RIGHTS)}.",
    )
