"""Prompts, resources and templates of upstream servers, for one caller.

An unreachable server does not delay the others: their primitives are listed, and its own once it
answers. Primitives of a server with a quarantined tool are not served: it has changed, and nobody
has approved the change yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import (
    ExecutionFailed,
    PermissionDenied,
    ResourceNotFound,
    StratagemError,
    ToolNotFound,
    ValidationFailed,
)
from stratagem.gateway import inputs, names
from stratagem.gateway.definitions.contract import Runner
from stratagem.gateway.events import Publish
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.registry import resources
from stratagem.gateway.registry.answers import (
    UpstreamCompletion,
    UpstreamContents,
    UpstreamListing,
    UpstreamMessages,
    UpstreamPrompt,
    UpstreamResource,
    UpstreamState,
    UpstreamTemplate,
)
from stratagem.gateway.registry.served_primitives import (
    ServedPrimitive,
    locate_prompt,
    locate_resource,
    serve,
)
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Status
from stratagem.gateway.registry.upstream_runner import UpstreamRunner, tools_of
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation

if TYPE_CHECKING:
    from stratagem.gateway.handlers.upstream.primitives import UpstreamPrimitives

__all__ = ["PrimitiveService"]

logger = logging.getLogger(__name__)

_IDENTIFIERS: Final = {"prompts": "name", "resources": "uri", "templates": "uriTemplate"}
T = TypeVar("T")
_QUARANTINED: Final = "quarantined"
# Readings that go on after the list that began them was answered.
_READINGS: Final[set[asyncio.Task[Any]]] = set()


@dataclass(frozen=True, slots=True)
class _Known:
    """What the servers that answered have."""

    servers: frozenset[str]
    prompts: list[ServedPrimitive]
    resources: list[ServedPrimitive]
    templates: list[ServedPrimitive]
    states: list[UpstreamState]

    @property
    def is_partial(self) -> bool:
        return any(not each["available"] for each in self.states)


class PrimitiveService:
    """Lists and reads what upstream servers have besides tools."""

    def __init__(
        self,
        foundation: Foundation,
        caller: Caller,
        *,
        registry: Registry,
        runners: Mapping[str, Runner],
        home: HomeLoop,
        publish: Publish,
    ) -> None:
        self._foundation = foundation
        self._caller = caller
        self._registry = registry
        self._runners = runners
        self._home = home
        self._publish = publish

    async def list_all(self, given: inputs.UpstreamListInput) -> UpstreamListing:
        """Return what the servers that answer have, and which do not."""
        found = await self._home.join(lambda: self._gather(given))
        return {
            "prompts": [cast("UpstreamPrompt", _to_dict(each)) for each in found.prompts],
            "resources": [cast("UpstreamResource", _to_dict(each)) for each in found.resources],
            "templates": [cast("UpstreamTemplate", _to_dict(each)) for each in found.templates],
            "servers": found.states,
        }

    async def prompt(self, given: inputs.UpstreamPromptInput) -> UpstreamMessages:
        """Return the messages of a prompt, as its server says them."""

        async def work() -> UpstreamMessages:
            found = await self._find(given, lambda known: locate_prompt(given.name, known.prompts))
            params = {"name": found.own, "arguments": dict(given.arguments)}
            answer = await self._request(found.server, f"prompt {found.own}", "prompts/get", params)
            return {"server": found.server, "result": answer}

        return await self._home.join(work)

    async def resource(self, given: inputs.UpstreamResourceInput) -> UpstreamContents:
        """Return the contents of a resource, as its server sends them."""

        async def work() -> UpstreamContents:
            server, own = await self._locate(given)
            answer = await self._request(server, f"resource {own}", "resources/read", {"uri": own})
            return {"server": server, "result": answer}

        return await self._home.join(work)

    async def complete(self, given: inputs.UpstreamCompleteInput) -> UpstreamCompletion:
        """Return what an argument of a prompt or template may go on to be."""

        async def work() -> UpstreamCompletion:
            server, reference = await self._find(
                given, lambda known: _completion_target(given, known)
            )
            params: dict[str, Any] = {
                "ref": reference,
                "argument": {"name": given.argument, "value": given.value},
            }
            if given.arguments:
                params["context"] = {"arguments": dict(given.arguments)}
            answer = await self._request(server, "completion", "completion/complete", params)
            return {"server": server, "result": answer}

        return await self._home.join(work)

    async def follow(self, given: inputs.UpstreamResourceInput) -> tuple[str, str] | None:
        """Follow a resource: its changes are events. Return its server and address there, if any.

        Raises:
            StratagemError: Nobody has it, or its server cannot be reached.
        """

        async def work() -> tuple[str, str] | None:
            server, own = await self._locate(given)
            followed = await self._runner.upstreams.follow(server, own, self._caller.actor)
            return (server, own) if followed else None

        return await self._home.join(work)

    def unfollow(self, server: str, uri: str) -> None:
        """Take back one `follow`, soon."""
        self._home.post(lambda: self._runner.upstreams.unfollow(server, uri, self._caller.actor))

    @property
    def _runner(self) -> UpstreamRunner:
        runner = self._runners["mcp"]
        assert isinstance(runner, UpstreamRunner)
        return runner

    async def _locate(self, given: inputs.UpstreamResourceInput) -> tuple[str, str]:
        return await self._find(
            given,
            lambda known: locate_resource(
                given.uri, known.resources, known.templates, known.servers
            ),
        )

    async def _find(self, given: inputs.UpstreamListInput, locate: Callable[[_Known], T]) -> T:
        """Look something up in what is known at once, or else in what slow servers say too.

        Thousands of templates take a while to match; calls go on meanwhile.
        """
        known = await self._gather(given)
        try:
            return await asyncio.to_thread(locate, known)
        except ResourceNotFound:
            if not known.is_partial:
                raise
        known = await self._gather(given, limits.UPSTREAM_CONNECT_SECONDS)
        try:
            return await asyncio.to_thread(locate, known)
        except ResourceNotFound as error:
            error.details["unavailable"] = [each for each in known.states if not each["available"]]
            raise

    async def _request(
        self, server: str, what: str, method: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Send a request to a server and return its answer, where it is not too large."""
        seconds = limits.EXECUTION_SECONDS_DEFAULT
        upstreams = self._runner.upstreams
        answer = await upstreams.request(
            server, what, method, params, seconds, user=self._caller.actor
        )
        size = len(orjson.dumps(answer))
        if size > limits.UPSTREAM_CONTENT_BYTES_MAX:
            raise ExecutionFailed(
                f"The {what} of {server} has {size:,} bytes; "
                f"{limits.UPSTREAM_CONTENT_BYTES_MAX:,} are allowed.",
                answered=True,
                limit=limits.UPSTREAM_CONTENT_BYTES_MAX,
                server=server,
            )
        return answer

    async def _gather(
        self,
        given: inputs.UpstreamListInput,
        seconds: float = limits.UPSTREAM_PRIMITIVES_SECONDS,
    ) -> _Known:
        """Read the lists of the servers, in parallel and for a bounded time."""
        if self._caller.tool_sets is not None:
            raise PermissionDenied(
                "Your token is limited to sets of tools, and those hold no prompts or resources.",
                reason="toolset",
                toolsets=sorted(self._caller.tool_sets),
            )
        registered, prompts = await self._foundation.read_async(self._read_registry)
        known = {name: registered[name] for name in _select_servers(given, registered)}
        allowed = [name for name, tools in known.items() if _QUARANTINED not in tools.values()]
        readings = {name: asyncio.create_task(self._read(name)) for name in allowed}
        if readings:
            await asyncio.wait(readings.values(), timeout=seconds)
        for name, task in readings.items():
            if not task.done():
                self._tell_when_done(name, task)
        found = {
            name: task.result()
            for name, task in readings.items()
            if task.done() and task.exception() is None
        }
        return _Known(
            frozenset(allowed),
            _serve("prompts", found, prompts),
            _serve("resources", found),
            _serve("templates", found),
            [_state(name, readings.get(name)) for name in sorted(known)],
        )

    async def _read(self, server: str) -> UpstreamPrimitives:
        await self._runner.ready(server)
        return await self._runner.upstreams.list_primitives(server, self._caller.actor)

    def _tell_when_done(self, server: str, task: asyncio.Task[UpstreamPrimitives]) -> None:
        """Tell clients of the lists of a server that was too slow for the first answer."""
        _READINGS.add(task)

        def tell(done: asyncio.Task[UpstreamPrimitives]) -> None:
            _READINGS.discard(done)
            if not done.cancelled() and done.exception() is None:
                for kind in ("prompts", "resources"):
                    self._publish("primitives", {"server": server, "kind": kind})

        task.add_done_callback(tell)

    def _read_registry(self) -> tuple[dict[str, dict[str, Status]], frozenset[str]]:
        """Return the servers, each with the status of its tools, and our own prompts' names."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, "default")
            page, _next = reader.records.page(view.lineage, names.SERVERS)
            known = {
                name: {
                    tool.name: tool.status for tool in tools_of(self._registry, reader, view, name)
                }
                for name, version in page
                if version.payload is not None
            }
            own = self._foundation.views.view(reader, self._caller.branch)
            prompts = {
                each["name"]
                for each in resources.every(reader.records, own)
                if each["type"] == "prompt"
            }
            return known, frozenset(prompts)


def _select_servers(
    given: inputs.UpstreamListInput, registered: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Return the servers that are asked for.

    Raises:
        ToolNotFound: There is no server of a name that was given.
    """
    for name in given.servers or ():
        if name not in registered:
            raise ToolNotFound(
                f"There is no upstream server {name!r}.",
                field="servers",
                hint=f"There are: {', '.join(sorted(registered)) or 'none'}.",
            )
    return [
        name
        for name, tools in registered.items()
        if (given.servers is None or name in given.servers)
        and (given.tools is None or _has_tool(name, tools, given.tools))
    ]


def _has_tool(server: str, tools: Mapping[str, str], patterns: list[str]) -> bool:
    known = [server, *(name for name, status in tools.items() if status == "active")]
    return any(fnmatchcase(name, pattern) for name in known for pattern in patterns)


def _serve(
    kind: str, found: Mapping[str, UpstreamPrimitives], taken: frozenset[str] = frozenset()
) -> list[ServedPrimitive]:
    listed = {server: getattr(each, kind) for server, each in found.items()}
    return serve(_IDENTIFIERS[kind], listed, taken)


def _to_dict(each: ServedPrimitive) -> dict[str, Any]:
    identifier = next(name for name in ("uriTemplate", "uri", "name") if name in each.primitive)
    return {"server": each.server, **each.primitive, identifier: each.served}


def _state(name: str, reading: asyncio.Task[UpstreamPrimitives] | None) -> UpstreamState:
    """Say whether a server's lists are there, and why not."""
    if reading is None:
        reason = "One of its tools is quarantined: check what changed, and approve it."
        return {"server": name, "available": False, "reason": reason}
    if not reading.done():
        return {"server": name, "available": False, "reason": "It has not answered yet."}
    error = reading.exception()
    if error is None:
        return {"server": name, "available": True}
    if not isinstance(error, StratagemError):
        logger.error("reading the lists of %s failed", name, exc_info=error)
    words = error.message if isinstance(error, StratagemError) else "Its lists cannot be read."
    return {"server": name, "available": False, "reason": words}


def _completion_target(
    given: inputs.UpstreamCompleteInput, known: _Known
) -> tuple[str, dict[str, str]]:
    """Return the server that completes something, and its own reference to it."""
    if given.prompt is not None:
        found = locate_prompt(given.prompt, known.prompts)
        return found.server, {"type": "ref/prompt", "name": found.own}
    if given.template is None:
        raise ValidationFailed("Name a `prompt`, or a `template`.", field="prompt")
    for each in known.templates:
        if given.template in {each.served, each.prefixed}:
            return each.server, {"type": "ref/resource", "uri": each.own}
    raise ResourceNotFound(
        f"No upstream server has a template {given.template!r}.",
        field="template",
        hint="List the templates.",
    )
