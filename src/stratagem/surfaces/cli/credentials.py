"""Signing in to upstream servers from the command line."""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from stratagem import limits
from stratagem.errors import ExecutionTimeout, PermissionDenied
from stratagem.surfaces.cli.operation_commands import Invocation
from stratagem.surfaces.cli.secrets import read_secret

__all__ = ["set_credential", "sign_in"]

_DONE = b"<!doctype html><title>Signed in</title><p>You may close this page.</p>"


def set_credential(invocation: Invocation) -> None:
    """Read a credential without showing it."""
    invocation.arguments["value"] = read_secret(invocation.arguments["name"])
    invocation.show(invocation.run())


def sign_in(invocation: Invocation) -> None:
    """Have the user sign in with a browser that comes back to this very command."""
    session = invocation.session
    with _Callback() as callback:
        given = {**invocation.arguments, "redirectUri": callback.address}
        begun = session.call("server_sign_in", **given)
        session.output.note(f"Open this address in a browser: {begun['address']}")
        answer = callback.wait(begun["state"])
    done = session.call("sign_in_finish", **answer)
    server = done["server"]
    session.output.prose(f"{done['user']} is signed in to {server}.")
    session.output.note(
        f"If its tools are not listed yet: stratagem tools refresh {server} --approve"
    )


class _Callback:
    """A listener on loopback, for one answer of an authorization server."""

    def __init__(self) -> None:
        self._answers: list[dict[str, str]] = []
        self._arrived = threading.Event()
        callback = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                callback.take(self)

            def log_message(self, *_: Any) -> None:
                """Say nothing: the address holds a code."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/callback"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        found = parts.path == "/callback"
        request.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
        request.send_header("content-type", "text/html; charset=utf-8")
        request.end_headers()
        if found:
            request.wfile.write(_DONE)
            self._answers.append({name: each[0] for name, each in parse_qs(parts.query).items()})
            self._arrived.set()

    def wait(self, state: str) -> dict[str, str]:
        """Return what to finish a sign-in with.

        Raises:
            ExecutionTimeout: Nobody came back in time.
            PermissionDenied: The user was refused.
        """
        if not self._arrived.wait(limits.SIGN_IN_SECONDS):
            raise ExecutionTimeout(
                "Nobody signed in within the time limit.", limit=limits.SIGN_IN_SECONDS
            )
        given = self._answers[0]
        if given.get("state") != state or "code" not in given:
            reason = given.get("error", "the answer is to another sign-in")
            raise PermissionDenied(f"The sign-in was refused: {reason}.", reason="sign_in")
        answer = {"state": state, "code": given["code"]}
        return answer | ({"issuer": given["iss"]} if "iss" in given else {})
