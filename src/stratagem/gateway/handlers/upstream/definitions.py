"""How an upstream server is described: a command to start, or an address to call.

A definition is plain JSON and holds no secret: values of `env` and `headers` name secrets as
`${NAME}`, and what each user has for the server as `${user.NAME}`; they are put in when the
connection is opened. With `auth` users sign in to the server by OAuth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.documents import ServerDocument
from stratagem.gateway.secret_grants import origin_of

__all__ = ["HttpServer", "ServerDefinition", "StdioServer", "read_definition"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET: Final = re.compile(r"\$\{(?:user\.)?[A-Za-z_][A-Za-z0-9_]*\}")
_OF_USER: Final = "${user."
# Headers by which somebody is let in: a value written down here would be a secret in a definition.
_CREDENTIAL: Final = re.compile(r"auth|cookie|token|secret|api-?key|password", re.IGNORECASE)
# Set by the connection itself.
_RESERVED: Final = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "transfer-encoding"}
)
_FIELDS: Final = {
    "stdio": frozenset({"name", "transport", "command", "args", "env"}),
    "http": frozenset({"name", "transport", "url", "headers", "auth"}),
}
_AUTH_FIELDS: Final = frozenset({"type", "scope", "clientId", "clientSecret"})


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that we start, and talk to over its standard input and output."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """Return what secrets for its environment are bound to."""
        return f"mcp:{self.name}"

    @property
    def is_per_user(self) -> bool:
        """Whether each user has a process of its own, with what is the user's."""
        return any(_OF_USER in text for text in self.env.values())

    def as_json(self) -> ServerDocument:
        """Return the definition as it is stored."""
        return {
            "name": self.name,
            "transport": "stdio",
            "command": self.command,
            "args": list(self.args),
            "env": dict(self.env),
        }


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that runs somewhere, and is called over streamable HTTP."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: Mapping[str, Any] | None = None

    @property
    def origin(self) -> str:
        """Return what secrets in its headers are bound to."""
        return origin_of(self.url) or ""

    @property
    def is_per_user(self) -> bool:
        """Whether each user has a connection of its own, by what is the user's."""
        return self.auth is not None or any(_OF_USER in text for text in self.headers.values())

    def as_json(self) -> ServerDocument:
        """Return the definition as it is stored."""
        document: ServerDocument = {
            "name": self.name,
            "transport": "http",
            "url": self.url,
            "headers": dict(self.headers),
        }
        if self.auth is not None:
            document["auth"] = dict(self.auth)
        return document


ServerDefinition = StdioServer | HttpServer


def read_definition(document: Mapping[str, Any]) -> ServerDefinition:
    """Return the definition that a JSON document describes.

    Raises:
        ValidationFailed: It is not one; `field` says where.
    """
    name = document.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _field_error("name", "must be at most 64 letters, digits, `_`, `.` and `-`")
    transport = document.get("transport")
    if not isinstance(transport, str) or transport not in _FIELDS:
        raise _field_error("transport", 'must be "stdio" or "http"')
    if unknown := sorted(str(key) for key in document if key not in _FIELDS[transport]):
        raise _field_error(unknown[0], f'has no meaning for transport "{transport}"')
    return _stdio(name, document) if transport == "stdio" else _http(name, document)


def _stdio(name: str, document: Mapping[str, Any]) -> StdioServer:
    command = _text("command", document.get("command"))
    if not command.strip():
        raise _field_error("command", "must be the program to start")
    args = document.get("args") or []
    if not isinstance(args, Sequence) or isinstance(args, str):
        raise _field_error("args", "must be a list of texts")
    if len(args) > limits.UPSTREAM_ARGS_MAX:
        raise _field_error("args", "has too many entries", limit=limits.UPSTREAM_ARGS_MAX)
    texts = tuple(_text(f"args[{at}]", arg) for at, arg in enumerate(args))
    env = _texts("env", document.get("env"))
    for key in env:
        if not _VARIABLE.fullmatch(key):
            raise _field_error(f"env.{key}", "is not the name of a variable")
    return StdioServer(name, command, texts, env)


def _http(name: str, document: Mapping[str, Any]) -> HttpServer:
    url = _text("url", document.get("url"))
    parts = _address(url)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _field_error("url", "must be an http or https address")
    if parts.username or parts.password:
        raise _field_error("url", "holds a user or password; name a secret in `headers` instead")
    headers = _texts("headers", document.get("headers"))
    for key, value in headers.items():
        _check_header(key, value)
    return HttpServer(name, url, headers, _auth(document.get("auth"), headers))


def _auth(given: Any, headers: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return how users sign in, where they have to."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or given.get("type") != "oauth":
        raise _field_error("auth", 'is {"type": "oauth"}')
    for name, value in given.items():
        if name not in _AUTH_FIELDS:
            raise _field_error(f"auth.{name}", "means nothing")
        _text(f"auth.{name}", value)
    if "clientSecret" in given and not _SECRET.fullmatch(given["clientSecret"]):
        raise _field_error("auth.clientSecret", "holds a secret; name one instead, as ${NAME}")
    if any(name.lower() == "authorization" for name in headers):
        raise _field_error("headers.Authorization", "is set by `auth`")
    return dict(given)


def _address(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _check_header(name: str, value: str) -> None:
    field_ = f"headers.{name}"
    if not _HEADER.fullmatch(name) or "\n" in value or "\r" in value:
        raise _field_error(field_, "is not a header")
    if name.lower() in _RESERVED or name.lower().startswith("mcp-"):
        raise _field_error(field_, "is set by the connection itself")
    if _CREDENTIAL.search(name) and not _SECRET.search(value):
        raise _field_error(field_, "holds a secret; name one instead, as ${NAME}")


def _texts(field_: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _field_error(field_, "must be an object of texts")
    if len(value) > limits.UPSTREAM_ARGS_MAX:
        raise _field_error(field_, "has too many entries", limit=limits.UPSTREAM_ARGS_MAX)
    return {str(key): _text(f"{field_}.{key}", text) for key, text in value.items()}


def _text(field_: str, value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise _field_error(field_, "is a text")
    if len(value) > limits.UPSTREAM_TEXT_CHARS_MAX:
        raise _field_error(field_, "is too long", limit=limits.UPSTREAM_TEXT_CHARS_MAX)
    return value


def _field_error(field_: str, what: str, **details: Any) -> ValidationFailed:
    return ValidationFailed(f"`{field_}` of the server {what}.", field=field_, **details)
