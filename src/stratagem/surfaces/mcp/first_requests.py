"""Requests that are answered without the protocol's library.

Importing the library takes longer than everything else that a server does before its first answer,
and most clients only do the handshake, list, and call tools. Those requests are answered here, in
the protocol versions that begin with a handshake. Any other message hands the client over to the
library's server, which gets the handshake again and continues from there: nothing is refused here
that the library would answer.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import TABLE, StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.mcp import instructions, resource_lists
from stratagem.surfaces.mcp.client_identity import client_actor
from stratagem.surfaces.mcp.client_pipe import LAST_ANSWER_SECONDS, UNANSWERED_MAX, ClientPipe
from stratagem.surfaces.mcp.operation_tools import OperationTools, UnlistedTool
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.version import VERSION

__all__ = ["HANDSHAKE_ID", "FirstRequests"]

logger = logging.getLogger(__name__)

# The versions of the protocol whose handshake and lists are as they are written here.
_VERSIONS: Final = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
_CAPABILITIES: Final = {
    "prompts": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": False},
    "tools": {"listChanged": False},
}
# The id of the handshake that the library's server is shown; its answer goes to nobody.
HANDSHAKE_ID: Final = "stratagem:handshake"
_INVALID_PARAMS: Final = -32602
_INTERNAL_ERROR: Final = -32603
# What requests say of themselves in the versions of the protocol without a handshake.
_MODERN_META: Final = "io.modelcontextprotocol/"
# Toolsets that show clients what was registered.
_REGISTRY: Final = frozenset({"gateway", "registry"})


class _Request(NamedTuple):
    """A message of the client; `id` is None for a notification."""

    id: str | int | None
    method: str
    params: Mapping[str, Any]


class _RefusalError(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.form: Final = {"code": code, "message": message} | ({"data": data} if data else {})


class _UnansweredError(Exception):
    """A message that only the library's server can answer."""


class FirstRequests:
    """Answers a client for as long as it asks nothing else."""

    def __init__(
        self, settings: ServerSettings, database: Database, pipe: ClientPipe, caller: Caller
    ) -> None:
        self._settings = settings
        self._database = database
        self._pipe = pipe
        self._caller = caller
        self._tools = OperationTools(settings, database)
        self._handshake: list[dict[str, Any]] = []
        self._workers = ThreadPoolExecutor(limits.CALLS_AT_ONCE_MAX, "stratagem-call")
        self._running: dict[str | int, Future[None]] = {}
        self._cancelled: set[str | int] = set()
        self._unanswered = threading.Semaphore(UNANSWERED_MAX)
        self._answered_any = False

    def serve(self) -> list[bytes | None] | None:
        """Answer until stdin ends, and return None, or until a message that is not for here.

        Then return what the library's server has to read before it goes on reading the pipe.
        """
        if self._settings.expose or _REGISTRY & set(self._settings.toolsets):
            return []
        for line in self._pipe.lines:
            try:
                self._take(_read(line))
            except _UnansweredError:
                return [*map(orjson.dumps, self._handshake), line]
        return None

    def finish(self) -> None:
        """Wait for the answers to what was asked, for a bounded time."""
        wait([*self._running.values()], timeout=LAST_ANSWER_SECONDS)
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _take(self, request: _Request | None) -> None:
        if request is None:
            return
        if request.id is None:
            self._note(request)
            return
        if request.method == "initialize":
            self._answer(request.id, lambda: self._shake_hands(request.params))
        elif not self._handshake or request.id in self._running:
            raise _UnansweredError
        elif request.method == "ping":
            self._answer(request.id, dict)
        elif request.method == "tools/call":
            self._call_tool(request)
        else:
            self._list(request)

    def _note(self, notification: _Request) -> None:
        if notification.method == "notifications/initialized":
            self._handshake.append({"jsonrpc": "2.0", "method": notification.method})
        elif notification.method == "notifications/cancelled":
            cancelled = notification.params.get("requestId")
            if isinstance(cancelled, str | int) and (call := self._running.get(cancelled)):
                self._cancelled.add(cancelled)
                call.cancel()
                if call.done():
                    self._cancelled.discard(cancelled)
        else:
            raise _UnansweredError

    def _shake_hands(self, params: Mapping[str, Any]) -> dict[str, Any]:
        version, client = params.get("protocolVersion"), params.get("clientInfo")
        name = client.get("name") if isinstance(client, Mapping) else None
        described = isinstance(client, Mapping) and isinstance(client.get("version"), str)
        capable = isinstance(params.get("capabilities"), Mapping)
        complete = version in _VERSIONS and isinstance(name, str) and described and capable
        if not complete or self._handshake:
            raise _UnansweredError
        assert isinstance(name, str)
        self._caller.actor = client_actor(name)
        self._handshake.append(
            {"jsonrpc": "2.0", "id": HANDSHAKE_ID, "method": "initialize", "params": params}
        )
        return {
            "protocolVersion": version,
            "capabilities": _CAPABILITIES,
            "serverInfo": {"name": "stratagem", "title": "Stratagem", "version": VERSION},
            "instructions": instructions.instructions(self._settings),
        }

    def _list(self, request: _Request) -> None:
        if request.params.keys() - {"_meta"}:
            # The page after the first, or something that is not known here.
            raise _UnansweredError
        assert request.id is not None
        shows_entries = "memory" in self._settings.toolsets
        match request.method:
            case "tools/list":
                self._answer(request.id, lambda: {"tools": self._tools.listing_for(self._caller)})
            case "prompts/list":
                prompts = instructions.prompt_forms(self._settings)
                self._answer(request.id, lambda: {"prompts": prompts})
            case "resources/templates/list":
                templates = resource_lists.TEMPLATES if shows_entries else []
                self._answer(request.id, lambda: {"resourceTemplates": templates})
            case "resources/list" if shows_entries:
                self._answer_later(request.id, self._list_resources)
            case "resources/list":
                self._answer(request.id, lambda: {"resources": []})
            case _:
                raise _UnansweredError

    def _list_resources(self) -> dict[str, Any]:
        try:
            entries, following = resource_lists.list_entries(self._database, self._caller, None)
        except StratagemError as error:
            words = f"{error.message} {error.hint}"
            raise _RefusalError(TABLE[error.code].json_rpc_code, words, error.envelope()) from error
        listed = [*resource_lists.RESOURCES, *entries]
        return {"resources": listed} | ({"nextCursor": following} if following else {})

    def _call_tool(self, request: _Request) -> None:
        name, given = request.params.get("name"), request.params.get("arguments")
        arguments = {} if given is None else given
        fits = isinstance(name, str) and isinstance(arguments, dict)
        if not fits or request.params.keys() - {"name", "arguments", "_meta"}:
            raise _UnansweredError
        assert isinstance(name, str)
        meta = request.params.get("_meta")
        if self._tools.waits(name) or (isinstance(meta, Mapping) and "traceparent" in meta):
            # The protocol's library makes the trace of a request the current one.
            raise _UnansweredError
        assert request.id is not None
        self._answer_later(request.id, lambda: self._tools.call(name, arguments, self._caller))

    def _answer_later(self, request: str | int, work: Callable[[], dict[str, Any]]) -> None:
        """Answer by a thread of its own: other requests must not wait for the database."""
        self._unanswered.acquire()
        try:
            future = self._workers.submit(self._answer, request, work)
        except BaseException:
            self._unanswered.release()
            raise
        self._running[request] = future
        future.add_done_callback(lambda _: self._forget(request))

    def _forget(self, request: str | int) -> None:
        if self._running.pop(request, None) is not None:
            self._cancelled.discard(request)
            self._unanswered.release()

    def _answer(self, request: str | int, work: Callable[[], dict[str, Any]]) -> None:
        """Write what comes of a request, unless the client has cancelled it meanwhile."""
        try:
            answer = {"result": work()}
        except _UnansweredError:
            raise
        except UnlistedTool as error:
            data = {"similar": error.similar}
            answer = {"error": {"code": _INVALID_PARAMS, "message": str(error), "data": data}}
        except _RefusalError as error:
            answer = {"error": error.form}
        except Exception:
            # The outermost frame: a client must not see the inside.
            logger.exception("a request failed")
            words = "The request failed; the server's log says how."
            answer = {"error": {"code": _INTERNAL_ERROR, "message": words}}
        if request not in self._cancelled:
            with suppress(OSError):
                self._pipe.write(_encode({"jsonrpc": "2.0", "id": request, **answer}))
        if not self._answered_any:
            # The handshake is done: now there is time to open the database.
            self._answered_any = True
            self._database.open_in_background()


def _encode(message: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(message)
    except TypeError:
        # An integer of more than 64 bits.
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _read(line: bytes | None) -> _Request | None:
    """Return the request or notification of a line; None of a line with nothing in it.

    Raises:
        _UnansweredError: It is none that is surely understood here.
    """
    if line is None:
        raise _UnansweredError
    if not line.strip():
        return None
    try:
        message = json.loads(line, parse_constant=_refuse_constant)
        if b"\\u" in line:
            # Half a character cannot be encoded.
            orjson.dumps(message)
    except (ValueError, TypeError, RecursionError) as error:
        raise _UnansweredError from error
    if not isinstance(message, dict) or message.keys() - {"jsonrpc", "id", "method", "params"}:
        raise _UnansweredError
    identity, method = message.get("id"), message.get("method")
    params = message.get("params", {})
    if (
        message.get("jsonrpc") != "2.0"
        or not isinstance(method, str)
        or not isinstance(params, dict)
        or not _is_identity(identity, given="id" in message)
        or not _is_plain_meta(params.get("_meta", {}))
    ):
        raise _UnansweredError
    return _Request(identity, method, params)


def _is_identity(identity: object, *, given: bool) -> bool:
    return not given or isinstance(identity, str) or type(identity) is int


def _is_plain_meta(meta: object) -> bool:
    return isinstance(meta, dict) and not any(each.startswith(_MODERN_META) for each in meta)


def _refuse_constant(name: str) -> object:
    raise ValueError(name)
