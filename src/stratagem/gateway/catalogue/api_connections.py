"""`api_caller` with the named connections of this database."""

from __future__ import annotations

from typing import Any, Final

from stratagem.gateway.builtin import DEFINITIONS, api_caller
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun

__all__ = ["TOOLS"]


async def _call(run: ToolRun) -> dict[str, Any]:
    return await api_caller.run(run.arguments, run.call, run.parts.outbound(), run.connections)


TOOLS: Final = tuple(
    StandardTool(definition, _call, connection="api", optional=True)
    for definition in DEFINITIONS
    if definition["name"] == "api_caller"
)
