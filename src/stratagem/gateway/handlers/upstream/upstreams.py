"""All upstream servers of a gateway, and the runner of their tools.

A connection is opened when it is first needed and shared by all calls, or by those of one user if
users have credentials of their own. When it is lost, the calls in flight fail, and the next call
reconnects: immediately after the first loss, then with exponential backoff. Calls during the
backoff are refused without waiting; nothing was sent, so they may be retried.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

import httpx2
import orjson

from stratagem import limits
from stratagem.errors import (
    ExecutionFailed,
    ExecutionTimeout,
    PermissionDenied,
    ServiceUnavailable,
    ValidationFailed,
)
from stratagem.gateway.definitions.contract import ContentResult, Handler, ListedTool, Run, Secrets
from stratagem.gateway.definitions.documents import ServerDocument
from stratagem.gateway.definitions.questions import deadline
from stratagem.gateway.handlers.upstream.connection import (
    ConnectionListeners,
    ConnectionResources,
    SessionEnded,
    UpstreamConnection,
)
from stratagem.gateway.handlers.upstream.definitions import ServerDefinition, read_definition
from stratagem.gateway.handlers.upstream.primitives import UpstreamPrimitives
from stratagem.gateway.handlers.upstream.upstream_tools import (
    UpstreamTools,
    clean_text,
    fingerprints,
)

__all__ = ["UpstreamStatus", "Upstreams"]

_log = logging.getLogger(__name__)

_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

OnChange = Callable[[str, Sequence[ListedTool]], None]
# Called with a server, what of it changed ("prompts", "resources"), and which resource, if one.
OnPrimitives = Callable[[str, str, str | None], None]


class UpstreamStatus(TypedDict):
    """The state of a server's connection; `failures` counts consecutive ones."""

    name: str
    connected: bool
    protocolVersion: str | None
    pid: int | None
    followsChanges: bool
    tools: int
    failures: int
    lastError: str | None


class Upstreams:
    """The upstream servers, each with one persistent connection.

    `secrets` returns the secrets granted to a server, by its definition. `on_change` is called with
    each list of tools that differs from the previous one, and with the first; `on_primitives` when
    prompts or resources of a server have changed. Everything runs on one event loop.
    """

    def __init__(
        self,
        *,
        http_client: Callable[[], httpx2.AsyncClient],
        secrets: Callable[[ServerDocument, str | None], Awaitable[Secrets]],
        token: Callable[[ServerDocument, str, str | None], Awaitable[str]] | None = None,
        on_change: OnChange | None = None,
        on_primitives: OnPrimitives | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._resources = ConnectionResources(http_client, secrets, token)
        self._on_change = on_change
        self._on_primitives = on_primitives
        self._jitter = jitter
        self._closing: set[asyncio.Task[None]] = set()
        self._definitions: dict[str, ServerDefinition] = {}
        # By server and user; of "" where all share one. In order of their last use.
        self._links: dict[tuple[str, str], _Link] = {}

    def servers(self) -> list[ServerDocument]:
        """Return the definitions, as they were given."""
        return [definition.as_json() for definition in self._definitions.values()]

    async def define(self, document: Mapping[str, Any]) -> ServerDefinition:
        """Add or change a server; changing it closes its connection.

        Raises:
            ValidationFailed: The definition is wrong, or there are too many servers.
        """
        definition = read_definition(document)
        known = self._definitions.get(definition.name)
        if known == definition:
            return definition
        if known is None and len(self._definitions) >= limits.UPSTREAM_SERVERS_MAX:
            raise ValidationFailed(
                "There are too many upstream servers.", limit=limits.UPSTREAM_SERVERS_MAX
            )
        before = self._links.get((definition.name, ""))
        await self.remove(definition.name)
        self._definitions[definition.name] = definition
        if before is not None and not definition.is_per_user:
            self._link(definition.name).followed = before.followed
        return definition

    async def remove(self, name: str) -> None:
        """Remove a server, if it exists, and close its connections."""
        self._definitions.pop(name, None)
        links = [self._links.pop(key) for key in [*self._links] if key[0] == name]
        await asyncio.gather(*(link.close() for link in links))

    async def disconnect(self, name: str, user: str) -> None:
        """Close the connection of a user, who is let in by something else from now on."""
        link = self._links.pop((name, user), None)
        if link is not None:
            await link.close()

    def status(self, name: str, user: str = "") -> UpstreamStatus:
        """Return the state of a server's connection, without using it."""
        return self._link(name, user).status()

    async def list_tools(self, name: str, user: str = "") -> list[ListedTool]:
        """Return the current tools of a server, as a user sees them; connect if necessary.

        Raises:
            ExecutionFailed: The server cannot be reached.
            AuthorizationRequired: The server does not let the user in.
        """
        return list((await self._link(name, user).list()).tools)

    async def list_primitives(self, name: str, user: str = "") -> UpstreamPrimitives:
        """Return the prompts, resources and templates of a server; connect if necessary.

        Raises:
            ExecutionFailed: The server cannot be reached, or does not send them.
            AuthorizationRequired: The server does not let the user in.
        """
        return await (await self._link(name, user).connect()).list_primitives()

    async def request(
        self,
        name: str,
        what: str,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        *,
        user: str = "",
    ) -> dict[str, Any]:
        """Send a request other than a call of a tool; `what` names its object in errors.

        Raises:
            ExecutionFailed: There is no answer, or it is an error.
            ExecutionTimeout: It takes too long.
        """
        link = self._link(name, user)
        try:
            async with deadline(seconds):
                try:
                    return await (await link.connect()).request(what, method, params)
                except SessionEnded:
                    # The server was restarted and did nothing: connect again and repeat it.
                    return await (await link.connect()).request(what, method, params)
        except SessionEnded:
            raise ExecutionFailed(
                f"The server {name} loses its sessions immediately.", safe=True
            ) from None
        except TimeoutError:
            message = f"{name} did not answer the request for {what} within {seconds:g} s."
            raise ExecutionTimeout(message, limit=seconds) from None

    async def follow(self, name: str, uri: str, user: str = "") -> bool:
        """Have changes of a resource told to `on_primitives`; return whether the server can.

        Raises:
            ExecutionFailed: The server cannot be reached.
            ValidationFailed: Too many resources are followed.
        """
        link = self._link(name, user)
        if not (await link.connect()).follows_resources:
            return False
        link.follow(uri)
        return True

    def unfollow(self, name: str, uri: str, user: str = "") -> None:
        """Take back one `follow`."""
        link = self._links.get((name, user)) or self._links.get((name, ""))
        if link is not None:
            link.unfollow(uri)

    def notes(self, name: str, user: str = "") -> list[str]:
        """Return the notes about the server's last list of tools."""
        return list(self._link(name, user).listing.notes)

    async def run(self, handler: Handler, run: Run) -> ContentResult:
        """Call the upstream tool; see `Runner`."""
        if handler["server"] not in self._definitions:
            raise ServiceUnavailable(f"The upstream server {handler['server']!r} no longer exists.")
        link = self._link(handler["server"], run.caller.actor)
        try:
            async with deadline(run.seconds):
                answer = await self._call_tool(link, handler, run)
        except TimeoutError:
            raise ExecutionTimeout(
                f"{handler['tool']} of {handler['server']} did not answer within {run.seconds:g} s."
            ) from None
        return _read_result(answer, server=handler["server"], tool=handler["tool"])

    async def _call_tool(self, link: _Link, handler: Handler, run: Run) -> Any:
        connection = await link.current()
        link.check_unchanged(handler)
        try:
            return await connection.call(handler["tool"], run.arguments, run.progress)
        except SessionEnded:
            # The server was restarted and did not run the call: connect again and repeat it.
            connection = await link.current()
            link.check_unchanged(handler)
        try:
            return await connection.call(handler["tool"], run.arguments, run.progress)
        except SessionEnded:
            raise ExecutionFailed(
                f"The server {handler['server']} loses its sessions immediately.", safe=True
            ) from None

    async def close(self) -> None:
        """Close all connections and end all server processes."""
        links, self._links = list(self._links.values()), {}
        self._definitions = {}
        await asyncio.gather(*(link.close() for link in links), *self._closing)

    def _link(self, name: str, user: str = "") -> _Link:
        definition = self._definitions.get(name)
        if definition is None:
            raise ValidationFailed(
                f"There is no upstream server {name!r}.",
                field="server",
                servers=sorted(self._definitions),
            )
        key = (name, user if definition.is_per_user else "")
        link = self._links.pop(key, None) or self._new_link(definition, key[1])
        # Last, because it was used last.
        self._links[key] = link
        return link

    def _new_link(self, definition: ServerDefinition, user: str) -> _Link:
        if user:
            self._close_idle()
        return _Link(
            definition,
            self._resources,
            self._notify_change,
            self._on_primitives or _ignore_change,
            self._jitter,
            user=user,
        )

    def _close_idle(self) -> None:
        """Make room for a user's connection: close the one that was not used for longest."""
        of_users = [key for key in self._links if key[1]]
        for key in of_users[: max(0, len(of_users) - limits.UPSTREAM_USER_CONNECTIONS_MAX + 1)]:
            task = asyncio.create_task(self._links.pop(key).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _notify_change(self, name: str, listed: Sequence[ListedTool]) -> None:
        if self._on_change is None:
            return
        try:
            self._on_change(name, listed)
        except Exception:  # noqa: BLE001 - the observer is somebody else's code
            # The new list is valid even if the observer failed.
            _log.exception("noting a changed list of %s failed", name)


def _ignore_change(_server: str, _kind: str, _uri: str | None) -> None:
    """Nobody is told."""


class _Link:
    """One server: its definition, its connection if any, and its failures."""

    def __init__(
        self,
        definition: ServerDefinition,
        resources: ConnectionResources,
        on_change: OnChange,
        on_primitives: OnPrimitives,
        jitter: Callable[[], float],
        *,
        user: str = "",
    ) -> None:
        self.definition = definition
        self._user = user
        self.listing = UpstreamTools()
        # How many follow each resource.
        self.followed: Counter[str] = Counter()
        self._on_primitives = on_primitives
        self._resources = resources
        self._on_change = on_change
        self._jitter = jitter
        self._connection: UpstreamConnection | None = None
        self._opening: asyncio.Task[UpstreamConnection] | None = None
        self._closed = False
        self._seen: dict[str, str] | None = None
        self._failures = 0
        self._opened_at = 0.0
        self._retry_at = 0.0
        self._last_error: str | None = None

    def status(self) -> UpstreamStatus:
        connection = self._connection
        live = connection is not None and not connection.is_over()
        return {
            "name": self.definition.name,
            "connected": live,
            "protocolVersion": connection.version if connection is not None and live else None,
            "pid": connection.pid if connection is not None and live else None,
            "followsChanges": connection is not None and live and connection.following,
            "tools": len(self.listing.tools),
            "failures": self._failures,
            "lastError": self._last_error,
        }

    async def list(self) -> UpstreamTools:
        was = self._connection
        connection = await self.connect()
        if connection is was:
            await self._read(connection, connection.refresh)
        return self.listing

    async def connect(self) -> UpstreamConnection:
        """Return the connection; open it if there is none.

        Raises:
            ExecutionFailed: It cannot be opened, or it is too early to try again.
        """
        connection = self._connection
        if connection is not None:
            if not connection.is_over():
                return connection
            self._note_loss()
        if self._opening is None:
            self._refuse_if_early()
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_consume_exception)
        # Shielded, because other calls may wait for the same task.
        return await asyncio.shield(self._opening)

    async def current(self) -> UpstreamConnection:
        """Return the connection after making sure that its list of tools is current.

        Raises:
            ExecutionFailed: It cannot be opened or read; no tool was called.
        """
        connection = await self.connect()
        return await self._read(connection, connection.refresh_if_stale)

    async def _read(
        self, connection: UpstreamConnection, read: Callable[[], Awaitable[None]]
    ) -> UpstreamConnection:
        """Read the list over a connection, or open another if the server has gone away."""
        try:
            await read()
        except ExecutionFailed:
            if not connection.is_over():
                raise
            return await self.connect()
        return connection

    def check_unchanged(self, handler: Handler) -> None:
        """Refuse a tool that differs from the approved one.

        Raises:
            PermissionDenied: Its description or a schema has changed.
            ExecutionFailed: The server no longer lists it.
        """
        approved = handler.get("fingerprint")
        if not approved or self._seen is None:
            return
        tool, server = handler["tool"], self.definition.name
        listed = self._seen.get(tool)
        if listed is None:
            raise ExecutionFailed(f"The server {server} no longer lists {tool}.", server=server)
        if listed != approved:
            raise PermissionDenied(
                f"{tool} of {server} has changed since it was approved.",
                hint="Check its new description and schemas, and approve them.",
                server=server,
                tool=tool,
                fingerprint=listed,
            )

    def follow(self, uri: str) -> None:
        if uri not in self.followed and len(self.followed) >= limits.UPSTREAM_SUBSCRIPTIONS_MAX:
            raise ValidationFailed(
                f"Too many subscriptions to resources of {self.definition.name}.",
                field="uri",
                limit=limits.UPSTREAM_SUBSCRIPTIONS_MAX,
            )
        self.followed[uri] += 1
        self._tell_followed()

    def unfollow(self, uri: str) -> None:
        self.followed[uri] -= 1
        self.followed = +self.followed
        self._tell_followed()

    def _tell_followed(self) -> None:
        if self._connection is not None:
            self._connection.follow(frozenset(self.followed))

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._connection is not None:
            await self._connection.close()

    async def _open(self) -> UpstreamConnection:
        name = self.definition.name
        listeners = ConnectionListeners(
            self._accept_tools,
            lambda kind: self._on_primitives(name, kind, None),
            lambda uri: self._on_primitives(name, "resource", uri),
        )
        connection = UpstreamConnection(
            self.definition, self._resources, listeners, self._user or None
        )
        try:
            await connection.open()
        except ExecutionFailed as error:
            self._note_failure(error.message, self._failures + 1)
            raise
        finally:
            self._opening = None
        self._connection = connection
        connection.follow(frozenset(self.followed))
        self._opened_at = asyncio.get_running_loop().time()
        self._last_error = None
        return connection

    def _accept_tools(self, listing: UpstreamTools) -> None:
        self.listing = listing
        now = fingerprints(listing.tools)
        if now != self._seen:
            self._seen = now
            self._on_change(self.definition.name, listing.tools)

    def _note_loss(self) -> None:
        """Count a lost connection; one that lasted long resets the count of failures."""
        self._connection = None
        lived = asyncio.get_running_loop().time() - self._opened_at
        if lived > limits.UPSTREAM_BACKOFF_SECONDS_MAX:
            self._failures = 0
        self._note_failure("the connection was lost", self._failures)

    def _note_failure(self, message: str, waits: int) -> None:
        self._failures += 1
        self._last_error = message
        if waits:
            longest = min(
                limits.UPSTREAM_BACKOFF_SECONDS_MIN * 2.0 ** min(waits - 1, 30),
                limits.UPSTREAM_BACKOFF_SECONDS_MAX,
            )
            wait = longest * (0.5 + 0.5 * self._jitter())
            self._retry_at = asyncio.get_running_loop().time() + wait

    def _refuse_if_early(self) -> None:
        wait = self._retry_at - asyncio.get_running_loop().time()
        name = self.definition.name
        if self._closed:
            raise ExecutionFailed(f"The server {name} was closed.", safe=True, server=name)
        if wait > 0:
            raise ExecutionFailed(
                f"The server {name} cannot be reached: {self._last_error}",
                safe=True,
                server=name,
                retry_after=round(wait, 3),
            )


def _consume_exception(opening: asyncio.Task[UpstreamConnection]) -> None:
    # Retrieve the exception, so that asyncio does not log it if no caller waits any more.
    if not opening.cancelled():
        opening.exception()


def _read_result(answer: Any, *, server: str, tool: str) -> ContentResult:
    """Return the result of a call, in which nothing of the answer is lost.

    Raises:
        ExecutionFailed: The tool says that it failed, or the answer is none.
    """
    where: dict[str, Any] = {"server": server, "tool": tool}
    if not isinstance(answer, Mapping):
        raise ExecutionFailed(f"{server} answered with something that is not a result.", **where)
    if answer.get("resultType", "complete") == "input_required" or "inputRequests" in answer:
        raise ExecutionFailed(
            f"{tool} of {server} asks its user for more, and nobody is there to answer.", **where
        )
    blocks = _blocks(answer.get("content"))
    if answer.get("isError") is True:
        said = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        message = clean_text(said, limits.UPSTREAM_ERROR_CHARS_MAX)
        # That it answers at all shows that the server works: the file may be missing, say.
        raise ExecutionFailed(
            message or f"{tool} of {server} failed and did not say why.",
            answered=True,
            mcp=_sent(blocks, answer),
            **where,
        )
    meta = _meta(answer)
    if answer.get("structuredContent") is not None:
        return ContentResult(answer["structuredContent"], blocks, is_structured=True, meta=meta)
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        parsed = _json_or_none(blocks[0]["text"])
        if parsed is not None:
            return ContentResult(parsed[0], blocks, meta=meta)
    return ContentResult({"content": blocks}, blocks, meta=meta)


def _sent(blocks: list[dict[str, Any]], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a failed call was answered with, for those who can show more than text."""
    sent: dict[str, Any] = {"content": blocks}
    if answer.get("structuredContent") is not None:
        sent["structuredContent"] = answer["structuredContent"]
    if meta := _meta(answer):
        sent["_meta"] = meta
    return sent


def _meta(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the `_meta` of a server's answer without its name: each server adds its own."""
    given = answer.get("_meta")
    if not isinstance(given, Mapping):
        return None
    return {name: value for name, value in given.items() if name != _SERVER_INFO} or None


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Return content in plain JSON: blocks with a type."""
    if not isinstance(content, list):
        return []
    return [_block(part) for part in content]


def _block(part: Any) -> dict[str, Any]:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        return {"type": "unknown", "value": part}
    block = dict(part)
    if block["type"] == "text" and not isinstance(block.get("text"), str):
        return {"type": "unknown", "value": part}
    return block


def _json_or_none(text: str) -> tuple[Any] | None:
    """Return the JSON that a text is, in a tuple; None where it is only text.

    A number or word is taken for JSON only if nothing is lost: "1.10" may be a version.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, (dict, list)) or orjson.dumps(value).decode() == text.strip():
        return (value,)
    return None
