"""Runs tools of upstream MCP servers, whose definitions are records of the log.

A tool that its server changed is quarantined until somebody with the right to do so approves it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from stratagem.engine.lineage import View
from stratagem.errors import AuthorizationRequired, ToolNotFound, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.definitions.contract import Handler, ListedTool, Run
from stratagem.gateway.definitions.documents import ServerDocument
from stratagem.gateway.events import Publish
from stratagem.gateway.registry.pending_definitions import pending_changes
from stratagem.gateway.registry.sign_ins import SignIns, authorization_required
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction, Version

if TYPE_CHECKING:
    from stratagem.gateway.handlers.upstream import Upstreams

__all__ = ["UpstreamRunner", "tools_of"]

logger = logging.getLogger(__name__)


class UpstreamRunner:
    """Runs tools of upstream servers, whose definitions are records of the log."""

    def __init__(
        self,
        foundation: Foundation,
        registry: Registry,
        publish: Publish,
        upstreams: Callable[
            [Callable[[str, Sequence[ListedTool]], None], Callable[[str, str, str | None], None]],
            Upstreams,
        ],
        *,
        stamp: Callable[[Mapping[str, Any]], str],
        sign_ins: SignIns,
    ) -> None:
        self._foundation = foundation
        self._registry = registry
        self._publish = publish
        self._stamp = stamp
        self.sign_ins = sign_ins
        # By server and user: the version of the user's credentials when the connection was opened.
        self._let_in: dict[tuple[str, str], int] = {}
        self.upstreams = upstreams(self.quarantine_changed, self.tell_of_primitives)
        # By server: the event that defined it, and what it was granted, when it was taken.
        self._defined: dict[str, tuple[int, str]] = {}

    async def ready(self, server: str) -> None:
        """Take a server's definition from the log, where it is new or changed.

        Raises:
            ToolNotFound: There is no server of that name.
        """
        version = await self._foundation.read_async(lambda: self._definition(server))
        if version is None or version.payload is None:
            await self.upstreams.remove(server)
            self._defined.pop(server, None)
            raise ToolNotFound(
                f"There is no upstream server {server!r}.",
                field="server",
                hint="Add it: stratagem tools add --mcp COMMAND",
            )
        definition = orjson.loads(version.payload)
        granted = await self._foundation.read_async(lambda: self._stamp(definition))
        if self._defined.get(server) != (version.sequence, granted):
            if self._defined.get(server, (0, None))[1] not in {None, granted}:
                # The connection was opened with secrets that are no longer granted.
                await self.upstreams.remove(server)
            await self.upstreams.define(definition)
            self._defined[server] = (version.sequence, granted)

    def _definition(self, server: str) -> Version | None:
        foundation = self._foundation
        reader = foundation.store.reader()
        view = foundation.views.view(reader, "default")
        return reader.records.current(view.lineage, names.SERVERS, server)

    async def definition(self, server: str) -> ServerDocument:
        """Return a server's definition.

        Raises:
            ToolNotFound: There is no server of that name.
        """
        await self.ready(server)
        return next(each for each in self.upstreams.servers() if each["name"] == server)

    async def invite(self, server: str, error: AuthorizationRequired) -> AuthorizationRequired:
        """Return the error of a call that a user has to sign in for, with where that is done."""
        if error.details.get("reason") != "sign_in" or self.sign_ins.place() is None:
            return error
        user = error.details["user"]
        begun = await self.sign_ins.begin(await self.definition(server), user)
        return authorization_required(server, user, begun["address"])

    async def try_out(self, definition: ServerDocument, user: str) -> None:
        """List the tools of a server before it is added, or before its definition changes.

        Raises:
            ExecutionFailed: It cannot be asked; what was known of it holds on.
        """
        name = definition["name"]
        self._defined.pop(name, None)
        try:
            await self.upstreams.define(definition)
            await self.upstreams.list_tools(name, user)
        except BaseException:
            await self.upstreams.remove(name)
            raise

    def check(self, handler: Handler) -> list[str]:
        """Check that the handler names a server and one of its tools."""
        for field in ("server", "tool"):
            if not isinstance(handler.get(field), str) or not handler[field]:
                raise ValidationFailed(
                    f"A handler of type mcp must name its `{field}`.", field=f"handler.{field}"
                )
        return []

    async def run(self, handler: Handler, run: Run) -> Any:
        """Call the upstream tool, in the name of the caller where the server knows its users."""
        server, user = handler["server"], run.caller.actor
        await self.ready(server)
        await self._reconnect(server, user)
        try:
            return await self.upstreams.run(handler, run)
        except AuthorizationRequired as error:
            raise await self.invite(server, error) from None

    async def _reconnect(self, server: str, user: str) -> None:
        """Close the connection of a user who has given a server something else since."""
        definition = next(each for each in self.upstreams.servers() if each["name"] == server)
        if "${user." not in str(definition):
            return
        stamp = await self._foundation.read_async(
            lambda: self.sign_ins.credentials.stamp(server, user)
        )
        if self._let_in.get((server, user)) != stamp:
            await self.upstreams.disconnect(server, user)
            self._let_in[server, user] = stamp

    async def close(self) -> None:
        """End connections and processes."""
        await self.upstreams.close()

    def quarantine_changed(self, server: str, listed: Sequence[ListedTool]) -> None:
        """Quarantine the tools that are no longer what was approved."""
        threading_work = asyncio.to_thread(self._quarantine, server, listed)
        task = asyncio.get_running_loop().create_task(threading_work)
        task.add_done_callback(_log_failure)

    def tell_of_primitives(self, server: str, kind: str, uri: str | None) -> None:
        """Publish that prompts or resources of a server have changed, or one resource."""
        self._publish("primitives", {"server": server, "kind": kind, "uri": uri})

    def _quarantine(self, server: str, listed: Sequence[ListedTool]) -> None:
        now = {tool.handler["tool"]: tool for tool in listed}
        quarantined: list[Tool] = []

        def work(transaction: Transaction) -> None:
            view = self._foundation.views.view(transaction, "default")
            for tool in tools_of(self._registry, transaction, view, server):
                current = now.get(tool.handler["tool"])
                if tool.status == "active" and current is not None and _differs(tool, current):
                    changes = pending_changes(current, tool, tool.name, server)
                    self._registry.update(transaction, view, tool.name, changes)
                    quarantined.append(tool)

        if any(
            tool.status == "active" and _differs(tool, now.get(tool.handler["tool"]))
            for tool in self._find_tools(server)
        ):
            self._foundation.write(Caller(actor="gateway"), work)
        for tool in quarantined:
            shown = {"status": "quarantined"}
            changed = {"toolId": tool.id, "name": tool.name, "changes": shown}
            self._publish("updated", changed)
            self._publish("unavailable", {"name": tool.name, "reason": "quarantined"})

    def _find_tools(self, server: str) -> list[Tool]:
        foundation = self._foundation
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, "default")
            return tools_of(self._registry, reader, view, server)


def tools_of(registry: Registry, reader: Reader, view: View, source: str) -> list[Tool]:
    """Return the tools that came from a source."""
    return [
        tool
        for tool in registry.all(reader, view)
        if tool.handler.get("source") == source and tool.name not in registry.builtin
    ]


def _differs(tool: Tool, listed: ListedTool | None) -> bool:
    """Whether a server describes a tool differently than was approved, or not at all."""
    now = listed.handler["fingerprint"] if listed is not None else None
    return bool(now != tool.handler.get("fingerprint"))


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("changed tools could not be quarantined: %s", error)
