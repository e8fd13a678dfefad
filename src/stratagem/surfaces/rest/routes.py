"""The routes: which operation answers what, and where its arguments stand in a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stratagem.operations import TABLE

__all__ = ["ROUTES", "Route", "all_routes"]

_PAGE: Final = ("limit", "offset")
_VIEW: Final = ("branch", "asOf")


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `query` are the parameters that may stand in the query.

    `enveloped`: answers and errors have the gateway's form. `flat`: an answer of a built-in tool
    is the tool's own, without what was recorded of the call.
    """

    method: str
    path: str
    operation: str
    query: tuple[str, ...] = ()
    status: int = 200
    enveloped: bool = True
    body: bool = False
    flat: bool = False


# Named as in the gateway's document; `{toolId}` takes a name as well.
ROUTES: Final = (
    Route(
        "GET",
        "/api/mcp/tools",
        "tools_list",
        ("category", "provider", "capabilities", "search", "tags", "status", *_PAGE, *_VIEW),
    ),
    Route("POST", "/api/mcp/tools", "tool_register", status=201, body=True),
    Route("GET", "/api/mcp/tools/{toolId}", "tool_get", _VIEW),
    Route("PUT", "/api/mcp/tools/{toolId}", "tool_update", body=True),
    Route("DELETE", "/api/mcp/tools/{toolId}", "tool_remove", ("branch", "requestId")),
    Route("POST", "/api/mcp/tools/{toolName}/execute", "tool_execute", body=True, flat=True),
    Route(
        "GET",
        "/api/mcp/tools/{toolId}/executions",
        "tool_executions",
        ("agentId", "from", "to", "status", "limit", "cursor", "branch"),
    ),
    Route("GET", "/api/mcp/tools/{toolName}/help", "tool_help", ("branch",)),
    Route(
        "GET",
        "/api/mcp/executions",
        "tool_executions",
        ("agentId", "from", "to", "status", "limit", "cursor", "branch"),
    ),
    Route("DELETE", "/api/mcp/executions", "executions_erase", ("days",)),
    Route("GET", "/api/mcp/executions/{executionId}", "tool_executions", ("branch",)),
    Route("POST", "/api/mcp/batch", "tools_batch", body=True),
    Route("POST", "/api/mcp/pipelines", "tools_pipeline", body=True),
    Route(
        "GET", "/api/mcp/resources", "resources_list", ("type", "tags", "search", *_PAGE, *_VIEW)
    ),
    Route("POST", "/api/mcp/resources", "resource_create", status=201, body=True),
    Route("GET", "/api/mcp/resources/{resourceId}", "resource_get", ("variables", *_VIEW)),
    Route("PUT", "/api/mcp/resources/{resourceId}", "resource_update", body=True),
    Route("DELETE", "/api/mcp/resources/{resourceId}", "resource_remove", ("branch", "requestId")),
    Route("GET", "/api/mcp/resources/{resourceId}/versions", "resource_versions", _VIEW),
    Route("GET", "/api/mcp/servers", "servers_list"),
    Route("POST", "/api/mcp/servers", "server_add", status=201, body=True),
    Route("POST", "/api/mcp/servers/{name}/refresh", "server_refresh", body=True),
    Route("DELETE", "/api/mcp/servers/{name}", "server_remove"),
    Route("POST", "/api/mcp/openapi", "openapi_add", status=201, body=True),
    Route("GET", "/api/mcp/providers", "providers_list", ("branch",)),
    Route("PUT", "/api/mcp/providers/{provider}", "provider_configure", body=True),
    Route("GET", "/api/mcp/providers/{provider}/tools", "provider_tools", ("tools", "branch")),
    Route("POST", "/api/mcp/providers/{provider}/calls", "provider_call", body=True),
    Route(
        "GET",
        "/api/auto-correction/status",
        "auto_correction_status",
        ("timeRange", "includeMetrics", "includeActiveCorrections", *_VIEW),
    ),
    Route(
        "GET",
        "/api/auto-correction/analytics",
        "auto_correction_insights",
        (
            "timeRange",
            "includePatterns",
            "includeAgentBreakdown",
            "includeToolBreakdown",
            "includeFailures",
            "minPatternUsage",
            *_VIEW,
        ),
    ),
    Route("PUT", "/api/mcp/cache", "cache_configure", body=True),
    Route("DELETE", "/api/mcp/cache", "cache_clear", ("toolId",)),
    Route("GET", "/api/mcp/secrets", "secrets_list"),
    Route("POST", "/api/mcp/secrets", "secret_grant", status=201, body=True),
    Route("DELETE", "/api/mcp/secrets/{tool}/{name}", "secret_withdraw"),
)


def all_routes() -> tuple[Route, ...]:
    """Return the documented routes, and one for each other operation: POST /api/TOOLSET/NAME."""
    return ROUTES + tuple(
        Route("POST", f"/api/{each.toolset}/{each.name}", each.name, enveloped=False, body=True)
        for each in TABLE.values()
    )
