"""Calls over REST: executing, history, cache, batches, pipelines, and the six error codes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.rest.conftest import Register
from tests.surfaces.serving import Served, Service, as_json, eventually, serving

PIPELINE = {
    "name": "sums",
    "input": {"a": 2},
    "steps": [
        {"id": "one", "tool": "calculator", "arguments": {"expression": "${{ input.a }} + 1"}},
        {
            "id": "two",
            "tool": "calculator",
            "arguments": {"expression": "${{ steps.one.result.result }} * 10"},
        },
    ],
}


def test_a_call_has_the_documented_envelope(rest: Served, register: Register) -> None:
    name = register()["name"]

    answer = rest.execute(
        name,
        {"query": "latest AI research", "limit": 5},
        options={"timeout": 10000, "skipCache": False, "priority": "high"},
        context={"agentId": "agent-123", "channelId": "channel-456", "requestId": "req-789"},
    )

    assert answer["executionId"].startswith("exec_")
    assert answer["result"]["body"] == {"query": "latest AI research", "limit": 5}
    assert answer["metadata"]["duration"] > 0
    assert answer["metadata"]["cached"] is False
    assert answer["metadata"]["provider"] == "custom"
    record = rest.call("GET", f"/api/mcp/executions/{answer['executionId']}")["executions"][0]
    assert record["context"] == {
        "agentId": "agent-123",
        "channelId": "channel-456",
        "requestId": "req-789",
    }
    assert record["attempts"] == 1
    assert record["caller"] == "rest"


def test_the_history_has_every_filter_and_pages(
    rest: Served, service: Service, register: Register
) -> None:
    service.answers["/moody"] = lambda said: as_json({}, 500 if b"bad" in said["body"] else 200)
    name = register("/moody")["name"]
    for number in range(5):
        rest.execute(name, {"n": number}, context={"agentId": f"agent-{number % 2}"})
    rest.execute(name, {"bad": True}, 502)
    register("/echo")

    def seen(**query: Any) -> list[dict[str, Any]]:
        page = rest.call("GET", f"/api/mcp/tools/{name}/executions", **query)
        found: list[dict[str, Any]] = page["executions"]
        return found

    assert len(seen()) == 6
    assert [each["arguments"].get("n") for each in seen(status="success")] == [4, 3, 2, 1, 0]
    assert [each["error"]["code"] for each in seen(status="failed")] == ["execution_error"]
    assert seen(status="timeout") == []
    assert len(seen(agentId="agent-0")) == 3
    middle = seen(status="success")[2]["startedAt"]
    assert {each["arguments"].get("n") for each in seen(to=middle)} == {0, 1, 2}
    assert {2, 3, 4} <= {each["arguments"].get("n") for each in seen(**{"from": middle})}
    assert seen(**{"from": "2001-01-01", "to": "2001-01-02"}) == []
    first = rest.call("GET", f"/api/mcp/tools/{name}/executions", limit=4)
    second = rest.call("GET", f"/api/mcp/tools/{name}/executions", limit=4, cursor=first["next"])
    assert len({each["executionId"] for each in first["executions"] + second["executions"]}) == 6
    assert "next" not in second
    refused = rest.call("GET", "/api/mcp/executions", expected=400, cursor="9" * 5_000)
    assert refused["details"]["field"] == "cursor"
    everywhere = rest.call("GET", "/api/mcp/executions", agentId="agent-1", limit=2)
    assert [each["tool"] for each in everywhere["executions"]] == [name, name]


def test_a_large_result_is_kept_apart_and_found_with_its_execution(
    rest: Served, service: Service, register: Register
) -> None:
    service.answers["/large"] = lambda _said: as_json({"text": "x" * 100_000})
    name = register("/large")["name"]

    answer = rest.execute(name, {})

    (listed,) = rest.call("GET", f"/api/mcp/tools/{name}/executions")["executions"]
    (whole,) = rest.call("GET", f"/api/mcp/executions/{answer['executionId']}")["executions"]
    assert "result" not in listed
    assert listed["resultRef"] == answer["executionId"]
    assert whole["result"] == answer["result"]


def test_secrets_in_arguments_are_masked_in_the_record(rest: Served, register: Register) -> None:
    name = register()["name"]
    key = "sk-ant-api03-" + "a1B2" * 12

    answer = rest.execute(name, {"text": f"my key is {key}"})

    (record,) = rest.call("GET", f"/api/mcp/executions/{answer['executionId']}")["executions"]
    assert key in str(answer)
    assert key not in str(record)


def test_a_body_says_whose_results_are_cleared(rest: Served, register: Register) -> None:
    one, other = (register("/kept", configuration={"cache": True})["name"] for _ in range(2))
    for name in (one, other):
        rest.execute(name, {"q": 1})

    cleared = rest.call("DELETE", "/api/mcp/cache", {"toolId": one})
    kept = rest.execute(other, {"q": 1})
    rest.call("DELETE", "/api/mcp/cache", {"tool": one}, expected=400)

    assert cleared["cleared"] == 1
    assert kept["metadata"]["cached"]


def test_a_cacheable_tool_is_called_once(
    rest: Served, service: Service, register: Register
) -> None:
    service.answers["/slow-to-change"] = lambda _said: as_json({"at": time.monotonic()})
    name = register("/slow-to-change", configuration={"cache": True})["name"]
    plain = register("/slow-to-change")["name"]

    first = rest.execute(name, {"q": 1})
    again = rest.execute(name, {"q": 1})
    other = rest.execute(name, {"q": 2})
    fresh = rest.execute(name, {"q": 1}, options={"skipCache": True})
    rest.execute(plain, {"q": 1})
    cleared = rest.call("DELETE", "/api/mcp/cache", toolId=name)
    anew = rest.execute(name, {"q": 1})

    assert again["result"] == first["result"]
    assert [each["metadata"]["cached"] for each in (first, again, other, fresh, anew)] == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert cleared["cleared"] == 2
    figures = rest.call(
        "PUT", "/api/mcp/cache", {"ttl": 3600, "maxSize": "100MB", "strategy": "lru"}
    )
    assert figures["maxSize"] == 100 * 2**20
    assert figures["hits"] >= 1
    rest.call("PUT", "/api/mcp/cache", {"enabled": False})
    assert rest.execute(name, {"q": 1})["metadata"]["cached"] is False
    rest.call("PUT", "/api/mcp/cache", {"enabled": True})
    changed = rest.call("PUT", f"/api/mcp/tools/{name}", {"description": "New"})
    assert changed["changes"] == {"description": "New"}


def test_a_batch_has_one_result_each(rest: Served) -> None:
    calls = [
        {"toolName": "calculator", "arguments": {"expression": "1 + 1"}},
        {"toolName": "no_such_tool", "arguments": {}},
        {"toolName": "calculator", "arguments": {"expression": "1 / 0"}},
        {"toolName": "calculator", "arguments": {"expression": "2 + 2"}},
    ]

    at_once = rest.call("POST", "/api/mcp/batch", {"executions": calls, "parallel": True})
    in_order = rest.call(
        "POST", "/api/mcp/batch", {"executions": calls, "parallel": False, "stopOnError": True}
    )

    assert [each["success"] for each in at_once["results"]] == [True, False, False, True]
    assert at_once["results"][1]["error"]["code"] == "TOOL_NOT_FOUND"
    assert (at_once["succeeded"], at_once["failed"]) == (2, 2)
    assert [each["success"] for each in in_order["results"]] == [True, False]
    assert in_order["skipped"] == 2
    rest.call("POST", "/api/mcp/batch", {"executions": []}, 400)
    rest.call("POST", "/api/mcp/batch", {"executions": [calls[0]] * 101}, 400)


def test_a_pipeline_is_planned_run_and_saved_as_a_tool(rest: Served) -> None:
    plan = rest.call("POST", "/api/mcp/pipelines", {**PIPELINE, "dryRun": True})
    ran = rest.call("POST", "/api/mcp/pipelines", PIPELINE)
    saved = rest.call(
        "POST",
        "/api/mcp/pipelines",
        {"steps": PIPELINE["steps"], "saveAs": "sums_tool", "description": "Sums."},
    )
    called = rest.execute("sums_tool", {"a": 4})
    broken = rest.call(
        "POST",
        "/api/mcp/pipelines",
        {"name": "x", "steps": [{"tool": "calculator", "when": "(("}]},
        400,
    )

    assert plan["valid"] is True
    assert plan["steps"][0]["arguments"] == {"expression": "2 + 1"}
    assert ran["success"] is True
    assert ran["output"]["result"] == 30
    assert saved["name"] == "sums_tool"
    assert called["result"]["result"] == 50
    assert broken["code"] == "VALIDATION_ERROR"
    ended = rest.call("POST", "/api/mcp/pipelines", {"resume": ran["runId"]}, 400)
    assert "ended" in ended["message"]
    rest.call("POST", "/api/mcp/pipelines", {"resume": "run_none"}, 404)


def test_a_pipeline_that_fails_says_why_by_the_codes_of_its_routes(rest: Served) -> None:
    failing = {"name": "x", "steps": [{"tool": "nothing_here"}]}

    ran = rest.call("POST", "/api/mcp/pipelines", failing)
    elsewhere = rest.client.post("/api/gateway/tools_pipeline", json=failing).json()

    assert ran["error"]["code"] == "TOOL_NOT_FOUND"
    assert ran["steps"][0]["error"]["code"] == "TOOL_NOT_FOUND"
    assert elsewhere["error"]["code"] == "tool_not_found"


def test_an_empty_filter_filters_nothing(rest: Served) -> None:
    every = rest.call("GET", "/api/mcp/tools")["total"]

    assert rest.call("GET", "/api/mcp/tools?category=&provider=")["total"] == every
    assert rest.call("GET", "/api/mcp/tools?category=nothing")["total"] == 0


def test_code_that_writes_too_much_is_ended_and_what_it_wrote_is_told(rest: Served) -> None:
    code = {"language": "python", "code": "print('\\x00' * 5_000_000)"}

    ran = rest.execute("code_executor", code)["result"]

    assert ran["killed"] == "output"
    assert len(ran["stdout"]) > 1_000_000


def test_a_pipeline_goes_on_after_the_server_was_killed_in_the_middle_of_a_step(
    service: Service, tmp_path: Path
) -> None:
    database = tmp_path / "killed.db"
    service.answers["/first"] = lambda _said: as_json({"n": 1})
    service.answers["/second"] = lambda _said: None
    steps = [{"id": "a", "tool": "first"}, {"id": "b", "tool": "second"}]
    with serving(database, "--allow-host", service.host) as server:
        for path in ("/first", "/second"):
            definition = {
                "name": path[1:],
                "description": "x",
                "inputSchema": {"type": "object"},
                "handler": {"type": "webhook", "url": service.url(path)},
            }
            server.call("POST", "/api/mcp/tools", definition, 201)
        with server.sending("/api/mcp/pipelines", {"name": "p", "steps": steps}):
            eventually(lambda: service.count("/second") == 1)
            server.kill()
    service.answers["/second"] = lambda said: as_json({"got": said["path"]})

    with serving(database, "--allow-host", service.host) as server:
        run_id = _run_of(database)
        ran = server.call("POST", "/api/mcp/pipelines", {"resume": run_id})

    assert ran["success"] is True
    assert ran["output"] == {"got": "/second"}
    assert service.count("/first") == 1
    assert service.count("/second") == 2


def _run_of(database: Path) -> str:
    import stratagem

    with stratagem.open(str(database)) as db:
        begun = [
            event.key or ""
            for event in db.runtime.foundation.store.log()
            if event.kind == "PipelineStarted"
        ]
    return begun[0]


def _not_found(rest: Served, _service: Service, _register: Register) -> dict[str, Any]:
    error: dict[str, Any] = rest.execute("calculatr", {}, 404)
    assert "calculator" in error["hint"]
    return error


def _invalid(rest: Served, _service: Service, _register: Register) -> dict[str, Any]:
    error: dict[str, Any] = rest.execute("calculator", {}, 400)
    assert error["details"]["violations"]
    return error


def _failed(rest: Served, service: Service, register: Register) -> dict[str, Any]:
    service.answers["/broken"] = lambda _said: as_json({"why": "no"}, 500)
    error: dict[str, Any] = rest.execute(register("/broken")["name"], {}, 502)
    return error


def _denied(rest: Served, _service: Service, register: Register) -> dict[str, Any]:
    error: dict[str, Any] = rest.execute(register(status="disabled")["name"], {}, 403)
    return error


def _limited(rest: Served, _service: Service, register: Register) -> dict[str, Any]:
    name = register(configuration={"rateLimit": 1})["name"]
    rest.execute(name, {})
    response = rest.client.post(f"/api/mcp/tools/{name}/execute", json={})
    assert response.status_code == 429
    assert 1 <= int(response.headers["retry-after"]) <= 60
    error: dict[str, Any] = response.json()["error"]
    return error


def _timed_out(rest: Served, service: Service, register: Register) -> dict[str, Any]:
    service.answers["/hang"] = lambda _said: None
    service.hung_up.clear()
    name = register("/hang")["name"]
    called = service.count("/hang")
    error: dict[str, Any] = {}
    # On a busy machine a call may be stopped before it reaches the service.
    for milliseconds in (300, 3_000, 15_000):
        begun = time.monotonic()
        error = rest.execute(name, {}, 504, options={"timeout": milliseconds})
        assert time.monotonic() - begun < 25
        if service.count("/hang") > called:
            break
    # The work itself was stopped, not only the waiting.
    assert service.hung_up.wait(20)
    return error


@pytest.mark.parametrize(
    ("code", "provoke"),
    [
        ("TOOL_NOT_FOUND", _not_found),
        ("VALIDATION_ERROR", _invalid),
        ("EXECUTION_ERROR", _failed),
        ("PERMISSION_DENIED", _denied),
        ("RATE_LIMITED", _limited),
        ("TIMEOUT", _timed_out),
    ],
)
def test_each_error_code_is_reached(
    rest: Served, service: Service, register: Register, code: str, provoke: Any
) -> None:
    error = provoke(rest, service, register)

    assert error["code"] == code
    assert set(error) == {"code", "message", "details", "hint"}
    assert error["message"]
    assert error["hint"]


def test_a_tool_that_keeps_failing_is_left_alone(
    rest: Served, service: Service, register: Register
) -> None:
    service.answers["/down"] = lambda _said: as_json({}, 503)
    name = register("/down")["name"]
    for _time in range(5):
        rest.execute(name, {}, 502)

    error = rest.execute(name, {}, 502)

    assert error["details"]["reason"] == "circuit_open"
    assert error["details"]["retry_after"] > 0
    assert service.count("/down") == 5


def test_a_retry_happens_only_where_it_is_safe(
    rest: Served, service: Service, register: Register
) -> None:
    for path in ("/risky", "/safe"):
        service.answers[path] = lambda _said: as_json({}, 500)
    risky = register("/risky", configuration={"retries": 2})["name"]
    safe = register("/safe", configuration={"retries": 2, "idempotent": True})["name"]

    rest.execute(risky, {}, 502)
    rest.execute(safe, {}, 502)

    assert service.count("/risky") == 1
    assert service.count("/safe") == 3
    (record,) = rest.call("GET", f"/api/mcp/tools/{safe}/executions")["executions"]
    assert record["attempts"] == 3


def test_the_metrics_page_counts_what_happened(
    rest: Served, service: Service, register: Register
) -> None:
    name = register(configuration={"cache": True})["name"]
    rest.execute(name, {"x": 1})
    rest.execute(name, {"x": 1})
    rest.execute(name, [], 400)

    response = eventually(lambda: rest.client.get("/metrics"))

    assert response.headers["content-type"].startswith("text/plain; version=")
    lines = response.text.splitlines()
    assert (
        f'stratagem_tool_calls_total{{cached="true",status="success",tool="{name}"}} 1.0' in lines
    )
    assert f'stratagem_tool_duration_seconds_count{{tool="{name}"}} 2.0' in lines
    assert any(line.startswith("stratagem_cache_hits_total ") for line in lines)
    assert "stratagem_calls_running 0.0" in lines
    assert service.count("/echo") >= 1


def test_work_is_listed_cancelled_and_ended_when_its_client_goes_away(
    rest: Served, service: Service, register: Register
) -> None:
    service.answers["/hang"] = lambda _said: None
    name = register("/hang")["name"]
    begun = len(service.received)
    service.hung_up.clear()

    started = rest.execute(name, {}, **{"async": True})
    assert eventually(lambda: len(service.received) > begun)
    (work,) = rest.call("GET", "/api/mcp/work")["work"]
    cancelled = rest.call("DELETE", f"/api/mcp/work/{started['executionId']}")
    assert service.hung_up.wait(20)
    outcome = eventually(
        lambda: rest.call("GET", f"/api/mcp/work/{started['executionId']}").get("outcome")
    )
    service.hung_up.clear()
    called = service.count("/hang")
    with rest.sending(f"/api/mcp/tools/{name}/execute", {}):
        eventually(lambda: service.count("/hang") > called)

    assert work["executionId"] == started["executionId"]
    assert work["detached"]
    assert cancelled == {"executionId": started["executionId"], "cancelled": True}
    assert outcome["state"] == "failed"
    assert service.hung_up.wait(20)
    assert eventually(lambda: not rest.call("GET", "/api/mcp/work")["work"])


def test_a_pipeline_whose_client_went_away_is_found_and_resumed(
    rest: Served, service: Service, register: Register
) -> None:
    service.answers["/left"] = lambda _said: None
    service.hung_up.clear()
    steps = [{"tool": register(path)["name"], "arguments": {}} for path in ("/done", "/left")]
    with rest.sending("/api/mcp/pipelines", {"name": "p", "steps": steps}):
        eventually(lambda: service.count("/left"))
    assert service.hung_up.wait(20)
    (left,) = eventually(
        lambda: [
            each
            for each in rest.call("GET", "/api/mcp/work")["work"]
            if each["kind"] == "pipeline" and each["state"] == "lost"
        ]
    )
    service.answers["/left"] = lambda _said: as_json({"done": True})

    resumed = rest.call("POST", "/api/mcp/pipelines", {"resume": left["executionId"]})

    assert resumed["output"] == {"done": True}
    assert service.count("/done") == 1
    assert eventually(lambda: not rest.call("GET", "/api/mcp/work")["work"])
