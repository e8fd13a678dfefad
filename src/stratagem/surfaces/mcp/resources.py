"""What a client can read by address: entries, their history, and the state of the database.

An address is `stratagem://entries/{namespace}/{key}`, with what a URI cannot hold
percent-encoded, and optionally `?branch=` and `?as_of=`.
"""

from __future__ import annotations

import logging
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from stratagem import limits
from stratagem.errors import TABLE, StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.serving.database import Database

__all__ = ["RESOURCES", "TEMPLATES", "read"]

logger = logging.getLogger(__name__)

_SCHEME = "stratagem"
_GUIDE = "stratagem://guide"
_JSON = "application/json"
_MARKDOWN = "text/markdown"
_VIEW = ("branch", "as_of")
# The operation that reads each kind of address. A resource is read whole, as far as it goes.
_READERS: dict[str, tuple[str, dict[str, Any]]] = {
    "entries": ("strata_recall", {"max_chars": limits.ANSWER_CHARS_MAX}),
    "history": ("strata_history", {"limit": limits.HISTORY_PAGE_MAX}),
}
# What the protocol calls this until 2025; from 2026 on it is a wrong parameter like any other.
_RESOURCE_NOT_FOUND = -32002

RESOURCES = [
    Resource(
        uri=_GUIDE,
        name="guide",
        title="How to use this memory",
        description="One page: what to store when, how to find it again, branches and errors.",
        mime_type=_MARKDOWN,
    ),
    Resource(
        uri="stratagem://status",
        name="status",
        title="Status",
        description="Current branch and namespace, and how much is stored.",
        mime_type=_JSON,
    ),
]
TEMPLATES = [
    ResourceTemplate(
        uri_template="stratagem://entries/{namespace}/{key}{?branch,as_of}",
        name="entry",
        title="Entry",
        description="What is stored under a key, now or at a past moment.",
        mime_type=_JSON,
    ),
    ResourceTemplate(
        uri_template="stratagem://history/{namespace}/{key}{?branch,as_of}",
        name="history",
        title="History",
        description="How an entry changed: its latest versions, newest first.",
        mime_type=_JSON,
    ),
]


def read(
    database: Database, uri: str, caller: Caller, protocol_version: str, *, served: bool
) -> ReadResourceResult:
    """Return what is at an address; there is nothing where entries are not `served`.

    Raises:
        MCPError: Nothing is there, or it cannot be read.
    """
    if uri == _GUIDE and served:
        guide = (resources.files(__package__) / "guide.md").read_text("utf-8")
        contents = TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=guide)
        return ReadResourceResult(contents=[contents])
    operation, arguments = (_parse(uri) if served else None) or _refuse(uri, protocol_version)
    try:
        answer = database.call(operation, arguments, caller)
    except StratagemError as error:
        row = TABLE[error.code]
        words = f"{error.message} {error.hint}"
        raise MCPError(row.json_rpc_code, words, error.envelope()) from error
    except Exception as error:  # the outermost frame: a client must not see the inside
        logger.exception("%s failed", uri)
        raise MCPError(INTERNAL_ERROR, "Reading failed; the server's log says how.") from error
    if answer.get("found") is False or answer.get("results") == []:
        _refuse(uri, protocol_version)
    text = orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()
    contents = TextResourceContents(uri=uri, mime_type=_JSON, text=text)
    return ReadResourceResult(contents=[contents])


def _parse(uri: str) -> tuple[str, dict[str, Any]] | None:
    """Return the operation that reads an address, and its arguments."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if (parts.scheme, parts.netloc, parts.path) == (_SCHEME, "status", ""):
        return "strata_status", {}
    namespace, _, key = parts.path.removeprefix("/").partition("/")
    if parts.scheme != _SCHEME or parts.netloc not in _READERS or not namespace or not key:
        return None
    operation, bounds = _READERS[parts.netloc]
    view = {name: value for name, value in parse_qsl(parts.query) if name in _VIEW}
    return operation, {"namespace": unquote(namespace), "key": unquote(key), **view, **bounds}


def _refuse(uri: str, protocol_version: str) -> Any:
    modern = protocol_version in MODERN_PROTOCOL_VERSIONS
    code = INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND
    raise MCPError(code, f"There is nothing at {uri!r}.", {"uri": uri})
