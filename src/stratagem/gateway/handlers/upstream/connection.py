"""One open connection to an upstream server.

A task of its own opens and closes it, because the SDK requires that the task which opened a
session closes it; calls come from any task. Messages bypass the SDK's typed client, so that an
answer or a list that violates the protocol in one place is still usable in the others, and
arguments and results pass through unchanged.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import httpx2
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ExecutionFailed, StratagemError
from stratagem.gateway.definitions.contract import ProgressReport, ScrubbingSecrets, Secrets
from stratagem.gateway.definitions.documents import ServerDocument
from stratagem.gateway.definitions.questions import (
    Asker,
    Deadlines,
    QuestionRefused,
    current_asker,
    current_deadlines,
    note_question,
    wait_for_person,
)
from stratagem.gateway.handlers.upstream.definitions import ServerDefinition, StdioServer
from stratagem.gateway.handlers.upstream.dispatcher import ConnectionLost, MessageDispatcher
from stratagem.gateway.handlers.upstream.http import (
    EventStreamDispatcher,
    RequestDelivery,
    delivery_var,
    open_http,
)
from stratagem.gateway.handlers.upstream.primitives import (
    LISTS,
    UpstreamPrimitives,
    read_primitives,
)
from stratagem.gateway.handlers.upstream.stdio import ServerProcess, open_process
from stratagem.gateway.handlers.upstream.upstream_tools import (
    UpstreamTools,
    clean_line,
    clean_text,
    read_upstream_tools,
)
from stratagem.redaction import mask_values
from stratagem.version import VERSION

__all__ = ["ConnectionListeners", "ConnectionResources", "SessionEnded", "UpstreamConnection"]

_CLIENT: Final = Implementation(name="stratagem", version=VERSION)
_CLIENT_INFO: Final = {"name": _CLIENT.name, "version": _CLIENT.version}
_PROGRESS_CHARS_MAX: Final = 500
_LIST_EVENTS: Final[Mapping[str, ServerEvent]] = {
    "tools_list_changed": ToolsListChanged(),
    "prompts_list_changed": PromptsListChanged(),
    "resources_list_changed": ResourcesListChanged(),
}
_ELICITATION: Final = "elicitation/create"
_SAMPLING: Final = "sampling/createMessage"
# The capabilities of a client that can answer questions.
_ASKED_CAPABILITY: Final = {_ELICITATION: "elicitation", _SAMPLING: "sampling"}
# How long a server may go on asking to have its call repeated.
_STATE_SECONDS: Final = 0.1
T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=BaseModel)
# Reading more tools than this would block the event loop, so it is done in a thread.
_READ_INLINE_MAX: Final = 100


class SessionEnded(Exception):
    """The server refused a call because it no longer knows the session; it did nothing."""


@dataclass(frozen=True, slots=True)
class ConnectionResources:
    """What connections need: an HTTP client and the secrets of each server."""

    http_client: Callable[[], httpx2.AsyncClient]
    # By a server and one of its users; None where all users share a connection.
    secrets: Callable[[ServerDocument, str | None], Awaitable[Secrets]]
    # The access token of a user who has signed in, other than one that the server did not take.
    token: Callable[[ServerDocument, str, str | None], Awaitable[str]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _CallInFlight:
    """A call that waits for its answer: its client, which can be asked questions, and its lane."""

    asker: Asker | None
    deadlines: Deadlines


# What comes with the response to a request is taken in the context of its call.
_call_var: ContextVar[_CallInFlight | None] = ContextVar("call", default=None)


@dataclass(frozen=True, slots=True)
class ConnectionListeners:
    """The listeners for lists of tools, changed prompts or resources, and a changed resource."""

    tools: Callable[[UpstreamTools], None]
    primitives: Callable[[str], None]
    resource: Callable[[str], None]


class UpstreamConnection:
    """One connection to a server; when it is over, a new one is needed."""

    def __init__(
        self,
        definition: ServerDefinition,
        resources: ConnectionResources,
        listeners: ConnectionListeners,
        user: str | None = None,
    ) -> None:
        self.listing = UpstreamTools()
        self.version = ""
        # Whether the server currently sends notifications of changes.
        self.following = False
        self._over = asyncio.Event()
        self._definition = definition
        self._resources = resources
        self._listeners = listeners
        self._user = user
        # Tokens that were sent lately.
        self._tokens: deque[str] = deque(maxlen=4)
        self._changed = asyncio.Event()
        # Whether the server may have been restarted since its list was read.
        self._stale = False
        self._listed_at = 0.0
        self._reading = asyncio.Lock()
        # None where they have to be read: by the next who asks, for few ever do.
        self._primitives: UpstreamPrimitives | None = None
        self._primitives_at = 0.0
        self._reading_primitives = asyncio.Lock()
        self._followed: frozenset[str] = frozenset()
        self._followed_changed = asyncio.Event()
        self._session: ClientSession | None = None
        self._in_flight: set[_CallInFlight] = set()
        self._secrets: Secrets | None = None
        self._param_headers: dict[str, dict[tuple[str, ...], str]] = {}
        self._process: ServerProcess | None = None
        self._dispatcher: MessageDispatcher | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_open = False

    def is_over(self) -> bool:
        """Whether it can no longer be used."""
        return self._over.is_set() or (self._process is not None and self._process.ended.is_set())

    @property
    def pid(self) -> int | None:
        """Return the id of the server's process, if it is one of ours."""
        return self._process.pid if self._process is not None else None

    async def open(self) -> None:
        """Open the connection and read the list of tools.

        Raises:
            ExecutionFailed: It cannot be opened; nothing was asked of any tool.
        """
        ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(ready))
        try:
            async with asyncio.timeout(limits.UPSTREAM_CONNECT_SECONDS):
                await asyncio.shield(ready)
        except TimeoutError:
            await self.close()
            seconds = limits.UPSTREAM_CONNECT_SECONDS
            raise self._error(f"did not answer within {seconds:.0f} s", safe=True) from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the connection, and the process if there is one."""
        self._over.set()
        if self._task is not None:
            if not self._is_open:
                self._task.cancel()
            done, _ = await asyncio.wait({self._task}, timeout=4 * limits.UPSTREAM_END_SECONDS)
            if not done:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def refresh(self) -> None:
        """Read the list of tools again.

        Raises:
            ExecutionFailed: The server does not send it.
        """
        try:
            async with asyncio.timeout(limits.UPSTREAM_LIST_SECONDS), self._reading:
                await self._list()
        except TimeoutError:
            raise self._error("did not list its tools in time", safe=True) from None
        except MCPError as error:
            if isinstance(error, ConnectionLost):
                # The server's end may be seen here before its process is.
                self._over.set()
            raise self._error(f"does not list its tools: {error}", safe=True) from None

    async def refresh_if_stale(self) -> None:
        """Read the list of tools again if the server may have been restarted.

        Raises:
            ExecutionFailed: The server does not send it; no tool was called.
        """
        if self._stale:
            await self.refresh()
        elif asyncio.get_running_loop().time() - self._listed_at > limits.UPSTREAM_LIST_AGE_SECONDS:
            # Not every server sends notifications of changes.
            self._changed.set()

    async def call(
        self, tool: str, arguments: Mapping[str, Any], on_progress: ProgressReport
    ) -> Any:
        """Call one of the server's tools and return its answer unchanged.

        `on_progress` is called with its progress.

        Raises:
            ExecutionFailed: There is no answer, or it is an error.
            SessionEnded: The server has forgotten the session and did nothing.
        """
        if self.is_over():
            raise self._error("is not connected", safe=True)

        async def report(progress: float, total: float | None, message: str | None) -> None:
            on_progress(
                _progress_fraction(progress, total),
                message and clean_line(self._scrub(message), _PROGRESS_CHARS_MAX),
            )

        return self._scrub(await self._deliver(tool, lambda: self._call(tool, arguments, report)))

    async def request(self, what: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send any other request; `what` names its object in errors.

        Raises:
            ExecutionFailed: There is no answer, or it is an error.
            SessionEnded: The server has forgotten the session and did nothing.
        """
        if self.is_over():
            raise self._error("is not connected", safe=True)
        answer = await self._deliver(what, lambda: self._converse(method, params))
        if _is_question(answer):
            words = f"asks its user for more about {what}, and nobody is there to answer"
            raise self._error(words, answered=True)
        scrubbed: dict[str, Any] = self._scrub(answer)
        return scrubbed

    async def _deliver(self, what: str, send: Callable[[], Awaitable[T]]) -> T:
        delivery = RequestDelivery()
        token = delivery_var.set(delivery)
        call = _CallInFlight(current_asker(), current_deadlines())
        self._in_flight.add(call)
        own = _call_var.set(call)
        try:
            return await send()
        except MCPError as error:
            if self.is_over() and self._task is not None:
                # The process is ending; wait for its exit status.
                await asyncio.wait({self._task}, timeout=limits.UPSTREAM_END_SECONDS)
            # The cause has the server's own message, which may repeat secrets.
            raise self._call_error(what, delivery, error) from None
        except QuestionRefused as error:
            raise self._error(
                f"asked for more during {what}, and was refused: {error.message}", answered=True
            ) from None
        finally:
            self._in_flight.discard(call)
            _call_var.reset(own)
            delivery_var.reset(token)

    async def list_primitives(self) -> UpstreamPrimitives:
        """Return the server's prompts, resources and templates; they are read when they changed.

        Raises:
            ExecutionFailed: The server does not send them.
        """
        async with self._reading_primitives:
            now = asyncio.get_running_loop().time()
            found = self._primitives
            if found is not None and now - self._primitives_at < limits.UPSTREAM_LIST_AGE_SECONDS:
                return found
            try:
                async with asyncio.timeout(limits.UPSTREAM_LIST_SECONDS):
                    found = await self._read_primitives()
            except TimeoutError:
                raise self._error("did not list its prompts and resources in time") from None
            except MCPError as error:
                raise self._error(f"does not list its prompts and resources: {error}") from None
            self._primitives, self._primitives_at = found, now
            return found

    async def _read_primitives(self) -> UpstreamPrimitives:
        capabilities = self._session.server_capabilities if self._session is not None else None
        served = {
            "prompts": capabilities is not None and capabilities.prompts is not None,
            "resources": capabilities is not None and capabilities.resources is not None,
        }
        served["templates"] = served["resources"]
        listed: dict[str, list[Any]] = {}
        for kind, (method, field, _) in LISTS.items():
            try:
                listed[kind] = (
                    await self._pages(method, field, limits.UPSTREAM_PRIMITIVES_MAX)
                    if served[kind]
                    else []
                )
            except MCPError as error:
                # Many servers with resources have no templates, and say so in this way.
                if error.code != METHOD_NOT_FOUND:
                    raise
                listed[kind] = []
        # Long lists take long to read; calls go on meanwhile.
        return await asyncio.to_thread(read_primitives, listed)

    @property
    def follows_resources(self) -> bool:
        """Whether the server tells of changes of single resources."""
        capabilities = self._session.server_capabilities if self._session is not None else None
        resources = capabilities.resources if capabilities is not None else None
        return resources is not None and bool(resources.subscribe)

    def follow(self, uris: frozenset[str]) -> None:
        """Have the server tell of changes of these resources, and of no others."""
        if uris != self._followed:
            self._followed = uris
            self._followed_changed.set()

    async def _call(self, tool: str, arguments: Mapping[str, Any], report: ProgressFnT) -> Any:
        params = {"name": tool, "arguments": dict(arguments)}
        try:
            return await self._converse("tools/call", params, report)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or self.version not in MODERN_PROTOCOL_VERSIONS:
                raise
        # The schema, which says what arguments to repeat in headers, has changed.
        await self._list()
        return await self._converse("tools/call", params, report)

    async def _converse(
        self, method: str, params: Mapping[str, Any], report: ProgressFnT | None = None
    ) -> dict[str, Any]:
        """Send a request; what a server of 2026 asks in return is put to the client of the call."""
        answer = await self._request(method, params, report)
        asker, deadlines = current_asker(), current_deadlines()
        if _is_question(answer):
            note_question(deadlines)
        for _ in range(limits.QUESTION_ROUNDS_MAX):
            if not _is_question(answer) or asker is None:
                break
            questions = answer.get("inputRequests") or {}
            if not questions:
                await asyncio.sleep(_STATE_SECONDS)
            answers = await asyncio.gather(
                *(self._put(each, asker, deadlines) for each in questions.values())
            )
            more: dict[str, Any] = {"inputResponses": dict(zip(questions, answers, strict=True))}
            if answer.get("requestState") is not None:
                more["requestState"] = answer["requestState"]
            answer = await self._request(method, {**params, **more}, report)
        return answer

    async def _answer_question(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Put a question of a server of the handshake era to the only client it can mean.

        Over HTTP the question comes with the response to a call, and is about that call. Over a
        pipe it does not name its call: while calls of several clients are running, nobody is asked,
        because it might be the wrong one.

        Raises:
            QuestionRefused: Nobody can be asked, or who is asked will not answer.
        """
        own = _call_var.get()
        calls = [own] if own in self._in_flight else list(self._in_flight)
        for each in calls:
            note_question(each.deadlines)
        clients = {None if each.asker is None else each.asker.client for each in calls}
        if len(clients) > 1:
            words = "Several clients are using this server, so it is unclear which one it asks."
            raise QuestionRefused(INVALID_REQUEST, words)
        asker = calls[0].asker if calls else None
        if asker is None:
            raise QuestionRefused(METHOD_NOT_FOUND, "The caller cannot be asked anything.")
        deadlines = tuple(scope for each in calls for scope in each.deadlines)
        return await self._put({"method": method, "params": params}, asker, deadlines)

    async def _put(self, question: Any, asker: Asker, deadlines: Deadlines) -> dict[str, Any]:
        """Put one question to a client, with the name of the server that asks it."""
        method = question.get("method") if isinstance(question, Mapping) else None
        if method not in _ASKED_CAPABILITY:
            raise QuestionRefused(METHOD_NOT_FOUND, f"Nobody answers {method!r}.")
        params = dict(self._scrub(question.get("params") or {}))
        capability = asker.capabilities.get(_ASKED_CAPABILITY[method])
        if capability is None:
            words = f"The caller's client does not answer {method}."
            raise QuestionRefused(METHOD_NOT_FOUND, words)
        if params.get("mode") == "url" and "url" not in capability:
            raise QuestionRefused(INVALID_PARAMS, "The caller's client opens no addresses.")
        if method == _ELICITATION:
            # The client shows us as who asks; a person has to know better.
            asked = clean_text(str(params.get("message", "")), limits.UPSTREAM_ERROR_CHARS_MAX)
            params["message"] = f"{self._definition.name}: {asked}"
        async with wait_for_person(deadlines):
            try:
                async with asyncio.timeout(limits.QUESTION_SECONDS_MAX):
                    return await asker.ask(method, params)
            except TimeoutError:
                raise QuestionRefused(INTERNAL_ERROR, "Nobody answered in time.") from None

    async def _elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        del context
        return await self._answer_typed(_ELICITATION, params, ElicitResult)

    async def _sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        del context
        return await self._answer_typed(_SAMPLING, params, CreateMessageResult)

    async def _answer_typed(
        self, method: str, params: BaseModel, model: type[ModelT]
    ) -> ModelT | ErrorData:
        sent = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            return model.model_validate(await self._answer_question(method, sent))
        except QuestionRefused as error:
            return ErrorData(code=error.code, message=error.message, data=error.data)
        except ValidationError:
            return ErrorData(code=INTERNAL_ERROR, message="The client's answer is not valid.")

    def _call_error(self, tool: str, delivery: RequestDelivery, error: MCPError) -> Exception:
        if delivery.refused:
            return SessionEnded()
        if isinstance(delivery.error, StratagemError):
            return delivery.error
        self._stale = self._stale or delivery.error is not None
        if delivery.error is not None:
            reason = str(delivery.error) or type(delivery.error).__name__
            return self._error(f"cannot be reached: {reason}", safe=not delivery.sent)
        if self.is_over():
            return self._error(f"disconnected during the call of {tool}{self._last_words()}")
        said = clean_line(self._scrub(error.message), limits.UPSTREAM_ERROR_CHARS_MAX)
        if isinstance(error, ConnectionLost):
            self._stale = True
            return self._error(f"disconnected during the call of {tool}: {said}")
        status = (
            f" (HTTP {delivery.status})"
            if (delivery.status or 0) >= httpx2.codes.BAD_REQUEST
            else ""
        )
        return self._error(f"refused {tool}: {said}{status}", upstream_code=error.code)

    async def _serve(self, ready: asyncio.Future[None]) -> None:
        """Open the connection, keep it open until it is to be closed, close it."""
        try:
            if not await self._hold(self._open_dispatcher(), ready):
                # The protocol's way to recognise a server of 2024.
                await self._hold(self._open_dispatcher(by_event_stream=True), ready)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, it is the connection that failed
            if not ready.done():
                ready.set_exception(self._open_error(error))
        finally:
            self._over.set()
            if not ready.done():
                ready.set_exception(self._error(f"went away{self._last_words()}", safe=True))
                # Nobody may be waiting any more.
                ready.exception()

    async def _hold(
        self,
        opening: contextlib.AbstractAsyncContextManager[MessageDispatcher],
        ready: asyncio.Future[None],
    ) -> bool:
        """Hold a connection open; return whether there was one, for some take no messages so."""
        async with opening as dispatcher:
            session = ClientSession(
                dispatcher=dispatcher,
                client_info=_CLIENT,
                message_handler=self._on_message,
                elicitation_callback=self._elicit,
                sampling_callback=self._sample,
            )
            async with session:
                self._dispatcher, self._session = dispatcher, session
                if not await self._negotiate(session, dispatcher):
                    return False
                await self._list()
                self._is_open = True
                if not ready.done():
                    ready.set_result(None)
                await self._stay_open(session)
        return True

    async def _stay_open(self, session: ClientSession) -> None:
        following = [
            asyncio.create_task(self._refresh_on_change()),
            asyncio.create_task(self._subscribe_to_changes(session)),
            asyncio.create_task(self._follow_resources(session)),
        ]
        ended = self._process.ended if self._process is not None else self._over
        waits = [asyncio.create_task(event.wait()) for event in {self._over, ended}]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._over.set()
            for task in (*following, *waits):
                task.cancel()
            await asyncio.gather(*following, *waits, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _open_dispatcher(
        self, *, by_event_stream: bool = False
    ) -> AsyncIterator[MessageDispatcher]:
        definition = self._definition
        secrets = await self._resources.secrets(definition.as_json(), self._user)
        self._secrets = secrets
        origin = definition.origin
        if isinstance(definition, StdioServer):
            env = {
                key: secrets.resolve(text, origin=origin) for key, text in definition.env.items()
            }
            async with open_process(definition.command, definition.args, env) as process:
                self._process = process
                yield process
            return
        headers = {
            key: secrets.resolve(text, origin=origin) for key, text in definition.headers.items()
        }
        make = self._resources.http_client
        authorize = self._authorize if definition.auth is not None else None
        async with open_http(
            definition.url,
            headers,
            make,
            self._over.set,
            authorize,
            by_event_stream=by_event_stream,
        ) as dispatcher:
            yield dispatcher

    async def _authorize(self, rejected: str | None) -> str:
        assert self._user is not None
        assert self._resources.token is not None
        token = await self._resources.token(self._definition.as_json(), self._user, rejected)
        if token not in self._tokens:
            self._tokens.append(token)
        return token

    def _scrub(self, answer: Any) -> Any:
        """Return an answer without our credentials, which servers may echo."""
        secrets = self._secrets
        scrubbed = secrets.scrub(answer) if isinstance(secrets, ScrubbingSecrets) else answer
        return mask_values(scrubbed, self._tokens)

    async def _negotiate(self, session: ClientSession, dispatcher: MessageDispatcher) -> bool:
        """Negotiate a protocol version: discovery first, then the handshake of older servers.

        Returns False if the server takes no messages in this way.
        """
        delivery = RequestDelivery()
        token = delivery_var.set(delivery)
        by_event_stream = isinstance(dispatcher, EventStreamDispatcher)
        try:
            if by_event_stream or not await self._discover(session, delivery):
                await self._shake_hands(session)
        except MCPError:
            if delivery.error is not None:
                raise delivery.error from None
            if delivery.takes_no_post and not by_event_stream:
                return False
            raise
        finally:
            delivery_var.reset(token)
        self.version = session.protocol_version or ""
        return True

    async def _discover(self, session: ClientSession, delivery: RequestDelivery) -> bool:
        """Ask what the server speaks; return whether it says so, as servers since 2026 do."""
        try:
            await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            if delivery.error is not None:
                raise delivery.error from None
            if self._process is not None and self._process.ended.is_set():
                raise
            return False
        return True

    @staticmethod
    async def _shake_hands(session: ClientSession) -> None:
        """Begin a session as servers did until 2025."""
        try:
            await session.initialize()
        except MCPError as error:
            if error.code != UNSUPPORTED_PROTOCOL_VERSION:
                raise
            # It was only slow to answer the discovery, and now speaks as it did there.
            await session.discover()

    async def _list(self) -> None:
        try:
            tools = await self._pages("tools/list", "tools", limits.UPSTREAM_TOOLS_MAX)
        except MCPError as error:
            # A server may have prompts or resources only.
            capabilities = self._session.server_capabilities if self._session else None
            if error.code != METHOD_NOT_FOUND or capabilities is None or capabilities.tools:
                raise
            tools = []
        if self.version in MODERN_PROTOCOL_VERSIONS:
            tools = [tool for tool in tools if not _breaks_header_rule(tool)]
        self._param_headers = _param_headers(tools)
        self._stale = False
        self._listed_at = asyncio.get_running_loop().time()
        name = self._definition.name
        if len(tools) > _READ_INLINE_MAX:
            self.listing = await asyncio.to_thread(read_upstream_tools, name, tools)
        else:
            self.listing = read_upstream_tools(name, tools)
        self._listeners.tools(self.listing)

    async def _pages(self, method: str, field: str, most: int) -> list[Any]:
        """Read a list page by page, as far as anybody needs it."""
        items: list[Any] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(limits.UPSTREAM_PAGES_MAX):
            page = await self._request(method, {} if cursor is None else {"cursor": cursor})
            found = page.get(field)
            items.extend(found if isinstance(found, list) else ())
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen or len(items) > most:
                break
            seen.add(cursor)
        scrubbed: list[Any] = self._scrub(items)
        return scrubbed

    async def _request(
        self, method: str, params: Mapping[str, Any], report: ProgressFnT | None = None
    ) -> dict[str, Any]:
        assert self._dispatcher is not None
        sent = dict(params)
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.version}
        if self.version in MODERN_PROTOCOL_VERSIONS:
            sent["_meta"] = {
                PROTOCOL_VERSION_META_KEY: self.version,
                CLIENT_INFO_META_KEY: _CLIENT_INFO,
                CLIENT_CAPABILITIES_META_KEY: _capabilities(),
            }
            headers[MCP_METHOD_HEADER] = method
            if (key := NAME_BEARING_METHODS.get(method)) is not None:
                headers[MCP_NAME_HEADER] = encode_header_value(params[key])
            if method == "tools/call":
                repeated = self._param_headers.get(params["name"], {})
                headers |= mcp_param_headers(repeated, params["arguments"])
        options: CallOptions = {"headers": headers}
        if report is not None:
            options["on_progress"] = report
        return await self._dispatcher.send_raw_request(method, sent, options)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._note_change(ToolsListChanged())
        elif isinstance(message, PromptListChangedNotification):
            self._note_change(PromptsListChanged())
        elif isinstance(message, ResourceListChangedNotification):
            self._note_change(ResourcesListChanged())
        elif isinstance(message, ResourceUpdatedNotification):
            self._note_change(ResourceUpdated(str(message.params.uri)))

    def _note_change(self, event: ServerEvent) -> None:
        if isinstance(event, ToolsListChanged):
            self._changed.set()
        elif isinstance(event, ResourceUpdated):
            self._listeners.resource(event.uri)
        else:
            self._primitives = None
            self._listeners.primitives(
                "prompts" if isinstance(event, PromptsListChanged) else "resources"
            )

    async def _subscribe_to_changes(self, session: ClientSession) -> None:
        """Subscribe to changes of lists at servers that notify subscribers only."""
        capabilities = session.server_capabilities
        if capabilities is None:
            return
        kinds = ("tools", "prompts", "resources")
        parts = {kind: getattr(capabilities, kind) for kind in kinds}
        told = {
            f"{kind}_list_changed": True
            for kind, part in parts.items()
            if part is not None and part.list_changed
        }
        if self.version not in MODERN_PROTOCOL_VERSIONS:
            # Older servers tell everybody.
            self.following = "tools_list_changed" in told
        elif told:
            await self._listen(session, told, follows_tools="tools_list_changed" in told)

    async def _follow_resources(self, session: ClientSession) -> None:
        """Keep the server telling of the resources that somebody follows."""
        known: frozenset[str] = frozenset()
        stream: asyncio.Task[None] | None = None
        try:
            while True:
                await self._followed_changed.wait()
                self._followed_changed.clear()
                wanted = self._followed
                if self.version in MODERN_PROTOCOL_VERSIONS:
                    if stream is not None:
                        stream.cancel()
                    uris = {"resource_subscriptions": sorted(wanted)}
                    listening = self._listen(session, uris, follows_tools=False)
                    stream = asyncio.create_task(listening) if wanted else None
                else:
                    await self._change_subscriptions(known, wanted)
                known = wanted
        finally:
            if stream is not None:
                stream.cancel()

    async def _change_subscriptions(self, known: frozenset[str], wanted: frozenset[str]) -> None:
        for method, uris in (
            ("resources/unsubscribe", known - wanted),
            ("resources/subscribe", wanted - known),
        ):
            for uri in sorted(uris):
                # A server that refuses one may take the others.
                with contextlib.suppress(MCPError):
                    await self._request(method, {"uri": uri})

    async def _listen(
        self, session: ClientSession, wanted: Mapping[str, Any], *, follows_tools: bool
    ) -> None:
        """Note the changes that a server of 2026 tells of, for as long as it can be reached."""
        wait = limits.UPSTREAM_BACKOFF_SECONDS_MIN
        lost = False
        while True:
            try:
                async with listen(session, **wanted) as events:
                    wait = limits.UPSTREAM_BACKOFF_SECONDS_MIN
                    self.following = self.following or follows_tools
                    if lost:
                        self._note_all(wanted)
                    async for event in events:
                        self._note_change(event)
            except ListenNotSupportedError:
                return
            except MCPError as error:
                if error.code in {METHOD_NOT_FOUND, INVALID_PARAMS}:
                    return
            except SubscriptionLost:
                pass
            # Nothing is told twice: what changed meanwhile is found by reading again.
            lost = True
            if follows_tools:
                self._stale, self.following = True, False
            self._primitives = None
            await asyncio.sleep(wait)
            wait = min(2 * wait, limits.UPSTREAM_BACKOFF_SECONDS_MAX)

    def _note_all(self, wanted: Mapping[str, Any]) -> None:
        """Record a change of every list that may have changed without a notification."""
        for uri in wanted.get("resource_subscriptions", ()):
            self._note_change(ResourceUpdated(uri))
        for kind, event in _LIST_EVENTS.items():
            if wanted.get(kind):
                self._note_change(event)

    async def _refresh_on_change(self) -> None:
        """Read the list again whenever it has changed, at a limited rate."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            with contextlib.suppress(ExecutionFailed):
                await self.refresh()
            await asyncio.sleep(limits.UPSTREAM_RELIST_SECONDS)

    def _open_error(self, error: Exception) -> StratagemError:
        error = _innermost(error)
        if isinstance(error, StratagemError):
            return error
        said = self._scrub(str(error)) or type(error).__name__
        reason = clean_line(said, limits.UPSTREAM_ERROR_CHARS_MAX)
        return self._error(f"cannot be connected to: {reason}{self._last_words()}", safe=True)

    def _last_words(self) -> str:
        words = self._process.last_words() if self._process is not None else ""
        # Each line by itself: a long one was cut off, maybe within a secret.
        return "; " + "\n".join(map(self._scrub, words.split("\n"))) if words else ""

    def _error(self, what: str, *, safe: bool = False, **details: Any) -> ExecutionFailed:
        name = self._definition.name
        said = self._scrub(what).rstrip(".")
        return ExecutionFailed(f"The server {name} {said}.", safe=safe, server=name, **details)


def _capabilities() -> dict[str, Any]:
    """Return what the client of the call at hand can be asked."""
    asker = current_asker()
    return dict(asker.capabilities) if asker is not None else {}


def _is_question(answer: Any) -> bool:
    """Whether a server of 2026 wants to know more before it answers."""
    return isinstance(answer, Mapping) and answer.get("resultType") == "input_required"


def _progress_fraction(done: float, total: float | None) -> float | None:
    return min(max(done / total, 0.0), 1.0) if total and total > 0 else None


def _innermost(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _breaks_header_rule(tool: Any) -> bool:
    # The protocol asks clients to leave such tools alone.
    schema = tool.get("inputSchema") if isinstance(tool, Mapping) else None
    return isinstance(schema, Mapping) and find_invalid_x_mcp_header(schema) is not None


def _param_headers(tools: list[Any]) -> dict[str, dict[tuple[str, ...], str]]:
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for tool in tools:
        if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
            headers = x_mcp_header_map(tool.get("inputSchema"))
            if headers:
                found[tool["name"]] = headers
    return found
