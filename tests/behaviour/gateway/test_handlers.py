"""What runs a tool: functions, webhooks, documents, code, pipelines and other servers.

One of each kind, from registering to its result; what each does in detail is tried in `unit`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import forkserver
from tests.behaviour.conftest import Call, Opener
from tests.behaviour.gateway.workshop import Gateway
from tests.manifest import proves
from tests.surfaces.serving import Service, as_json
from tests.unit.gateway.handlers.upstream.servers import SERVER


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture
def calling(opened: Opener, service: Service) -> Call:
    """Calls operations of a database whose tools may reach the service."""
    return opened(allow_hosts=(service.host,))


def register(call: Call, name: str, handler: dict[str, Any], **more: Any) -> None:
    definition = {"description": "A tool.", "inputSchema": {"type": "object"}, **more}
    call("tool_register", name=name, handler=handler, **definition)


@proves("handler:function")
def test_a_function_is_a_tool_by_its_hints_and_its_docstring(gateway: Gateway) -> None:
    def shout(text: str, times: int = 1) -> dict[str, str]:
        """Say it louder."""
        return {"said": text.upper() * times}

    gateway.database.gateway.add(shout)

    shown = gateway.ask("tool_get", toolId="shout")["tool"]
    assert shown["description"] == "Say it louder."
    assert shown["inputSchema"]["required"] == ["text"]
    assert gateway.run("shout", {"text": "hi", "times": 2})["result"] == {"said": "HIHI"}


@proves("handler:webhook")
def test_a_webhook_is_sent_the_arguments_and_gives_what_is_answered(
    calling: Call, service: Service
) -> None:
    service.answers["/orders/7"] = lambda said: as_json({"got": json.loads(said["body"])})
    url = service.url("/orders/{id}")
    register(calling, "order", {"type": "webhook", "url": url, "method": "POST"})

    answer = calling("tool_execute", toolName="order", arguments={"id": 7, "count": 2})

    assert answer["result"] == {"got": {"count": 2}}


@proves("handler:webhook", "call:output")
def test_a_result_that_was_not_promised_is_a_failure(calling: Call, service: Service) -> None:
    service.answers["/"] = lambda _said: as_json({"sum": "three"})
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    handler = {"type": "webhook", "url": service.url("/")}
    register(calling, "wrong", handler, outputSchema=schema)

    error = calling.failure("tool_execute", toolName="wrong")

    assert error["error"] == "execution_error"
    assert "outputSchema" in error["message"]


@proves("secret:sent")
def test_a_granted_secret_reaches_its_host_and_nobody_else(
    calling: Call, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRATAGEM_SECRET_API_KEY", "swordfish-1234567890")
    service.answers["/"] = lambda said: as_json({"sent": said["headers"]["authorization"]})
    handler = {
        "type": "webhook",
        "url": service.url("/"),
        "headers": {"Authorization": "Bearer ${API_KEY}"},
    }
    register(calling, "keyed", handler)
    denied = calling.failure("tool_execute", toolName="keyed")
    calling("secret_grant", tool="keyed", name="API_KEY", origin=service.host)

    answer = calling("tool_execute", toolName="keyed")

    assert denied["error"] == "permission_denied"
    assert service.received[-1]["headers"]["authorization"] == "Bearer swordfish-1234567890"
    assert "swordfish" not in str(answer)
    assert "swordfish" not in str(calling("tool_executions")["executions"])


@proves("handler:openapi")
def test_the_operations_of_a_document_are_tools(calling: Call, service: Service) -> None:
    service.answers["/pets/rex"] = lambda said: as_json({"name": "Rex", "query": said["query"]})
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "full", "in": "query", "schema": {"type": "boolean"}},
    ]
    answers = {"200": {"description": "A pet."}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": service.url("")}],
        "paths": {
            "/pets/{id}": {
                "get": {"operationId": "getPet", "parameters": parameters, "responses": answers}
            }
        },
    }

    added = calling("openapi_add", prefix="pets", document=document)
    answer = calling("tool_execute", toolName="pets_getPet", arguments={"id": "rex", "full": True})
    again = calling("openapi_add", prefix="pets_", document=document)
    removed = calling("server_remove", name="pets")

    assert (added["source"], added["registered"]) == ("pets", ["pets_getPet"])
    assert answer["result"] == {"name": "Rex", "query": "full=true"}
    assert (again["source"], again["registered"]) == ("pets", [])
    assert removed == {"name": "pets", "removed": ["pets_getPet"]}


@proves("handler:code", "call:sandbox")
def test_code_runs_in_the_sandbox_with_its_arguments(call: Call) -> None:
    code = "result = {'double': 2 * inputs['n']}"
    register(call, "double", {"type": "code", "language": "python", "code": code})

    answer = call("tool_execute", toolName="double", arguments={"n": 21})

    assert answer["result"] == {"double": 42}


@proves("handler:operation")
def test_every_operation_is_a_tool_too(call: Call) -> None:
    call("tool_execute", toolName="strata_store", arguments={"key": "city", "value": "Oslo"})

    assert call.value("city") == "Oslo"


@proves("upstream:calls")
def test_the_tools_of_another_server_are_listed_called_and_removed(gateway: Gateway) -> None:
    server = {"name": "up", "command": forkserver.program(), "args": [SERVER]}

    added = gateway.database.call("server_add", server)
    answer = gateway.run("add", {"a": 1, "b": 2})
    qualified = gateway.run("up.add", {"a": 1, "b": 2})
    gateway.database.call("server_remove", {"name": "up"})

    assert "add" in added["registered"]
    assert answer["result"] == qualified["result"] == {"total": 3}
    assert gateway.fails("up.add", {"a": 1, "b": 2}).code == "tool_not_found"
    assert gateway.fails("add", {"a": 1, "b": 2}).code == "tool_not_found"


@proves("handler:function", "call:errors")
def test_what_a_function_raises_is_told_by_type_and_message(gateway: Gateway) -> None:
    def fails() -> None:
        """Fail."""
        raise ValueError("no luck")

    gateway.database.gateway.add(fails)

    assert gateway.fails("fails").message == "ValueError: no luck"


@proves("builtin:there")
@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ("calculator", {"expression": "15% of 80"}, {"result": 12}),
        ("date_time", {"operation": "add", "value": "2024-02-28", "duration": "2 days"}, {}),
        (
            "data_transformer",
            {"data": [3, 1, 2], "operations": [{"op": "sort"}]},
            {"result": [1, 2, 3]},
        ),
        ("file_converter", {"from": "json", "to": "yaml", "content": '{"a": 1}'}, {}),
        ("code_executor", {"language": "python", "code": "result = 6 * 7"}, {"result": 42}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_built_in_tools_are_there_from_the_start(
    call: Call, tool: str, arguments: dict[str, Any], result: dict[str, Any]
) -> None:
    answer = call("tool_execute", toolName=tool, arguments=arguments)

    assert result.items() <= answer["result"].items()


@proves("outbound:guard")
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/", "http://[::1]/"]
)
def test_no_tool_reaches_a_private_address_unasked(call: Call, url: str) -> None:
    error = call.failure("tool_execute", toolName="api_caller", arguments={"url": url})

    assert error["error"] == "permission_denied"


@proves("call:large-result")
def test_a_result_beyond_its_budget_is_a_failure(calling: Call, service: Service) -> None:
    service.answers["/"] = lambda _said: as_json({"text": "x" * 5_000})
    handler = {"type": "webhook", "url": service.url("/")}
    register(calling, "large", handler, configuration={"maxOutput": 1_024})

    error = calling.failure("tool_execute", toolName="large")

    assert error["details"]["limit"] == 1_024
