"""What goes over HTTP to a server of the handshake era that answers with streams of events."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stratagem.errors import ExecutionFailed
from stratagem.gateway.definitions.questions import answer_questions_with
from stratagem.gateway.handlers.upstream import Upstreams
from tests.unit.gateway.handlers.upstream.servers import (
    Sent,
    eventually,
    handler_of,
    run_of,
    scripted_server,
    upstreams_of,
    value_of,
)

pytestmark = pytest.mark.anyio

Answer = tuple[str, str, bytes]
EVENTS = "content-type: text/event-stream"
NOTHING: Answer = ("202 Accepted", "content-length: 0", b"")
NOT_ALLOWED: Answer = ("405 Method Not Allowed", "content-length: 0", b"")
ECHO = handler_of("up", "echo")
ECHO_TOOL = {"name": "echo", "inputSchema": {"type": "object"}}


def event(message: dict[str, Any], number: int | None = None) -> bytes:
    lines = [] if number is None else [f"id: {number}"]
    return "\n".join(
        [*lines, f"data: {json.dumps({'jsonrpc': '2.0', **message})}", "", ""]
    ).encode()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def answering(call: Callable[[Sent], Answer]) -> Callable[[Sent], Answer]:
    """Return a server that shakes hands, lists one tool, and answers calls by a function."""

    def answer(sent: Sent) -> Answer:
        message = sent.message if sent.method == "POST" else {"method": sent.method}
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            result: dict[str, Any] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
            }
            return (
                "200 OK",
                f"{EVENTS}\r\nmcp-session-id: s1",
                event({"id": number, "result": result}),
            )
        if method == "tools/list":
            return "200 OK", EVENTS, event({"id": number, "result": {"tools": [ECHO_TOOL]}})
        if method in {"tools/call", "GET", None}:
            return call(sent)
        if number is None:
            return NOTHING
        error = {"code": -32601, "message": "Method not found"}
        return "200 OK", EVENTS, event({"id": number, "error": error})

    return answer


def definition(port: int) -> dict[str, Any]:
    return {"name": "up", "transport": "http", "url": f"http://127.0.0.1:{port}/mcp"}


async def test_calls_that_are_answered_by_streams_share_one_connection() -> None:
    def call(sent: Sent) -> Answer:
        if sent.method == "GET":
            return NOT_ALLOWED
        return "200 OK", EVENTS, event({"id": sent.message["id"], "result": text("hi there")})

    async with (
        scripted_server(answering(call)) as (port, received),
        upstreams_of(definition(port)) as upstreams,
    ):
        for _ in range(5):
            await value_of(upstreams, ECHO, run_of())

    calls = [sent for sent in received if b"tools/call" in sent.body]
    assert len(calls) == 5
    assert len({sent.connection for sent in calls}) == 1
    assert {sent.headers["mcp-session-id"] for sent in calls} == {"s1"}
    assert {sent.headers["mcp-protocol-version"] for sent in calls} == {"2025-06-18"}
    assert received[-1].method == "DELETE"


async def test_a_stream_that_breaks_off_is_resumed_where_it_was() -> None:
    asked: list[int] = []

    def call(sent: Sent) -> Answer:
        if sent.method == "POST":
            asked.append(sent.message["id"])
            progress = {"progressToken": asked[-1], "progress": 1, "total": 2}
            notice = {"method": "notifications/progress", "params": progress}
            return "200 OK", EVENTS, b"retry: 10\n" + event(notice, 7)
        if sent.headers.get("last-event-id") != "7":
            return NOT_ALLOWED
        return "200 OK", EVENTS, event({"id": asked[-1], "result": text("after all")}, 8)

    told: list[float | None] = []
    run = run_of(progress=lambda done, _message: told.append(done))
    async with (
        scripted_server(answering(call)) as (port, _received),
        upstreams_of(definition(port)) as upstreams,
    ):
        result = await value_of(upstreams, ECHO, run)

    assert result == text("after all")
    assert told == [0.5]
    assert len(asked) == 1


@pytest.mark.parametrize("retry", ["0", "9" * 400])
async def test_a_server_does_not_say_that_it_is_asked_without_a_pause(
    retry: str, caplog: pytest.LogCaptureFixture
) -> None:
    def call(sent: Sent) -> Answer:
        if sent.method == "GET":
            return "200 OK", EVENTS, f"retry: {retry}\n\n".encode()
        return "200 OK", EVENTS, event({"id": sent.message["id"], "result": text("hi there")})

    async with (
        scripted_server(answering(call)) as (port, received),
        upstreams_of(definition(port)) as upstreams,
    ):
        # Each takes about a millisecond: without a pause as many are asked for a stream meanwhile.
        for _ in range(50):
            await value_of(upstreams, ECHO, run_of())

    # What a task failed by is logged when nobody holds it any more.
    gc.collect()
    assert sum(sent.method == "GET" for sent in received) <= 5
    assert not caplog.records


async def test_a_stream_that_ends_without_an_answer_and_cannot_be_resumed_is_a_failure() -> None:
    def call(sent: Sent) -> Answer:
        return NOT_ALLOWED if sent.method == "GET" else ("200 OK", EVENTS, b": nothing\n\n")

    async with (
        scripted_server(answering(call)) as (port, _received),
        upstreams_of(definition(port)) as upstreams,
    ):
        with pytest.raises(
            ExecutionFailed, match="disconnected during the call of echo: .* without a response"
        ) as failed:
            await value_of(upstreams, ECHO, run_of())

    assert not failed.value.safe


async def test_an_error_of_the_server_is_passed_on_in_its_words_whatever_its_code() -> None:
    def call(sent: Sent) -> Answer:
        if sent.method == "GET":
            return NOT_ALLOWED
        error = {"code": -32000, "message": "no paper", "data": {"tray": 2}}
        return "200 OK", EVENTS, event({"id": sent.message["id"], "error": error})

    async with (
        scripted_server(answering(call)) as (port, _received),
        upstreams_of(definition(port)) as upstreams,
    ):
        with pytest.raises(ExecutionFailed, match="refused echo: no paper") as failed:
            await value_of(upstreams, ECHO, run_of())

    assert failed.value.details["upstream_code"] == -32000


async def test_a_call_that_is_given_up_is_cancelled_by_a_message() -> None:
    begun = asyncio.Event()

    def call(sent: Sent) -> Answer:
        if sent.method == "GET":
            return NOT_ALLOWED
        begun.set()
        # Told to expect more, the client waits.
        return "200 OK", f"{EVENTS}\r\ncontent-length: 1000", b": wait\n\n"

    async with (
        scripted_server(answering(call)) as (port, received),
        upstreams_of(definition(port)) as upstreams,
    ):
        waiting = asyncio.create_task(value_of(upstreams, ECHO, run_of()))
        await begun.wait()
        waiting.cancel()
        await eventually(lambda: any(b"notifications/cancelled" in each.body for each in received))

    (asked,) = (sent.message["id"] for sent in received if b"tools/call" in sent.body)
    (told,) = (sent.message for sent in received if b"cancelled" in sent.body)
    assert told["params"]["requestId"] == asked


async def test_a_question_of_the_server_within_a_call_is_answered() -> None:
    def call(sent: Sent) -> Answer:
        if sent.method == "GET":
            return NOT_ALLOWED
        if "method" not in sent.message:
            return NOTHING
        ping = event({"id": "q1", "method": "ping"})
        return "200 OK", EVENTS, ping + event({"id": sent.message["id"], "result": text("done")})

    async with (
        scripted_server(answering(call)) as (port, received),
        upstreams_of(definition(port)) as upstreams,
    ):
        await value_of(upstreams, ECHO, run_of())
        await eventually(lambda: any(b'"q1"' in sent.body for sent in received))

    (answered,) = (sent.message for sent in received if b'"q1"' in sent.body)
    assert answered["result"] == {}


class Person:
    """Somebody who answers what is asked with a name."""

    def __init__(self, name: str) -> None:
        self.client = name
        self.capabilities: dict[str, Any] = {"elicitation": {"form": {}}}

    async def ask(self, _method: str, _params: Mapping[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": self.client}}


async def test_a_question_within_a_call_is_put_to_its_own_client_while_others_call() -> None:
    asked: dict[str, Any] = {}
    answers: dict[str, str] = {}

    def call(sent: Sent) -> Answer:
        number = sent.headers.get("last-event-id")
        if sent.method == "GET" and number is not None:
            said = answers.get(number)
            result = {"id": asked[number], "result": text(f"{said}")}
            return "200 OK", EVENTS, b"retry: 10\n\n" if said is None else event(result)
        if sent.method == "GET":
            return NOT_ALLOWED
        message = sent.message
        if "result" in message:
            answers[message["id"]] = message["result"]["content"]["name"]
            return NOTHING
        number = f"{len(asked) + 1}"
        asked[number] = message["id"]
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"message": "Who are you?", "requestedSchema": schema}
        question = {"id": number, "method": "elicitation/create", "params": params}
        return "200 OK", EVENTS, b"retry: 10\n" + event(question, int(number))

    async def ask_as(upstreams: Upstreams, name: str) -> Any:
        with answer_questions_with(Person(name)):
            return await value_of(upstreams, ECHO, run_of())

    async with (
        scripted_server(answering(call)) as (port, _received),
        upstreams_of(definition(port)) as upstreams,
    ):
        await upstreams.list_tools("up")
        said = await asyncio.gather(*(ask_as(upstreams, name) for name in ("alice", "bob")))

    assert said == [text("alice"), text("bob")]


@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
async def test_a_redirect_within_the_server_is_followed_and_no_other(status: str) -> None:
    place = "/mcp/"

    def call(sent: Sent) -> Answer:
        if sent.method == "GET":
            return NOT_ALLOWED
        if sent.message["params"]["arguments"] and not sent.headers.get("x-moved"):
            return status, f"location: {place}\r\ncontent-length: 0", b""
        return "200 OK", EVENTS, event({"id": sent.message["id"], "result": text("here")})

    async with (
        scripted_server(answering(call)) as (port, received),
        upstreams_of(definition(port)) as upstreams,
    ):
        place = "http://192.0.2.1/mcp"
        with pytest.raises(ExecutionFailed, match="192.0.2.1"):
            await value_of(upstreams, ECHO, run_of({"far": True}))
        place = f"http://127.0.0.1:{port}/mcp/"
        with pytest.raises(ExecutionFailed, match="redirect"):
            await value_of(upstreams, ECHO, run_of({"near": True}))

    near = [sent for sent in received if b"near" in sent.body]
    assert len(near) == 6
    assert all(json.loads(sent.body) == near[0].message for sent in near)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "parse"),
        (b"[]", "parse"),
        (b'{"jsonrpc": "2.0", "id": 1}', "neither a result nor an error"),
        (b'{"jsonrpc": "2.0", "id": 1, "result": 5}', "neither a result nor an error"),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_what_is_no_answer_fails_its_call_alone(kind: str, body: bytes, words: str) -> None:
    def call(sent: Sent) -> Answer:
        if sent.method == "GET":
            return NOT_ALLOWED
        if sent.message["params"]["arguments"]:
            return "200 OK", EVENTS, event({"id": sent.message["id"], "result": text("fine")})
        sent_body = body if kind == "application/json" else b"data: " + body + b"\n\n"
        return "200 OK", f"content-type: {kind}", sent_body

    async with (
        scripted_server(answering(call)) as (port, _received),
        upstreams_of(definition(port)) as upstreams,
    ):
        with pytest.raises(ExecutionFailed, match=words):
            await value_of(upstreams, ECHO, run_of())
        assert await value_of(upstreams, ECHO, run_of({"all": "well"})) == text("fine")
