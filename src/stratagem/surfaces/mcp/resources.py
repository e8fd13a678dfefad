"""What a client can read by address: entries, lists of them, events, and the state of the database.

An address is `stratagem://entries/{namespace}/{key}`, with what a URI cannot hold
percent-encoded, and optionally `?branch=` and `?as_of=`. Without a key it is that of a list.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from stratagem.clients.skills import skill_text
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import TABLE, StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.mcp import resource_lists
from stratagem.surfaces.mcp.resource_lists import GUIDE, JSON, MARKDOWN, SKILL
from stratagem.surfaces.serving.database import Database

__all__ = ["RESOURCES", "TEMPLATES", "list_entries", "read"]

logger = logging.getLogger(__name__)

_SCHEME = "stratagem"
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
# What the protocol calls this until 2025; from 2026 on it is a wrong parameter like any other.
_RESOURCE_NOT_FOUND = -32002

RESOURCES = [Resource.model_validate(each) for each in resource_lists.RESOURCES]
TEMPLATES = [ResourceTemplate.model_validate(each) for each in resource_lists.TEMPLATES]


def list_entries(
    database: Database, caller: Caller, cursor: str | None
) -> tuple[list[Resource], str | None]:
    """Return a page of the entries of the caller's namespace, and the cursor of the next.

    Raises:
        MCPError: They cannot be read, or the cursor is none of this list's.
    """
    with _answer_failures("strata_list"):
        listed, following = resource_lists.list_entries(database, caller, cursor)
    return [Resource.model_validate(each) for each in listed], following


def read(
    database: Database, uri: str, caller: Caller, protocol_version: str, *, served: bool
) -> ReadResourceResult:
    """Return what is at an address; there is nothing where entries are not `served`.

    Raises:
        MCPError: Nothing is there, or it cannot be read.
    """
    if uri in {GUIDE, SKILL} and served:
        guide = resources.files(__package__) / "guide.md"
        text = skill_text() if uri == SKILL else guide.read_text("utf-8")
        contents = TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)
        return ReadResourceResult(contents=[contents])
    operation, arguments = (_parse(uri) if served else None) or _refuse(uri, protocol_version)
    with _answer_failures(operation):
        answer = database.call(operation, arguments, caller)
    if answer.get("found") is False or ("key" in arguments and answer.get("results") == []):
        _refuse(uri, protocol_version, answer)
    text = orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()
    contents = TextResourceContents(uri=uri, mime_type=JSON, text=text)
    return ReadResourceResult(contents=[contents])


@contextmanager
def _answer_failures(operation: str) -> Iterator[None]:
    """Raise what goes wrong as errors of the protocol."""
    try:
        yield
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
