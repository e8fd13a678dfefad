"""What must not hurt a server: bodies, schemas and handlers that are bad on purpose."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stratagem import limits
from tests.surfaces.rest.conftest import Register
from tests.surfaces.serving import Served, Service

CALCULATE = "/api/mcp/tools/calculator/execute"


def test_a_huge_body_is_refused_unread(rest: Served) -> None:
    def endless() -> Any:
        piece = b" " * 2**20
        for _time in range(18):
            yield piece

    announced = rest.client.post(CALCULATE, content=b"x" * (limits.REQUEST_BYTES_MAX + 1))
    streamed = rest.client.post(CALCULATE, content=endless())

    assert announced.status_code == streamed.status_code == 413
    assert announced.json()["error"]["details"]["limit"] == limits.REQUEST_BYTES_MAX


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":['])
def test_a_deep_body_is_refused_before_it_is_parsed(rest: Served, opening: str) -> None:
    for times in (100, 100_000):
        response = rest.client.post(CALCULATE, content=opening * times)
        assert response.status_code == 413, response.text[:200]


def test_brackets_in_texts_are_no_depth(rest: Served) -> None:
    answer = rest.execute(
        "data_transformer",
        {"data": "[" * 1000 + '"{' * 1000, "operations": [{"op": "pick", "path": "@"}]},
    )

    assert answer["result"]["result"].startswith("[[[")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[]", 400),
        (b'"text"', 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"arguments": {"expression": "\xed\xa0\x80"}}', 400),
        (b'{"arguments": 5}', 400),
        (b'{"arguments": {}, "options": {"timeout": -1}}', 400),
        (b'{"arguments": {}, "options": {"priority": "urgent"}}', 400),
        (b'{"arguments": {}, "nonsense": 1}', 400),
        (b'{"arguments": {"expression": 1e400}}', 400),
    ],
)
def test_what_is_no_call_is_refused(rest: Served, body: bytes, status: int) -> None:
    response = rest.client.post(CALCULATE, content=body)

    assert response.status_code == status, response.text[:500]
    assert response.json()["error"]["code"] == "VALIDATION_ERROR"


def test_an_integer_beyond_64_bits_is_refused_and_not_rounded(rest: Served) -> None:
    body = b'{"key": "account", "value": {"id": 123456789012345678901234567890}}'

    response = rest.client.post("/api/memory/strata_store", content=body)

    assert response.status_code == 400, response.text[:500]
    assert response.json()["details"] == {"field": "value", "place": "$.id"}


def test_a_handler_that_misbehaves_hurts_only_its_own_call(
    rest: Served, service: Service, register: Register
) -> None:
    service.answers["/no-json"] = lambda _said: (200, "application/json", b"{oops")
    service.answers["/flood"] = lambda _said: (200, "text/plain", b"x" * 6 * 2**20)
    service.answers["/liar"] = lambda _said: (200, "application/json", b'{"n": "seven"}')
    promise = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    names = [
        register("/no-json")["name"],
        register("/flood")["name"],
        register("/liar", outputSchema=promise)["name"],
    ]

    errors = [rest.execute(name, {}, 502) for name in names]
    fine = rest.execute("calculator", {"expression": "1 + 1"})

    assert [error["code"] for error in errors] == ["EXECUTION_ERROR"] * 3
    assert errors[2]["details"]["violations"][0]["path"] == "$.n"
    assert fine["result"]["result"] == 2


def test_a_result_over_its_budget_is_refused(
    rest: Served, service: Service, register: Register
) -> None:
    service.answers["/long"] = lambda _said: (200, "application/json", b'"' + b"x" * 5000 + b'"')
    name = register("/long", configuration={"maxOutput": 1024})["name"]

    error = rest.execute(name, {}, 502)

    assert error["details"]["limit"] == 1024


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while True: pass", "TIMEOUT"),
        ("raise ValueError('no')", "EXECUTION_ERROR"),
        ("import os; os._exit(3)", "EXECUTION_ERROR"),
        ("print('x' * 50_000_000)", "EXECUTION_ERROR"),
        ("result = object()", "EXECUTION_ERROR"),
    ],
)
def test_code_that_misbehaves_hurts_only_its_own_call(
    rest: Served, register: Register, code: str, said: str
) -> None:
    name = register()["name"]
    handler = {"type": "code", "language": "python", "code": code}
    refused = rest.call("PUT", f"/api/mcp/tools/{name}", {"handler": handler}, 403)
    assert refused["code"] == "PERMISSION_DENIED"
    rest.as_administrator("tool_update", {"toolId": name, "handler": handler})

    status, milliseconds = (504, 1_500) if said == "TIMEOUT" else (502, 60_000)
    error = rest.execute(name, {}, status, options={"timeout": milliseconds})

    assert error["code"] == said
    assert rest.execute("calculator", {"expression": "1 + 1"})["result"]["result"] == 2


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(?=(a+)+b)a", "^(([a-z])+.)+[A-Z]$"])
def test_a_catastrophic_pattern_cannot_hang_the_server(
    rest: Served, register: Register, pattern: str
) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}}
    name = register(inputSchema=schema)["name"]
    begun = time.monotonic()

    response = rest.client.post(
        f"/api/mcp/tools/{name}/execute", json={"arguments": {"text": "a" * 50_000 + "!"}}
    )

    assert response.status_code == 400
    assert time.monotonic() - begun < 30


def test_a_foreign_page_is_refused(rest: Served) -> None:
    there = rest.client.get("/api/mcp/tools", headers={"origin": "https://evil.example"})
    embedded = rest.client.get("/health", headers={"sec-fetch-site": "cross-site"})
    rebound = rest.client.get("/api/memory/strata_list", headers={"host": "evil.example"})

    for answer, code, field in (
        (there, "ORIGIN_NOT_ALLOWED", "Origin"),
        (embedded, "origin_not_allowed", "Sec-Fetch-Site"),
        (rebound, "host_not_allowed", "Host"),
    ):
        body = answer.json()
        named = body["error"] if isinstance(body["error"], dict) else body
        assert (answer.status_code, body["code"]) == (403, code)
        assert "not allowed" in body["message"]
        assert "--server-name" in body["hint"]
        assert named["details"]["field"] == field


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("PATCH", "/api/mcp/tools", "METHOD_NOT_ALLOWED"),
        ("DELETE", "/health", "method_not_allowed"),
        ("GET", "/api/memory/strata_recall", "method_not_allowed"),
        ("PUT", "/static/console.css", "method_not_allowed"),
        ("PUT", "/", "method_not_allowed"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_told_with_those_it_takes(
    rest: Served, method: str, path: str, code: str
) -> None:
    answer = rest.client.request(method, path)

    body = answer.json()
    assert (answer.status_code, body["code"]) == (405, code)
    assert answer.headers["allow"].split(", ")
    assert body["hint"] == f"Use {answer.headers['allow']}."


@pytest.mark.parametrize("number", ["9" * 5_000, "--5", "٣", "1_000"])
def test_a_number_of_a_query_is_written_in_few_plain_digits(rest: Served, number: str) -> None:
    for parameter in ("limit", "cursor"):
        answer = rest.client.get("/api/mcp/executions", params={parameter: number})

        assert answer.status_code == 400, answer.text[:300]
        assert answer.json()["error"]["details"]["field"] == parameter
