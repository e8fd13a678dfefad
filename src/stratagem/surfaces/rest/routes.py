"""The routes: which operation answers what, and where its arguments stand in a request."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.operations import TABLE, find

__all__ = ["ROUTES", "Route", "all_routes", "path_parameters", "query_parameters"]

_IN_PATH: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Route:
    """One route. The parameters of its operation stand in the path, in the query or in the body.

    `without` are parameters that the route does not take. `enveloped`: answers and errors have the
    gateway's form. `flat`: an answer of a built-in tool is the tool's own, without what was
    recorded of the call.
    """

    method: str
    path: str
    operation: str
    without: tuple[str, ...] = ()
    status: int = 200
    enveloped: bool = True
    body: bool = False
    flat: bool = False


# Named as in the gateway's document; `{toolId}` takes a name as well.
ROUTES: Final = (
    Route("GET", "/api/mcp/tools", "tools_list"),
    Route("POST", "/api/mcp/tools", "tool_register", status=201, body=True),
    Route("GET", "/api/mcp/tools/{toolId}", "tool_get"),
    Route("PUT", "/api/mcp/tools/{toolId}", "tool_update", body=True),
    Route("DELETE", "/api/mcp/tools/{toolId}", "tool_remove"),
    Route("POST", "/api/mcp/tools/{toolName}/execute", "tool_execute", body=True, flat=True),
    Route("GET", "/api/mcp/tools/{toolId}/executions", "tool_executions", ("executionId",)),
    Route("GET", "/api/mcp/tools/{toolName}/help", "tool_help"),
    Route("GET", "/api/mcp/executions", "tool_executions", ("executionId",)),
    Route("DELETE", "/api/mcp/executions", "executions_erase"),
    Route(
        "GET",
        "/api/mcp/executions/{executionId}",
        "tool_executions",
        ("toolId", "agentId", "status", "from", "to", "limit", "cursor"),
    ),
    Route("GET", "/api/mcp/work", "work_list", ("executionId",)),
    Route("GET", "/api/mcp/work/{executionId}", "work_list"),
    Route("DELETE", "/api/mcp/work/{executionId}", "work_cancel"),
    Route("POST", "/api/mcp/batch", "tools_batch", body=True),
    Route("POST", "/api/mcp/pipelines", "tools_pipeline", body=True),
    Route("GET", "/api/mcp/toolsets", "toolsets_list"),
    Route("PUT", "/api/mcp/toolsets/{name}", "toolset_define", body=True),
    Route("DELETE", "/api/mcp/toolsets/{name}", "toolset_remove"),
    Route("GET", "/api/mcp/guardrails", "guardrails_list"),
    Route("PUT", "/api/mcp/guardrails/{name}", "guardrail_define", body=True),
    Route("DELETE", "/api/mcp/guardrails/{name}", "guardrail_remove"),
    Route("GET", "/api/mcp/approvals", "approvals_list"),
    Route("POST", "/api/mcp/approvals/{id}", "approval_decide", body=True),
    Route("GET", "/api/mcp/resources", "resources_list"),
    Route("POST", "/api/mcp/resources", "resource_create", status=201, body=True),
    Route("GET", "/api/mcp/resources/{resourceId}", "resource_get"),
    Route("PUT", "/api/mcp/resources/{resourceId}", "resource_update", body=True),
    Route("DELETE", "/api/mcp/resources/{resourceId}", "resource_remove"),
    Route("GET", "/api/mcp/resources/{resourceId}/versions", "resource_versions", ("variables",)),
    Route("GET", "/api/mcp/servers", "servers_list"),
    Route("POST", "/api/mcp/servers", "server_add", status=201, body=True),
    Route("POST", "/api/mcp/servers/{name}/refresh", "server_refresh", body=True),
    Route("DELETE", "/api/mcp/servers/{name}", "server_remove"),
    Route("POST", "/api/mcp/servers/{name}/sign-in", "server_sign_in", body=True),
    Route("GET", "/api/mcp/credentials", "credentials_list"),
    Route("PUT", "/api/mcp/credentials/{server}/{name}", "credential_set", body=True),
    Route("DELETE", "/api/mcp/credentials/{server}", "credential_remove"),
    Route("GET", "/api/mcp/upstream", "upstream_list"),
    Route("POST", "/api/mcp/upstream/prompts/{name}", "upstream_prompt", body=True),
    Route("GET", "/api/mcp/upstream/resource", "upstream_resource"),
    Route("POST", "/api/mcp/upstream/complete", "upstream_complete", body=True),
    Route("POST", "/api/mcp/openapi", "openapi_add", status=201, body=True),
    Route("GET", "/api/mcp/providers", "providers_list"),
    Route("PUT", "/api/mcp/providers/{provider}", "provider_configure", body=True),
    Route("GET", "/api/mcp/providers/{provider}/tools", "provider_tools"),
    Route("POST", "/api/mcp/providers/{provider}/calls", "provider_call", body=True),
    Route("GET", "/api/auto-correction/status", "auto_correction_status"),
    Route("GET", "/api/auto-correction/analytics", "auto_correction_insights"),
    Route("PUT", "/api/mcp/cache", "cache_configure", body=True),
    Route("DELETE", "/api/mcp/cache", "cache_clear"),
    Route("GET", "/api/mcp/breakers", "breakers_list"),
    Route("DELETE", "/api/mcp/breakers/{toolName}", "breaker_reset"),
    Route("GET", "/api/mcp/connections", "connections_list"),
    Route("PUT", "/api/mcp/connections/{name}", "connection_set", body=True),
    Route("DELETE", "/api/mcp/connections/{name}", "connection_remove"),
    Route("GET", "/api/mcp/secrets", "secrets_list"),
    Route("POST", "/api/mcp/secrets", "secret_grant", status=201, body=True),
    Route("PUT", "/api/mcp/secrets/{name}", "secret_set", body=True),
    Route("DELETE", "/api/mcp/secrets/{name}", "secret_remove"),
    Route("DELETE", "/api/mcp/secrets/{tool}/{name}", "secret_withdraw"),
)


def all_routes() -> tuple[Route, ...]:
    """Return the documented routes, and one for each other operation: POST /api/TOOLSET/NAME."""
    return ROUTES + tuple(
        Route("POST", f"/api/{each.toolset}/{each.name}", each.name, enveloped=False, body=True)
        for each in TABLE.values()
    )


def path_parameters(route: Route) -> list[str]:
    """Return the parameters that stand in the path of a route."""
    return _IN_PATH.findall(route.path)


@cache
def query_parameters(route: Route) -> tuple[str, ...]:
    """Return the parameters that may stand in the query of a route: none where there is a body."""
    if route.body:
        return ()
    elsewhere = {*path_parameters(route), *route.without}
    properties = find(route.operation).parameters["properties"]
    return tuple(name for name in properties if name not in elsewhere)
