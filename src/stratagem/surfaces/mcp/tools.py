"""Operations as tools, in the types of the protocol's library."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, Tool

from stratagem.errors import StratagemError
from stratagem.operation import Caller, Operation
from stratagem.surfaces.mcp.forwarded_content import forward_answer, forward_error, without_content
from stratagem.surfaces.mcp.operation_tools import (
    OperationTools,
    UnlistedTool,
    error_form,
)
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from stratagem.surfaces.serving.surrogates import escape_surrogates

__all__ = ["Tools", "error_result"]


class Tools:
    """The operations of the chosen toolsets."""

    def __init__(self, settings: ServerSettings, database: Database) -> None:
        self._plain = OperationTools(settings, database)
        self._database = database
        self.is_loaded = False

    def listing_for(self, caller: Caller) -> list[Tool]:
        """Return what a client is shown: the tools that its token lets it call."""
        names = {tool["name"] for tool in self._plain.listing_for(caller)}
        return [tool for tool in self._listing if tool.name in names]

    @cached_property
    def _listing(self) -> list[Tool]:
        return [Tool.model_validate(each) for each in self._plain.listing]

    def call(self, name: str, arguments: dict[str, Any], caller: Caller) -> CallToolResult:
        """Run a tool. What goes wrong in it is a result that the model can act on.

        Raises:
            MCPError: This server has no such tool.
        """
        self._find(name)
        return CallToolResult.model_validate(self._plain.call(name, arguments, caller))

    async def call_async(
        self, name: str, arguments: dict[str, Any], caller: Caller
    ) -> CallToolResult:
        """Run a tool that mostly waits, on the event loop."""
        operation = self._find(name)
        try:
            answer = await self._database.call_async(name, arguments, caller)
            if (forwarded := forward_answer(answer)) is not None:
                forwarded.structured_content = without_content(answer)
                return forwarded
            return CallToolResult.model_validate(self._plain.answer(operation, answer, caller))
        except Exception as error:  # noqa: BLE001 -- the outermost frame
            return _result_of_failure(self._plain.refusal(name, error, caller))

    def load(self) -> None:
        """Read the table of operations, so that asking for one takes no time."""
        self._plain.has("")
        self.is_loaded = True

    def has(self, name: str) -> bool:
        """Whether a tool is an operation of the chosen toolsets."""
        return self._plain.has(name)

    def waits(self, name: str) -> bool:
        """Whether a tool mostly waits, so that it needs no thread."""
        return self._plain.waits(name)

    def _find(self, name: str) -> Operation:
        try:
            return self._plain.find(name)
        except UnlistedTool as error:
            data = {"similar": error.similar}
            raise MCPError(INVALID_PARAMS, str(error), data) from error


def _result_of_failure(error: StratagemError) -> CallToolResult:
    if (forwarded := forward_error(error)) is not None:
        del error.details["mcp"]
        forwarded.structured_content = escape_surrogates(error.envelope())
        return forwarded
    return error_result(error)


def error_result(error: StratagemError) -> CallToolResult:
    """Return an error as a result: for the model in words, for programs as an object."""
    return CallToolResult.model_validate(error_form(error))
