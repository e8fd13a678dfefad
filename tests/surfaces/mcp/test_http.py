"""A server on HTTP: sessions, who is let in, limits, starting and stopping."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client

from stratagem import limits
from stratagem.errors import ServiceUnavailable, ValidationFailed
from stratagem.surfaces.mcp import ServerSettings
from stratagem.surfaces.server import run as run_http
from tests import forkserver
from tests.surfaces.mcp.clients import (
    CLIENT,
    ENVELOPE,
    INITIALIZE,
    LEGACY,
    MODERN,
    MODES,
    Mode,
    http_server,
    server_command,
)

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
STATUS = {"name": "strata_status", "arguments": {}}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give a server that all tests of this module share."""
    with http_server(tmp_path_factory.mktemp("http") / "memory.db") as address:
        yield address


@pytest.fixture
def http(url: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=url, headers=ACCEPT, timeout=60) as client:
        yield client


@asynccontextmanager
async def connected(url: str, mode: Mode) -> AsyncIterator[Client]:
    async with Client(f"{url}/mcp", mode=mode, client_info=CLIENT) as client:
        yield client


NUMBERS = itertools.count(1)


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": next(NUMBERS), "method": method, "params": params}


def modern_headers(tool: str) -> dict[str, str]:
    return {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": tool}


def answer_of(response: httpx2.Response) -> dict[str, Any]:
    """Return the message in a response, be it JSON or the one event of a stream."""
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        (text,) = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    answer: dict[str, Any] = json.loads(text)
    return answer


def open_session(http: httpx2.Client) -> dict[str, str]:
    """Shake hands in the manner of 2025; return the headers of the session."""
    response = http.post("/mcp", json=message("initialize", **INITIALIZE))
    assert answer_of(response)["result"]["serverInfo"]["name"] == "stratagem"
    session = {
        "mcp-session-id": response.headers["mcp-session-id"],
        "mcp-protocol-version": LEGACY,
    }
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert http.post("/mcp", json=note, headers=session).status_code == 202
    return session


def call(http: httpx2.Client, session: dict[str, str], name: str, /, **arguments: Any) -> Any:
    body = message("tools/call", name=name, arguments=arguments)
    response = http.post("/mcp", json=body, headers=session)
    assert response.status_code == 200, response.text
    return answer_of(response)["result"]["structuredContent"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_works_over_http(url: str, mode: Mode) -> None:
    found: list[Any] = []

    async with connected(url, mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        await client.call_tool("strata_store", {"key": "city", "value": "Oslo"})

        async def recall() -> None:
            result = await client.call_tool("strata_recall", {"key": "city"})
            found.append(result.structured_content["value"])

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(recall)
        resource = await client.read_resource("stratagem://entries/default/city")

    assert "strata_recall" in names
    assert found == ["Oslo"] * 20
    assert "Oslo" in getattr(resource.contents[0], "text", "")


def test_a_session_has_a_branch_of_its_own(http: httpx2.Client) -> None:
    one, other = open_session(http), open_session(http)
    call(http, one, "strata_branch", action="fork", name="mine")

    call(http, one, "strata_branch", action="switch", name="mine")

    assert call(http, one, "strata_status")["branch"] == "mine"
    assert call(http, other, "strata_status")["branch"] == "default"


@pytest.mark.anyio
async def test_a_client_without_a_session_cannot_switch(url: str) -> None:
    async with connected(url, "auto") as client:
        assert client.protocol_version == MODERN
        await client.call_tool("strata_branch", {"action": "fork", "name": "elsewhere"})

        refused = await client.call_tool("strata_branch", {"action": "switch", "name": "elsewhere"})
        named = await client.call_tool(
            "strata_store", {"key": "here", "value": 1, "branch": "elsewhere"}
        )

    assert refused.is_error
    assert refused.structured_content["error"] == "switch_unavailable"
    assert "Pass `branch`" in refused.structured_content["hint"]
    assert not named.is_error


def test_a_session_that_was_made_up_is_none(http: httpx2.Client) -> None:
    made_up = {"mcp-session-id": "made-up", "mcp-protocol-version": LEGACY}
    modern = {**modern_headers("strata_status"), "mcp-session-id": "made-up"}
    body = message("tools/call", **STATUS, _meta=ENVELOPE)

    old = http.post("/mcp", json=message("tools/call", **STATUS), headers=made_up)
    new = http.post("/mcp", json=body, headers=modern)

    assert old.status_code == 404
    assert answer_of(new)["result"]["structuredContent"]["branch"] == "default"


def test_a_session_ends_when_its_client_says_so(http: httpx2.Client) -> None:
    session = open_session(http)

    ended = http.delete("/mcp", headers=session)
    after = http.post("/mcp", json=message("tools/call", **STATUS), headers=session)

    assert (ended.status_code, after.status_code) == (200, 404)


def test_the_session_used_longest_ago_makes_room_for_a_new_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SESSIONS_MAX", 2)
    with http_server(path) as url, httpx2.Client(base_url=url, headers=ACCEPT, timeout=60) as http:
        first, second = open_session(http), open_session(http)
        call(http, first, "strata_branch", action="fork", name="mine")
        call(http, first, "strata_branch", action="switch", name="mine")

        open_session(http)

        gone = http.post("/mcp", json=message("tools/call", **STATUS), headers=second)
        kept = call(http, first, "strata_status")

    assert gone.status_code == 404
    assert kept["branch"] == "mine"


@pytest.mark.parametrize("path", ["/mcp", "/health"])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:{port}"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:1"},
        {"host": "localhost:{port}.evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "https://127.0.0.1"},
        {"origin": "http://localhost:{port}.evil.example"},
        {"origin": "http://localhost:1"},
        {"origin": "null"},
    ],
    ids=str,
)
def test_foreign_hosts_and_pages_are_kept_out(
    http: httpx2.Client, url: str, path: str, headers: dict[str, str]
) -> None:
    port = url.rpartition(":")[2]
    sent = {name: value.format(port=port) for name, value in headers.items()}

    response = http.post(path, json=message("initialize", **INITIALIZE), headers=sent)

    assert response.status_code == 403
    assert "not allowed" in response.text


def test_a_foreign_page_is_refused_before_its_body_is_read(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    head = f"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: {10**9}\r\n\r\n"

    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(1000)

    assert answer.startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LocalHost"])
def test_this_machine_is_let_in_by_any_of_its_names(
    http: httpx2.Client, url: str, name: str
) -> None:
    host = f"{name}:{url.rpartition(':')[2]}"

    response = http.get("/health", headers={"host": host, "origin": f"http://{host}"})

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_name_can_be_allowed(path: Path) -> None:
    names = ("memory.example", "proxy.example:8443")
    with (
        http_server(path, server_names=names) as url,
        httpx2.Client(base_url=url, timeout=60) as http,
    ):
        port = url.rpartition(":")[2]
        own = http.get("/health", headers={"host": f"memory.example:{port}"})
        other = http.get("/health", headers={"host": "proxy.example:8443"})
        foreign = http.get("/health", headers={"host": "proxy.example"})

        body = message("initialize", **INITIALIZE)
        page = {"host": "proxy.example:8443", "origin": "https://proxy.example:8443"}
        session = http.post("/mcp", json=body, headers={**ACCEPT, **page})

    assert (own.status_code, other.status_code, foreign.status_code) == (200, 200, 403)
    assert session.status_code == 200


def test_a_body_that_is_too_large_is_refused(http: httpx2.Client) -> None:
    large = b" " * (limits.REQUEST_BYTES_MAX + 1)

    told = http.post("/mcp", content=large)
    untold = http.post("/mcp", content=iter([large]))
    after = http.get("/health")

    assert (told.status_code, untold.status_code, after.status_code) == (413, 413, 200)


@pytest.mark.parametrize("version", [LEGACY, MODERN])
@pytest.mark.parametrize("body", [b"no json", b"[]", b"[" * 100_000, b"{}"])
def test_a_body_that_is_no_message_is_refused(
    http: httpx2.Client, version: str, body: bytes
) -> None:
    session = open_session(http) if version == LEGACY else {"mcp-protocol-version": version}

    response = http.post("/mcp", content=body, headers=session)

    assert response.status_code == 400
    assert http.get("/health").status_code == 200


@pytest.mark.parametrize("version", [LEGACY, MODERN])
@pytest.mark.parametrize("arguments", ['{"key": "a"}', ["a"], 7, False])
def test_arguments_that_are_no_object_are_answered_for_the_model(
    http: httpx2.Client, version: str, arguments: object
) -> None:
    body = message("tools/call", name="strata_store", arguments=arguments)
    if version == MODERN:
        body["params"]["_meta"] = ENVELOPE
    headers = open_session(http) if version == LEGACY else modern_headers("strata_store")

    result = answer_of(http.post("/mcp", json=body, headers=headers))["result"]

    assert result["isError"] is True
    assert result["structuredContent"]["error"] == "invalid_input"
    assert result.get("resultType") == ("complete" if version == MODERN else None)


def test_text_that_is_not_unicode_is_refused_by_name(http: httpx2.Client) -> None:
    arguments = {"key": "a", "branch": "\ud800"}
    body = message("tools/call", name="strata_recall", arguments=arguments, _meta=ENVELOPE)

    response = http.post("/mcp", content=json.dumps(body), headers=modern_headers("strata_recall"))

    assert answer_of(response)["result"]["isError"] is True


DEEP = "[" * 3_000 + "]" * 3_000


@pytest.mark.parametrize("version", [LEGACY, MODERN])
@pytest.mark.parametrize("value", ['{"a": "\\ud83d"}', "[" * 250 + "]" * 250, DEEP])
def test_what_the_parser_gives_up_on_is_answered_under_its_own_id(
    http: httpx2.Client, version: str, value: str
) -> None:
    body = message("tools/call", name="strata_store", arguments={"key": "k", "value": 0})
    if version == MODERN:
        body["params"]["_meta"] = ENVELOPE
    headers = open_session(http) if version == LEGACY else modern_headers("strata_store")
    text = json.dumps(body).replace('"value": 0', f'"value": {value}')

    answer = answer_of(http.post("/mcp", content=text, headers=headers))

    assert (answer["id"], answer["result"]["isError"]) == (body["id"], True)
    assert answer["result"]["structuredContent"]["error"] == "validation_error"
    assert answer["result"]["structuredContent"]["details"]["field"] == "value"
    assert answer["result"].get("resultType") == ("complete" if version == MODERN else None)


def test_another_request_that_cannot_be_read_is_an_error_that_says_why(
    http: httpx2.Client,
) -> None:
    session = open_session(http)
    body = json.dumps(message("resources/read", uri="x")).replace('"x"', DEEP)

    response = http.post("/mcp", content=body, headers=session)

    answer = response.json()
    assert (response.status_code, answer["id"]) == (400, json.loads(body.replace(DEEP, "0"))["id"])
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["field"] == "uri"
    assert answer["error"]["data"]["limit"] == limits.VALUE_DEPTH_MAX
    assert answer["error"]["data"]["hint"]


def test_a_session_whose_branch_was_deleted_is_told_and_writes_nowhere_until_it_chooses(
    http: httpx2.Client,
) -> None:
    mine, other = open_session(http), open_session(http)
    call(http, mine, "strata_branch", action="fork", name="gone")
    call(http, mine, "strata_branch", action="switch", name="gone")
    call(http, other, "strata_branch", action="delete", name="gone")

    status = call(http, mine, "strata_status")
    refused = call(http, mine, "strata_store", key="after", value=1)
    call(http, mine, "strata_branch", action="switch", name="default")
    stored = call(http, mine, "strata_store", key="after", value=1)

    assert status["branch"] == "gone"
    assert "deleted" in status["note"]
    assert refused["error"] == "branch_not_found"
    assert stored["status"] == "created"


def test_a_client_that_hangs_up_breaks_nothing(http: httpx2.Client, url: str) -> None:
    session = open_session(http)
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps(message("tools/call", **STATUS))
    head = [f"{name}: {value}" for name, value in {**ACCEPT, **session}.items()]
    head = ["POST /mcp HTTP/1.1", f"Host: {host}:{port}", *head, f"Content-Length: {len(body)}"]
    for sent in (1, len(body)):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(("\r\n".join(head) + "\r\n\r\n" + body[:sent]).encode())

    assert call(http, session, "strata_status")["branch"] == "default"


def test_the_command_says_where_it_listens_and_stops_on_a_signal(path: Path) -> None:
    command = server_command("http", path, port=0, port_given=True)
    with forkserver.Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stderr is not None
            address = server.stdout.readline().decode().split()[-1]
            with httpx2.Client(headers=ACCEPT, timeout=60) as http:
                opened = http.post(address, json=message("initialize", **INITIALIZE))
                session = {"mcp-session-id": opened.headers["mcp-session-id"]}
                # A client that listens all the time must not keep the server from stopping.
                with http.stream("GET", address, headers=session) as listening:
                    assert listening.status_code == 200
                    server.send_signal(signal.SIGTERM)
                    status = server.wait(timeout=60)
            out, err = server.stdout.read().decode(), server.stderr.read().decode()
        finally:
            server.kill()

    assert status == 0
    assert f"claude mcp add --transport http stratagem {address}\n" in out
    assert json.dumps({"mcpServers": {"stratagem": {"type": "http", "url": address}}}) in out
    assert err == ""


def test_a_signal_right_after_the_message_ends_the_command_in_good_order(path: Path) -> None:
    command = server_command("http", path, port=0, port_given=True)
    with forkserver.Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            server.send_signal(signal.SIGTERM)
            status = server.wait(timeout=60)
        finally:
            server.kill()

    assert status == 0


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(ServiceUnavailable, match=f"Port {port} .* is used by") as caught:
            run_http(ServerSettings(str(path), port=port, port_given=True))

    assert "--port" in caught.value.hint


def test_otherwise_the_next_free_port_is_taken(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = server_command("http", path, port=port)
        with forkserver.Process(command, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                line = server.stdout.readline().decode()
            finally:
                server.kill()

    assert f"(port {port} is in use)" in line
    assert f":{port}/" not in line


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "memory.example"])  # noqa: S104
def test_an_address_that_others_could_reach_is_refused(path: Path, host: str) -> None:
    with pytest.raises(ValidationFailed, match="cannot listen") as caught:
        run_http(ServerSettings(str(path), host=host, port=0, port_given=True))

    assert caught.value.details["field"] == "host"
    assert not path.exists()
