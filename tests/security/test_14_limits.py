"""14. Limits answer 413 or 429 and say when to come back; nobody else notices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
import socketio

from stratagem import limits
from tests.security.flood import CALLS, beside_a_flood, with_tokens
from tests.security.house import SURFACES, House, Surface, make_token, server_log, serving
from tests.surfaces.serving import Service, eventually

DEEP = "[" * 200 + "]" * 200


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    path = tmp_path_factory.mktemp("measured") / "memory.db"
    tokens = {
        "slow": make_token(path, "slow", "*:admin", rate=6),
        "narrow": make_token(path, "narrow", "*:admin", concurrency=2),
        "runner": make_token(path, "runner", "gateway:execute"),
        "listener": make_token(path, "listener", "*:admin"),
        "bystander": make_token(path, "bystander", "*:admin"),
        "other": make_token(path, "other", "*:admin"),
    }
    with Service() as service:
        service.answers["/hang"] = lambda _said: None
        with serving(path, allow_hosts=(service.host,)) as house:
            house.tokens = tokens
            handler = {"type": "webhook", "url": service.url("/hang"), "method": "POST"}
            tool = {"name": "hang", "description": "d", "inputSchema": {}, "handler": handler}
            assert house.client("other").post("/api/mcp/tools", json=tool).status_code == 201
            yield house


@pytest.mark.parametrize("path", ["/mcp", "/api/memory/strata_store", "/api/mcp/tools"])
def test_a_body_that_is_too_large_is_413(measured: House, path: str) -> None:
    body = b'{"key": "' + b"x" * limits.REQUEST_BYTES_MAX + b'"}'
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

    response = measured.client("other").post(path, content=body, headers=headers)

    assert response.status_code == 413


def test_a_message_that_is_too_large_ends_its_socket_only(measured: House) -> None:
    client, other = measured.open_socket("other"), measured.open_socket("other")

    with pytest.raises((socketio.exceptions.TimeoutError, socketio.exceptions.SocketIOError)):
        client.call("mcp:tools:list", {"x": "x" * limits.REQUEST_BYTES_MAX}, timeout=3)

    assert other.call("mcp:tools:list", {}, timeout=60)["success"]


@pytest.mark.parametrize("path", ["/api/memory/strata_store", "/api/mcp/tools"])
def test_a_body_that_is_too_deep_is_413(measured: House, path: str) -> None:
    response = measured.client("other").post(path, content=f'{{"key": "k", "value": {DEEP}}}')

    assert response.status_code == 413
    assert "64 levels" in response.text


def test_a_call_that_is_too_deep_is_refused_over_the_protocol(measured: House) -> None:
    outcome = measured.call("mcp", "other", "strata_store", {"key": "k", "value": json.loads(DEEP)})

    assert outcome.error in {"validation_error", "request_too_large"}


def test_an_event_that_is_too_deep_is_refused_by_the_same_code(measured: House) -> None:
    client = measured.open_socket("other")
    told: list[Any] = []
    client.on("mcp:error", told.append)

    answer = client.call("mcp:tools:list", {"x": json.loads(DEEP)}, timeout=60)
    over_rest = measured.client("other").post("/api/mcp/tools", content=f'{{"name": {DEEP}}}')

    assert answer["error"] == over_rest.json()["error"]
    assert answer["error"]["code"] == "REQUEST_TOO_LARGE"
    assert answer["error"]["details"]["limit"] == limits.VALUE_DEPTH_MAX
    assert [each["event"] for each in eventually(lambda: told)] == ["mcp:tools:list"]
    assert client.call("mcp:tools:list", {}, timeout=60)["success"]


@pytest.mark.parametrize(
    "message", ["2{no JSON", "2[]", f"2[{DEEP}]", '51-["mcp:tools:list",{}]', "9"]
)
def test_a_message_that_is_none_ends_its_own_socket_only(
    measured: House, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    client, other = measured.open_socket("other"), measured.open_socket("other")

    client.eio.send(message)

    eventually(lambda: not client.connected)
    assert other.call("mcp:tools:list", {}, timeout=60)["success"]
    assert [each.message for each in server_log(caplog) if each.levelname == "ERROR"] == []


def test_an_answer_is_cut_to_its_budget(measured: House) -> None:
    for number in range(30):
        given = {"key": f"long {number}", "value": "word " * 400}
        measured.call("rest", "other", "strata_store", given)

    found = measured.call("rest", "other", "strata_search", {"query": "word", "k": 30})

    assert found.answer["truncated"]
    assert len(found.text) < limits.ANSWER_CHARS_DEFAULT * 1.5


@pytest.mark.parametrize("surface", SURFACES)
def test_too_many_requests_are_told_when_to_come_back(measured: House, surface: Surface) -> None:
    errors = {measured.call(surface, "slow", "strata_status", {}).error for _ in range(8)}

    assert "rate_limited" in errors
    refused = measured.client("slow").post("/api/memory/strata_status", json={})
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert refused.json()["details"]["limit"] == 6
    assert measured.call(surface, "other", "strata_status", {}).error is None


def test_too_many_requests_at_once_are_refused(measured: House) -> None:
    def call(milliseconds: int) -> httpx2.Response:
        body = {"arguments": {}, "options": {"timeout": milliseconds}}
        return measured.client("narrow").post("/api/mcp/tools/hang/execute", json=body)

    refused: list[httpx2.Response] = []
    # On a busy machine the first of them may have ended before the last one comes.
    for milliseconds in (1_500, 6_000, 24_000):
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(call, [milliseconds] * 6))
        refused = [each for each in answers if each.status_code == 429]
        if len(refused) == 4:
            break

    assert len(refused) == 4
    assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
    assert "2 requests at once" in refused[0].text


def test_events_at_once_are_bounded_too(measured: House) -> None:
    client = measured.open_socket("narrow")
    codes: list[str] = []
    # On a busy machine the first of them may have ended before the last one comes.
    for milliseconds in (1_000, 5_000, 20_000):
        answers: list[Any] = []
        given = {"toolName": "hang", "arguments": {}, "options": {"timeout": milliseconds}}
        for _ in range(5):
            client.emit("mcp:tool:execute", given, callback=answers.append)
        eventually(lambda answers=answers: len(answers) == 5, 60)  # type: ignore[misc]
        codes = [each["error"]["code"] for each in answers]
        if codes.count("RATE_LIMITED") == 3:
            break

    assert codes.count("RATE_LIMITED") == 3


def test_nobody_stops_the_call_of_another(measured: House) -> None:
    body = {"arguments": {}, "options": {"timeout": 60_000}}
    work = measured.database.runtime().gateway.work
    cancel = "mcp:tool:cancel"

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(measured.client("other").post, "/api/mcp/tools/hang/execute", json=body)
        (execution,) = eventually(lambda: work.active)
        stranger = measured.open_socket("runner").call(
            cancel, {"executionId": execution}, timeout=60
        )
        still = list(work.active)
        own = measured.open_socket("other").call(cancel, {"executionId": execution}, timeout=60)
        ended = call.result()

    assert stranger["data"]["cancelled"] is False
    assert still == [execution]
    assert own["data"]["cancelled"] is True
    assert ended.status_code >= 400


def test_streams_and_sockets_are_bounded(measured: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOKEN_STREAMS_MAX", 2)
    held = [measured.open_socket("listener") for _ in range(2)]

    with pytest.raises(socketio.exceptions.ConnectionError):
        measured.open_socket("listener")

    assert measured.open_socket("bystander").connected
    held.pop().disconnect()

    def is_let_in() -> bool:
        try:
            return bool(measured.open_socket("listener").connected)
        except socketio.exceptions.ConnectionError:
            return False

    eventually(is_let_in)


def test_all_connections_together_are_bounded(
    measured: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SERVER_REQUESTS_MAX", 0)

    refused = measured.client("other").post("/api/memory/strata_status", json={})
    healthy = measured.client().get("/health")

    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert healthy.status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", CALLS)
def test_the_others_hardly_notice_a_flood(tmp_path: Path, kind: str) -> None:
    """The median of another token stays within one and a half times what it is alone."""
    with with_tokens(tmp_path / "memory.db") as (server, greedy):
        seen = beside_a_flood(server, greedy, kind)
    print(  # noqa: T201 -- the figures are what this is for
        f"\n{kind}: p50 alone {seen.alone:.2f} ms, beside a flood {seen.beside:.2f} ms, ratio "
        f"{seen.ratio:.2f}; health p50 {seen.health.median:.1f} ms, longest "
        f"{seen.health.longest:.0f} ms; the flood: {seen.answered}"
    )

    assert seen.failed == 0
    assert seen.ratio <= 1.5
