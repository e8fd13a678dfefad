"""What a client can read by address: entries, lists of them, events, and the state of the database.

An address is `stratagem://entries/{namespace}/{key}`, with what a URI cannot hold
percent-encoded, and optionally `?branch=` and `?as_of=`. Without a key it is that of a list.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

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
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import TABLE, StratagemError
from stratagem.memory.answer_text import brief
from stratagem.operation import Caller
from stratagem.surfaces.serving.database import Database

__all__ = ["RESOURCES", "TEMPLATES", "list_entries", "read"]

logger = logging.getLogger(__name__)

_SCHEME = "stratagem"
_GUIDE = "stratagem://guide"
_JSON = "application/json"
_MARKDOWN = "text/markdown"
_VIEW = ("branch", "as_of")
_ENTRIES = "entries"


class _Reader(NamedTuple):
    """The operation that reads a kind of address, with what is always given, and may be by a query.

    A resource is read whole, as far as it goes.
    """

    operation: str
    bounds: Mapping[str, Any]
    query: tuple[str, ...] = _VIEW


_READERS: Mapping[str, _Reader] = {
    _ENTRIES: _Reader("strata_recall", {"max_chars": limits.ANSWER_CHARS_MAX}),
    "history": _Reader("strata_history", {"limit": limits.HISTORY_PAGE_MAX}),
}
# Of addresses that name a namespace and no key.
_LISTS: Mapping[str, _Reader] = {
    _ENTRIES: _Reader(
        "strata_list",
        {"max_chars": limits.ANSWER_CHARS_MAX},
        ("prefix", "order", "cursor", *_VIEW),
    ),
    "events": _Reader(
        "strata_events",
        {"max_chars": limits.ANSWER_CHARS_MAX},
        ("event", "session", "since", "after", "order", "cursor", *_VIEW),
    ),
}
# Of addresses that are one word.
_WHOLES: Mapping[str, str] = {"status": "strata_status", "namespaces": "strata_namespaces"}
# As many entries are listed to a page.
_PAGE = 100
_VALUE_CHARS = 200
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
    Resource(
        uri="stratagem://namespaces",
        name="namespaces",
        title="Namespaces",
        description="The namespaces, with how many entries and logged events each holds.",
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
    ResourceTemplate(
        uri_template="stratagem://entries/{namespace}{?prefix,order,cursor,branch,as_of}",
        name="entries",
        title="Entries",
        description="What a namespace holds, newest first or by key, each with a short value.",
        mime_type=_JSON,
    ),
    ResourceTemplate(
        uri_template="stratagem://events/{namespace}"
        "{?event,session,since,after,order,cursor,branch,as_of}",
        name="events",
        title="Events",
        description="The logged events of a namespace in order.",
        mime_type=_JSON,
    ),
]


def list_entries(
    database: Database, caller: Caller, cursor: str | None
) -> tuple[list[Resource], str | None]:
    """Return a page of the entries of the caller's namespace, and the cursor of the next.

    Raises:
        MCPError: They cannot be read, or the cursor is none of this list's.
    """
    from stratagem.operations import find, may_call

    if not may_call(find("strata_list"), caller):
        return [], None
    given = {"limit": _PAGE, "max_chars": limits.ANSWER_CHARS_MAX}
    answer = _call(database, "strata_list", given | ({"cursor": cursor} if cursor else {}), caller)
    branch = f"?branch={quote(caller.branch, safe='')}" if caller.branch != DEFAULT_BRANCH else ""
    listed = [
        Resource(
            uri=f"stratagem://entries/{quote(entry['namespace'], safe='')}/"
            f"{quote(entry['key'], safe='')}{branch}",
            name=entry["key"],
            description=brief(entry["value"], _VALUE_CHARS),
            mime_type=_JSON,
        )
        for entry in answer["results"]
    ]
    return listed, answer.get("next")


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
    answer = _call(database, operation, arguments, caller)
    if answer.get("found") is False or ("key" in arguments and answer.get("results") == []):
        _refuse(uri, protocol_version, answer)
    text = orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()
    contents = TextResourceContents(uri=uri, mime_type=_JSON, text=text)
    return ReadResourceResult(contents=[contents])


def _call(
    database: Database, operation: str, arguments: dict[str, Any], caller: Caller
) -> dict[str, Any]:
    try:
        return database.call(operation, arguments, caller)
    except StratagemError as error:
        row = TABLE[error.code]
        words = f"{error.message} {error.hint}"
        raise MCPError(row.json_rpc_code, words, error.envelope()) from error
    except Exception as error:  # the outermost frame: a client must not see the inside
        logger.exception("%s failed", operation)
        raise MCPError(INTERNAL_ERROR, "Reading failed; the server's log says how.") from error


def _parse(uri: str) -> tuple[str, dict[str, Any]] | None:
    """Return the operation that reads an address, and its arguments."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != _SCHEME:
        return None
    if not parts.path and parts.netloc in _WHOLES:
        return _WHOLES[parts.netloc], {}
    namespace, slash, key = parts.path.removeprefix("/").partition("/")
    reader = (_READERS if slash else _LISTS).get(parts.netloc)
    if reader is None or not namespace or (slash and not key):
        return None
    said = {name: value for name, value in parse_qsl(parts.query) if name in reader.query}
    named = {"key": unquote(key)} if slash else {}
    return reader.operation, {"namespace": unquote(namespace), **named, **said, **reader.bounds}


def _refuse(uri: str, protocol_version: str, answer: Mapping[str, Any] | None = None) -> Any:
    """Say that nothing is at an address, and by which keys there is something."""
    modern = protocol_version in MODERN_PROTOCOL_VERSIONS
    code = INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND
    near = list((answer or {}).get("near") or ())
    words = f" Near: {', '.join(near)}." if near else ""
    data = {"uri": uri, "near": near} if near else {"uri": uri}
    raise MCPError(code, f"There is nothing at {uri!r}.{words}", data)
