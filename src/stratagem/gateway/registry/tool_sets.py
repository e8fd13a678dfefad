"""Named sets of tools: what a token may call, and what a virtual server shows.

A set allows tools by name or pattern and denies some of them. It may be limited to tools that
change nothing, ask a person to approve calls, and bound how much each caller calls. Sets hold for a
whole workspace, whatever branch a call is about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import PermissionDenied
from stratagem.gateway import names
from stratagem.gateway.registry.answers import BudgetDocument, ToolSetDocument
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["ToolSet", "is_read_only", "read_tool_sets", "refuse_limited", "sets_naming"]

# Built-in tools that reach further than their arguments.
_REACHING: Final = frozenset({"api_caller", "code_executor"})
_SAFE_METHODS: Final = frozenset({"get", "head", "options"})


@dataclass(frozen=True, slots=True)
class ToolSet:
    """See the module. `document` is the set as it is kept."""

    name: str
    document: ToolSetDocument

    def has(self, tool: Tool) -> bool:
        """Whether a tool is in the set: under another name, a built-in one only if it is itself."""
        allowed = [tool.name]
        if tool.handler.get("type") == "builtin":
            allowed.append(str(tool.handler.get("name")))
        return all(_matches(each, self.document["allow"]) for each in allowed) and not any(
            _matches(each, self.document["deny"]) for each in _names_of(tool)
        )

    def allows_name(self, name: str) -> bool:
        """Whether a tool of a name may be in the set, as far as its name tells."""
        return _matches(name, self.document["allow"]) and not _matches(name, self.document["deny"])

    def asks(self, tool: Tool) -> bool:
        """Whether a person approves each call of a tool."""
        return any(_matches(each, self.document["approve"]) for each in _names_of(tool))

    @property
    def read_only(self) -> bool:
        """Whether only tools that change nothing may be called."""
        return self.document["readOnly"]

    @property
    def budget(self) -> BudgetDocument | None:
        """How much each caller may call."""
        return self.document["budget"]


def is_read_only(tool: Tool) -> bool:
    """Whether a tool changes nothing, by what is known of it.

    Of an operation its own check says so with the arguments; the steps of a pipeline are calls of
    their own. Tools of other servers are believed what they declare.
    """
    handler: Mapping[str, Any] = tool.handler
    kind = handler.get("type")
    if kind in {"operation", "pipeline"}:
        return True
    if kind == "builtin":
        declared = (tool.content.get("annotations") or {}).get("readOnlyHint", True)
        return handler.get("name") not in _REACHING and declared is True
    if kind in {"webhook", "openapi"} and "method" in handler:
        return str(handler["method"]).casefold() in _SAFE_METHODS
    annotations = tool.content.get("annotations") or {}
    return annotations.get("readOnlyHint") is True


def refuse_limited(caller: Caller, what: str) -> None:
    """Refuse that a caller who may call some tools only makes further ones.

    Raises:
        PermissionDenied: The caller is limited to sets of tools.
    """
    if caller.tool_sets is not None:
        raise PermissionDenied(
            f"Your token is limited to sets of tools, so it does not allow {what}.",
            reason="toolset",
            toolsets=sorted(caller.tool_sets),
            hint="Have it done with a token that is not limited to sets of tools; an "
            "administrator can then add the tool to your set.",
        )


def read_tool_sets(
    foundation: Foundation, reader: Reader, wanted: Collection[str] | None = None
) -> dict[str, ToolSet]:
    """Return the sets there are, or those of some names; one that is not there is left out."""
    view = foundation.views.view(reader, "default")
    if wanted is not None:
        versions = [
            (name, reader.records.current(view.lineage, names.TOOL_SETS, name)) for name in wanted
        ]
    else:
        page, _next = reader.records.page(view.lineage, names.TOOL_SETS)
        versions = [*page]
    return {
        name: ToolSet(name, orjson.loads(version.payload))
        for name, version in versions
        if version is not None and version.payload is not None
    }


def sets_naming(foundation: Foundation, tool: str) -> list[str]:
    """Return the sets that a tool may be in, as far as its name tells."""
    found = read_tool_sets(foundation, foundation.store.reader())
    return [name for name, each in found.items() if each.allows_name(tool)]


def _names_of(tool: Tool) -> tuple[str, ...]:
    """Return the names that a tool is known by: its own, and that of what its handler runs."""
    handler = tool.handler
    if handler.get("type") == "builtin":
        return tool.name, str(handler.get("name"))
    if handler.get("type") == "mcp":
        return tool.name, f"{handler.get('server')}.{handler.get('tool')}"
    return (tool.name,)


def _matches(tool: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
