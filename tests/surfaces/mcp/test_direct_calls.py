"""Calls of tools over HTTP that are answered without the library's streams: the same in all else."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.surfaces.mcp.clients import ENVELOPE, MODERN, http_server
from tests.surfaces.serving import Service, eventually, serving

# A header that is there twice leaves a request to the library.
TWICE = [("x-twice", "1"), ("x-twice", "2")]
CALCULATION = {
    "toolName": "calculator",
    "arguments": {"expression": "2 ** 70"},
    "options": {"skipCache": True},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give a server that all tests of this module share."""
    with http_server(
        tmp_path_factory.mktemp("direct") / "memory.db", toolsets=("memory", "gateway")
    ) as address:
        yield address


def post(
    url: str, params: Any, *more: tuple[str, str], header: str = "", body: bytes | None = None
) -> httpx2.Response:
    name = params.get("name") if isinstance(params, dict) else None
    headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", header or str(name)),
        *more,
    ]
    message = {"jsonrpc": "2.0", "id": "a1", "method": "tools/call", "params": params}
    content = json.dumps(message).encode() if body is None else body
    return httpx2.post(f"{url}/mcp", content=content, headers=headers, timeout=60)


def call(name: str, arguments: Any, **meta: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "_meta": {**ENVELOPE, **meta}}


def plain(response: httpx2.Response) -> tuple[int, str, str]:
    """Return what was answered, without what differs from call to call."""
    text = json.dumps(response.json(), sort_keys=True)
    text = re.sub(r'exec_[0-9a-f]+|"duration": [0-9.]+|[0-9.]+ ms', "", text)
    return response.status_code, response.headers["content-type"], text


@pytest.mark.parametrize(
    "params",
    [
        call("strata_recall", {"key": "city"}),
        call("strata_recall", {"key": 5}),
        call("strata_recall", None),
        call("strata_recall", "city"),
        call("no_such_tool", {}),
        call("tool_execute", CALCULATION),
        call("tool_execute", {"toolName": "no_such_tool", "arguments": {}}),
        {"arguments": {}, "_meta": ENVELOPE},
        {"name": "strata_recall", "arguments": {"key": "city"}},
        {"name": "strata_recall", "_meta": {}},
        [],
    ],
)
def test_both_ways_answer_alike(url: str, params: Any) -> None:
    assert plain(post(url, params)) == plain(post(url, params, *TWICE))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b'{"jsonrpc": "2.0", "id": null}'])
def test_what_is_no_call_is_refused_alike(url: str, body: bytes) -> None:
    params = call("strata_recall", {"key": "city"})

    direct, other = (post(url, params, *more, body=body) for more in ((), TWICE))

    assert (direct.status_code, direct.text) == (other.status_code, other.text)


@pytest.mark.parametrize(
    "more", [("origin", "http://evil.example"), ("mcp-param-city", "Oslo"), ("x-more", "1")]
)
def test_headers_are_held_to_the_same_rules(url: str, more: tuple[str, str]) -> None:
    params = call("strata_recall", {"key": "city"})

    direct, other = post(url, params, more), post(url, params, more, *TWICE)

    assert (direct.status_code, direct.text) == (other.status_code, other.text)


def test_a_name_that_differs_from_its_header_is_refused(url: str) -> None:
    params = call("strata_recall", {"key": "city"})

    direct, other = (post(url, params, *more, header="other") for more in ((), TWICE))

    assert direct.status_code == 400
    assert direct.json() == other.json()


def test_who_asks_for_progress_is_answered_by_the_library(url: str) -> None:
    params = call("strata_recall", {"key": "city"}, progressToken="p")

    assert post(url, params).status_code == 200


def test_a_client_that_goes_away_stops_its_call(tmp_path: Path) -> None:
    with (
        Service() as service,
        http_server(
            tmp_path / "memory.db", toolsets=("gateway",), allow_hosts=(service.host,)
        ) as url,
    ):
        service.answers["/hang"] = lambda _said: None
        slow = {"toolName": "api_caller", "arguments": {"url": service.url("/hang")}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        body = json.dumps({**message, "params": call("tool_execute", slow)}).encode()
        place = url.removeprefix("http://")
        head = (
            f"POST /mcp HTTP/1.1\r\nhost: {place}\r\naccept: application/json, text/event-stream\r\n"
            f"content-type: application/json\r\nmcp-protocol-version: {MODERN}\r\n"
            f"mcp-method: tools/call\r\nmcp-name: tool_execute\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        host, _, port = place.partition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(head.encode() + body)
            eventually(lambda: service.count("/hang") == 1)

        assert service.hung_up.wait(20)


def test_white_space_around_a_header_is_no_part_of_it(tmp_path: Path) -> None:
    params = call("strata_recall", {"key": "city"})
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message).encode()

    with serving(tmp_path / "memory.db") as served:
        place = served.url.removeprefix("http://")
        head = (
            f"POST /mcp HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n"
            f"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
            f"mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\n"
            f"mcp-name:  strata_recall \t \r\ncontent-length: {len(body)}\r\n\r\n"
        )
        host, _, port = place.partition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(head.encode() + body)
            answer = client.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 200 ")
