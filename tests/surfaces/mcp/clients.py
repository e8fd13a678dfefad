"""Servers and clients of the tests: in this process, on stdio and on HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import uvicorn
from mcp import Client
from mcp_types import CallToolResult, Implementation

from stratagem.surfaces.mcp.callers import ProcessCaller
from stratagem.surfaces.mcp.client_identity import process_caller
from stratagem.surfaces.mcp.server import build
from stratagem.surfaces.server import http
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from tests import forkserver

Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")
CLIENT = Implementation(name="tester", version="1")
MODERN = "2026-07-28"
LEGACY = "2025-11-25"

INITIALIZE = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "tester", "version": "1"},
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_RUN = """
import json, sys
from stratagem.surfaces.mcp import ServerSettings, run_stdio
from stratagem.surfaces.server import run as run_http
run = run_http if sys.argv[1] == "http" else run_stdio
run(ServerSettings(**json.loads(sys.argv[2])))
"""


@asynccontextmanager
async def connected(
    path: Path, mode: Mode = "auto", *, callbacks: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Client]:
    """Give a client of a server in this process; `callbacks` are the client's."""
    settings = ServerSettings(str(path), **options)
    database = Database(settings)
    server = build(settings, database, ProcessCaller(process_caller(settings)))
    try:
        async with Client(server, mode=mode, client_info=CLIENT, **callbacks or {}) as client:
            yield client
    finally:
        database.close()


@contextmanager
def http_server(path: Path, **options: Any) -> Iterator[str]:
    """Give the address of a server in a thread of this process."""
    settings = ServerSettings(str(path), **options)
    database = Database(settings)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        # Whoever connects before the server is ready waits, and is not refused.
        listener.listen(128)
        port = listener.getsockname()[1]
        app = http.application(settings, database, port)
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()
            database.close()


def server_command(kind: Literal["http", "stdio"], path: Path, **options: Any) -> list[str]:
    """Return the command that starts a server as a process of its own."""
    return [sys.executable, "-c", _RUN, kind, json.dumps({"database": str(path), **options})]


class Stdio:
    """A server process, spoken to line by line."""

    def __init__(self, path: Path, command: list[str] | None = None, **options: Any) -> None:
        self.process = forkserver.Process(
            command or server_command("stdio", path, **options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def request(self, method: str, **params: Any) -> int:
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self.write(json.dumps(message).encode())
        return self._last

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.request(method, **params)
        return self.read()

    def shake_hands(self) -> dict[str, Any]:
        answer = self.ask("initialize", **INITIALIZE)
        self.notify("notifications/initialized")
        return answer

    def end(self) -> tuple[int, str, str]:
        """Close stdin; return the status, and what was still written."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out.decode(), err.decode()


def text_of(result: CallToolResult) -> str:
    """Return what a model reads."""
    assert len(result.content) == 1
    assert result.content[0].type == "text"
    return result.content[0].text
