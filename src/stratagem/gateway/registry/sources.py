"""Sources of tools: upstream MCP servers and OpenAPI documents, each tool registered by name.

A tool is registered with the fingerprint of its definition. When the source changes the definition,
the tool is quarantined until somebody with the right to do so approves it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.errors import (
    AuthorizationRequired,
    SecretUnavailable,
    StratagemError,
    ToolExists,
    ToolNotFound,
    ValidationFailed,
)
from stratagem.gateway import inputs, names
from stratagem.gateway.definitions.contract import ListedTool, Runner
from stratagem.gateway.definitions.documents import ServerDocument
from stratagem.gateway.events import Publish
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.registry.answers import (
    OpenApiTools,
    RemovedServer,
    ServerEntry,
    ServerList,
    ServerTool,
    ServerTools,
    SourceTools,
)
from stratagem.gateway.registry.credentials import CredentialStore
from stratagem.gateway.registry.pending_definitions import (
    definition_of,
    pending_changes,
    was_rejected,
)
from stratagem.gateway.registry.tool_names import TakenNames
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tool_sets import refuse_limited
from stratagem.gateway.registry.tools import CATEGORY_DEFAULT, Tool
from stratagem.gateway.registry.upstream_runner import UpstreamRunner, tools_of
from stratagem.gateway.secret_grants import follow_change
from stratagem.operation import Caller
from stratagem.redaction import mask_json
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

if TYPE_CHECKING:
    from stratagem.gateway.outbound import Outbound

__all__ = ["Sources", "guess_category"]

logger = logging.getLogger(__name__)
_CREDENTIAL: Final = re.compile(r"auth|cookie|token|secret|passw|credential|key", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "search": frozenset({"search", "find", "lookup", "query", "browse", "crawl", "scrape", "grep"}),
    "analysis": frozenset(
        {"analyze", "analyse", "analysis", "classify", "detect", "extract", "summarize", "inspect",
         "compare", "statistics", "sentiment", "lint", "scan"}
    ),
    "generation": frozenset(
        {"generate", "compose", "draft", "render", "synthesize", "image", "draw", "paint"}
    ),
    "filesystem": frozenset({"file", "files", "directory", "directories", "folder", "path"}),
    "data": frozenset({"table", "sql", "database", "rows", "csv", "dataset", "record", "records"}),
    "integration": frozenset(
        {"api", "webhook", "email", "mail", "slack", "github", "issue", "calendar", "message",
         "send", "post", "publish", "ticket", "repository", "request"}
    ),
}  # fmt: skip
_NAME_WEIGHT: Final = 3
# Further words of a description are about details.
_DESCRIPTION_WORDS: Final = 40


class Sources:
    """Adding and looking after sources, for one caller."""

    def __init__(
        self,
        foundation: Foundation,
        caller: Caller,
        *,
        registry: Registry,
        runners: Mapping[str, Runner],
        outbound: Callable[[], Outbound],
        home: HomeLoop,
        publish: Publish,
        new_id: Callable[[str], str],
        credentials: CredentialStore,
    ) -> None:
        self._foundation = foundation
        self._caller = caller
        self._registry = registry
        self._runners = runners
        self._outbound = outbound
        self._home = home
        self._publish = publish
        self._new_id = new_id
        self._credentials = credentials

    async def add_server(self, given: inputs.ServerInput) -> ServerTools:
        """Add an upstream MCP server, and register its tools."""
        from stratagem.gateway.handlers.upstream import read_definition

        definition = read_definition(given.definition()).as_json()
        # One that cannot be listed is not kept, unless a person has only to let it have something.
        try:
            await self._home.join(lambda: self._try_out(definition))
        except StratagemError as error:
            if not _is_for_a_person(error):
                raise
            await asyncio.to_thread(self._keep_server, definition)
            told = await self._home.join(partial(self._invite, given.name, error))
            return _answer_without_tools(given.name, told)
        await asyncio.to_thread(self._keep_server, definition)
        return await self._home.join(lambda: self._refresh(given.name, approve=True))

    async def refresh_server(self, given: inputs.RefreshServerInput) -> ServerTools:
        """List a server's tools anew: new ones are registered, changed ones quarantined."""
        return await self._home.join(lambda: self._refresh(given.name, approve=given.approve))

    def remove_server(self, given: inputs.ServerNameInput) -> RemovedServer:
        """Forget a server or an OpenAPI document, and take its tools out of the registry."""

        def work(transaction: Transaction) -> RemovedServer:
            view = self._foundation.views.view(transaction, "default")
            server = transaction.records.current(view.lineage, names.SERVERS, given.name)
            tools = tools_of(self._registry, transaction, view, given.name)
            # A document leaves nothing behind but its tools.
            if server is None and not tools:
                raise _unknown_server(given.name, transaction, view)
            for tool in tools:
                self._registry.remove(transaction, view, tool.name)
            if server is not None:
                gone = Draft(names.SERVER_REMOVED, {"name": given.name}, names.SERVERS, given.name)
                transaction.append(view.branch, [gone])
            follow_change(transaction, view, given.name, kind="server", handler=None)
            return {"name": given.name, "removed": [tool.name for tool in tools]}

        answer = self._foundation.write(self._caller, work)
        # The credentials of its users are not needed any more.
        self._credentials.remove_all(given.name, self._caller)
        return answer

    def servers(self, _given: inputs.NothingInput) -> ServerList:
        """Return the upstream servers, each with its tools."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, "default")
            page, _next = reader.records.page(view.lineage, names.SERVERS)
            servers: list[ServerEntry] = []
            for name, version in page:
                if version.payload is not None:
                    definition: ServerDocument = orjson.loads(version.payload)
                    tools = tools_of(self._registry, reader, view, name)
                    listed: list[ServerTool] = [
                        {"name": tool.name, "status": tool.status} for tool in tools
                    ]
                    servers.append({**_mask_definition(definition), "tools": listed})
            return {"servers": servers}

    async def add_openapi(self, given: inputs.OpenApiInput) -> OpenApiTools:
        """Register each operation of an OpenAPI document."""
        refuse_limited(self._caller, "registering tools")
        from stratagem.gateway.openapi import list_tools, load_document

        source: Any = given.document if given.document is not None else given.url
        if source is None:
            raise ValidationFailed("Name a `url`, or give the `document`.", field="url")
        prefix = given.prefix or ""
        if prefix[-1:].isalnum():
            # The name of a tool is told from what stands before it.
            prefix += "_"
        outbound = self._outbound()
        document = await self._home.join(lambda: load_document(source, outbound))
        listing = await asyncio.to_thread(
            list_tools, document, base_url=given.base_url, prefix=prefix
        )
        source = prefix.rstrip("_-") or _slug(listing.title) or "openapi"
        added = await asyncio.to_thread(self._register_all, listing.tools, source, "openapi")
        return {
            "source": source,
            **added,
            "secrets": listing.secrets,
            "warnings": [*added["warnings"], *listing.warnings],
        }

    async def _try_out(self, definition: ServerDocument) -> None:
        """Connect to a server and list its tools, without keeping anything of it."""
        runner = self._runners["mcp"]
        assert isinstance(runner, UpstreamRunner)
        await runner.try_out(definition, self._caller.actor)

    async def _invite(self, server: str, error: StratagemError) -> StratagemError:
        """Return why a server cannot be asked; where a user has to sign in, with where."""
        if not isinstance(error, AuthorizationRequired):
            return error
        runner = self._runners["mcp"]
        assert isinstance(runner, UpstreamRunner)
        return await runner.invite(server, error)

    async def _refresh(self, server: str, *, approve: bool) -> ServerTools:
        runner = self._runners["mcp"]
        assert isinstance(runner, UpstreamRunner)
        await runner.ready(server)
        user = self._caller.actor
        try:
            listed = await runner.upstreams.list_tools(server, user)
        except AuthorizationRequired as error:
            raise await runner.invite(server, error) from None
        answer = await asyncio.to_thread(self._register_all, listed, server, "mcp", approve=approve)
        notes = runner.upstreams.notes(server, user)
        return {
            "server": server,
            "registered": answer["registered"],
            "updated": answer["updated"],
            "quarantined": answer["quarantined"],
            "warnings": [*answer["warnings"], *notes],
        }

    def _keep_server(self, definition: ServerDocument) -> None:
        def work(transaction: Transaction) -> None:
            view = self._foundation.views.view(transaction, "default")
            name = definition["name"]
            draft = Draft(names.SERVER_ADDED, definition, names.SERVERS, name)
            transaction.append(view.branch, [draft])
            follow_change(transaction, view, name, kind="server", handler=definition)

        self._foundation.write(self._caller, work)

    def _register_all(
        self, listed: Sequence[ListedTool], source: str, kind: str, *, approve: bool = True
    ) -> SourceTools:
        """Register the tools of a source, in one transaction; a tool that cannot be is left out."""
        registry = self._registry

        def work(transaction: Transaction) -> SourceTools:
            view = self._foundation.views.view(transaction, "default")
            known = {
                tool.handler.get("tool", tool.name): tool
                for tool in tools_of(self._registry, transaction, view, source)
            }
            taken = registry.taken_names(transaction, view)
            answer: SourceTools = {
                "registered": [],
                "updated": [],
                "quarantined": [],
                "warnings": [],
            }
            for each in listed:
                own = known.get(each.handler.get("tool", each.name))
                try:
                    if own is None:
                        name = self._add(
                            transaction, view, each, source, taken=taken, approve=approve
                        )
                        answer["registered" if approve else "quarantined"].append(name)
                    elif _has_changed(own, each, source) or own.status == "quarantined":
                        if not approve and was_rejected(own, each):
                            continue
                        changes = (
                            {**definition_of(each, own.name, source), "pending": None}
                            if approve
                            else pending_changes(each, own, own.name, source)
                        )
                        registry.update(transaction, view, own.name, changes)
                        answer["updated" if approve else "quarantined"].append(own.name)
                    elif missing := _missing_display_fields(own, each, source):
                        # Registered by a release that did not keep it; the approved fingerprint
                        # covers it.
                        registry.update(transaction, view, own.name, missing)
                except (ToolExists, ValidationFailed) as error:
                    answer["warnings"].append(f"{each.name} was left out: {error.message}")
            return answer

        answer = self._foundation.write(self._caller, work)
        for name in answer["registered"]:
            self._publish("available", {"name": name, "provider": kind})
        return answer

    def _add(
        self,
        transaction: Transaction,
        view: View,
        tool: ListedTool,
        source: str,
        *,
        taken: TakenNames,
        approve: bool,
    ) -> str:
        """Register a tool under its own name, or under one that is neither taken nor mistaken.

        One that nobody has approved waits until somebody does.
        """
        owner = f"source:{source}"
        name = taken.free(source, tool.name, owner)
        if name is None:
            raise ToolExists(f"There are too many tools named {tool.name!r}.", field="name")
        new_id = self._new_id("tool")
        definition = definition_of(tool, name, source)
        if not approve:
            definition |= pending_changes(tool, None, name, source)
        definition["category"] = guess_category(name, tool.description, tool.annotations or {})
        self._registry.register(transaction, view, definition, new_id, owner=owner, taken=taken)
        return name


def _is_for_a_person(error: StratagemError) -> bool:
    """Whether a server could be asked once a person has granted a secret, or signed in."""
    if isinstance(error, AuthorizationRequired | SecretUnavailable):
        return True
    return error.details.get("reason") in {"not_granted", "grant_suspended"}


def _answer_without_tools(server: str, error: StratagemError) -> ServerTools:
    then = f"Then list its tools: stratagem tools refresh {server} --approve"
    return {
        "server": server,
        "registered": [],
        "updated": [],
        "quarantined": [],
        "warnings": [f"{error.message} {error.hint} {then}"],
        "needs": {"code": error.code, **error.details},
    }


def _unknown_server(name: str, reader: Reader, view: View) -> ToolNotFound:
    page, _next = reader.records.page(view.lineage, names.SERVERS)
    there = [each for each, version in page if version.payload is not None]
    near = get_close_matches(name, there, n=3)
    known = f"There are: {', '.join(there[:10])}." if there else "No server was added yet."
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else known
    return ToolNotFound(
        f"There is no upstream server {name!r}.", hint=hint, field="name", similar=near
    )


def _has_changed(own: Tool, listed: ListedTool, source: str) -> bool:
    """Whether a source describes a tool differently than when it was registered."""
    return bool(own.handler != {**listed.handler, "source": source})


def _missing_display_fields(own: Tool, listed: ListedTool, source: str) -> dict[str, Any]:
    """Return what a source says of a tool, for clients to show, that the registry does not have."""
    definition = definition_of(listed, own.name, source)
    return {
        field: definition[field]
        for field in ("title", "annotations", "icons")
        if field in definition and definition[field] != own.content.get(field)
    }


def _mask_definition(definition: ServerDocument) -> ServerDocument:
    """Return the definition of a server as it is in effect, without what may be secret in it."""
    shown: ServerDocument = mask_json(dict(definition), "strict")
    for values in (shown.get("env") or {}, shown.get("headers") or {}):
        for name, value in values.items():
            if _CREDENTIAL.search(name) and "${" not in value:
                values[name] = "[masked]"
    return shown


def _slug(title: str) -> str:
    return "-".join("".join(each if each.isalnum() else " " for each in title).casefold().split())[
        :64
    ]


def guess_category(name: str, description: str, annotations: Mapping[str, Any]) -> str:
    """Return the category that a tool of another server most likely is of: servers say none.

    The words of the name count most, then those of the description; where no word decides, the
    annotations do. `tool_update` sets another, which a refresh leaves alone.
    """
    scores: Counter[str] = Counter()
    texts = ((name, _NAME_WEIGHT, None), (description, 1, _DESCRIPTION_WORDS))
    for text, weight, most in texts:
        for word in _WORD.findall(text[:2000])[:most]:
            for category, words in _WORDS.items():
                if word.casefold() in words:
                    scores[category] += weight
    if scores:
        return max(scores, key=lambda each: (scores[each], each))
    return "integration" if annotations.get("openWorldHint") is True else CATEGORY_DEFAULT
