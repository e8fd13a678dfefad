"""Tells clients that a list has changed, or a resource that they follow.

Clients of the handshake era are notified on their session's own stream, if they keep one open;
clients of 2026 on the stream of their subscription. No notice is repeated, and a client that was
disconnected reads again: a notice says that something changed, never what.

Changes by this process are notified at once. Changes of the registry by another process (another
worker, another server, the command line) are found in the database within a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.mcp.callers import SESSION_HEADER, Callers
from stratagem.surfaces.mcp.forwarded_primitives import ForwardedPrimitives, protocol_error
from stratagem.surfaces.mcp.task_notices import following_tasks
from stratagem.surfaces.mcp.tasks import ClientTasks
from stratagem.surfaces.serving.database import Database

__all__ = ["ChangeNotices"]

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

# What happens in the gateway, and the list that changes with it.
_LISTS: Final[Mapping[str, ServerEvent]] = {
    "available": ToolsListChanged(),
    "unavailable": ToolsListChanged(),
    "updated": ToolsListChanged(),
}
_PRIMITIVES: Final[Mapping[str, ServerEvent]] = {
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}
# A server with a hundred tools is one change of the list.
_GATHER_SECONDS: Final = 0.05


class _Counts(NamedTuple):
    """How many versions of tools and of resources there are; they only grow."""

    tools: int
    resources: int


@dataclass(slots=True)
class _Workspace:
    """Who is told of what happens in a workspace."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    sessions: dict[str, ServerSession] = field(default_factory=dict)
    # By server and address there: how the clients of each session name the resource.
    followers: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    pending: dict[ServerEvent, None] = field(default_factory=dict)
    listening: asyncio.Task[None] | None = None
    subscriptions: int = 0
    watching: asyncio.Task[None] | None = None
    # How often tools and resources had been written when clients were last told of a change.
    told: _Counts | None = None

    @property
    def has_clients(self) -> bool:
        """Whether there is anybody to tell."""
        return bool(self.sessions or self.subscriptions)

    def __post_init__(self) -> None:
        self.listen = ListenHandler(self.bus, max_subscriptions=limits.SESSIONS_MAX)

    # Set in `__post_init__`.
    listen: ListenHandler = field(init=False)


class ChangeNotices:
    """Sends notices to the clients of each workspace."""

    def __init__(
        self,
        database: Database,
        callers: Callers,
        forwarded: ForwardedPrimitives,
        client_tasks: ClientTasks,
    ) -> None:
        self._database = database
        self._callers = callers
        self._forwarded = forwarded
        self._client_tasks = client_tasks
        self._workspaces: dict[str | None, _Workspace] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        callers.on_end(self.forget)

    async def begin(self, context: Context, _params: types.NotificationParams) -> None:
        """Tell a client of the handshake era from now on."""
        key = _session_key(context)
        if key is None or context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        name = self._callers.of(context).workspace
        workspace = self._workspace(name)
        workspace.sessions[key] = context.session
        await self._watch(name, workspace)

    def forget(self, session: str) -> None:
        """Tell a client nothing any more."""
        for name, workspace in self._workspaces.items():
            if workspace.sessions.pop(session, None) is not None:
                for place in list(workspace.followers):
                    self._drop_follower(name, place, session)

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell a client of 2026 what it subscribes to, for as long as it listens."""
        caller = self._callers.of(context)
        workspace = self._workspace(caller.workspace)
        wanted = params.notifications
        async with (
            self._following(caller, wanted.resource_subscriptions or ()) as followed,
            following_tasks(context, wanted, self._client_tasks) as told,
        ):
            honoured = wanted.model_copy(update={"resource_subscriptions": followed or None})
            workspace.subscriptions += 1
            await self._watch(caller.workspace, workspace)
            try:
                return await workspace.listen(
                    told, params.model_copy(update={"notifications": honoured})
                )
            finally:
                workspace.subscriptions -= 1

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell a client of the handshake era of changes of a resource.

        Raises:
            MCPError: Nobody has it, or its server does not tell of changes.
        """
        caller, key = self._callers.of(context), _session_key(context)
        workspace = self._workspace(caller.workspace)
        place = await self._follow(caller, params.uri, context.protocol_version)
        if place is None or key is None:
            words = f"Changes of {params.uri!r} are not reported; read it again."
            raise MCPError(types.INVALID_PARAMS, words, {"uri": params.uri})
        workspace.sessions.setdefault(key, context.session)
        await self._watch(caller.workspace, workspace)
        followers = workspace.followers.setdefault(place, {})
        if key in followers:
            self._unfollow(caller.workspace, place)
        followers[key] = params.uri
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell a client of changes of a resource no longer."""
        caller, key = self._callers.of(context), _session_key(context)
        workspace = self._workspace(caller.workspace)
        for place, followers in [*workspace.followers.items()]:
            if key is not None and followers.get(key) == params.uri:
                self._drop_follower(caller.workspace, place, key)
        return types.EmptyResult()

    @asynccontextmanager
    async def _following(self, caller: Caller, uris: Any) -> AsyncIterator[list[str]]:
        """Follow resources for the time of a subscription; give those that can be."""
        places: dict[str, tuple[str, str]] = {}
        try:
            for uri in uris:
                try:
                    place = await self._follow(caller, uri, "")
                except MCPError:
                    # What nobody has never changes; the others are followed.
                    continue
                if place is not None:
                    places[uri] = place
            yield list(places)
        finally:
            for place in places.values():
                self._unfollow(caller.workspace, place)

    async def _follow(self, caller: Caller, uri: str, version: str) -> tuple[str, str] | None:
        if not self._forwarded.is_served(caller):
            return None
        from stratagem.gateway import inputs, services

        runtime = await asyncio.to_thread(self._database.runtime, caller.workspace)
        gateway = await asyncio.to_thread(lambda: runtime.gateway)
        gateway.home.adopt()
        given = inputs.UpstreamResourceInput(**self._forwarded.limit_to_exposed({"uri": uri}))
        try:
            return await services.primitives(gateway, caller).follow(given)
        except StratagemError as error:
            raise protocol_error(error, version) from error

    def _unfollow(self, workspace: str | None, place: tuple[str, str]) -> None:
        from stratagem.gateway import services

        gateway = self._database.runtime(workspace).gateway
        services.primitives(gateway, Caller("mcp", workspace=workspace)).unfollow(*place)

    def _drop_follower(self, workspace: str | None, place: tuple[str, str], session: str) -> None:
        followers = self._workspaces[workspace].followers
        if followers.get(place, {}).pop(session, None) is not None:
            self._unfollow(workspace, place)
        if not followers.get(place):
            followers.pop(place, None)

    def _workspace(self, name: str | None) -> _Workspace:
        """Return who is told in a workspace, whose events are listened to from now on."""
        workspace = self._workspaces.setdefault(name, _Workspace())
        if workspace.listening is None:
            workspace.listening = self._run(self._listen_to_gateway(name, workspace))
        return workspace

    async def _listen_to_gateway(self, name: str | None, workspace: _Workspace) -> None:
        loop = asyncio.get_running_loop()
        try:
            runtime = await asyncio.to_thread(self._database.runtime, name)
            gateway = await asyncio.to_thread(lambda: runtime.gateway)
        except StratagemError as error:
            # The next client tries again.
            logger.warning("changes cannot be reported: %s", error.message)
            workspace.listening = None
            return
        gateway.home.adopt()

        def note(what: str, data: Mapping[str, Any]) -> None:
            if what in _LISTS or what == "primitives":
                events = _events(what, data)
                loop.call_soon_threadsafe(self._note, name, workspace, events)

        gateway.events.subscribe(note)

    async def _watch(self, name: str | None, workspace: _Workspace) -> None:
        """Look for what other processes do from now on, as long as there is anybody to tell."""
        if workspace.watching is None or workspace.watching.done():
            workspace.told = await self._count(name)
            workspace.watching = self._run(self._look(name, workspace))

    async def _look(self, name: str | None, workspace: _Workspace) -> None:
        while workspace.has_clients and workspace.told is not None:
            await asyncio.sleep(limits.CHANGES_LOOK_SECONDS)
            counts = await self._count(name)
            if counts is None:
                return
            events = _changes(workspace.told, counts)
            if events and not workspace.pending:
                workspace.told = counts
                self._note(name, workspace, events)

    async def _count(self, name: str | None) -> _Counts | None:
        """Return how often the registry was written; None where it cannot be read any more."""
        from stratagem.gateway import names

        def count() -> _Counts:
            catalogue = self._database.runtime(name).foundation.store.reader().catalogue
            return _Counts(
                *(catalogue.version_count(each) for each in (names.TOOL, names.RESOURCE))
            )

        try:
            return await asyncio.to_thread(count)
        except StratagemError as error:
            logger.debug("changes of other processes are not seen: %s", error.message)
            return None

    def _note(self, name: str | None, workspace: _Workspace, events: Sequence[ServerEvent]) -> None:
        """Gather what changes at nearly the same time."""
        if not workspace.pending:
            self._run(self._send(name, workspace))
        workspace.pending |= dict.fromkeys(events)

    async def _send(self, name: str | None, workspace: _Workspace) -> None:
        await asyncio.sleep(_GATHER_SECONDS)
        if workspace.told is not None:
            # Whoever reads after the notice sees all that was written until now.
            workspace.told = await self._count(name) or workspace.told
        events, workspace.pending = [*workspace.pending], {}
        for event in events:
            self._run(workspace.bus.publish(event))
            for key, session in workspace.sessions.items():
                if (notification := _notification(event, workspace, key)) is not None:
                    self._run(session.send_notification(notification))

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _events(what: str, data: Mapping[str, Any]) -> list[ServerEvent]:
    if what in _LISTS:
        return [_LISTS[what]]
    if data["kind"] in _PRIMITIVES:
        return [_PRIMITIVES[data["kind"]]]
    from stratagem.gateway.registry.served_primitives import prefixed_uri

    server, uri = data["server"], data["uri"]
    return [ResourceUpdated(uri), ResourceUpdated(prefixed_uri(server, uri))]


def _changes(before: _Counts, after: _Counts) -> list[ServerEvent]:
    """Return what changed between two looks."""
    tools: list[ServerEvent] = [ToolsListChanged()] if after.tools != before.tools else []
    if after.resources == before.resources:
        return tools
    return [*tools, PromptsListChanged(), ResourcesListChanged()]


def _notification(
    event: ServerEvent, workspace: _Workspace, session: str
) -> types.ServerNotification | None:
    """Return how a client of the handshake era is told of an event, if it is to be."""
    if isinstance(event, ToolsListChanged):
        return types.ToolListChangedNotification()
    if isinstance(event, PromptsListChanged):
        return types.PromptListChangedNotification()
    if isinstance(event, ResourcesListChanged):
        return types.ResourceListChangedNotification()
    named = {followers.get(session) for followers in workspace.followers.values()}
    if event.uri not in named:
        return None
    params = types.ResourceUpdatedNotificationParams(uri=event.uri)
    return types.ResourceUpdatedNotification(params=params)


def _session_key(context: Context) -> str | None:
    """Return what tells sessions apart: the process has one client, a server many."""
    if context.request is None:
        return ""
    session: str | None = context.request.headers.get(SESSION_HEADER)
    return session
