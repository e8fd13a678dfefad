"""The methods of the registry and of calls answer in the types that they promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest

from stratagem import Stratagem
from stratagem.gateway.operations import OPERATIONS
from stratagem.sdk.generated.gateway import GatewayOperations
from tests import forkserver
from tests.sdk.typed import misfits
from tests.unit.gateway.handlers.upstream.servers import SERVER

Answered = Iterator[tuple[str, Any]]
ECHO = {
    "name": "echo",
    "description": "Say it again.",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "handler": {"type": "webhook", "url": "https://example.com/echo"},
}
PETS = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example"}],
    "paths": {
        "/pets": {"get": {"operationId": "listPets", "responses": {"200": {"description": "ok"}}}}
    },
}
ADD = {"tool": "calculator", "arguments": {"expression": "1 + 1"}}


def calls(gateway: Any) -> Answered:
    """Call tools in every way, and yield each method's name with its answer."""
    yield "help", gateway.help("calculator")
    yield "execute", gateway.execute("calculator", {"expression": "6 * 7"}, request_id="r1")
    yield "execute", gateway.execute("calculator", {"expression": "6 * 7"}, request_id="r1")
    yield "execute", gateway.execute("calculator", {"Expression": "6 * 7"})
    items = [{"toolName": "calculator", "arguments": {"expression": "1"}}, {"toolName": "nowhere"}]
    yield "batch", gateway.batch(items)
    yield "pipeline", gateway.pipeline(steps=[ADD])
    failing = {**ADD, "arguments": {"expression": "${{ item }}"}, "forEach": ["1", "1 / 0"]}
    yield "pipeline", gateway.pipeline(steps=[failing, ADD])
    yield "pipeline", gateway.pipeline(steps=[ADD], dry_run=True)
    yield "pipeline", gateway.pipeline(steps=[ADD], save_as="adding")
    yield "executions", gateway.executions()
    yield "erase_executions", gateway.erase_executions(0, preview=True)
    yield "erase_executions", gateway.erase_executions(0)
    yield "configure_cache", gateway.configure_cache(ttl=60, max_size="1MB")
    yield "clear_cache", gateway.clear_cache("calculator")
    started = gateway.execute("calculator", {"expression": "1"}, async_=True)
    yield "execute", started
    yield "batch", gateway.batch(items, async_=True)
    yield "pipeline", gateway.pipeline(steps=[ADD], async_=True)
    yield "work", gateway.work()
    yield "cancel", gateway.cancel("exec_nowhere")
    yield "define_toolset", gateway.define_toolset("sums", ["calc*"], budget={"calls": 9})
    yield "toolsets", gateway.toolsets()
    yield "approvals", gateway.approvals()
    yield "remove_toolset", gateway.remove_toolset("sums")
    yield "breakers", gateway.breakers()
    yield "reset_breaker", gateway.reset_breaker("calculator")


def registry(gateway: Any) -> Answered:
    """Change and read the registry of tools."""
    yield "register", gateway.register(**ECHO)
    yield "update", gateway.update("echo", tags=["a"], pricing={"call": 1})
    yield "list", gateway.list(limit=500)
    yield "get", gateway.get("echo")
    yield "get", gateway.get("calculator")
    yield "grant_secret", gateway.grant_secret("echo", "API_KEY", "https://example.com")
    yield "secrets", gateway.secrets()
    yield "withdraw_secret", gateway.withdraw_secret("echo", "API_KEY")
    yield "set_secret", gateway.set_secret("API_KEY", "s3cret")
    yield "remove_secret", gateway.remove_secret("API_KEY")
    yield "remove", gateway.remove("echo")
    yield "restore", gateway.restore("echo")
    yield "purge", gateway.purge("echo")
    yield "purge", gateway.purge("echo", confirm=True)


def resources(gateway: Any) -> Answered:
    """Change and read prompts."""
    yield (
        "create_resource",
        gateway.create_resource(type="prompt", name="greet", content="Hi {{name}}"),
    )
    yield "update_resource", gateway.update_resource("greet", tags=["a"], description="A greeting")
    yield "resources", gateway.resources()
    yield "resource", gateway.resource("greet", {"name": "Ada"})
    yield "resource_versions", gateway.resource_versions("greet")
    yield "remove_resource", gateway.remove_resource("greet")


def sources(gateway: Any) -> Answered:
    """Add and remove tools from elsewhere."""
    yield "add_openapi", gateway.add_openapi(document=PETS)
    yield "add_server", gateway.add_server("desk", command=forkserver.program(), args=[str(SERVER)])
    yield "refresh_server", gateway.refresh_server("desk")
    yield "servers", gateway.servers()
    yield "upstream", gateway.upstream()
    yield "upstream_prompt", gateway.upstream_prompt("review", arguments={"language": "Go"})
    yield "upstream_resource", gateway.upstream_resource("notes://today")
    yield "upstream_complete", gateway.upstream_complete(prompt="review", argument="language")
    yield "remove_server", gateway.remove_server("desk")


def providers(gateway: Any) -> Answered:
    """Give tools to a model provider, and answer it."""
    use = {"type": "tool_use", "id": "1", "name": "calculator", "input": {"expression": "1"}}
    yield "configure_provider", gateway.configure_provider("anthropic", {"model": "m"})
    yield "providers", gateway.providers()
    yield "provider_tools", gateway.provider_tools("anthropic", tools=["calculator"])
    yield "call_provider", gateway.call_provider("anthropic", {"content": [use]})


GROUPS = (calls, registry, resources, sources, providers)


@pytest.mark.parametrize("group", GROUPS)
def test_answers_have_the_fields_that_their_types_say(
    embedded: Stratagem, group: Callable[[Any], Answered]
) -> None:
    for method, answer in group(embedded.gateway):
        promised = get_type_hints(getattr(GatewayOperations, method))["return"]
        assert misfits(promised, answer) == [], method


def test_no_method_of_the_gateway_answers_without_a_type() -> None:
    untyped = [
        row.name
        for row in OPERATIONS
        if row.sdk is not None
        and get_type_hints(getattr(GatewayOperations, row.sdk.name))["return"]
        in (Any, dict[str, Any])
    ]

    assert untyped == []
