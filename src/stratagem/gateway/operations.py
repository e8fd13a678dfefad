"""The operations of the gateway, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from stratagem.gateway import inputs
from stratagem.gateway.library import Library
from stratagem.gateway.service import Gateway
from stratagem.gateway.sources import Sources
from stratagem.gateway.switchboard import Switchboard
from stratagem.operation import Caller, Operation, Right, object_schema

__all__ = ["OPERATIONS"]

M = TypeVar("M", bound=BaseModel)
Answer = dict[str, Any]
Run = Callable[[Any, Any, Caller], Answer]


def _bound(run: Callable[[Gateway, M], Answer]) -> Run:
    def bound(switchboard: Switchboard, given: M, caller: Caller) -> Answer:
        return run(Gateway(switchboard, caller), given)

    return bound


def _shelved(run: Callable[[Library, M], Answer]) -> Run:
    def bound(switchboard: Switchboard, given: M, caller: Caller) -> Answer:
        return run(Library(switchboard, caller), given)

    return bound


def _sourced(
    run: Callable[[Sources, M], Awaitable[Answer]],
) -> tuple[Run, Callable[[Any, Any, Caller], Awaitable[Answer]]]:
    async def bound(switchboard: Switchboard, given: M, caller: Caller) -> Answer:
        return await run(Sources(switchboard, caller), given)

    def now(switchboard: Switchboard, given: M, caller: Caller) -> Answer:
        return switchboard.home.run(lambda: bound(switchboard, given, caller))

    return now, bound


def _waiting(
    run: Callable[[Gateway, M], Awaitable[Answer]],
) -> tuple[Run, Callable[[Any, Any, Caller], Awaitable[Answer]]]:
    """Return an operation for callers without an event loop, and for those with one."""

    async def bound(switchboard: Switchboard, given: M, caller: Caller) -> Answer:
        return await run(Gateway(switchboard, caller), given)

    def now(switchboard: Switchboard, given: M, caller: Caller) -> Answer:
        return switchboard.home.run(lambda: bound(switchboard, given, caller))

    return now, bound


def _operation(  # noqa: PLR0917 -- a row of a table
    name: str,
    title: str,
    description: str,
    takes: type[BaseModel],
    run: Run,
    says: Callable[[Mapping[str, Any]], str],
    *,
    gives: dict[str, Any],
    toolset: str = "gateway",
    run_async: Callable[[Any, Any, Caller], Awaitable[Answer]] | None = None,
    right: Right | None = None,
    reads: bool = False,
    destructive: bool = False,
) -> Operation:
    return Operation(
        name=name,
        toolset=toolset,
        title=title,
        description=description,
        input_model=takes,
        output_schema=gives,
        run=run,
        run_async=run_async,
        summarise=says,
        read_only=reads,
        destructive=destructive,
        part="switchboard",
        right=right,
    )


def _say_result(answer: Mapping[str, Any]) -> str:
    import orjson

    text = orjson.dumps(answer["result"]).decode()
    notes = answer["metadata"]
    corrected = " (arguments corrected)" if notes.get("correction") else ""
    return f"{text}\n[{answer['executionId']}, {notes['duration']:.0f} ms{corrected}]"


def _say_batch(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['toolName']}: "
        + ("ok" if each["success"] else f"{each['error']['code']} {each['error']['message']}")
        for each in answer["results"]
    ]
    return "\n".join([f"{answer['succeeded']} of {answer['total']} worked.", *lines])


def _say_pipeline(answer: Mapping[str, Any]) -> str:
    if "steps" not in answer:
        return _say_registered(answer)
    lines = [
        f"{each.get('id') or each.get('tool')}: {each.get('status', 'planned')}"
        for each in answer["steps"]
    ]
    head = "It worked." if answer.get("success", answer.get("valid")) else "It did not work."
    return "\n".join([head, *lines])


def _say_help(answer: Mapping[str, Any]) -> str:
    schema = answer["inputSchema"]
    required = set(answer["required"])
    lines = [f"{answer['toolName']}: {answer['description']}"]
    for name, each in (schema.get("properties") or {}).items():
        kind = each.get("type", "any") if isinstance(each, Mapping) else "any"
        said = each.get("description", "") if isinstance(each, Mapping) else ""
        lines.append(f"  {name} ({kind}{', required' if name in required else ''}) {said}")
    return "\n".join(lines)


def _say_registered(answer: Mapping[str, Any]) -> str:
    warnings = answer["validation"]["warnings"]
    said = f"{answer['name']} ({answer['toolId']}) is {answer['status']}."
    return " ".join([said, *warnings])


def _say_tools(answer: Mapping[str, Any]) -> str:
    lines = [f"{each['name']}: {each['description']}" for each in answer["tools"]]
    return "\n".join([f"{answer['total']} tools.", *lines])


def _say_tool(answer: Mapping[str, Any]) -> str:
    tool = answer["tool"]
    return f"{tool['name']} {tool['version']} ({tool['status']}): {tool['description']}"


def _say_removed(answer: Mapping[str, Any]) -> str:
    return f"{answer['name']} is removed."


def _say_executions(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['startedAt']} {each['tool']} {each['status']} {each['duration']:.0f} ms"
        for each in answer["executions"]
    ]
    return "\n".join(lines) or "No executions."


def _say_resource(answer: Mapping[str, Any]) -> str:
    if "rendered" in answer:
        return str(answer["rendered"])
    resource = answer["resource"]
    return f"{resource['name']} {resource['version']} ({resource['id']})"


def _say_resources(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['name']} ({each['type']}): {each['description']}" for each in answer["resources"]
    ]
    return "\n".join(lines) or "No resources."


def _say_json(answer: Mapping[str, Any]) -> str:
    import orjson

    return orjson.dumps(answer).decode()


_EXECUTE = _waiting(Gateway.execute)
_BATCH = _waiting(Gateway.batch)
_PIPELINE = _waiting(Gateway.pipeline)
_SERVER_ADD = _sourced(Sources.add_server)
_SERVER_REFRESH = _sourced(Sources.refresh_server)
_OPENAPI_ADD = _sourced(Sources.add_openapi)
_TOOL = object_schema(required=("tool",), tool="object")
_RESOURCE = object_schema(required=("resource",), resource="object")

OPERATIONS: tuple[Operation, ...] = (
    _operation(
        "tool_help",
        "Tool help",
        "How to call a registered tool: parameters, examples, how it has been doing.",
        inputs.HelpInput,
        _bound(Gateway.help),
        _say_help,
        gives=object_schema(
            required=("toolName", "inputSchema"), toolName="string", inputSchema="object"
        ),
        reads=True,
    ),
    _operation(
        "tool_execute",
        "Execute tool",
        "Call a registered tool. Arguments that do not fit its schema are corrected where only one "
        "reading is possible; otherwise the answer says what to change.",
        inputs.ExecuteInput,
        _EXECUTE[0],
        _say_result,
        gives=object_schema(
            required=("executionId", "result", "metadata"),
            executionId="string",
            result=None,
            metadata="object",
        ),
        run_async=_EXECUTE[1],
        right="execute",
    ),
    _operation(
        "tools_batch",
        "Execute batch",
        "Call several registered tools, at once or in order; each has its own result.",
        inputs.BatchInput,
        _BATCH[0],
        _say_batch,
        gives=object_schema(required=("results",), results="array", succeeded="integer"),
        run_async=_BATCH[1],
        right="execute",
    ),
    _operation(
        "tools_pipeline",
        "Execute pipeline",
        "Call tools one after another; ${{ steps.a.result.x }} refers to earlier results.",
        inputs.PipelineInput,
        _PIPELINE[0],
        _say_pipeline,
        gives=object_schema(runId="string", success="boolean", steps="array", output=None),
        run_async=_PIPELINE[1],
        right="execute",
    ),
    _operation(
        "tools_list",
        "List tools",
        "Registered tools, filtered by category, provider, capabilities, tags, status and words.",
        inputs.ListToolsInput,
        _bound(Gateway.list),
        _say_tools,
        gives=object_schema(required=("tools", "total"), tools="array", total="integer"),
        toolset="registry",
        reads=True,
    ),
    _operation(
        "tool_get",
        "Tool details",
        "Everything about one registered tool, with its statistics.",
        inputs.ToolInput,
        _bound(Gateway.get),
        _say_tool,
        gives=_TOOL,
        toolset="registry",
        reads=True,
    ),
    _operation(
        "tool_register",
        "Register tool",
        "Register a tool: its schema, and a handler that runs it.",
        inputs.RegisterInput,
        _bound(Gateway.register),
        _say_registered,
        gives=object_schema(
            required=("toolId", "status", "validation"),
            toolId="string",
            status="string",
            validation="object",
        ),
        toolset="registry",
    ),
    _operation(
        "tool_update",
        "Update tool",
        "Change a registered tool; earlier versions stay in its history.",
        inputs.UpdateInput,
        _bound(Gateway.update),
        _say_registered,
        gives=object_schema(required=("toolId", "changes"), toolId="string", changes="object"),
        toolset="registry",
    ),
    _operation(
        "tool_remove",
        "Remove tool",
        "Take a tool out of the registry; its history stays.",
        inputs.RemoveInput,
        _bound(Gateway.remove),
        _say_removed,
        gives=object_schema(required=("toolId", "removed"), toolId="string", removed="boolean"),
        toolset="registry",
        destructive=True,
    ),
    _operation(
        "tool_executions",
        "Executions",
        "What was recorded of calls, newest first, filtered by tool, agent, status and time.",
        inputs.ExecutionsInput,
        _bound(Gateway.executions),
        _say_executions,
        gives=object_schema(required=("executions",), executions="array", next="string"),
        toolset="registry",
        reads=True,
    ),
    _operation(
        "cache_configure",
        "Configure cache",
        "Change how results of cacheable tools are kept.",
        inputs.CacheInput,
        _bound(Gateway.configure_cache),
        _say_json,
        gives=object_schema(required=("enabled",), enabled="boolean"),
        toolset="registry",
        right="admin",
    ),
    _operation(
        "cache_clear",
        "Clear cache",
        "Forget kept results of one tool, or of all.",
        inputs.CacheClearInput,
        _bound(Gateway.clear_cache),
        _say_json,
        gives=object_schema(required=("cleared",), cleared="integer"),
        toolset="registry",
    ),
    _operation(
        "secret_grant",
        "Grant secret",
        "Let a tool send a secret of the server to one host.",
        inputs.GrantInput,
        _bound(Gateway.grant),
        _say_json,
        gives=object_schema(required=("granted",), granted="boolean"),
        toolset="registry",
        right="admin",
    ),
    _operation(
        "secret_withdraw",
        "Withdraw secret",
        "Take a secret away from a tool.",
        inputs.WithdrawInput,
        _bound(Gateway.withdraw),
        _say_json,
        gives=object_schema(required=("withdrawn",), withdrawn="integer"),
        toolset="registry",
        right="admin",
    ),
    _operation(
        "secrets_list",
        "List grants",
        "Which secrets were granted to which tools; never their values.",
        inputs.NothingInput,
        _bound(Gateway.grants),
        _say_json,
        gives=object_schema(required=("grants",), grants="array"),
        toolset="registry",
        right="admin",
        reads=True,
    ),
    _operation(
        "resources_list",
        "List resources",
        "Prompts, templates and data, filtered by type, tags and words.",
        inputs.ListResourcesInput,
        _shelved(Library.list),
        _say_resources,
        gives=object_schema(required=("resources",), resources="array"),
        toolset="registry",
        reads=True,
    ),
    _operation(
        "resource_get",
        "Get resource",
        "One resource; with `variables`, also rendered with them.",
        inputs.ResourceInput,
        _shelved(Library.get),
        _say_resource,
        gives=_RESOURCE,
        toolset="registry",
        reads=True,
    ),
    _operation(
        "resource_versions",
        "Resource versions",
        "The versions of a resource, newest first.",
        inputs.ResourceInput,
        _shelved(Library.versions),
        _say_json,
        gives=object_schema(required=("versions",), versions="array"),
        toolset="registry",
        reads=True,
    ),
    _operation(
        "resource_create",
        "Create resource",
        "Add a prompt, a template or data; `{{name}}` marks a variable.",
        inputs.ResourceCreateInput,
        _shelved(Library.create),
        _say_resource,
        gives=_RESOURCE,
        toolset="registry",
    ),
    _operation(
        "resource_update",
        "Update resource",
        "Change a resource; earlier versions stay in its history.",
        inputs.ResourceUpdateInput,
        _shelved(Library.update),
        _say_resource,
        gives=_RESOURCE,
        toolset="registry",
    ),
    _operation(
        "resource_remove",
        "Remove resource",
        "Take a resource out of a branch; its history stays.",
        inputs.ResourceInput,
        _shelved(Library.remove),
        _say_resource,
        gives=_RESOURCE,
        toolset="registry",
        destructive=True,
    ),
    _operation(
        "server_add",
        "Add MCP server",
        "Add an upstream MCP server, by command or address, and register its tools.",
        inputs.ServerInput,
        _SERVER_ADD[0],
        _say_json,
        gives=object_schema(required=("server", "registered"), server="string", registered="array"),
        toolset="registry",
        run_async=_SERVER_ADD[1],
        right="admin",
    ),
    _operation(
        "server_refresh",
        "Refresh MCP server",
        "List an upstream server's tools anew; with `approve`, take changed ones as they are.",
        inputs.ServerNameInput,
        _SERVER_REFRESH[0],
        _say_json,
        gives=object_schema(required=("server", "registered"), server="string", registered="array"),
        toolset="registry",
        run_async=_SERVER_REFRESH[1],
        right="admin",
    ),
    _operation(
        "server_remove",
        "Remove MCP server",
        "Forget an upstream server, and take its tools out of the registry.",
        inputs.ServerNameInput,
        lambda switchboard, given, caller: Sources(switchboard, caller).remove_server(given),
        _say_json,
        gives=object_schema(required=("name", "removed"), name="string", removed="array"),
        toolset="registry",
        right="admin",
        destructive=True,
    ),
    _operation(
        "servers_list",
        "List MCP servers",
        "The upstream MCP servers, each with its tools.",
        inputs.NothingInput,
        lambda switchboard, _given, caller: Sources(switchboard, caller).servers(),
        _say_json,
        gives=object_schema(required=("servers",), servers="array"),
        toolset="registry",
        reads=True,
    ),
    _operation(
        "openapi_add",
        "Add OpenAPI document",
        "Register each operation of an OpenAPI document as a tool.",
        inputs.OpenApiInput,
        _OPENAPI_ADD[0],
        _say_json,
        gives=object_schema(required=("registered",), registered="array", warnings="array"),
        toolset="registry",
        run_async=_OPENAPI_ADD[1],
    ),
)
