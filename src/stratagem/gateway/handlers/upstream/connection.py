"""One open connection to an upstream server.

A task of its own opens and closes it, because the SDK requires that the task which opened a
session closes it; calls come from any task. Messages bypass the SDK's typed client, so that an
answer or a list that violates the protocol in one place is still usable in the others, and
arguments and results pass through unchanged.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from mcp.client.session import ClientSession, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_META_KEY,
    Implementation,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from stratagem import limits
from stratagem.errors import ExecutionFailed, StratagemError
from stratagem.gateway.definitions.contract import ProgressReport, Secrets
from stratagem.gateway.handlers.upstream.definitions import ServerDefinition, StdioServer
from stratagem.gateway.handlers.upstream.http import RequestDelivery, delivery_var, open_http
from stratagem.gateway.handlers.upstream.stdio import ServerProcess, open_process
from stratagem.gateway.handlers.upstream.upstream_tools import (
    UpstreamTools,
    clean_line,
    read_upstream_tools,
)
from stratagem.version import VERSION

__all__ = ["ConnectionResources", "SessionEnded", "UpstreamConnection"]

_CLIENT: Final = Implementation(name="stratagem", version=VERSION)
_CLIENT_INFO: Final = {"name": _CLIENT.name, "version": _CLIENT.version}
_PROGRESS_CHARS_MAX: Final = 500
# Reading more tools than this would block the event loop, so it is done in a thread.
_READ_INLINE_MAX: Final = 100


class SessionEnded(Exception):
    """The server refused a call because it no longer knows the session; it did nothing."""


@dataclass(frozen=True, slots=True)
class ConnectionResources:
    """What connections need: an HTTP client and the secrets of each server."""

    http_client: Callable[[], httpx2.AsyncClient]
    secrets: Callable[[str], Awaitable[Secrets]]


class UpstreamConnection:
    """One connection to a server; when it is over, a new one is needed."""

    def __init__(
        self,
        definition: ServerDefinition,
        resources: ConnectionResources,
        on_listing: Callable[[UpstreamTools], None],
    ) -> None:
        self.listing = UpstreamTools()
        self.version = ""
        # Whether the server currently sends notifications of changes.
        self.following = False
        self._over = asyncio.Event()
        self._definition = definition
        self._resources = resources
        self._on_listing = on_listing
        self._changed = asyncio.Event()
        # Whether the server may have been restarted since its list was read.
        self._stale = False
        self._listed_at = 0.0
        self._reading = asyncio.Lock()
        self._param_headers: dict[str, dict[tuple[str, ...], str]] = {}
        self._process: ServerProcess | None = None
        self._dispatcher: JSONRPCDispatcher | None = None
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
            if error.code == CONNECTION_CLOSED:
                # The server's end may be seen here before its process is.
                self._over.set()
            raise self._error(f"does not list its tools: {error}", safe=True) from error

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
                message and clean_line(message, _PROGRESS_CHARS_MAX),
            )

        delivery = RequestDelivery()
        token = delivery_var.set(delivery)
        try:
            return await self._call(tool, arguments, report)
        except MCPError as error:
            if self.is_over() and self._task is not None:
                # The process is ending; wait for its exit status.
                await asyncio.wait({self._task}, timeout=limits.UPSTREAM_END_SECONDS)
            raise self._call_error(tool, delivery, error) from error
        finally:
            delivery_var.reset(token)

    async def _call(self, tool: str, arguments: Mapping[str, Any], report: ProgressFnT) -> Any:
        params = {"name": tool, "arguments": dict(arguments)}
        try:
            return await self._request("tools/call", params, report)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or self.version not in MODERN_PROTOCOL_VERSIONS:
                raise
        # The schema, which says what arguments to repeat in headers, has changed.
        await self._list()
        return await self._request("tools/call", params, report)

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
            return self._error(f"went away during the call of {tool}{self._last_words()}")
        status = (
            f" (HTTP {delivery.status})"
            if (delivery.status or 0) >= httpx2.codes.BAD_REQUEST
            else ""
        )
        said = clean_line(error.message, limits.UPSTREAM_ERROR_CHARS_MAX)
        return self._error(f"refused {tool}: {said}{status}", upstream_code=error.code)

    async def _serve(self, ready: asyncio.Future[None]) -> None:
        """Open the connection, keep it open until it is to be closed, close it."""
        try:
            async with self._streams() as streams:
                dispatcher = JSONRPCDispatcher(*streams)
                session = ClientSession(
                    dispatcher=dispatcher, client_info=_CLIENT, message_handler=self._on_message
                )
                async with session:
                    self._dispatcher = dispatcher
                    await self._negotiate(session)
                    await self._list()
                    self._is_open = True
                    if not ready.done():
                        ready.set_result(None)
                    await self._stay_open(session)
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

    async def _stay_open(self, session: ClientSession) -> None:
        following = [
            asyncio.create_task(self._refresh_on_change()),
            asyncio.create_task(self._subscribe_to_changes(session)),
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
    async def _streams(self) -> AsyncIterator[Any]:
        definition = self._definition
        secrets = await self._resources.secrets(definition.name)
        host = definition.secret_host
        if isinstance(definition, StdioServer):
            env = {key: secrets.resolve(text, host=host) for key, text in definition.env.items()}
            async with open_process(definition.command, definition.args, env) as process:
                self._process = process
                yield process.streams
            return
        headers = {
            key: secrets.resolve(text, host=host) for key, text in definition.headers.items()
        }
        make = self._resources.http_client
        async with open_http(definition.url, headers, make, self._over.set) as streams:
            yield streams

    async def _negotiate(self, session: ClientSession) -> None:
        """Negotiate a protocol version: discovery first, then the handshake of older servers."""
        delivery = RequestDelivery()
        token = delivery_var.set(delivery)
        try:
            await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            if delivery.error is not None:
                raise delivery.error from None
            if self._process is not None and self._process.ended.is_set():
                raise
            await session.initialize()
        finally:
            delivery_var.reset(token)
        self.version = session.protocol_version or ""

    async def _list(self) -> None:
        tools: list[Any] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(limits.UPSTREAM_PAGES_MAX):
            page = await self._request("tools/list", {} if cursor is None else {"cursor": cursor})
            found = page.get("tools")
            tools.extend(found if isinstance(found, list) else ())
            cursor = page.get("nextCursor")
            if (
                not isinstance(cursor, str)
                or cursor in seen
                or len(tools) > limits.UPSTREAM_TOOLS_MAX
            ):
                break
            seen.add(cursor)
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
        self._on_listing(self.listing)

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
                CLIENT_CAPABILITIES_META_KEY: {},
            }
            headers[MCP_METHOD_HEADER] = method
            if (name := params.get("name")) is not None:
                headers[MCP_NAME_HEADER] = encode_header_value(name)
                headers |= mcp_param_headers(self._param_headers.get(name, {}), params["arguments"])
        options: CallOptions = {"headers": headers}
        if report is not None:
            options["on_progress"] = report
        return await self._dispatcher.send_raw_request(method, sent, options)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    async def _subscribe_to_changes(self, session: ClientSession) -> None:
        """Subscribe to changes at servers that notify subscribers only."""
        capabilities = session.server_capabilities
        tools = capabilities.tools if capabilities is not None else None
        if tools is None or not tools.list_changed:
            return
        self.following = self.version not in MODERN_PROTOCOL_VERSIONS
        if self.following:
            # Older servers tell everybody.
            return
        wait = limits.UPSTREAM_BACKOFF_SECONDS_MIN
        while True:
            try:
                async with listen(session, tools_list_changed=True) as events:
                    wait = limits.UPSTREAM_BACKOFF_SECONDS_MIN
                    self.following = True
                    if self._stale:
                        self._changed.set()
                    async for _ in events:
                        self._changed.set()
            except ListenNotSupportedError:
                return
            except MCPError as error:
                if error.code in {METHOD_NOT_FOUND, INVALID_PARAMS}:
                    return
            except SubscriptionLost:
                pass
            # Nothing is told twice: what changed meanwhile is found by reading the list.
            self._stale, self.following = True, False
            await asyncio.sleep(wait)
            wait = min(2 * wait, limits.UPSTREAM_BACKOFF_SECONDS_MAX)

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
        reason = clean_line(str(error) or type(error).__name__, limits.UPSTREAM_ERROR_CHARS_MAX)
        return self._error(f"cannot be connected to: {reason}{self._last_words()}", safe=True)

    def _last_words(self) -> str:
        words = self._process.last_words() if self._process is not None else ""
        return f"; {words}" if words else ""

    def _error(self, what: str, *, safe: bool = False, **details: Any) -> ExecutionFailed:
        name = self._definition.name
        return ExecutionFailed(
            f"The server {name} {what.rstrip('.')}.", safe=safe, server=name, **details
        )


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
