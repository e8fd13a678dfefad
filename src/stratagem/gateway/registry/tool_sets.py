"""Named sets of tools: what a token may call, and what a virtual server shows.

A set allows tools by name or pattern and denies some of them. It may be limited to tools that
change nothing, ask a person to approve calls, and bound how much each caller calls. Sets hold for a
whole workspace, whatever branch a call is about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import orjson

from stratagem.gateway import names
from stratagem.gateway.registry.answers import BudgetDocument, ToolSetDocument
from stratagem.gateway.registry.tools import Tool
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["ToolSet", "is_read_only", "read_tool_sets"]

# Built-in tools that reach further than their arguments.
_REACHING: Final = frozenset({"api_caller", "code_executor"})
_SAFE_METHODS: Final = frozenset({"get", "head", "options"})


@dataclass(frozen=True, slots=True)
class ToolSet:
    """See the module. `document` is the set as it is kept."""

    name: str
    document: ToolSetDocument

    def has(self, tool: str) -> bool:
        """Whether a tool is in the set."""
        return _matches(tool, self.document["allow"]) and not _matches(tool, self.document["deny"])

    def asks(self, tool: str) -> bool:
        """Whether a person approves each call of a tool."""
        return _matches(tool, self.document["approve"])

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
        return handler.get("name") not in _REACHING
    if kind in {"webhook", "openapi"} and "method" in handler:
        return str(handler["method"]).casefold() in _SAFE_METHODS
    annotations = tool.content.get("annotations") or {}
    return annotations.get("readOnlyHint") is True


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


def _matches(tool: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
