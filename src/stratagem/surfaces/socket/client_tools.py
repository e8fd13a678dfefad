"""Tools and providers that clients host: the server calls them back on the client's socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import (
    ExecutionFailed,
    InvalidInput,
    StratagemError,
    ValidationFailed,
)
from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.gateway.definitions.sanitize import clean_line
from stratagem.gateway.handlers.client import ClientRunner, not_connected_error
from stratagem.operation import Caller

if TYPE_CHECKING:
    import socketio

    from stratagem.gateway.parts import GatewayParts
    from stratagem.surfaces.cluster.rooms import SharedRooms
    from stratagem.surfaces.serving.database import Database

__all__ = ["CALL", "CANCEL", "ClientTools"]

# What a client answers by its acknowledgement: {"result": …} or {"error": "…"}.
CALL: Final = "mcp:tool:call"
# Sent to a client whose answer is no longer awaited: it can stop its work.
CANCEL: Final = "mcp:tool:cancel"
_PROVIDER_INITIALISE: Final = "mcp:provider:initialize"
_PROVIDER_LIST: Final = "mcp:provider:list"
_PROVIDER_EXECUTE: Final = "mcp:provider:execute"
_PROVIDER_SECONDS: Final = 30
_WHOLE: Final = 100
# How often it is asked whether a client of another process is still there.
_PRESENCE_CHECK_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class _ClientTool:
    """A tool that a client hosts. `event` is what it is called by."""

    caller: Caller
    event: str
    provider: str | None


class ClientTools:
    """Which tools each connected client hosts."""

    def __init__(
        self, sockets: socketio.AsyncServer, database: Database, rooms: SharedRooms | None = None
    ) -> None:
        # The way to clients of other processes, where there are any.
        self._rooms = rooms
        self._sockets = sockets
        self._database = database
        self._tools: dict[str, dict[str, _ClientTool]] = {}
        # Calls that clients run: by execution, whose it is and where its progress goes.
        self._running: dict[str, tuple[str, Run]] = {}
        # Done when a client leaves, so that its answers are no longer awaited.
        self._departures: dict[str, asyncio.Future[None]] = {}

    async def register(self, client: str, data: Mapping[str, Any], caller: Caller) -> Any:
        """Register a tool; one without a handler is hosted by the client itself."""
        caller.require("gateway", "write", "registering a tool")
        handler = data.get("handler")
        if isinstance(handler, Mapping) and handler.get("type") not in {None, "client"}:
            return await self._database.call_async("tool_register", dict(data), caller)
        return await self._host(client, data, caller, CALL, None)

    async def register_provider(
        self, client: str, data: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any]:
        """Take a provider: initialise it, ask for its tools, and register each."""
        caller.require("gateway", "write", "registering a provider")
        name = data.get("name")
        if not isinstance(name, str) or not name.strip():
            raise ValidationFailed("A provider needs a `name`.", field="name")
        config = data.get("config") or {}
        asked = {"name": name, "config": config}
        _result_of(
            f"{name} did not initialise", await self._ask(client, _PROVIDER_INITIALISE, asked)
        )
        answer = await self._ask(client, _PROVIDER_LIST, {"name": name})
        listed = _result_of(f"{name} did not list its tools", answer)
        tools = listed.get("tools") if isinstance(listed, Mapping) else listed
        if not isinstance(tools, list):
            raise ExecutionFailed(
                f"The provider {name} listed no tools.",
                answered=True,
                hint='Acknowledge mcp:provider:list with a list of tools, or {"tools": [...]}.',
            )
        registered = []
        for tool in tools:
            if not isinstance(tool, Mapping):
                raise InvalidInput(f"The provider {name} listed something that is not a tool.")
            definition = {"provider": name, **tool}
            answer = await self._host(client, definition, caller, _PROVIDER_EXECUTE, name)
            registered.append(answer["name"])
        return {"name": name, "tools": registered, "status": "active"}

    async def report_progress(
        self, client: str, data: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any]:
        """Pass on how far a client is with a call that it runs; `known`: whether it does."""
        caller.require("gateway", "write", "reporting progress of a hosted tool")
        percentage, message = data.get("percentage"), data.get("message")
        is_number = isinstance(percentage, int | float) and not isinstance(percentage, bool)
        if percentage is not None and not (is_number and 0 <= percentage <= _WHOLE):
            raise ValidationFailed(
                "`percentage` must be a number from 0 to 100, or null.",
                field="percentage",
                limit=_WHOLE,
            )
        if message is not None and not isinstance(message, str):
            raise ValidationFailed("`message` is a text.", field="message")
        host, run = self._running.get(str(data.get("executionId")), (None, None))
        if run is None or host != client:
            return {"known": False}
        shown = None if message is None else clean_line(message, limits.UPSTREAM_TITLE_CHARS_MAX)
        run.progress(None if percentage is None else percentage / _WHOLE, shown)
        return {"known": True}

    def attach(self, gateway: GatewayParts) -> None:
        """Let calls of a gateway reach the clients of other processes too."""
        runner = gateway.runners["client"]
        assert isinstance(runner, ClientRunner)
        runner.call_other_process = self.call_elsewhere

    async def remove_client(self, client: str) -> None:
        """Remove the tools of a client that has disconnected from the registry."""
        tools = self._tools.pop(client, {})
        if (departure := self._departures.pop(client, None)) is not None and not departure.done():
            departure.set_result(None)
        if not tools:
            return
        workspace = next(iter(tools.values())).caller.workspace
        (await self._runner(workspace)).leave(client)
        for name, each in tools.items():
            try:
                await self._database.call_async("tool_remove", {"toolId": name}, each.caller)
            except StratagemError:
                # It is removed already, or may not be: it cannot be called any more either way.
                continue

    async def _host(
        self,
        client: str,
        data: Mapping[str, Any],
        caller: Caller,
        event: str,
        provider: str | None,
    ) -> dict[str, Any]:
        runner = await self._runner(caller.workspace)
        if not runner.hosts(client):
            runner.host(
                client, lambda tool, arguments, run: self._call(client, tool, arguments, run)
            )
        definition = dict(data)
        definition["handler"] = {
            "type": "client",
            "client": client,
            "tool": data.get("name"),
            "event": event,
            "owner": provider,
        }
        await self._drop_orphan(runner, definition.get("name"), caller)
        answer = await self._database.call_async("tool_register", definition, caller)
        self._tools.setdefault(client, {})[answer["name"]] = _ClientTool(caller, event, provider)
        return answer

    async def _drop_orphan(self, runner: ClientRunner, name: Any, caller: Caller) -> None:
        """Remove a tool of that name whose client is gone, as after a crash of the server."""
        if not isinstance(name, str):
            return
        try:
            known = await self._database.call_async("tool_get", {"toolId": name}, caller)
        except StratagemError:
            return
        handler = known["tool"]["handler"]
        if handler.get("type") != "client" or runner.hosts(client := handler.get("client", "")):
            return
        if self._rooms is None or not await self._rooms.is_connected_anywhere(client):
            await self._database.call_async("tool_remove", {"toolId": name}, caller)

    async def _call(self, client: str, tool: str, arguments: Mapping[str, Any], run: Run) -> Any:
        """Call a tool on its client, and return what the client answers."""
        hosted_tool = self._tools.get(client, {}).get(tool)
        if hosted_tool is None:
            raise ExecutionFailed(f"The client no longer hosts {tool}.", safe=True)
        asked = {"toolName": tool, "arguments": dict(arguments)}
        if hosted_tool.provider is not None:
            asked["name"] = hosted_tool.provider
        return await self._request_result(client, hosted_tool.event, asked, run)

    async def call_elsewhere(self, handler: Handler, run: Run) -> Any:
        """Call a tool on a client of another process, and return what the client answers."""
        client = handler["client"]
        if self._rooms is None or not await self._rooms.is_connected_anywhere(client):
            raise not_connected_error(run.tool)
        asked = {"toolName": handler.get("tool", run.tool), "arguments": dict(run.arguments)}
        if handler.get("owner") is not None:
            asked["name"] = handler["owner"]
        return await self._request_result(client, handler.get("event", CALL), asked, run)

    async def _request_result(
        self, client: str, event: str, asked: dict[str, Any], run: Run
    ) -> Any:
        tool = asked["toolName"]
        asked["executionId"] = run.execution_id
        asked["timeout"] = round(run.seconds * 1000)
        self._running[run.execution_id] = client, run
        try:
            # The path's own clock runs out first; this is for what hangs behind it.
            answer = await self._ask(client, event, asked, seconds=run.seconds + 1)
        except asyncio.CancelledError:
            cancelled = {"toolName": tool, "executionId": run.execution_id}
            self._sockets.start_background_task(self._sockets.emit, CANCEL, cancelled, to=client)
            raise
        finally:
            self._running.pop(run.execution_id, None)
        return _result_of(f"{tool} failed on its client", answer)

    async def _ask(
        self, client: str, event: str, data: Mapping[str, Any], seconds: float = _PROVIDER_SECONDS
    ) -> Any:
        import socketio

        departure = self._departure_of(client)
        asking = asyncio.ensure_future(
            self._sockets.call(event, dict(data), to=client, timeout=max(1, seconds))
        )
        try:
            await asyncio.wait({asking, departure}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise ExecutionFailed(f"The client disconnected before it answered {event}.")
            return asking.result()
        except (TimeoutError, socketio.exceptions.TimeoutError) as error:
            raise ExecutionFailed(
                f"The client did not acknowledge {event} within {seconds:g} seconds."
            ) from error
        finally:
            asking.cancel()
            if isinstance(departure, asyncio.Task):
                departure.cancel()

    def _departure_of(self, client: str) -> asyncio.Future[None]:
        """Return a future that is done when a client has left."""
        here = self._rooms is None or self._rooms.is_connected(client, "/")
        if here:
            return self._departures.setdefault(client, asyncio.get_running_loop().create_future())
        return asyncio.ensure_future(self._wait_for_departure_elsewhere(client))

    async def _wait_for_departure_elsewhere(self, client: str) -> None:
        assert self._rooms is not None
        while await self._rooms.is_connected_anywhere(client):  # noqa: ASYNC110 -- it is elsewhere
            await asyncio.sleep(_PRESENCE_CHECK_SECONDS)

    async def _runner(self, workspace: str | None) -> ClientRunner:
        runtime = await asyncio.to_thread(self._database.runtime, workspace)
        runtime.gateway.home.adopt()
        runner = runtime.gateway.runners["client"]
        assert isinstance(runner, ClientRunner)
        return runner


def _result_of(what: str, answer: Any) -> Any:
    """Return what a client acknowledged something with, or raise what it says went wrong."""
    if not isinstance(answer, Mapping):
        return answer
    if answer.get("error"):
        error = answer["error"]
        message = error.get("message") if isinstance(error, Mapping) else error
        raise ExecutionFailed(f"{what}: {message}", answered=True)
    return answer.get("result", answer)
