"""A real `stratagem serve`, and an HTTP service on loopback that tools may call."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
import psutil  # type: ignore[import-untyped]

import stratagem
from tests import forkserver

_ADDRESS = re.compile(r"listening on (http://[^/]+)/mcp")


class Service:
    """A service of somebody else: what it answers is up to the test."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        # For each path, what is answered: a status, a type and a body; None hangs.
        self.answers: dict[str, Callable[[dict[str, Any]], tuple[int, str, bytes] | None]] = {}
        # For each path, whatever is written to the connection instead.
        self.raw: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.hung_up = threading.Event()
        self._stopping = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                service._answer(self)

            def do_GET(self) -> None:
                service._answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def count(self, path: str) -> int:
        return sum(each["path"] == path for each in self.received)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("content-length") or 0)
        path = urlsplit(request.path).path
        said = {
            "path": path,
            "query": urlsplit(request.path).query,
            "method": request.command,
            "headers": {name.lower(): text for name, text in request.headers.items()},
            "body": request.rfile.read(length),
        }
        self.received.append(said)
        if path in self.raw:
            self.raw[path](request)
            return
        answer = self.answers.get(path, _echo)(said)
        if answer is None:
            self._hang(request)
            return
        status, kind, body = answer
        try:
            request.send_response(status)
            request.send_header("content-type", kind)
            request.send_header("content-length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
        except OSError:
            self.hung_up.set()

    def _hang(self, request: BaseHTTPRequestHandler) -> None:
        """Answer nothing, and notice when the caller goes away."""
        request.connection.settimeout(0.02)
        while not self._stopping.is_set():
            try:
                if request.connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.hung_up.set()
        request.close_connection = True


def _echo(said: dict[str, Any]) -> tuple[int, str, bytes]:
    body = json.loads(said["body"]) if said["body"] else None
    return as_json({"body": body, "path": said["path"], "query": said["query"]})


def as_json(value: Any, status: int = 200) -> tuple[int, str, bytes]:
    return status, "application/json", json.dumps(value).encode()


@dataclass
class Served:
    """A server process. `client` speaks to it."""

    url: str
    process: subprocess.Popen[bytes]
    client: httpx2.Client
    log: Path
    opened: list[httpx2.Client] = field(default_factory=list)

    def call(
        self, method: str, path: str, body: Any = None, expected: int = 200, **query: Any
    ) -> Any:
        """Send a request; return the data in its envelope, once the status was checked."""
        response = self.client.request(
            method, path, json=body if body is not None else None, params=query or None
        )
        assert response.status_code == expected, (response.status_code, response.text[:2000])
        answer = response.json()
        worked = expected < 400
        assert answer["success"] is worked, answer
        return answer["data"] if worked else answer["error"]

    def as_administrator(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an operation beside the server, as whoever sits at the machine can."""
        with stratagem.open(str(self.log.with_suffix(".db"))) as db:
            return db.call(operation, arguments)

    def execute(self, tool: str, arguments: Any, expected: int = 200, **more: Any) -> Any:
        body = {"arguments": arguments, **more}
        return self.call("POST", f"/api/mcp/tools/{tool}/execute", body, expected)

    @contextmanager
    def sending(self, path: str, body: Any) -> Iterator[None]:
        """Send a request; at the end of the block its client goes away without an answer."""
        with closing(HTTPConnection(urlsplit(self.url).netloc, timeout=60)) as connection:
            headers = {"content-type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            yield

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(
    database: Path,
    *options: str,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    limits: dict[int, int] | None = None,
) -> Iterator[Served]:
    """Run `stratagem serve` on a free port of loopback; `limits` are those of `setrlimit`."""
    log = database.with_suffix(".log")
    command = [sys.executable, "-m", "stratagem", "--db", str(database)]
    with log.open("ab") as output:
        process = forkserver.Process(
            [*command, "serve", "--port", "0", *options],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            cwd=cwd,
        )
    for kind, most in (limits or {}).items():
        psutil.Process(process.pid).rlimit(kind, (most, most))
    try:
        url = _address(log, process)
        with httpx2.Client(base_url=url, timeout=30, trust_env=False) as client:
            yield Served(url, process, client, log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    # Several workers import everything; a busy machine takes more than a minute for them.
    end = time.monotonic() + 240
    while time.monotonic() < end:
        found = _ADDRESS.findall(log.read_text("utf-8"))
        # A database that is served again has the address of each server in one log.
        if found and log.read_text("utf-8").count("Stop with Ctrl-C") == len(found):
            url: str = found[-1]
            if _answers(url):
                return url
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"the server did not start: {log.read_text('utf-8')}")


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health", timeout=5, trust_env=False).status_code == 200
    except httpx2.HTTPError:
        return False


def eventually(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """Return what a condition gives once that is true."""
    end = time.monotonic() + seconds
    while not (given := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
    return given
