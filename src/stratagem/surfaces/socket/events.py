"""The events: which operation answers which, and under which name the answer goes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.surfaces.serving.responses import with_gateway_codes

__all__ = ["EVENTS", "NOTIFICATIONS", "SocketEvent"]

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
class SocketEvent:
    """An event from a client. `shape` makes what goes out of the operation's answer."""

    operation: str
    reply: str
    shape: Callable[[Answer], Any] = _same


EVENTS: Final[Mapping[str, SocketEvent]] = {
    "mcp:tools:list": SocketEvent("tools_list", "mcp:tools:list:response", _tools),
    "mcp:tool:get": SocketEvent("tool_get", "mcp:tool:details", _tool),
    "mcp:tool:update": SocketEvent("tool_update", "mcp:tool:update:response"),
    "mcp:tool:remove": SocketEvent("tool_remove", "mcp:tool:remove:response"),
    "mcp:tools:batch": SocketEvent("tools_batch", "mcp:tools:batch:results", _results),
    "mcp:tools:pipeline": SocketEvent(
        "tools_pipeline", "mcp:tools:pipeline:complete", with_gateway_codes
    ),
    "mcp:work:list": SocketEvent("work_list", "mcp:work:list:response"),
    "mcp:tool:executions": SocketEvent("tool_executions", "mcp:tool:executions:response"),
    "mcp:cache:configure": SocketEvent("cache_configure", "mcp:cache:configured"),
    "mcp:cache:clear": SocketEvent("cache_clear", "mcp:cache:cleared"),
    "mcp:resources:list": SocketEvent("resources_list", "mcp:resources:list:response"),
    "mcp:resource:get": SocketEvent("resource_get", "mcp:resource:details"),
    "mcp:resource:create": SocketEvent("resource_create", "mcp:resource:created"),
    "mcp:resource:update": SocketEvent("resource_update", "mcp:resource:updated"),
    "mcp:provider:configure": SocketEvent("provider_configure", "mcp:provider:configured"),
}

# What happens in the gateway, and the event that every client is sent.
NOTIFICATIONS: Final[Mapping[str, str]] = {
    "available": "mcp:tool:available",
    "unavailable": "mcp:tool:unavailable",
    "updated": "mcp:tool:updated",
}
