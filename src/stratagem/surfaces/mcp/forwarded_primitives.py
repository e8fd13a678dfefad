"""Prompts, resources and templates of upstream servers, served as the server's own.

A server's are served where one of its tools is exposed (`--expose`), or the server by its name.
What a prompt or a resource says is passed on as it was sent.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    GetPromptResult,
    Prompt,
    PromptReference,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from stratagem.errors import TABLE, ResourceNotFound, StratagemError
from stratagem.operation import Caller
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.surfaces.serving.surrogates import escape_surrogates

__all__ = ["ForwardedPrimitives", "protocol_error"]

logger = logging.getLogger(__name__)

ModelT = TypeVar("ModelT", bound=BaseModel)

# Said by each hop of itself.
_OWN_WORDS: Final = ("resultType", "ttlMs", "cacheScope")
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
# What the protocol calls this until 2025; from 2026 on it is a wrong parameter like any other.
_RESOURCE_NOT_FOUND: Final = -32002


class ForwardedPrimitives:
    """What clients see of upstream servers besides tools."""

    def __init__(self, settings: ServerSettings, database: Database) -> None:
        self._settings = settings
        self._database = database

    def is_served(self, caller: Caller) -> bool:
        """Whether a caller is shown anything of upstream servers."""
        exposed = bool(self._settings.expose) and not caller.read_only
        # A token that is limited to sets of tools has nothing else of the servers.
        return exposed and caller.may("gateway", "execute") and caller.tool_sets is None

    async def prompts(self, caller: Caller, own: Collection[str]) -> list[Prompt]:
        """Return the prompts of the servers; `own` names are taken already."""
        listed = (await self._list(caller)).get("prompts", ())
        named = [
            {**each, "name": f"{each['server']}_{each['name']}"} if each["name"] in own else each
            for each in listed
        ]
        return _models(Prompt, named)

    async def resources(self, caller: Caller) -> list[Resource]:
        """Return the resources of the servers."""
        return _models(Resource, (await self._list(caller)).get("resources", ()))

    async def templates(self, caller: Caller) -> list[ResourceTemplate]:
        """Return the resource templates of the servers."""
        return _models(ResourceTemplate, (await self._list(caller)).get("templates", ()))

    async def prompt(
        self, name: str, arguments: Mapping[str, str], caller: Caller, version: str
    ) -> GetPromptResult:
        """Return a prompt as its server says it.

        Raises:
            MCPError: There is none of that name, or the server refuses it.
        """
        given = {"name": name, "arguments": dict(arguments)}
        return await self._ask(GetPromptResult, "upstream_prompt", given, caller, version)

    async def read(self, uri: str, caller: Caller, version: str) -> ReadResourceResult:
        """Return a resource as its server sends it.

        Raises:
            MCPError: No server has it, or the one that has refuses it.
        """
        return await self._ask(
            ReadResourceResult, "upstream_resource", {"uri": uri}, caller, version
        )

    async def complete(
        self, params: CompleteRequestParams, caller: Caller, version: str
    ) -> CompleteResult:
        """Return what the server of a prompt or template says to complete an argument with.

        Raises:
            MCPError: There is no such prompt or template, or the server refuses.
        """
        reference = params.ref
        target = (
            {"prompt": reference.name}
            if isinstance(reference, PromptReference)
            else {"template": reference.uri}
        )
        known = params.context.arguments if params.context is not None else None
        given = {
            **target,
            "argument": params.argument.name,
            "value": params.argument.value,
            "arguments": known or {},
        }
        return await self._ask(CompleteResult, "upstream_complete", given, caller, version)

    def limit_to_exposed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments that reach no further than what is exposed."""
        return {**given, "tools": list(self._settings.expose)}

    async def _list(self, caller: Caller) -> dict[str, Any]:
        if not self.is_served(caller):
            return {}
        return await self._database.call_async("upstream_list", self.limit_to_exposed({}), caller)

    async def _ask(
        self,
        model: type[ModelT],
        operation: str,
        given: Mapping[str, Any],
        caller: Caller,
        version: str,
    ) -> ModelT:
        try:
            answer = await self._database.call_async(
                operation, self.limit_to_exposed(given), caller
            )
        except StratagemError as error:
            raise protocol_error(error, version) from error
        try:
            return model.model_validate(escape_surrogates(_without_own_words(answer["result"])))
        except ValidationError as error:
            words = f"{answer['server']} sent an answer that does not follow the protocol."
            raise MCPError(INTERNAL_ERROR, words, {"server": answer["server"]}) from error


def protocol_error(error: StratagemError, version: str) -> MCPError:
    """Return an error as the protocol has it: an upstream server's under the code that it gave."""
    code = error.details.get("upstream_code")
    if not isinstance(code, int):
        code = TABLE[error.code].json_rpc_code
        if isinstance(error, ResourceNotFound):
            modern = version in MODERN_PROTOCOL_VERSIONS or error.details.get("field") != "uri"
            code = INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND
    return MCPError(code, f"{error.message} {error.hint}".strip(), error.envelope())


def _without_own_words(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer without what its server said for its own connection alone."""
    kept = {name: value for name, value in result.items() if name not in _OWN_WORDS}
    meta = kept.get("_meta")
    if isinstance(meta, Mapping):
        kept["_meta"] = {name: value for name, value in meta.items() if name != _SERVER_INFO}
        if not kept["_meta"]:
            del kept["_meta"]
    return kept


def _models(model: type[ModelT], listed: Collection[Mapping[str, Any]]) -> list[ModelT]:
    found = []
    for each in listed:
        shown = {name: value for name, value in each.items() if name != "server"}
        try:
            found.append(model.model_validate(escape_surrogates(shown)))
        except ValidationError:
            # One that the protocol does not allow must not hide the others.
            logger.warning(
                "%s of %s is not a valid %s", shown.get("name"), each["server"], model.__name__
            )
    return found
