"""A server with tokens of every kind, and the three ways in to it."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import httpx2
import pytest
import socketio

from stratagem.access.service import Access
from stratagem.bootstrap import Runtime, Settings, start
from stratagem.operation import Caller
from stratagem.operations import TABLE
from stratagem.surfaces.rest.routes import ROUTES
from stratagem.surfaces.server import http
from stratagem.surfaces.server.lifecycle import GracefulServer
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.surfaces.socket.events import EVENTS

Surface = Literal["mcp", "rest", "socket"]
SURFACES: tuple[Surface, ...] = ("mcp", "rest", "socket")
EVERY_TOOLSET = (
    "memory", "debugging", "debugging_admin", "knowledge", "knowledge_plus", "gateway", "registry", "admin", "memory_plus", "review",
)  # fmt: skip
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_NUMBERS = itertools.count(1)
_CLIENT_LOGGERS = frozenset({"engineio.client", "socketio.client", "websocket"})


class Outcome(NamedTuple):
    """What a call came to, on whichever surface: its answer, or the code of its error."""

    error: str | None
    answer: Any
    text: str


@dataclass
class House:
    """A running server. `tokens` are secrets by the names of their holders."""

    url: str
    path: Path
    database: Database
    tokens: dict[str, str] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    clients: dict[str, httpx2.Client] = field(default_factory=dict)
    server: GracefulServer | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens, for whoever speaks to it in bytes."""
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    def client(self, token: str | None = None, **headers: str) -> httpx2.Client:
        given = {"authorization": f"Bearer {self.tokens[token]}"} if token else {}
        key = str(sorted({**given, **headers}.items()))
        if key not in self.clients:
            client = httpx2.Client(
                base_url=self.url,
                headers={**given, **headers},
                timeout=60,
                trust_env=False,
                # Reading certificates takes longer than all the rest, and there is none here.
                verify=False,
            )
            self.clients[key] = self.stack.enter_context(client)
        return self.clients[key]

    def open_socket(self, token: str | None = None, workspace: str | None = None) -> Any:
        client = socketio.Client(reconnection=False)
        auth = {"token": self.tokens[token]} if token else None
        if auth and workspace:
            auth["workspace"] = workspace
        client.connect(self.url, auth=auth, transports=["websocket"], wait_timeout=60)
        # One that the server has ended is not closed by the client.
        self.stack.callback(client.eio.ws.close)
        self.stack.callback(client.disconnect)
        return client

    def post(self, method: str, token: str | None, name: str = "", **params: Any) -> Any:
        """Send a request of the protocol; return the response."""
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
        }
        headers |= {"mcp-name": name} if name else {}
        body = {
            "jsonrpc": "2.0",
            "id": next(_NUMBERS),
            "method": method,
            "params": {**params, "_meta": ENVELOPE},
        }
        return self.client(token, **headers).post("/mcp", json=body)

    def tools(self, token: str | None) -> list[str]:
        answer = read_message(self.post("tools/list", token))
        return [tool["name"] for tool in answer["result"]["tools"]]

    def call(
        self,
        surface: Surface,
        token: str | None,
        name: str,
        arguments: Any,
        workspace: str | None = None,
    ) -> Outcome:
        """Run an operation over a surface."""
        if surface == "mcp":
            if name not in TABLE:
                name, arguments = "tool_execute", {"toolName": name, "arguments": arguments}
            return self._over_mcp(token, name, arguments, workspace)
        if surface == "rest":
            return self._over_rest(token, name, arguments, workspace)
        return self._over_socket(token, name, arguments, workspace)

    def _over_mcp(
        self, token: str | None, name: str, arguments: Any, workspace: str | None
    ) -> Outcome:
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": name,
            **({"x-stratagem-workspace": workspace} if workspace else {}),
        }
        body = {
            "jsonrpc": "2.0",
            "id": next(_NUMBERS),
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments, "_meta": ENVELOPE},
        }
        response = self.client(token, **headers).post("/mcp", json=body)
        if response.status_code != 200:
            return Outcome(response.json().get("error", "refused"), None, response.text)
        message = read_message(response)
        if "error" in message:
            return Outcome(str(message["error"]["code"]), None, response.text)
        result = message["result"]
        answer = result["structuredContent"]
        return Outcome(answer["error"] if result.get("isError") else None, answer, response.text)

    def _over_rest(
        self, token: str | None, name: str, arguments: Any, workspace: str | None
    ) -> Outcome:
        headers = {"x-stratagem-workspace": workspace} if workspace else {}
        client = self.client(token, **headers)
        row = TABLE.get(name)
        if row is None:
            body = {"toolName": name, "arguments": arguments}
            return self._over_rest(token, "tool_execute", body, workspace)
        route = next((each for each in ROUTES if each.operation == name), None)
        if route is None:
            response = client.post(f"/api/{row.toolset}/{name}", json=arguments)
            answer = response.json()
            error = answer.get("error") if response.status_code >= 400 else None
            error = _code(error) if isinstance(error, dict) else error
            return Outcome(error, answer, response.text)
        given = dict(arguments)
        path = re.sub(
            r"\{(\w+)\}", lambda found: quote(str(given.pop(found[1])), safe=""), route.path
        )
        if route.body:
            response = client.request(route.method, path, json=given)
        else:
            response = client.request(route.method, path, params=given)
        answer = response.json()
        if response.status_code >= 400:
            return Outcome(_code(answer["error"]), answer, response.text)
        return Outcome(None, answer["data"], response.text)

    def _over_socket(
        self, token: str | None, name: str, arguments: Any, workspace: str | None
    ) -> Outcome:
        try:
            client = self.open_socket(token, workspace)
        except socketio.exceptions.ConnectionError as error:
            return Outcome("unauthenticated", None, str(error))
        events = {each.operation: event for event, each in EVENTS.items()}
        if name == "tool_execute":
            answer = client.call("mcp:tool:execute", arguments, timeout=60)
        elif name in {"tools_batch", "tools_pipeline"}:
            answer = client.call(events[name], arguments, timeout=60)
        else:
            data = {"toolName": name, "arguments": arguments}
            answer = client.call("mcp:tool:execute", data, timeout=60)
        client.disconnect()
        if not answer["success"]:
            return Outcome(_code(answer["error"]), answer, json.dumps(answer))
        data = answer["data"]
        ran = isinstance(data, dict) and "executionId" in data
        return Outcome(None, data["result"] if ran else data, json.dumps(answer))


def _code(error: Any) -> str:
    return str(error["code"]).lower() if isinstance(error, dict) else str(error)


def server_log(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return what the server logged, without the lines of the clients that run in the same process."""
    return [each for each in caplog.records if each.name not in _CLIENT_LOGGERS]


def read_message(response: httpx2.Response) -> Any:
    """Return the message in a response, be it JSON or the one event of a stream."""
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        (text,) = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    return json.loads(text)


@contextmanager
def opened(path: Path, **settings: Any) -> Iterator[Runtime]:
    """Open a database as another process would."""
    runtime = start(Settings(str(path), embedder="none", **settings))
    try:
        yield runtime
    finally:
        runtime.close()


def make_token(
    path: Path, name: str, *scopes: str, roles: dict[str, str] | None = None, **more: Any
) -> str:
    """Make a token; return its secret."""
    with opened(path) as runtime:
        access = Access(runtime.foundation, Caller("test"), os.urandom)
        _token, secret = access.create(name, scopes, roles or {"default": "admin"}, **more)
    return secret


def revoke(path: Path, name: str) -> None:
    with opened(path) as runtime:
        Access(runtime.foundation, Caller("test"), os.urandom).revoke(name)


def turn_off(path: Path) -> None:
    with opened(path) as runtime:
        Access(runtime.foundation, Caller("test"), os.urandom).turn_off()


@contextmanager
def serving(path: Path, **options: Any) -> Iterator[House]:
    """Run a server in a thread of this process."""
    settings = ServerSettings(
        str(path), **{"toolsets": EVERY_TOOLSET, "embedder": "none", **options}
    )
    database = Database(settings)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        port = listener.getsockname()[1]
        server = http.build(settings, database, port)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        house = House(f"http://127.0.0.1:{port}", path, database, server=server)
        try:
            yield house
        finally:
            house.stack.close()
            server.should_exit = True
            thread.join()
            database.close()
