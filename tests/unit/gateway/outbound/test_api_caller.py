"""The built-in that calls any public API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stratagem.errors import ExecutionTimeout, PermissionDenied, ValidationFailed
from stratagem.gateway.builtin import api_caller
from stratagem.gateway.definitions import schemas
from tests.unit.gateway.attempts import attempt
from tests.unit.gateway.outbound.serving import Received, Reply, guarded, json_reply, serve

pytestmark = pytest.mark.anyio

INPUT = schemas.Schema(api_caller.TOOL["inputSchema"])
OUTPUT = schemas.Schema(api_caller.TOOL["outputSchema"])


def echo(received: Received) -> Reply:
    if received.target == "/teapot":
        return json_reply({"error": "short and stout"}, 418)
    if received.target == "/broken":
        return 200, {"content-type": "application/json"}, b"<html>"
    return json_reply([received.method, received.target, received.body.decode()])


async def called(outbound: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    assert INPUT.accepts(arguments)
    answer = await api_caller.run(arguments, attempt(arguments), outbound)
    assert OUTPUT.accepts(answer)
    return answer


async def test_a_request_is_made_and_its_answer_given() -> None:
    async with serve(echo) as server, guarded("127.0.0.1:*") as outbound:
        url = server.url("/a?x=1#part")
        got = await called(outbound, {"url": url, "query": {"q": "a b", "n": [1, 2], "no": None}})
        posted = await called(outbound, {"url": url, "method": "POST", "body": {"a": 1}})
        text = await called(outbound, {"url": url, "method": "PUT", "body": "plain"})

    assert (got["status"], got["body"]) == (200, ["GET", "/a?x=1&q=a%20b&n=1&n=2", ""])
    assert got["headers"]["content-type"] == "application/json"
    assert posted["body"] == ["POST", "/a?x=1", '{"a":1}']
    assert text["body"] == ["PUT", "/a?x=1", "plain"]
    assert server.received[0].headers.get("idempotency-key") is None
    assert server.received[1].headers["content-type"] == "application/json"
    assert server.received[1].headers["idempotency-key"] == "key-1"
    assert server.received[2].headers["content-type"].startswith("text/plain")


async def test_an_error_of_the_service_is_an_answer() -> None:
    async with serve(echo) as server, guarded("127.0.0.1:*") as outbound:
        teapot = await called(outbound, {"url": server.url("/teapot")})
        broken = await called(outbound, {"url": server.url("/broken")})

    assert (teapot["status"], teapot["body"]) == (418, {"error": "short and stout"})
    assert broken["body"] == {"text": "<html>", "content_type": "application/json"}


async def test_what_is_not_public_is_refused() -> None:
    async with serve(echo) as server, guarded() as outbound:
        with pytest.raises(PermissionDenied):
            await called(outbound, {"url": server.url()})

        assert server.connections == 0


async def test_what_cannot_be_sent_is_refused() -> None:
    async with serve(echo) as server, guarded("127.0.0.1:*") as outbound:
        url = server.url()
        for arguments in (
            {"url": "file:///etc/passwd"},
            {"url": url, "body": {}},
            {"url": url, "headers": {"Host": "inside.test"}},
        ):
            with pytest.raises(ValidationFailed):
                await called(outbound, arguments)

        assert server.connections == 0


async def test_time_is_over_when_the_caller_says() -> None:
    async with serve(echo, delay=5) as server, guarded("127.0.0.1:*") as outbound:
        with pytest.raises(ExecutionTimeout):
            await called(outbound, {"url": server.url(), "timeout": 50})


def test_the_examples_fit_the_schema() -> None:
    schemas.check(api_caller.TOOL["inputSchema"], field="inputSchema")
    schemas.check(api_caller.TOOL["outputSchema"], field="outputSchema")

    assert all(INPUT.accepts(example["input"]) for example in api_caller.TOOL["examples"])
