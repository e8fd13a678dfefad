"""The Socket.IO server: each event is an operation, answered by an event and by acknowledgement."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import socketio
from starlette.types import ASGIApp

from stratagem import limits
from stratagem.errors import (
    ExecutionTimeout,
    InternalFault,
    InvalidInput,
    RateLimited,
    StratagemError,
    Unauthenticated,
)
from stratagem.gateway.inputs import ExecuteInput
from stratagem.gateway.service import Gateway
from stratagem.operation import Caller
from stratagem.operations import find, prepare
from stratagem.surfaces.admission.authenticator import Admission, Admitted
from stratagem.surfaces.cluster.channel import Channel
from stratagem.surfaces.cluster.rooms import SharedRooms
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.request_scope import ADMITTED
from stratagem.surfaces.serving.surrogates import escape_surrogates
from stratagem.surfaces.socket import corrections
from stratagem.surfaces.socket.bounded_server import (
    BoundedPosts,
    GuardedServer,
    OnlyWebsockets,
    TooDeep,
)
from stratagem.surfaces.socket.client_tools import Hosting
from stratagem.surfaces.socket.events import EVENTS, TOLD, Event
from stratagem.surfaces.socket.socket_expiry import Sweeping

__all__ = ["PATH", "Sockets"]

logger = logging.getLogger(__name__)

PATH: Final = "/socket.io"
Answer = dict[str, Any]
Work = Callable[[str, Mapping[str, Any], Caller], Awaitable[Any]]


class Sockets:
    """Everything that happens on sockets."""

    def __init__(
        self,
        database: Database,
        admission: Admission,
        *,
        channel: Channel | None = None,
        number: int | None = None,
    ) -> None:
        """Serve clients; those of other processes are reached by a channel.

        `number`: which process this is, where requests find the way to the one they belong to.
        """
        self._database = database
        self._admission = admission
        self._rooms = SharedRooms(channel) if channel is not None else None
        # Polling takes many requests, each of which may meet another process.
        self._polls = channel is None or number is not None
        self._server = GuardedServer(
            admission.measures.unknown,
            admission.measures.large,
            number,
            async_mode="asgi",
            client_manager=self._rooms,
            transports=None if self._polls else ["websocket"],
            # Host and Origin are checked before a request comes here.
            cors_allowed_origins="*",
            max_http_buffer_size=limits.REQUEST_BYTES_MAX,
            logger=_error_log("socketio.server"),
            engineio_logger=_error_log("engineio.server"),
        )
        self._hosting = Hosting(self._server, database, self._rooms)
        self._listening: dict[str | None, asyncio.Task[None]] = {}
        self._held: dict[str, ExitStack] = {}
        self._sweeping = Sweeping(admission, self._dismiss)
        self._add_handlers()

    def application(self) -> ASGIApp:
        """Return the server as an ASGI application."""
        app: ASGIApp = socketio.ASGIApp(self._server, socketio_path=PATH)
        if not self._polls:
            return OnlyWebsockets(app)
        return BoundedPosts(app, self._server.is_known)

    def start(self) -> None:
        """Tell clients of other processes of what happens here, whether or not there are any here.

        Call it on the server's event loop.
        """
        if self._rooms is not None:
            loop = asyncio.get_running_loop()
            self._database.when_opened(
                lambda workspace: loop.call_soon_threadsafe(self._listen, workspace)
            )

    def _add_handlers(self) -> None:
        self._server.on("connect", self._connect)
        self._server.on("disconnect", self._disconnect)
        for name, event in {**EVENTS, **corrections.EVENTS}.items():
            self._on(name, self._plain(event), event.reply)
        self._on("mcp:tool:execute", self._execute, None)
        self._on("mcp:tool:register", self._hosting.register, "mcp:tool:registered")
        self._on(
            "mcp:provider:register", self._hosting.register_provider, "mcp:provider:registered"
        )
        self._on("mcp:tools:init", self._init, "mcp:tools:init:response")
        self._on("mcp:tool:cancel", self._cancel, "mcp:tool:cancelled")
        heard = corrections.Subscriptions(self._server)
        subscribed = "auto_correction:subscribed"
        self._on("auto_correction:subscribe", self._subscribing(heard), subscribed)
        self._on("auto_correction:unsubscribe", heard.unsubscribe, "auto_correction:unsubscribed")

    def _on(self, name: str, work: Work, reply: str | None) -> None:
        """Answer an event: with another event, and by acknowledging it."""

        async def handle(client: str, data: Any = None) -> Answer:
            request = _request_of(data)
            try:
                given = _object(data)
                admitted = await self._confirmed(client)
                with self._measured(admitted):
                    answer = await work(client, given, self._admission.caller(admitted, "socket"))
            except Exception as error:  # noqa: BLE001 -- the outermost frame
                if isinstance(error, RateLimited):
                    await self._admission.measures.pause()
                failure = _failure(error)
                shown = {**failure, "event": name, "requestId": request}
                await self._server.emit("mcp:error", shown, to=client)
                return {"success": False, "error": failure}
            if reply is not None:
                await self._server.emit(reply, answer, to=client)
            return {"success": True, "data": answer}

        self._server.on(name, handle)

    async def _connect(self, client: str, environ: Mapping[str, Any], auth: Any = None) -> None:
        """Let a client in: by the header of its first request, or by what it sends along."""
        scope = environ["asgi.scope"]
        admitted = scope.get(ADMITTED)
        if admitted is None:
            sent = auth if isinstance(auth, Mapping) else {}
            token, workspace = sent.get("token"), sent.get("workspace")
            address = scope.get("client") or ("",)
            try:
                admitted = await self._admission.admit(
                    [f"Bearer {token}"] if isinstance(token, str) else [],
                    workspace=workspace if isinstance(workspace, str) else None,
                    address=address[0],
                    way="socket connect",
                )
            except StratagemError as error:
                raise _refusal(error) from error
            self._hold(client, admitted)
        await self._server.save_session(client, {_ADMITTED: admitted})
        self._sweeping.add(client, admitted)
        caller = self._admission.caller(admitted, "socket")
        if caller.may("gateway", "read"):
            await self._server.enter_room(client, _room(caller.workspace))
            self._listen(caller.workspace)

    async def _dismiss(self, client: str, error: Unauthenticated) -> None:
        """End a socket that may no longer be there; it is told why."""
        await self._server.emit("mcp:error", _failure(error), to=client)
        await self._server.disconnect(client)

    def _hold(self, client: str, admitted: Admitted | None) -> None:
        """Count a socket among the streams of its token; others were counted at the door."""
        if admitted is None:
            return
        held = ExitStack()
        try:
            held.enter_context(self._admission.measures.stream(admitted.identity))
        except RateLimited as error:
            raise _refusal(error) from error
        self._held[client] = held

    async def _disconnect(self, client: str, _reason: Any = None) -> None:
        self._sweeping.drop(client)
        if (held := self._held.pop(client, None)) is not None:
            held.close()
        await self._hosting.leave(client)

    async def _confirmed(self, client: str) -> Admitted | None:
        """Return who a client is, checked anew: its token may have been revoked since."""
        session = await self._server.get_session(client)
        admitted: Admitted | None = session.get(_ADMITTED)
        await self._admission.confirm(admitted)
        return admitted

    @contextmanager
    def _measured(self, admitted: Admitted | None) -> Iterator[None]:
        if admitted is None:
            yield
            return
        measures = self._admission.measures
        measures.count(admitted.identity)
        with measures.request(admitted.identity):
            yield

    def _plain(self, event: Event) -> Work:
        async def work(_client: str, data: Mapping[str, Any], caller: Caller) -> Any:
            answer = await self._database.call_async(event.operation, dict(data), caller)
            return escape_surrogates(event.shape(answer))

        return work

    async def _execute(self, client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """Run a tool, with progress on the way, and the result as an event of its own."""
        given = prepare(find("tool_execute"), data, caller)
        assert isinstance(given, ExecuteInput)
        runtime = await asyncio.to_thread(self._database.runtime, caller.workspace)
        gateway = runtime.gateway
        gateway.home.adopt()
        request = (given.context.request_id if given.context else None) or given.request_id
        execution = gateway.new_id("exec")
        known = {"executionId": execution, "requestId": request, "toolName": given.tool_name}

        def progress(fraction: float | None, message: str | None) -> None:
            percentage = None if fraction is None else round(100 * fraction, 1)
            shown = {**known, "percentage": percentage, "message": message}
            _soon(self._server.emit("mcp:tool:progress", shown, to=client))

        try:
            async with self._database.calls.under_way("tool_execute", data, caller):
                answer = await Gateway(gateway, caller).execute(given, progress, execution)
        except StratagemError as error:
            failed = {**known, "success": False, "error": _failure(error)}
            await self._server.emit("mcp:tool:result", failed, to=client)
            if isinstance(error, ExecutionTimeout):
                await self._server.emit("mcp:tool:timeout", known, to=client)
            raise
        shown = {
            **known,
            # A repeat is answered by the execution that was there first.
            "executionId": answer["executionId"],
            "success": True,
            "output": answer["result"],
            "metadata": answer["metadata"],
        }
        await self._server.emit("mcp:tool:result", escape_surrogates(shown), to=client)
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
        runtime = await asyncio.to_thread(self._database.runtime, caller.workspace)
        execution = str(data.get("executionId", ""))
        return {
            "executionId": execution,
            "cancelled": Gateway(runtime.gateway, caller).cancel(execution),
        }

    def _subscribing(self, heard: corrections.Subscriptions) -> Work:
        async def work(client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
            answer = await heard.subscribe(client, data, caller)
            # From the answer on nothing may be missed.
            self._listen(caller.workspace)
            await self._listening[caller.workspace]
            return answer

        return work

    def _listen(self, workspace: str | None) -> None:
        """Tell the clients of a workspace of what happens in it, once there is a client."""
        if workspace in self._listening:
            return

        async def begin() -> None:
            runtime = await asyncio.to_thread(self._database.runtime, workspace)
            gateway = await asyncio.to_thread(lambda: runtime.gateway)
            gateway.home.adopt()
            if self._rooms is not None:
                self._hosting.attend(gateway)
            gateway.events.subscribe(lambda what, data: self._hear(workspace, what, data))

        self._listening[workspace] = asyncio.ensure_future(begin())

    def _hear(self, workspace: str | None, what: str, data: Mapping[str, Any]) -> None:
        if (event := TOLD.get(what)) is not None:
            shown = escape_surrogates(dict(data))
            _soon(self._server.emit(event, shown, to=_room(workspace)))
        for name, about, rooms in corrections.addressed(workspace, what, data):
            _soon(self._server.emit(name, escape_surrogates(about), to=rooms))


_ADMITTED: Final = "admitted"


_BRIEF: Final = ("id", "name", "description", "category", "inputSchema")
_UNDER_WAY: Final[set[asyncio.Task[None]]] = set()


def _room(workspace: str | None) -> str:
    """Return the room of a workspace: nobody outside of it hears what happens in it."""
    return f"workspace:{workspace or ''}"


def _soon(work: Awaitable[None]) -> None:
    """Do something on this loop without waiting for it."""
    task = asyncio.ensure_future(work)
    # The loop itself keeps only a weak hold of a task.
    _UNDER_WAY.add(task)
    task.add_done_callback(_UNDER_WAY.discard)


def _object(data: Any) -> Mapping[str, Any]:
    if data is None:
        return {}
    if isinstance(data, TooDeep):
        raise data.error
    if not isinstance(data, Mapping):
        raise InvalidInput(f"The event's data is a JSON object, not {type(data).__name__}.")
    return data


def _request_of(data: Any) -> Any:
    context = data.get("context") if isinstance(data, Mapping) else None
    return context.get("requestId") if isinstance(context, Mapping) else None


def _refusal(error: StratagemError) -> Exception:
    """Return what refuses a connection: a text as `message`, and the envelope as `data`."""
    refusal: Exception = socketio.exceptions.ConnectionRefusedError(error.message, _failure(error))
    return refusal


def _failure(error: Exception) -> Answer:
    if not isinstance(error, StratagemError):
        logger.error("an event failed", exc_info=error)
        error = InternalFault("The event failed; the server's log says how.")
    failure: Answer = escape_surrogates(error.gateway_body())
    return failure


def _error_log(name: str) -> logging.Logger:
    """Return the log of a library, for errors only.

    Left to itself the library adds a handler of its own, which writes each error a second time and
    counts no repeats: whoever sends broken messages would fill the log.
    """
    log = logging.getLogger(name)
    log.setLevel(logging.ERROR)
    return log
