"""The events: which operation answers which, and under which name the answer goes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["EVENTS", "TOLD", "Event"]

Answer = Mapping[str, Any]


def _same(answer: Answer) -> Any:
    return answer


def _tools(answer: Answer) -> Any:
    return answer["tools"]


def _tool(answer: Answer) -> Any:
    return answer["tool"]


def _results(answer: Answer) -> Any:
    return answer["results"]


@dataclass(frozen=True, slots=True)
class Event:
    """An event from a client. `shape` makes what goes out of the operation's answer."""

    operation: str
    reply: str
    shape: Callable[[Answer], Any] = _same


EVENTS: Final[Mapping[str, Event]] = {
    "mcp:tools:list": Event("tools_list", "mcp:tools:list:response", _tools),
    "mcp:tool:get": Event("tool_get", "mcp:tool:details", _tool),
    "mcp:tool:update": Event("tool_update", "mcp:tool:update:response"),
    "mcp:tool:remove": Event("tool_remove", "mcp:tool:remove:response"),
    "mcp:tools:batch": Event("tools_batch", "mcp:tools:batch:results", _results),
    "mcp:tools:pipeline": Event("tools_pipeline", "mcp:tools:pipeline:complete"),
    "mcp:tool:executions": Event("tool_executions", "mcp:tool:executions:response"),
    "mcp:cache:configure": Event("cache_configure", "mcp:cache:configured"),
    "mcp:cache:clear": Event("cache_clear", "mcp:cache:cleared"),
    "mcp:resources:list": Event("resources_list", "mcp:resources:list:response"),
    "mcp:resource:get": Event("resource_get", "mcp:resource:details"),
    "mcp:resource:create": Event("resource_create", "mcp:resource:created"),
    "mcp:resource:update": Event("resource_update", "mcp:resource:updated"),
    "mcp:provider:configure": Event("provider_configure", "mcp:provider:configured"),
}

# What happens in the gateway, and the event by which every client is told.
TOLD: Final[Mapping[str, str]] = {
    "available": "mcp:tool:available",
    "unavailable": "mcp:tool:unavailable",
    "updated": "mcp:tool:updated",
}
