"""A real OpenID provider on loopback, an MCP server whose users it signs in, and a browser."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import jwt
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl

from tests.ports import free_port
from tests.registries import npm_package

_SCRIPT = Path(__file__).with_name("authorization_server.mjs")
_FORM = re.compile(r'<form[^>]*action="([^"]+)"')


class Notes:
    """An MCP server that lets in whoever has a token of one issuer for this very server."""

    def __init__(self, port: int, issuer: str) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.issuer = issuer
        self.revoked: set[str] = set()
        # Of each request: its token, or None.
        self.tokens: list[str | None] = []
        self._keys = jwt.PyJWKClient(f"{issuer}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        self.tokens.append(token)
        if token in self.revoked:
            return None
        try:
            key = await asyncio.to_thread(self._keys.get_signing_key_from_jwt, token)
            claims = jwt.decode(
                token, key, algorithms=["RS256"], audience=self.url, issuer=self.issuer
            )
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token, client_id=claims["client_id"], scopes=["notes"], subject=claims["sub"]
        )

    def application(self) -> Any:
        server = MCPServer(
            "notes",
            token_verifier=self,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(self.issuer),
                resource_server_url=AnyHttpUrl(self.url),
                required_scopes=["notes"],
                validate_token_resource=False,
            ),
        )

        @server.tool()
        def whoami() -> str:
            """Say who is signed in, and repeat the token, as careless servers do."""
            found = get_access_token()
            assert found is not None
            return f"{found.subject} {found.token}"

        return server.streamable_http_app()


@contextmanager
def provider(resource: str, port: int, seconds: int, **variables: str) -> Iterator[str]:
    """Run the provider; yield its issuer.

    Raises:
        LookupError: It cannot be fetched.
    """
    node, package = npm_package("oidc-provider")
    command = [node, str(_SCRIPT), str(package), str(port), resource, str(seconds)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **variables},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def protected_server(seconds: int = 3600, /, **variables: str) -> Iterator[Notes]:
    """Run an MCP server, and the provider that signs its users in."""
    notes = Notes(free_port(), f"http://127.0.0.1:{(port := free_port())}")
    with provider(notes.url, port, seconds, **variables), serving_app(notes):
        yield notes


@contextmanager
def serving_app(server: Notes | HeaderNotes) -> Iterator[None]:
    """Run an MCP server on its port."""
    config = uvicorn.Config(
        server.application(), port=urlsplit(server.url).port or 0, log_level="error", lifespan="on"
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive()
    try:
        yield
    finally:
        running.should_exit = True
        thread.join(60)


class HeaderNotes:
    """An MCP server that takes anybody, and notes a header of each call."""

    def __init__(self) -> None:
        self.url = f"http://127.0.0.1:{free_port()}/mcp"
        self.seen: list[str] = []

    def application(self) -> Any:
        server = MCPServer("header-notes")

        @server.tool()
        def repeat_header() -> str:
            """Say something."""
            return self.seen[-1]

        inner = server.streamable_http_app()

        async def noting(scope: Any, receive: Any, send: Any) -> None:
            for name, value in scope.get("headers", ()):
                if name == b"x-notes":
                    self.seen.append(value.decode())
            await inner(scope, receive, send)

        return noting


@contextmanager
def tls_proxy(target: str, port: int) -> Iterator[None]:
    """Take requests over TLS, with a certificate of our own, and pass them on."""
    client = httpx2.Client(base_url=target, trust_env=False, verify=False, timeout=60)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = client.get(self.path, headers=dict(self.headers.items()))
            self.send_response(answer.status_code)
            for name, value in answer.headers.multi_items():
                if name not in {"content-length", "content-encoding", "connection", "date"}:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    with tempfile.TemporaryDirectory() as folder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*_certificate(Path(folder)))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        client.close()
        thread.join(60)


def _certificate(folder: Path) -> tuple[str, str]:
    files = str(folder / "cert.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-out", files[0], "-keyout", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


class Browser:
    """As much of a browser as signs in: cookies, redirects and forms."""

    def __init__(self) -> None:
        self.client = httpx2.Client(trust_env=False, verify=False, timeout=60)

    def close(self) -> None:
        self.client.close()

    def follow(self, address: str, until: str = "") -> httpx2.Response:
        """Open an address and follow its redirects, as far as one that begins with `until`."""
        while True:
            answer = self.client.get(address)
            if not answer.is_redirect:
                return answer
            address = urljoin(address, answer.headers["location"])
            if until and address.startswith(until):
                return answer

    def sign_in(self, address: str, user: str, coming_back: str) -> str:
        """Sign in at a provider, and let it do what is asked; return where it sends us back to."""
        page = self.follow(address, coming_back)
        while not page.is_redirect:
            found = _FORM.search(page.text)
            assert found is not None, page.text
            prompt = "login" if 'name="login"' in page.text else "consent"
            form = {"prompt": prompt, "login": user, "password": "any"}
            answer = self.client.post(urljoin(str(page.url), unescape(found[1])), data=form)
            assert answer.is_redirect, answer.text
            next_address = urljoin(str(answer.url), answer.headers["location"])
            page = self.follow(next_address, coming_back)
        return urljoin(str(page.url), page.headers["location"])


def query_of(address: str) -> dict[str, str]:
    return {name: each[0] for name, each in parse_qs(urlsplit(address).query).items()}
