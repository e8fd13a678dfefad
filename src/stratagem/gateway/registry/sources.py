"""Tools from elsewhere: upstream MCP servers and OpenAPI documents, each tool registered by name.

A tool is registered with the fingerprint of what its source said about it. When the source says
something else, the tool is quarantined until somebody with the right to do so approves it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.errors import ToolExists, ToolNotFound, ValidationFailed
from stratagem.gateway import inputs, names
from stratagem.gateway.definitions.contract import Handler, ListedTool, Run
from stratagem.gateway.registry.tool_names import TakenNames
from stratagem.operation import Caller
from stratagem.storage.contract import Reader, Transaction, Version

if TYPE_CHECKING:
    from stratagem.gateway.handlers.upstream import Upstreams
    from stratagem.gateway.switchboard import Switchboard

__all__ = ["Sources", "UpstreamRunner"]

logger = logging.getLogger(__name__)

Answer = dict[str, Any]


class UpstreamRunner:
    """Runs tools of upstream servers, whose definitions are records of the log."""

    def __init__(
        self,
        switchboard: Switchboard,
        upstreams: Callable[[Callable[[str, Sequence[ListedTool]], None]], Upstreams],
    ) -> None:
        self._switchboard = switchboard
        self.upstreams = upstreams(self.changed)
        self._defined: dict[str, int] = {}

    async def ready(self, server: str) -> None:
        """Take a server's definition from the log, where it is new or changed.

        Raises:
            ToolNotFound: There is no server of that name.
        """
        version = await self._switchboard.foundation.read_async(lambda: self._definition(server))
        if version is None or version.payload is None:
            await self.upstreams.remove(server)
            self._defined.pop(server, None)
            raise ToolNotFound(
                f"There is no upstream server {server!r}.",
                field="server",
                hint="Add it: stratagem tools add --mcp COMMAND",
            )
        if self._defined.get(server) != version.sequence:
            await self.upstreams.define(orjson.loads(version.payload))
            self._defined[server] = version.sequence

    def _definition(self, server: str) -> Version | None:
        foundation = self._switchboard.foundation
        reader = foundation.store.reader()
        view = foundation.views.view(reader, "default")
        return reader.current(view.lineage, names.SERVERS, server)

    async def try_out(self, definition: Answer) -> None:
        """List the tools of a server before it is added, or before its definition changes.

        Raises:
            ExecutionFailed: It cannot be asked; what was known of it holds on.
        """
        name = definition["name"]
        self._defined.pop(name, None)
        try:
            await self.upstreams.define(definition)
            await self.upstreams.list_tools(name)
        except BaseException:
            await self.upstreams.remove(name)
            raise

    def check(self, handler: Handler) -> list[str]:
        """Check that the handler names a server and one of its tools."""
        for field in ("server", "tool"):
            if not isinstance(handler.get(field), str) or not handler[field]:
                raise ValidationFailed(
                    f"A handler of type mcp names its `{field}`.", field=f"handler.{field}"
                )
        return []

    async def run(self, handler: Handler, run: Run) -> Any:
        """Call the upstream tool."""
        await self.ready(handler["server"])
        return await self.upstreams.run(handler, run)

    async def close(self) -> None:
        """End connections and processes."""
        await self.upstreams.close()

    def changed(self, server: str, listed: Sequence[ListedTool]) -> None:
        """Quarantine the tools that are no longer what was approved."""
        threading_work = asyncio.to_thread(self._quarantine, server, listed)
        task = asyncio.get_running_loop().create_task(threading_work)
        task.add_done_callback(_log_failure)

    def _quarantine(self, server: str, listed: Sequence[ListedTool]) -> None:
        now = {tool.handler["tool"]: tool.handler["fingerprint"] for tool in listed}
        switchboard = self._switchboard
        told: list[Answer] = []

        def work(transaction: Transaction) -> None:
            view = switchboard.foundation.views.view(transaction, "default")
            for tool in _tools_of(switchboard, transaction, view, server):
                approved = tool.handler.get("fingerprint")
                current = now.get(tool.handler["tool"])
                if tool.status == "active" and current is not None and current != approved:
                    changes = {"status": "quarantined"}
                    switchboard.registry.update(transaction, view, tool.name, changes)
                    told.append({"toolId": tool.id, "name": tool.name, "changes": changes})

        if any(
            tool.status == "active"
            and now.get(tool.handler["tool"]) != tool.handler.get("fingerprint")
            for tool in self._registered(server)
        ):
            switchboard.foundation.write(Caller(actor="gateway"), work)
        for each in told:
            switchboard.tell("updated", each)
            switchboard.tell("unavailable", {"name": each["name"], "reason": "quarantined"})

    def _registered(self, server: str) -> list[Any]:
        foundation = self._switchboard.foundation
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, "default")
            return _tools_of(self._switchboard, reader, view, server)


class Sources:
    """Adding and looking after sources, for one caller."""

    def __init__(self, switchboard: Switchboard, caller: Caller) -> None:
        self._switchboard = switchboard
        self._caller = caller
        self._foundation = switchboard.foundation

    async def add_server(self, given: inputs.ServerInput) -> Answer:
        """Add an upstream MCP server, and register its tools."""
        from stratagem.gateway.handlers.upstream import read_definition

        definition = read_definition(given.definition()).as_json()
        # One that cannot be listed is not kept.
        await self._switchboard.home.join(lambda: self._tried(definition))
        await asyncio.to_thread(self._keep_server, definition)
        return await self._switchboard.home.join(lambda: self._refresh(given.name, approve=True))

    async def refresh_server(self, given: inputs.ServerNameInput) -> Answer:
        """List a server's tools anew: new ones are registered, changed ones quarantined."""
        return await self._switchboard.home.join(
            lambda: self._refresh(given.name, approve=given.approve)
        )

    def remove_server(self, given: inputs.ServerNameInput) -> Answer:
        """Forget a server, and take its tools out of the registry."""

        def work(transaction: Transaction) -> Answer:
            view = self._foundation.views.view(transaction, "default")
            if transaction.current(view.lineage, names.SERVERS, given.name) is None:
                raise ToolNotFound(f"There is no upstream server {given.name!r}.", field="name")
            tools = _tools_of(self._switchboard, transaction, view, given.name)
            for tool in tools:
                self._switchboard.registry.remove(transaction, view, tool.name)
            draft = Draft(names.SERVER_REMOVED, {"name": given.name}, names.SERVERS, given.name)
            transaction.append(view.branch, [draft])
            return {"name": given.name, "removed": [tool.name for tool in tools]}

        return self._foundation.write(self._caller, work)

    def servers(self, _given: inputs.NothingInput) -> Answer:
        """Return the upstream servers, each with its tools."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, "default")
            page, _next = reader.records(view.lineage, names.SERVERS)
            return {
                "servers": [
                    {
                        **orjson.loads(version.payload),
                        "tools": [
                            {"name": tool.name, "status": tool.status}
                            for tool in _tools_of(self._switchboard, reader, view, name)
                        ],
                    }
                    for name, version in page
                    if version.payload is not None
                ]
            }

    async def add_openapi(self, given: inputs.OpenApiInput) -> Answer:
        """Register each operation of an OpenAPI document."""
        from stratagem.gateway.openapi import list_tools, load

        source: Any = given.document if given.document is not None else given.url
        if source is None:
            raise ValidationFailed("Name a `url`, or give the `document`.", field="url")
        outbound = self._switchboard.outbound
        document = await self._switchboard.home.join(lambda: load(source, outbound))
        listing = await asyncio.to_thread(
            list_tools, document, base_url=given.base_url, prefix=given.prefix or ""
        )
        source = given.prefix or _slug(listing.title) or "openapi"
        added = await asyncio.to_thread(self._register_all, listing.tools, source, "openapi")
        return {
            "source": source,
            **added,
            "secrets": listing.secrets,
            "warnings": [*added["warnings"], *listing.warnings],
        }

    async def _tried(self, definition: Answer) -> None:
        """Connect to a server and list its tools, without keeping anything of it."""
        runner = self._switchboard.runners["mcp"]
        assert isinstance(runner, UpstreamRunner)
        await runner.try_out(definition)

    async def _refresh(self, server: str, *, approve: bool) -> Answer:
        runner = self._switchboard.runners["mcp"]
        assert isinstance(runner, UpstreamRunner)
        await runner.ready(server)
        listed = await runner.upstreams.list_tools(server)
        answer = await asyncio.to_thread(self._register_all, listed, server, "mcp", approve=approve)
        notes = runner.upstreams.notes(server)
        return {"server": server, **answer, "warnings": [*answer["warnings"], *notes]}

    def _keep_server(self, definition: Answer) -> None:
        def work(transaction: Transaction) -> None:
            view = self._foundation.views.view(transaction, "default")
            draft = Draft(names.SERVER_ADDED, definition, names.SERVERS, definition["name"])
            transaction.append(view.branch, [draft])

        self._foundation.write(self._caller, work)

    def _register_all(
        self, listed: Sequence[ListedTool], source: str, kind: str, *, approve: bool = True
    ) -> Answer:
        """Register the tools of a source, in one transaction; a tool that cannot be is left out."""
        registry = self._switchboard.registry

        def work(transaction: Transaction) -> Answer:
            view = self._foundation.views.view(transaction, "default")
            known = {
                tool.handler.get("tool", tool.name): tool
                for tool in _tools_of(self._switchboard, transaction, view, source)
            }
            taken = registry.taken(transaction, view)
            answer: Answer = {"registered": [], "updated": [], "quarantined": [], "warnings": []}
            for each in listed:
                own = known.get(each.handler.get("tool", each.name))
                try:
                    if own is None:
                        name = self._add(transaction, view, each, source, taken=taken)
                        answer["registered"].append(name)
                    elif _changed(own, each, source) or own.status == "quarantined":
                        changes = _definition(each, own.name, source)
                        changes = changes if approve else {"status": "quarantined"}
                        registry.update(transaction, view, own.name, changes)
                        answer["updated" if approve else "quarantined"].append(own.name)
                except (ToolExists, ValidationFailed) as error:
                    answer["warnings"].append(f"{each.name} was left out: {error.message}")
            return answer

        answer = self._foundation.write(self._caller, work)
        for name in answer["registered"]:
            self._switchboard.tell("available", {"name": name, "provider": kind})
        return answer

    def _add(
        self,
        transaction: Transaction,
        view: View,
        tool: ListedTool,
        source: str,
        *,
        taken: TakenNames,
    ) -> str:
        """Register a tool under its own name, or under one that is neither taken nor mistaken."""
        owner = f"source:{source}"
        name = taken.free(source, tool.name, owner)
        if name is None:
            raise ToolExists(f"There are too many tools named {tool.name!r}.", field="name")
        new_id = self._switchboard.new_id("tool")
        definition = _definition(tool, name, source)
        self._switchboard.registry.register(
            transaction, view, definition, new_id, owner=owner, taken=taken
        )
        return name


def _changed(own: Any, listed: ListedTool, source: str) -> bool:
    """Whether a source says something else about a tool than when it was registered."""
    return bool(own.handler != {**listed.handler, "source": source})


def _definition(tool: ListedTool, name: str, source: str) -> Answer:
    hints: Mapping[str, Any] = tool.annotations or {}
    given = {
        "name": name,
        "description": tool.description or tool.title or name,
        "inputSchema": dict(tool.input_schema),
        "outputSchema": dict(tool.output_schema) if tool.output_schema else None,
        "handler": {**tool.handler, "source": source},
        "provider": source,
        "tags": list(tool.tags),
        "status": "active",
        "configuration": {"idempotent": True}
        if hints.get("idempotentHint") or hints.get("readOnlyHint")
        else {},
    }
    return {field: value for field, value in given.items() if value is not None}


def _tools_of(switchboard: Switchboard, reader: Reader, view: View, source: str) -> list[Any]:
    return [
        tool
        for tool in switchboard.registry.all(reader, view)
        if tool.handler.get("source") == source and tool.name not in switchboard.registry.builtin
    ]


def _slug(title: str) -> str:
    return "-".join("".join(each if each.isalnum() else " " for each in title).casefold().split())[
        :64
    ]


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("changed tools could not be quarantined: %s", error)
