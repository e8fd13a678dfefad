"""Webhooks against a real server: what it receives, and what its answers become."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from stratagem.errors import (
    ExecutionFailed,
    ExecutionTimeout,
    MissingRequired,
    PermissionDenied,
    ValidationFailed,
)
from stratagem.gateway.handlers.webhook import WebhookRunner
from stratagem.gateway.outbound import Outbound
from tests.unit.gateway.attempts import Granted, attempt
from tests.unit.gateway.outbound.serving import (
    Received,
    Reply,
    Server,
    guarded,
    json_reply,
    serve,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serve(lambda _: json_reply({"data": {"items": [1, 2]}})) as served:
        yield served


@pytest.fixture
async def runner() -> AsyncIterator[WebhookRunner]:
    async with guarded("127.0.0.1:*") as outbound:
        yield WebhookRunner(outbound)


def handler(server: Server, path: str = "/", **fields: Any) -> dict[str, Any]:
    return {"type": "webhook", "url": server.url(path), **fields}


async def received(
    runner: WebhookRunner,
    server: Server,
    arguments: Mapping[str, Any],
    path: str = "/",
    secrets: Granted | None = None,
    **fields: Any,
) -> Received:
    registered = handler(server, path, **fields)
    runner.check(registered)
    await runner.run(registered, attempt(arguments, secrets=secrets))
    return server.received[-1]


async def test_arguments_are_posted_as_json(runner: WebhookRunner, server: Server) -> None:
    arguments = {"text": "é", "count": 2, "nested": {"a": [None, True]}}

    got = await received(runner, server, arguments)

    assert got.method == "POST"
    assert got.json == arguments
    assert got.headers["content-type"] == "application/json"
    assert got.headers["idempotency-key"] == "key-1"


async def test_arguments_of_a_get_go_into_the_query(runner: WebhookRunner, server: Server) -> None:
    arguments = {"q": "a b&c=d", "tags": ["x", "y"], "flag": True, "none": None, "o": {"a": 1}}

    got = await received(runner, server, arguments, "/search?fixed=1", method="get")

    assert got.target == (
        "/search?fixed=1&q=a%20b%26c%3Dd&tags=x&tags=y&flag=true&o=%7B%22a%22%3A1%7D"
    )
    assert got.body == b""
    assert "idempotency-key" not in got.headers


async def test_places_in_the_address_are_filled_and_used_up(
    runner: WebhookRunner, server: Server
) -> None:
    arguments = {"id": "a/b?c#d é", "limit": 5, "rest": 1}

    got = await received(runner, server, arguments, "/users/{id}/x?limit={limit}&sort={sort}")

    assert got.target == "/users/a%2Fb%3Fc%23d%20%C3%A9/x?limit=5"
    assert got.json == {"rest": 1}


@pytest.mark.parametrize("value", ["..", ".", ""])
async def test_an_argument_does_not_climb_out_of_its_path(
    runner: WebhookRunner, server: Server, value: str
) -> None:
    with pytest.raises(ValidationFailed):
        await received(runner, server, {"id": value}, "/users/{id}/secrets")

    assert server.received == []


async def test_what_is_missing_in_a_path_is_named(runner: WebhookRunner, server: Server) -> None:
    with pytest.raises(MissingRequired) as caught:
        await received(runner, server, {}, "/users/{id}")

    assert caught.value.details["field"] == "id"


async def test_a_body_template_takes_values_of_any_type(
    runner: WebhookRunner, server: Server
) -> None:
    template = {
        "event": "created",
        "count": "{{count}}",
        "tags": ["{{tag}}", "{{missing}}"],
        "text": "Hello {{ name }}, {{count}}",
        "gone": "{{missing}}",
        "all": "{{*}}",
    }
    arguments = {"count": 3, "tag": {"a": 1}, "name": "Ada {{count}}"}

    got = await received(runner, server, arguments, body=template)

    assert got.json == {
        "event": "created",
        "count": 3,
        "tags": [{"a": 1}],
        "text": "Hello Ada {{count}}, 3",
        "all": arguments,
    }


async def test_a_form_is_sent_where_the_header_says_so(
    runner: WebhookRunner, server: Server
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    got = await received(runner, server, {"a": "1 2", "b": ["x", "y"]}, headers=headers)

    assert got.body == b"a=1+2&b=x&b=y"


async def test_secrets_are_resolved_for_the_host_of_the_address(
    runner: WebhookRunner, server: Server
) -> None:
    place = f"http://127.0.0.1:{server.port}"
    secrets = Granted(place, TOKEN="t0ken/{name}", KEY="k&y")

    got = await received(
        runner,
        server,
        {"name": "Ada"},
        "/x?key=${KEY}",
        secrets,
        headers={"Authorization": "Bearer ${TOKEN}", "X-Name": "{name}"},
        query={"again": "${KEY}"},
        body={"token": "${TOKEN}"},
    )

    assert got.headers["authorization"] == "Bearer t0ken/{name}"
    assert got.headers["x-name"] == "Ada"
    assert got.target == "/x?key=k%26y&again=k%26y"
    assert got.json == {"token": "t0ken/{name}"}
    assert {origin for _, origin in secrets.asked} == {place}


async def test_a_secret_in_an_argument_is_plain_text(runner: WebhookRunner, server: Server) -> None:
    secrets = Granted(f"http://127.0.0.1:{server.port}", TOKEN="t0ken")

    got = await received(
        runner,
        server,
        {"a": "${TOKEN}", "b": "${TOKEN}", "c": "${TOKEN}"},
        "/{a}",
        secrets,
        headers={"X-B": "{b}"},
        body={"c": "{{c}}"},
    )

    assert secrets.asked == []
    assert (got.target, got.headers["x-b"], got.json) == (
        "/%24%7BTOKEN%7D",
        "${TOKEN}",
        {"c": "${TOKEN}"},
    )


async def test_a_secret_for_another_host_is_not_sent(runner: WebhookRunner, server: Server) -> None:
    with pytest.raises(PermissionDenied):
        await received(
            runner, server, {}, "/", Granted("http://api.test:80", T="t"), headers={"X": "${T}"}
        )

    assert server.received == []


async def test_nothing_of_the_caller_is_passed_on(runner: WebhookRunner, server: Server) -> None:
    got = await received(runner, server, {"a": 1})

    assert set(got.headers) == {
        "host",
        "accept",
        "accept-encoding",
        "user-agent",
        "content-type",
        "content-length",
        "idempotency-key",
    }
    assert "somebody" not in str(got.headers)


async def test_an_argument_cannot_add_a_header(runner: WebhookRunner, server: Server) -> None:
    with pytest.raises(ValidationFailed):
        await received(runner, server, {"a": "x\r\nX-Evil: 1"}, headers={"X-A": "{a}"})

    assert server.received == []


async def test_the_host_is_fixed_unless_the_handler_says_otherwise(
    runner: WebhookRunner, server: Server
) -> None:
    url = f"http://{{host}}:{server.port}/"
    with pytest.raises(ValidationFailed, match="host from an argument"):
        runner.check({"type": "webhook", "url": url})

    free = {"type": "webhook", "url": url, "hostFromArguments": True}
    assert runner.check(free) == []
    await runner.run(free, attempt({"host": "127.0.0.1"}))
    for host in ("evil.test/", "a@b", "x:1", "169.254.169.254"):
        with pytest.raises((ValidationFailed, PermissionDenied)):
            await runner.run(free, attempt({"host": host}))

    assert len(server.received) == 1


async def test_a_part_of_the_answer_is_picked(runner: WebhookRunner, server: Server) -> None:
    picking = handler(server, response={"path": "$.data.items[1]"})

    assert await runner.run(picking, attempt({})) == 2

    picking = handler(server, response={"path": "$.other"})
    with pytest.raises(ExecutionFailed, match=r"nothing at \$.other"):
        await runner.run(picking, attempt({}))


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        ((200, {"content-type": "application/problem+json"}, b'{"a": 1}'), {"a": 1}),
        ((200, {}, b"[1]"), [1]),
        ((200, {}, b"plain"), {"text": "plain", "content_type": "text/plain"}),
        ((204, {}, b""), None),
        (
            (200, {"content-type": "text/html; charset=iso-8859-1"}, b"caf\xe9"),
            {"text": "café", "content_type": "text/html"},
        ),
        (
            (200, {"content-type": "image/png"}, b"\x89PNG"),
            {"base64": "iVBORw==", "content_type": "image/png", "bytes": 4},
        ),
        (
            (200, {}, b"\xff\x00"),
            {"base64": "/wA=", "content_type": "application/octet-stream", "bytes": 2},
        ),
        (
            (200, {"content-type": "text/plain"}, b'{"a": 1}'),
            {"text": '{"a": 1}', "content_type": "text/plain"},
        ),
    ],
)
async def test_any_answer_becomes_json(runner: WebhookRunner, reply: Reply, result: Any) -> None:
    async with serve(lambda _: reply) as server:
        assert await runner.run(handler(server), attempt({})) == result


async def test_broken_json_is_a_failure(runner: WebhookRunner) -> None:
    reply = (200, {"content-type": "application/json"}, b'{"a": ')
    async with serve(lambda _: reply) as server:
        with pytest.raises(ExecutionFailed, match="not JSON") as caught:
            await runner.run(handler(server), attempt({}))

    assert caught.value.details["body"] == '{"a": '


@pytest.mark.parametrize(
    ("status", "headers", "safe", "retry_after"),
    [
        (400, {}, False, None),
        (404, {"retry-after": "soon"}, False, None),
        (500, {"retry-after": "3"}, False, 3.0),
        (429, {"retry-after": "7"}, True, 7.0),
        (
            503,
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            True,
            30.0,
        ),
        (418, {}, False, None),
        (799, {}, False, None),
        (304, {}, False, None),
    ],
)
async def test_another_status_is_a_failure_with_what_the_service_said(
    runner: WebhookRunner,
    status: int,
    headers: dict[str, str],
    safe: bool,
    retry_after: float | None,
) -> None:
    body = b"" if status == 304 else b"because " + b"x" * 10_000
    async with serve(lambda _: (status, headers, body)) as server:
        with pytest.raises(ExecutionFailed) as caught:
            await runner.run(handler(server), attempt({}))

    error = caught.value
    assert (error.safe, error.details["status"]) == (safe, status)
    assert error.details.get("retry_after") == retry_after
    assert len(error.details["body"]) <= 2_001


async def test_a_service_that_is_not_there_is_safe_to_try_again(runner: WebhookRunner) -> None:
    async with serve(lambda _: b"") as server:
        gone = handler(server)
    with pytest.raises(ExecutionFailed) as caught:
        await runner.run(gone, attempt({}))

    assert caught.value.safe


async def test_the_shorter_of_both_times_holds(runner: WebhookRunner) -> None:
    async with serve(lambda _: json_reply(1), delay=5) as server:
        with pytest.raises(ExecutionTimeout):
            await runner.run(handler(server, timeout=50), attempt({}))
        with pytest.raises(ExecutionTimeout):
            await runner.run(handler(server), attempt({}, seconds=0.05))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": 5}, "handler.url"),
        ({"url": "ftp://example.com/"}, "handler.url"),
        ({"url": "https://${HOST}/"}, "handler.url"),
        ({"url": "https://a:b@example.com/"}, "handler.url"),
        ({"url": "https://example.com:99999/"}, "handler.url"),
        ({"method": "CONNECT"}, "handler.method"),
        ({"method": 1}, "handler.method"),
        ({"headers": {"Host": "x"}}, "handler.headers.Host"),
        ({"headers": {"X": 1}}, "handler.headers"),
        ({"headers": []}, "handler.headers"),
        ({"query": []}, "handler.query"),
        ({"query": {"a": {}}}, "handler.query.a"),
        ({"method": "GET", "body": {}}, "handler.body"),
        ({"timeout": 0}, "handler.timeout"),
        ({"timeout": True}, "handler.timeout"),
        ({"response": {"path": "$..x"}}, "handler.response.path"),
        ({"response": "x"}, "handler.response"),
    ],
)
def test_a_handler_that_cannot_work_is_refused(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        WebhookRunner(Outbound()).check({"url": "https://example.com/", **fields})

    assert caught.value.details["field"] == field


def test_a_handler_that_may_not_work_is_warned_about() -> None:
    warnings = WebhookRunner(Outbound()).check(
        {"url": "http://127.0.0.1/", "headers": {"X": "${A}"}, "metod": "GET"}
    )

    assert len(warnings) == 3
    assert "metod" in warnings[0]
    assert "loopback" in warnings[1]
    assert "not https" in warnings[2]
