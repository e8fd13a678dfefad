"""The Socket.IO server: each event is an operation, answered by an event and by acknowledgement."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import socketio
from starlette.types import ASGIApp

from stratagem import limits
from stratagem.errors import (
    ExecutionTimeout,
    InternalFault,
    InvalidInput,
    StratagemError,
)
from stratagem.gateway.inputs import ExecuteInput
from stratagem.gateway.service import Gateway
from stratagem.operation import Caller
from stratagem.operations import authorise, find, read_input
from stratagem.surfaces.mcp.database import Database
from stratagem.surfaces.mcp.settings import ServerSettings
from stratagem.surfaces.mcp.tools import encodable
from stratagem.surfaces.rest.answers import told
from stratagem.surfaces.socket.events import EVENTS, TOLD, Event
from stratagem.surfaces.socket.hosting import Hosting

__all__ = ["PATH", "Sockets"]

logger = logging.getLogger(__name__)

PATH: Final = "/socket.io"
Answer = dict[str, Any]
Work = Callable[[str, Mapping[str, Any], Caller], Awaitable[Any]]


class Sockets:
    """Everything that happens on sockets."""

    def __init__(self, settings: ServerSettings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._server = socketio.AsyncServer(
            async_mode="asgi",
            # Host and Origin are checked before a request comes here.
            cors_allowed_origins="*",
            max_http_buffer_size=limits.REQUEST_BYTES_MAX,
            logger=False,
            engineio_logger=False,
        )
        self._hosting = Hosting(self._server, database)
        self._listening = False
        self._add_handlers()

    def application(self) -> ASGIApp:
        """Return the server as an ASGI application."""
        app: ASGIApp = socketio.ASGIApp(self._server, socketio_path=PATH)
        return app

    def _add_handlers(self) -> None:
        self._server.on("connect", self._connect)
        self._server.on("disconnect", self._disconnect)
        for name, event in EVENTS.items():
            self._on(name, self._plain(event), event.reply)
        self._on("mcp:tool:execute", self._execute, None)
        self._on("mcp:tool:register", self._hosting.register, "mcp:tool:registered")
        self._on(
            "mcp:provider:register", self._hosting.register_provider, "mcp:provider:registered"
        )
        self._on("mcp:tools:init", self._init, "mcp:tools:init:response")
        self._on("mcp:tool:cancel", self._cancel, "mcp:tool:cancelled")

    def _on(self, name: str, work: Work, reply: str | None) -> None:
        """Answer an event: with another event, and by acknowledging it."""

        async def handle(client: str, data: Any = None) -> Answer:
            request = _request_of(data)
            try:
                given = _object(data)
                answer = await work(client, given, await self._caller(client))
            except Exception as error:  # noqa: BLE001 -- the outermost frame
                failure = _failure(error)
                shown = {**failure, "event": name, "requestId": request}
                await self._server.emit("mcp:error", shown, to=client)
                return {"success": False, "error": failure}
            if reply is not None:
                await self._server.emit(reply, answer, to=client)
            return {"success": True, "data": answer}

        self._server.on(name, handle)

    async def _connect(self, client: str, environ: Mapping[str, Any], _auth: Any = None) -> None:  # noqa: ARG002
        self._listen()
        await self._server.save_session(client, {})

    async def _disconnect(self, client: str, _reason: Any = None) -> None:
        await self._hosting.leave(client)

    async def _caller(self, client: str) -> Caller:  # noqa: ARG002 -- all are one, without tokens
        return Caller(
            "socket",
            self._settings.namespace,
            self._settings.branch,
            can_switch=False,
            local=False,
            read_only=self._settings.read_only,
        )

    def _plain(self, event: Event) -> Work:
        async def work(_client: str, data: Mapping[str, Any], caller: Caller) -> Any:
            answer = await self._database.call_async(event.operation, dict(data), caller)
            return encodable(event.shape(answer))

        return work

    async def _execute(self, client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """Run a tool, with progress on the way, and the result as an event of its own."""
        operation = find("tool_execute")
        authorise(operation, data, caller)
        given = read_input(operation, data)
        assert isinstance(given, ExecuteInput)
        runtime = await asyncio.to_thread(self._database.runtime)
        switchboard = runtime.switchboard
        switchboard.home.adopt()
        request = given.context.request_id if given.context else None
        execution = switchboard.new_id("exec")
        known = {"executionId": execution, "requestId": request, "toolName": given.tool_name}

        def progress(fraction: float | None, message: str | None) -> None:
            percentage = None if fraction is None else round(100 * fraction, 1)
            shown = {**known, "percentage": percentage, "message": message}
            _soon(self._server.emit("mcp:tool:progress", shown, to=client))

        try:
            answer = await Gateway(switchboard, caller).execute(given, progress, execution)
        except StratagemError as error:
            failed = {**known, "success": False, "error": _failure(error)}
            await self._server.emit("mcp:tool:result", failed, to=client)
            if isinstance(error, ExecutionTimeout):
                await self._server.emit("mcp:tool:timeout", known, to=client)
            raise
        shown = {
            **known,
            "success": True,
            "output": answer["result"],
            "metadata": answer["metadata"],
        }
        await self._server.emit("mcp:tool:result", encodable(shown), to=client)
        return answer

    async def _init(self, _client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """Say which of the tools that an agent needs are there."""
        required = data.get("requiredTools") or []
        if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
            raise InvalidInput("`requiredTools` is a list of names.", field="requiredTools")
        available, missing = [], []
        for name in required[: limits.BATCH_MAX]:
            try:
                found = await self._database.call_async("tool_get", {"toolId": name}, caller)
            except StratagemError:
                missing.append(name)
            else:
                tool = found["tool"]
                available.append({field: tool.get(field) for field in _BRIEF})
        return {
            "agentId": data.get("agentId"),
            "ready": not missing,
            "available": available,
            "missing": missing,
        }

    async def _cancel(self, _client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """Stop a call that is under way."""
        caller.require("gateway", "execute", "cancelling a call")
        runtime = await asyncio.to_thread(self._database.runtime)
        execution = str(data.get("executionId", ""))
        return {
            "executionId": execution,
            "cancelled": Gateway(runtime.switchboard, caller).cancel(execution),
        }

    def _listen(self) -> None:
        """Tell every client of what happens, once there is a client."""
        if self._listening:
            return
        self._listening = True

        async def begin() -> None:
            runtime = await asyncio.to_thread(self._database.runtime)
            switchboard = await asyncio.to_thread(lambda: runtime.switchboard)
            switchboard.home.adopt()
            switchboard.listen(self._hear)

        _soon(begin())

    def _hear(self, what: str, data: Mapping[str, Any]) -> None:
        if (event := TOLD.get(what)) is not None:
            _soon(self._server.emit(event, encodable(dict(data))))


_BRIEF: Final = ("id", "name", "description", "category", "inputSchema")
_UNDER_WAY: Final[set[asyncio.Task[None]]] = set()


def _soon(work: Awaitable[None]) -> None:
    """Do something on this loop without waiting for it."""
    task = asyncio.ensure_future(work)
    # The loop itself keeps only a weak hold of a task.
    _UNDER_WAY.add(task)
    task.add_done_callback(_UNDER_WAY.discard)


def _object(data: Any) -> Mapping[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise InvalidInput(f"The event's data is a JSON object, not {type(data).__name__}.")
    return data


def _request_of(data: Any) -> Any:
    context = data.get("context") if isinstance(data, Mapping) else None
    return context.get("requestId") if isinstance(context, Mapping) else None


def _failure(error: Exception) -> Answer:
    if not isinstance(error, StratagemError):
        logger.error("an event failed", exc_info=error)
        error = InternalFault("The event failed; the server's log says how.")
    failure: Answer = encodable(told(error))
    return failure
