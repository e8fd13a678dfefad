"""The protocol's requests, each handed to the part that answers it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

import mcp_types as types
from anyio import CapacityLimiter, to_thread
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from stratagem import limits
from stratagem.errors import InvalidInput, ShuttingDown
from stratagem.operation import Caller
from stratagem.surfaces.mcp import instructions, resources
from stratagem.surfaces.mcp.callers import Callers
from stratagem.surfaces.mcp.change_notices import ChangeNotices
from stratagem.surfaces.mcp.client_questions import ClientQuestions
from stratagem.surfaces.mcp.exposed_registry import PREFIX, ExposedRegistry
from stratagem.surfaces.mcp.forwarded_primitives import ForwardedPrimitives
from stratagem.surfaces.mcp.progress import forward_progress
from stratagem.surfaces.mcp.resource_lists import SKILL
from stratagem.surfaces.mcp.skills import serve_skills
from stratagem.surfaces.mcp.tasks import ClientTasks
from stratagem.surfaces.mcp.tools import Tools, error_result
from stratagem.surfaces.mcp.virtual_servers import narrow, serve_tool_set, tool_set_of
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.request_scope import LARGE_ARGUMENTS
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.version import VERSION

__all__ = ["build"]

T = TypeVar("T")
# Addresses of our own, and of resources whose server is named in them.
_OWN: Final = "stratagem://"
_SERVERS: Final = "stratagem://servers/"
Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None

# A list stays the same while a server runs; the next one may have been started with another.
_LIST = CacheHint(ttl_ms=60_000)
# One with what was registered may change with any call, on any server.
_REGISTERED_LIST = CacheHint(ttl_ms=2_000)


def build(settings: ServerSettings, database: Database, callers: Callers) -> Server[Any]:
    """Return a server that any transport can carry."""
    handlers = _Handlers(settings, database, callers)
    exposes = bool(settings.expose)
    changing = handlers.shows_resources or exposes
    tools = _REGISTERED_LIST if exposes else _LIST
    prompts = _REGISTERED_LIST if changing else _LIST
    notices = ChangeNotices(database, callers, handlers.forwarded, handlers.tasks)
    server = _ChangingServer(
        "stratagem",
        version=VERSION,
        title="Stratagem",
        instructions=instructions.instructions(settings),
        cache_hints={
            "tools/list": tools,
            "prompts/list": prompts,
            "resources/templates/list": _REGISTERED_LIST if exposes else _LIST,
        },
        # No argument of ours is repeated in a header, so there are none to compare.
        get_tool_input_schema=lambda _name: None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_completion=handlers.complete if exposes else None,
        on_subscriptions_listen=notices.listen if changing or handlers.may_wait else None,
        on_subscribe_resource=notices.subscribe if exposes else None,
        on_unsubscribe_resource=notices.unsubscribe if exposes else None,
    )
    if changing and not settings.several_processes:
        # A session that lives for one request cannot be told anything afterwards.
        server.changes = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=exposes
        )
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, notices.begin
        )
    if handlers.may_wait:
        handlers.tasks.serve(server)
    if handlers.shows_entries:
        serve_skills(server)
    server.middleware.append(_answer_arguments_that_are_no_object)
    server.middleware.append(serve_tool_set)
    return server


class _ChangingServer(Server[Any]):
    """A server that says of which changes it tells."""

    changes = NotificationOptions()

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return what a client is told of the server; see the SDK."""
        return super().create_initialization_options(
            notification_options or self.changes, experimental_capabilities, extensions
        )


class _Handlers:
    def __init__(self, settings: ServerSettings, database: Database, callers: Callers) -> None:
        self._settings = settings
        self._database = database
        self._callers = callers
        self._tools = Tools(settings, database)
        self._registered = ExposedRegistry(settings, database)
        self.forwarded = ForwardedPrimitives(settings, database)
        self.tasks = ClientTasks(database, callers)
        self._questions = ClientQuestions(settings, self.tasks)
        # Other toolsets have no tools that mostly wait: their calls are spared the question.
        self._may_wait = self._registered.shows_resources
        self._limiter = CapacityLimiter(limits.CALLS_AT_ONCE_MAX)

    @property
    def may_wait(self) -> bool:
        """Whether there are tools that mostly wait."""
        return self._may_wait or bool(self._settings.expose)

    @property
    def shows_entries(self) -> bool:
        """Whether entries can be read by their addresses: where they can be recalled."""
        return "memory" in self._settings.toolsets

    @property
    def shows_resources(self) -> bool:
        """Whether lists have resources of the registry in them."""
        return self._registered.shows_resources

    async def list_tools(self, context: Context, page: Page) -> types.ListToolsResult:
        _only_page(page)
        caller = self._callers.of(context)
        if (tool_set := tool_set_of(context)) is not None:
            narrowed = narrow(caller, tool_set)
            tools = await self._in_thread(lambda: self._registered.tools_of_set(narrowed))
            # Whoever is limited to other sets is not told which ones there are.
            if not tools and caller.tool_sets is None:
                await self._in_thread(lambda: self._registered.require_set(tool_set, caller))
            return types.ListToolsResult(tools=tools)
        tools = await self._in_thread(lambda: self._all_tools(caller))
        return types.ListToolsResult(tools=tools)

    def _all_tools(self, caller: Caller) -> list[types.Tool]:
        tools = self._tools.listing_for(caller)
        return [*tools, *self._registered.tools(caller)] if self._settings.expose else tools

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        caller = self._callers.of(context)
        request = context.request
        large = request.scope.get(LARGE_ARGUMENTS) if request is not None else None
        arguments = large or params.arguments or {}
        if (tool_set := tool_set_of(context)) is not None:
            narrowed = narrow(caller, tool_set)
            return await self._run_waiting(
                context,
                params,
                caller,
                lambda: self._registered.call(
                    params.name,
                    arguments,
                    narrowed,
                    lambda: self._registered.tools_of_set(narrowed),
                ),
            )
        exposed = bool(self._settings.expose) and await self._in_thread(
            lambda: self._registered.exposes(params.name, caller)
        )
        if not self._tools.is_loaded:
            # Reading the table of operations takes a while, once.
            await self._in_thread(self._tools.load)
        if exposed and not self._tools.has(params.name):
            return await self._run_waiting(
                context,
                params,
                caller,
                lambda: self._registered.call(
                    params.name, arguments, caller, lambda: self._all_tools(caller)
                ),
            )
        if self._may_wait and self._tools.waits(params.name):
            return await self._run_waiting(
                context,
                params,
                caller,
                lambda: self._tools.call_async(params.name, arguments, caller),
            )
        try:
            async with self._database.calls.track(params.name, arguments, caller):
                return await self._in_thread(
                    lambda: self._tools.call(params.name, arguments, caller)
                )
        except ShuttingDown as error:
            return error_result(error)

    async def _run_waiting(
        self,
        context: Context,
        params: types.InputResponseRequestParams,
        caller: Caller,
        work: Callable[[], Coroutine[Any, Any, T]],
    ) -> T | types.InputRequiredResult:
        """Run what waits for others: its progress is told, and its questions are asked."""
        async with forward_progress(context):
            return await self._questions.run(context, params, caller, work)

    async def list_prompts(self, context: Context, page: Page) -> types.ListPromptsResult:
        _only_page(page)
        caller = self._callers.of(context)
        prompts = await self._own_prompts(caller)
        own = {prompt.name for prompt in prompts}
        prompts += await self.forwarded.prompts(caller, own)
        return types.ListPromptsResult(prompts=prompts)

    async def _own_prompts(self, caller: Caller) -> list[types.Prompt]:
        """Return the prompts of the server itself and of the registry."""
        prompts = instructions.prompts(self._settings)
        if self._registered.shows_resources:
            prompts = [*prompts, *await self._in_thread(lambda: self._registered.prompts(caller))]
        return [*prompts]

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        own = {prompt.name for prompt in instructions.prompts(self._settings)}
        caller, given = self._callers.of(context), params.arguments or {}
        if params.name in own:
            return instructions.prompt(self._settings, params.name, given)
        if self.forwarded.is_served(caller):
            registered = {prompt.name for prompt in await self._own_prompts(caller)}
            if params.name not in registered:
                version = context.protocol_version
                return await self._run_waiting(
                    context,
                    params,
                    caller,
                    lambda: self.forwarded.prompt(params.name, given, caller, version),
                )
        if self._registered.shows_resources:
            return await self._in_thread(
                lambda: self._registered.prompt(params.name, given, caller)
            )
        return instructions.prompt(self._settings, params.name, given)

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        caller = self._callers.of(context)
        if not self.forwarded.is_served(caller):
            return types.CompleteResult(completion=types.Completion(values=[]))
        return await self.forwarded.complete(params, caller, context.protocol_version)

    async def list_resources(self, context: Context, page: Page) -> types.ListResourcesResult:
        cursor = page.cursor if page is not None else None
        caller = self._callers.of(context)
        listed: list[types.Resource] = []
        if cursor is None:
            listed += resources.RESOURCES if self.shows_entries else []
            if self._registered.shows_resources:
                listed += await self._in_thread(lambda: self._registered.resources(caller))
            listed += await self.forwarded.resources(caller)
        if not self.shows_entries:
            _only_page(page)
            return types.ListResourcesResult(resources=listed)
        entries, following = await self._in_thread(
            lambda: resources.list_entries(self._database, caller, cursor)
        )
        return types.ListResourcesResult(resources=[*listed, *entries], next_cursor=following)

    async def list_resource_templates(
        self, context: Context, page: Page
    ) -> types.ListResourceTemplatesResult:
        _only_page(page)
        listed = [*resources.TEMPLATES] if self.shows_entries else []
        listed += await self.forwarded.templates(self._callers.of(context))
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        caller = self._callers.of(context)
        version = context.protocol_version
        if params.uri.startswith(PREFIX) and self._registered.shows_resources:
            return await self._in_thread(lambda: self._registered.read(params.uri, caller))
        own = params.uri.startswith(_OWN) or params.uri == SKILL
        foreign = params.uri.startswith(_SERVERS) or not own
        if foreign and self.forwarded.is_served(caller):
            return await self._run_waiting(
                context,
                params,
                caller,
                lambda: self.forwarded.read(params.uri, caller, version),
            )
        return await self._in_thread(
            lambda: resources.read(
                self._database, params.uri, caller, version, served=self.shows_entries
            )
        )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run what may wait for the disk. A client that leaves does not stop it halfway."""
        return await to_thread.run_sync(work, limiter=self._limiter)


def _only_page(page: Page) -> None:
    if page is not None and page.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "This list has one page; leave the cursor out.")


async def _answer_arguments_that_are_no_object(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Tell the model what the protocol would only tell the client."""
    arguments = (ctx.params or {}).get("arguments")
    if ctx.method != "tools/call" or arguments is None or isinstance(arguments, Mapping):
        return await call_next(ctx)
    kind = type(arguments).__name__
    result = error_result(InvalidInput(f"The arguments of a tool are a JSON object, not {kind}."))
    answer = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        del answer["resultType"]
    return answer
