"""What a tool requires before it is called: rights of its caller, and things that must be there.

`permissions` are scopes such as `memory:read`, which the caller needs besides, or
`internet_access`, which the handler must have. `resources` are names of resources of the registry,
or of secrets that were granted to the tool. Requirements that could not be enforced are refused
when a tool is registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from stratagem.engine.lineage import View
from stratagem.errors import PermissionDenied, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.secret_grants import effective_state, grants_of
from stratagem.operation import Caller, Right
from stratagem.storage.contract import Reader

__all__ = ["check_callers_rights", "check_requirements", "find_missing", "named_resources"]

INTERNET: Final = "internet_access"
SANDBOX: Final = "sandbox"
_TOOLSETS: Final = frozenset({"memory", "debugging", "knowledge", "gateway", "admin"})
_RIGHTS: Final = frozenset({"read", "write", "execute", "admin"})


def check_requirements(content: Mapping[str, Any]) -> None:
    """Refuse requirements that nobody could enforce, or that the handler can never meet.

    Raises:
        ValidationFailed: There is such a one.
    """
    required = content.get("requirements") or {}
    for at, name in enumerate(required.get("permissions") or ()):
        field = f"requirements.permissions[{at}]"
        if name == INTERNET:
            if not _reaches_out(content):
                raise ValidationFailed(
                    f"{INTERNET} is required, but the handler has no access to the network.",
                    field=field,
                    hint="Give it permissions.network, or do not require it.",
                )
        elif not _is_scope(name):
            raise ValidationFailed(
                f"{name!r} is not a permission that can be enforced.",
                field=field,
                allowed=[INTERNET, "TOOLSET:RIGHT"],
                hint=f"Write a scope such as memory:read, or {INTERNET}.",
            )


def check_callers_rights(tool: Tool, caller: Caller) -> None:
    """Refuse a caller who lacks a scope that a tool requires.

    Raises:
        PermissionDenied: A scope is missing.
    """
    for name in tool.requirements.get("permissions") or ():
        toolset, _, right = name.partition(":")
        if right and not caller.may(toolset, cast("Right", right)):
            raise PermissionDenied(
                f"{tool.name} requires the scope {name}, which your token lacks.",
                reason="requirements",
                required=name,
                tool=tool.name,
            )


def named_resources(tool: Tool) -> list[str]:
    """Return the things that have to be there before a tool is called."""
    required: Iterable[str] = tool.requirements.get("resources") or ()
    return [name for name in required if name != SANDBOX]


def find_missing(reader: Reader, own: View, default: View, tool: Tool) -> list[str]:
    """Return which of them are not there: neither a resource nor a granted secret."""
    granted = {
        each["name"].casefold()
        for each in grants_of(reader.records, default, tool.name)
        if effective_state(each, "tool", tool.handler_fingerprint)[0] == "active"
    }
    return [
        name
        for name in named_resources(tool)
        if name.casefold() not in granted and not _is_resource(reader, own, name)
    ]


def _is_resource(reader: Reader, view: View, name: str) -> bool:
    version = reader.records.current(view.lineage, names.RESOURCES, name)
    return version is not None and version.payload is not None


def _reaches_out(content: Mapping[str, Any]) -> bool:
    handler = content["handler"]
    if handler.get("type") != "code":
        return True
    given = content.get("permissions") or handler.get("permissions") or {}
    return bool(given.get("network"))


def _is_scope(name: str) -> bool:
    toolset, _, right = name.partition(":")
    return toolset in {*_TOOLSETS, "*"} and right in _RIGHTS
