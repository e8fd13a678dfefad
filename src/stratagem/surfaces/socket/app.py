"""The Socket.IO server: each event is an operation, answered by an event and by acknowledgement."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from difflib import get_close_matches
from typing import Any, Final

import socketio
from starlette.types import ASGIApp

from stratagem import limits
from stratagem.errors import (
    ExecutionTimeout,
    InternalFault,
    InvalidInput,
    OperationNotFound,
    RateLimited,
    StratagemError,
    Unauthenticated,
)
from stratagem.gateway.calls.call import report_progress_to
from stratagem.gateway.calls.work import WorkItem, report_start_to
from stratagem.gateway.inputs import ExecuteInput
from stratagem.gateway.registry.tool_sets import sets_naming
from stratagem.gateway.service import Gateway
from stratagem.operation import Caller
from stratagem.operations import find, prepare
from stratagem.surfaces.admission.authenticator import Authenticator, Principal
from stratagem.surfaces.cluster.channel import Channel
from stratagem.surfaces.cluster.rooms import SharedRooms
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.request_scope import PRINCIPAL, SOCKETS_PATH
from stratagem.surfaces.serving.surrogates import escape_surrogates
from stratagem.surfaces.socket import corrections
from stratagem.surfaces.socket.bounded_server import (
    BoundedPosts,
    BoundedServer,
    KnownPackets,
    TooDeepData,
    WebsocketsOnly,
)
from stratagem.surfaces.socket.client_tools import ClientTools
from stratagem.surfaces.socket.events import EVENTS, NOTIFICATIONS, SocketEvent
from stratagem.surfaces.socket.socket_expiry import SocketExpiry

__all__ = ["Sockets"]

logger = logging.getLogger(__name__)

Answer = dict[str, Any]
Work = Callable[[str, Mapping[str, Any], Caller], Awaitable[Any]]


class Sockets:
    """The Socket.IO surface: connections, events and notifications."""

    def __init__(
        self,
        database: Database,
        authenticator: Authenticator,
        *,
        channel: Channel | None = None,
        number: int | None = None,
    ) -> None:
        """Serve clients; those of other processes are reached by a channel.

        `number`: which process this is, where requests find the way to the one they belong to.
        """
        self._database = database
        self._authenticator = authenticator
        self._rooms = SharedRooms(channel) if channel is not None else None
        # Polling takes many requests, each of which may meet another process.
        self._polls = channel is None or number is not None
        self._server = BoundedServer(
            authenticator.quotas.unauthenticated_sockets,
            authenticator.quotas.large_bodies,
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
        self._client_tools = ClientTools(self._server, database, self._rooms)
        self._known_events: list[str] = []
        self._listening: dict[str | None, asyncio.Task[None]] = {}
        self._stream_slots: dict[str, ExitStack] = {}
        self._calls: dict[str, set[asyncio.Task[Any]]] = {}
        self._expiry = SocketExpiry(authenticator, self._dismiss)
        self._add_handlers()

    def application(self) -> ASGIApp:
        """Return the server as an ASGI application."""
        app: ASGIApp = KnownPackets(socketio.ASGIApp(self._server, socketio_path=SOCKETS_PATH))
        if not self._polls:
            return WebsocketsOnly(app)
        return BoundedPosts(app, self._server.is_authenticated)

    def start(self) -> None:
        """Notify clients of other processes of what happens here, even before this one has any.

        Call it on the server's event loop.
        """
        if self._rooms is not None:
            loop = asyncio.get_running_loop()
            self._database.on_open(
                lambda workspace: loop.call_soon_threadsafe(self._listen, workspace)
            )

    def _add_handlers(self) -> None:
        self._server.on("connect", self._connect)
        self._server.on("disconnect", self._disconnect)
        for name, event in {**EVENTS, **corrections.EVENTS}.items():
            self._on(name, self._operation_handler(event), event.reply)
        self._on("mcp:tool:execute", self._execute, None)
        self._on("mcp:tool:register", self._client_tools.register, "mcp:tool:registered")
        self._on(
            "mcp:provider:register", self._client_tools.register_provider, "mcp:provider:registered"
        )
        self._on("mcp:tool:progress", self._client_tools.report_progress, None)
        self._on("mcp:tools:init", self._init, "mcp:tools:init:response")
        self._on("mcp:tool:cancel", self._cancel, "mcp:tool:cancelled")
        subscriptions = corrections.Subscriptions(self._server)
        subscribed = "auto_correction:subscribed"
        self._on("auto_correction:subscribe", self._subscribe_handler(subscriptions), subscribed)
        self._on(
            "auto_correction:unsubscribe", subscriptions.unsubscribe, "auto_correction:unsubscribed"
        )

        self._server.on("*", self._answer_unknown)

    def _on(self, name: str, work: Work, reply: str | None) -> None:
        """Answer an event: with another event, and by acknowledging it."""
        self._known_events.append(name)

        async def handle(client: str, *data: Any) -> Answer:
            return await self._answer(name, work, reply, client, data)

        self._server.on(name, handle)

    async def _answer_unknown(self, name: str, client: str, *data: Any) -> Answer:
        """Say that there is no such event: whoever waits for an answer would wait for ever."""
        shown = str(name)[: limits.KEY_CHARS_MAX]

        async def refuse(_client: str, _data: Mapping[str, Any], _caller: Caller) -> Any:
            near = get_close_matches(shown, self._known_events, n=2)
            raise OperationNotFound(
                f"There is no event {shown!r}.",
                field="event",
                hint=f"Did you mean {' or '.join(near)}?"
                if near
                else "docs/gateway.md lists them.",
            )

        return await self._answer(shown, refuse, None, client, data[:1])

    async def _answer(
        self, name: str, work: Work, reply: str | None, client: str, data: Sequence[Any]
    ) -> Answer:
        request = _request_of(next(iter(data), None))
        try:
            given = _check_object(data)
            principal = await self._reauthenticate(client)
            with self._request_slot(principal):
                answer = await work(client, given, self._authenticator.caller(principal, "socket"))
        except Exception as error:  # noqa: BLE001 -- the outermost frame
            if isinstance(error, RateLimited):
                await self._authenticator.quotas.delay_refusal()
            failure = _error_data(error)
            shown = {**failure, "event": name, "requestId": request}
            await self._server.emit("mcp:error", shown, to=client)
            return {"success": False, "error": failure}
        if reply is not None:
            await self._server.emit(reply, answer, to=client)
        return {"success": True, "data": answer}

    async def _connect(self, client: str, environ: Mapping[str, Any], auth: Any = None) -> None:
        """Authenticate a client: by the header of its first request, or by its `auth` data."""
        scope = environ["asgi.scope"]
        principal = scope.get(PRINCIPAL)
        if principal is None:
            sent = auth if isinstance(auth, Mapping) else {}
            token, workspace = sent.get("token"), sent.get("workspace")
            address = scope.get("client") or ("",)
            try:
                principal = await self._authenticator.authenticate(
                    [f"Bearer {token}"] if isinstance(token, str) else [],
                    workspace=workspace if isinstance(workspace, str) else None,
                    address=address[0],
                    route="socket connect",
                )
            except StratagemError as error:
                raise _refusal(error) from error
            self._hold_stream_slot(client, principal)
        await self._server.save_session(client, {_PRINCIPAL: principal})
        self._expiry.add(client, principal)
        caller = self._authenticator.caller(principal, "socket")
        if caller.may("gateway", "read"):
            for tool_set in [None] if caller.tool_sets is None else caller.tool_sets:
                await self._server.enter_room(client, _room(caller.workspace, tool_set))
            self._listen(caller.workspace)

    async def _dismiss(self, client: str, error: Unauthenticated) -> None:
        """Disconnect a socket whose token is no longer valid; it is told why."""
        await self._server.emit("mcp:error", _error_data(error), to=client)
        await self._server.disconnect(client)

    def _hold_stream_slot(self, client: str, principal: Principal | None) -> None:
        """Count a socket among the streams of its token; others were counted by the middleware."""
        if principal is None:
            return
        held = ExitStack()
        try:
            held.enter_context(self._authenticator.quotas.stream_slot(principal.identity))
        except RateLimited as error:
            raise _refusal(error) from error
        self._stream_slots[client] = held

    async def _disconnect(self, client: str, _reason: Any = None) -> None:
        self._expiry.drop(client)
        if (held := self._stream_slots.pop(client, None)) is not None:
            held.close()
        for task in self._calls.pop(client, ()):
            task.cancel()
        await self._client_tools.remove_client(client)

    async def _reauthenticate(self, client: str) -> Principal | None:
        """Return the principal of a client, checked anew: its token may have been revoked since."""
        session = await self._server.get_session(client)
        principal: Principal | None = session.get(_PRINCIPAL)
        await self._authenticator.reauthenticate(principal)
        return principal

    @contextmanager
    def _request_slot(self, principal: Principal | None) -> Iterator[None]:
        if principal is None:
            yield
            return
        quotas = self._authenticator.quotas
        quotas.count_request(principal.identity)
        with quotas.request_slot(principal.identity):
            yield

    @contextmanager
    def _as_call_of(self, client: str, data: Mapping[str, Any]) -> Iterator[None]:
        """Tell a client the id of what it calls as soon as it has one, and end it when it leaves.

        A call under a request id goes on: the client may ask again what came of it.
        """
        task = asyncio.current_task()
        assert task is not None
        calls = self._calls.setdefault(client, set())
        if data.get("requestId") is None:
            calls.add(task)

        known: dict[str, Any] = {}

        def tell(item: WorkItem) -> None:
            request = next(iter(item.request_ids), None)
            known.update({"executionId": item.id, "requestId": request, "toolName": item.name})
            started = {
                "executionId": item.id,
                "kind": item.kind,
                "name": item.name,
                "requestId": request,
            }
            _run_soon(self._server.emit("mcp:work:started", started, to=client))

        def progress(fraction: float | None, message: str | None) -> None:
            percentage = None if fraction is None else round(100 * fraction, 1)
            shown = {**known, "percentage": percentage, "message": message}
            _run_soon(self._server.emit("mcp:tool:progress", shown, to=client))

        try:
            with report_start_to(tell), report_progress_to(progress):
                yield
        finally:
            calls.discard(task)
            if not calls:
                self._calls.pop(client, None)

    def _operation_handler(self, event: SocketEvent) -> Work:
        async def work(client: str, data: Mapping[str, Any], caller: Caller) -> Any:
            calls_tools = find(event.operation).calls_tools
            with self._as_call_of(client, data) if calls_tools else nullcontext():
                answer = await self._database.call_async(event.operation, dict(data), caller)
            return escape_surrogates(event.shape(answer))

        return work

    async def _execute(self, client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """Run a tool, with progress on the way, and the result as an event of its own."""
        given = prepare(find("tool_execute"), data, caller).given
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
            _run_soon(self._server.emit("mcp:tool:progress", shown, to=client))

        try:
            with self._as_call_of(client, data):
                async with self._database.calls.track("tool_execute", data, caller):
                    answer = await Gateway(gateway, caller).execute(given, progress, execution)
        except StratagemError as error:
            failed = {**known, "success": False, "error": _error_data(error)}
            await self._server.emit("mcp:tool:result", failed, to=client)
            if isinstance(error, ExecutionTimeout):
                await self._server.emit("mcp:tool:timeout", known, to=client)
            raise
        if answer.get("running"):
            return {**answer}
        shown = {
            **known,
            # A repeat is answered by the execution that was there first.
            "executionId": answer["executionId"],
            "success": True,
            "output": answer["result"],
            "metadata": answer["metadata"],
        }
        await self._server.emit("mcp:tool:result", escape_surrogates(shown), to=client)
        return {**answer}

    async def _init(self, _client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """Say which of the tools that an agent needs are there."""
        required = data.get("requiredTools") or []
        if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
            raise InvalidInput("`requiredTools` must be a list of names.", field="requiredTools")
        available, missing, unavailable = [], [], []
        for name in required[: limits.BATCH_MAX]:
            try:
                found = await self._database.call_async("tool_get", {"toolId": name}, caller)
            except StratagemError:
                missing.append(name)
            else:
                tool = found["tool"]
                if (lacking := tool.get("unavailable")) is not None:
                    unavailable.append({"name": name, **lacking})
                else:
                    available.append({field: tool.get(field) for field in _TOOL_FIELDS})
        return {
            "agentId": data.get("agentId"),
            "ready": not missing and not unavailable,
            "available": available,
            "missing": missing,
            "unavailable": unavailable,
        }

    async def _cancel(self, _client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
        """Stop a call, batch or pipeline: by its id, or by the caller's own of its request."""
        which = data.get("executionId", data.get("requestId"))
        given = {"executionId": which} if which is not None else {}
        return await self._database.call_async("work_cancel", given, caller)

    def _subscribe_handler(self, subscriptions: corrections.Subscriptions) -> Work:
        async def work(client: str, data: Mapping[str, Any], caller: Caller) -> Answer:
            answer = await subscriptions.subscribe(client, data, caller)
            # From the answer on nothing may be missed.
            self._listen(caller.workspace)
            await self._listening[caller.workspace]
            return answer

        return work

    def _listen(self, workspace: str | None) -> None:
        """Notify the clients of a workspace of what happens in it, from the first client on."""
        if workspace in self._listening:
            return

        async def begin() -> None:
            runtime = await asyncio.to_thread(self._database.runtime, workspace)
            gateway = await asyncio.to_thread(lambda: runtime.gateway)
            gateway.home.adopt()
            if self._rooms is not None:
                self._client_tools.attach(gateway)
            gateway.events.subscribe(lambda what, data: self._notify(workspace, what, data))

        self._listening[workspace] = asyncio.ensure_future(begin())

    def _notify(self, workspace: str | None, what: str, data: Mapping[str, Any]) -> None:
        if (event := NOTIFICATIONS.get(what)) is not None:
            shown = escape_surrogates(dict(data))
            _run_soon(self._server.emit(event, shown, to=_room(workspace)))
            _run_soon(self._notify_limited(workspace, event, shown))
        for name, about, rooms in corrections.notifications(workspace, what, data):
            _run_soon(self._server.emit(name, escape_surrogates(about), to=rooms))

    async def _notify_limited(self, workspace: str | None, event: str, shown: Answer) -> None:
        """Notify clients whose tokens are limited to sets of tools: of the tools of these sets."""
        sets: list[str] = []
        # A database that does not answer for a moment is no reason for more than silence.
        with suppress(StratagemError):
            runtime = await asyncio.to_thread(self._database.runtime, workspace)
            sets = await asyncio.to_thread(sets_naming, runtime.foundation, shown["name"])
        if sets:
            await self._server.emit(event, shown, to=[_room(workspace, each) for each in sets])


_PRINCIPAL: Final = "principal"


_TOOL_FIELDS: Final = ("id", "name", "description", "category", "inputSchema")
_BACKGROUND: Final[set[asyncio.Task[None]]] = set()


def _room(workspace: str | None, tool_set: str | None = None) -> str:
    """Return the room of a workspace, whose events reach no client of another.

    Clients whose tokens are limited to sets of tools are in the rooms of these sets instead.
    """
    place = f"workspace:{workspace or ''}"
    return place if tool_set is None else f"{place}:toolset:{tool_set}"


def _run_soon(work: Awaitable[None]) -> None:
    """Do something on this loop without waiting for it."""
    task = asyncio.ensure_future(work)
    # The loop itself keeps only a weak hold of a task.
    _BACKGROUND.add(task)
    task.add_done_callback(_BACKGROUND.discard)


def _check_object(given: Sequence[Any]) -> Mapping[str, Any]:
    if len(given) > 1:
        raise InvalidInput(f"An event has one JSON object, not {len(given)} values.")
    data = next(iter(given), None)
    if data is None:
        return {}
    if isinstance(data, TooDeepData):
        raise data.error
    if not isinstance(data, Mapping):
        raise InvalidInput(f"The event's data is a JSON object, not {type(data).__name__}.")
    return data


def _request_of(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return None
    context = data.get("context")
    said = context.get("requestId") if isinstance(context, Mapping) else None
    return said if said is not None else data.get("requestId")


def _refusal(error: StratagemError) -> Exception:
    """Return what refuses a connection: a text as `message`, and the envelope as `data`."""
    refusal: Exception = socketio.exceptions.ConnectionRefusedError(
        error.message, _error_data(error)
    )
    return refusal


def _error_data(error: Exception) -> Answer:
    if not isinstance(error, StratagemError):
        logger.error("an event failed", exc_info=error)
        error = InternalFault("The event failed; the server's log says how.")
    failure: Answer = escape_surrogates(error.gateway_body())
    return failure


def _error_log(name: str) -> logging.Logger:
    """Return the log of a library, for errors only.

    Left to itself the library adds a handler of its own, which writes each error a second time and
    counts no repeats: a client that sends broken messages would fill the log.
    """
    log = logging.getLogger(name)
    log.setLevel(logging.ERROR)
    return log
