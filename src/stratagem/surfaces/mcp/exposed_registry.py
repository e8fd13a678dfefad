"""The gateway's registry as tools, resources and prompts of the protocol.

Tools are listed in their own right only where the server was told to (`--expose`); everything
else of the registry can be called through `tool_execute`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import quote, unquote

import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
)

from stratagem import limits
from stratagem.errors import StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.mcp.error_lines import correction_lines
from stratagem.surfaces.mcp.forwarded_content import forward_answer, forward_error
from stratagem.surfaces.mcp.tools import error_result
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings

__all__ = ["PREFIX", "ExposedRegistry"]

PREFIX: Final = "stratagem://resources/"
_MEANT: Final = "If one of the corrections is what you meant, call again with its arguments."
_TYPES: Final = {"prompt": "text/plain", "template": "text/plain", "data": "text/plain"}


class ExposedRegistry:
    """Tools, resources and prompts of the registry, as clients see them."""

    def __init__(self, settings: ServerSettings, database: Database) -> None:
        self._settings = settings
        self._database = database

    @property
    def shows_resources(self) -> bool:
        """Whether clients see the registry's resources and prompts."""
        return bool({"gateway", "registry"} & set(self._settings.toolsets))

    def tools(self, caller: Caller) -> list[Tool]:
        """Return the registered tools that clients see as tools in their own right."""
        if not self._settings.expose or not caller.may("gateway", "execute"):
            return []
        patterns = self._patterns(caller)
        return [each for each in self.tools_of_set(caller) if _is_exposed(each.name, patterns)]

    def tools_of_set(self, caller: Caller) -> list[Tool]:
        """Return every tool that a caller may call, as clients see tools in their own right."""
        if not caller.may("gateway", "execute"):
            return []
        given = {"limit": limits.TOOLS_LISTED_MAX, "status": "active"}
        listed = self._database.call("tools_list", given, caller)["tools"]
        return [
            _tool(each)
            for each in listed
            if "unavailable" not in each and self._is_reachable(each["name"])
        ]

    def require_set(self, name: str, caller: Caller) -> None:
        """Check that there is a set of tools.

        Raises:
            MCPError: There is none of that name.
        """
        found = self._database.call("toolsets_list", {}, caller).get("toolsets", [])
        known = sorted(each["name"] for each in found)
        if name not in known:
            words = f"There is no set of tools {name[:100]!r}; there are: {', '.join(known)}."
            raise MCPError(INVALID_PARAMS, words, {"toolset": name[:100], "toolsets": known})

    def _patterns(self, caller: Caller) -> list[Mapping[str, Any]]:
        """Return what is exposed: a name of a set stands for its tools, all else for itself."""
        named = [each for each in self._settings.expose if each.isidentifier() or "-" in each]
        sets = {}
        if named and caller.may("gateway", "read"):
            found = self._database.call("toolsets_list", {}, caller)["toolsets"]
            sets = {each["name"]: each for each in found}
        return [sets.get(each, {"allow": [each], "deny": []}) for each in self._settings.expose]

    def _is_reachable(self, name: str) -> bool:
        """Whether a tool is no operation of a toolset that is not on."""
        from stratagem.operations import TABLE

        operation = TABLE.get(name)
        return operation is None or not set(self._settings.toolsets).isdisjoint(operation.toolsets)

    def exposes(self, name: str, caller: Caller) -> bool:
        """Whether a tool is to be seen in its own right."""
        return _is_exposed(name, self._patterns(caller))

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        caller: Caller,
        list_tools: Callable[[], Iterable[Tool]],
    ) -> CallToolResult:
        """Call a registered tool by its own name; a hint names only tools that are listed."""
        given = {"toolName": name, "arguments": arguments}
        try:
            answer = await self._database.call_async("tool_execute", given, caller)
        except StratagemError as error:
            if error.details.get("corrections"):
                # A tool in its own right takes its own arguments and no correctionId.
                error.hint = _MEANT
            await asyncio.to_thread(_reword_hint, error, list_tools)
            return forward_error(error) or error_result(error)
        if (forwarded := forward_answer(answer)) is not None:
            return forwarded
        result = answer["result"]
        structured = result if isinstance(result, dict) else {"result": result}
        text = result if isinstance(result, str) else orjson.dumps(result).decode()
        said = [TextContent(text=each) for each in (text, *correction_lines(answer["metadata"]))]
        return CallToolResult(content=[*said], structured_content=structured)

    def resources(self, caller: Caller) -> list[Resource]:
        """Return the registry's resources."""
        return [
            Resource(
                uri=PREFIX + quote(each["name"], safe=""),
                name=each["name"],
                description=each.get("description") or None,
                mime_type=_TYPES[each["type"]],
            )
            for each in self._list_resources({}, caller)
        ]

    def read(self, uri: str, caller: Caller) -> ReadResourceResult:
        """Return the content of a resource."""
        given = {"resourceId": unquote(uri.removeprefix(PREFIX))}
        try:
            found = self._database.call("resource_get", given, caller)["resource"]
        except StratagemError as error:
            raise MCPError(INVALID_PARAMS, f"{error.message} {error.hint}", {"uri": uri}) from error
        text = TextResourceContents(uri=uri, mime_type=_TYPES[found["type"]], text=found["content"])
        return ReadResourceResult(contents=[text])

    def prompts(self, caller: Caller) -> list[Prompt]:
        """Return the registry's prompts."""
        return [
            Prompt(
                name=each["name"],
                description=each.get("description") or None,
                arguments=[
                    PromptArgument(name=name, required=True) for name in each.get("variables", ())
                ],
            )
            for each in self._list_resources({"type": "prompt"}, caller)
        ]

    def prompt(self, name: str, arguments: dict[str, str], caller: Caller) -> GetPromptResult:
        """Return a prompt of the registry, filled in.

        Raises:
            MCPError: There is none of that name, or a variable has no value.
        """
        given = {"resourceId": name, "variables": arguments}
        try:
            found = self._database.call("resource_get", given, caller)
        except StratagemError as error:
            raise MCPError(INVALID_PARAMS, f"{error.message} {error.hint}") from error
        message = PromptMessage(role="user", content=TextContent(text=found["rendered"]))
        description = found["resource"].get("description") or None
        return GetPromptResult(description=description, messages=[message])

    def _list_resources(self, filters: dict[str, Any], caller: Caller) -> list[dict[str, Any]]:
        if not self.shows_resources or not caller.may("gateway", "read"):
            return []
        given = {**filters, "limit": limits.TOOLS_LISTED_MAX}
        found: list[dict[str, Any]] = self._database.call("resources_list", given, caller)[
            "resources"
        ]
        return found


def _reword_hint(error: StratagemError, list_tools: Callable[[], Iterable[Tool]]) -> None:
    """Name only tools that are listed: which these are is asked for where a hint names any."""
    from stratagem.call_forms import names_operations, reword_for_tools

    if names_operations(error.hint):
        listed = {each.name for each in list_tools()}
        error.reword_hint(lambda hint: reword_for_tools(hint, listed))


def _is_exposed(name: str, patterns: Sequence[Mapping[str, Any]]) -> bool:
    return any(
        any(fnmatchcase(name, pattern) for pattern in each["allow"])
        and not any(fnmatchcase(name, pattern) for pattern in each["deny"])
        for each in patterns
    )


def _tool(listed: dict[str, Any]) -> Tool:
    """Return a registered tool as clients see it, with what its server says of it."""
    return Tool.model_validate(
        {
            "name": listed["name"],
            "title": listed.get("title"),
            "description": listed["description"],
            "inputSchema": {"type": "object", **listed["inputSchema"]},
            "outputSchema": listed.get("outputSchema"),
            "annotations": listed.get("annotations"),
            "icons": listed.get("icons"),
        }
    )
