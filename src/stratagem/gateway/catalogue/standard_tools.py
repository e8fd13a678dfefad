"""The standard tools of a database, as they are now: with connections, and what each lacks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import orjson

from stratagem.gateway import names
from stratagem.gateway.catalogue.model_prices import cost_max
from stratagem.gateway.catalogue.standard_tool import (
    CatalogueParts,
    Settings,
    StandardTool,
    ToolRun,
)
from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.gateway.registry.answers import MissingPart
from stratagem.gateway.registry.connections import read_connections
from stratagem.gateway.registry.tools import Tool
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["CatalogueTools", "every_tool"]

_FAMILIES: Final = (
    "web_search",
    "academic_search",
    "web_fetch",
    "sentiment",
    "entities",
    "summaries",
    "code_analysis",
    "generation",
    "data_synthesis",
    "database_query",
    "webhook_trigger",
    "email_sender",
    "data_analyzer",
    "report_generator",
    "file_tools",
    "api_connections",
)
_INSTALL: Final = "Install it: pip install 'stratagem[catalogue]'"
# What to do for the first connection of each kind.
_CONNECT: Final = {
    "search": 'stratagem tools connect web search \'{"provider": "searxng", '
    '"url": "https://searx.example.org"}\'',
    "database": "stratagem tools connect main database "
    '\'{"engine": "sqlite", "path": "/data/main.db"}\'',
    "webhook": 'stratagem tools connect deploy webhook \'{"url": "https://example.org/hook"}\'',
    "smtp": 'stratagem tools connect mail smtp \'{"host": "smtp.example.org", '
    '"from": "agent@example.org", "recipients": ["*@example.org"]}\'',
    "folder": 'stratagem tools connect files folder \'{"path": "/data/files"}\'',
}
_CONFIGURE: Final = (
    'stratagem call provider_configure \'{"provider": "openai", "config": {"model": "gpt-5-mini", '
    '"apiKey": "${OPENAI_KEY}"}}\''
)
_CONFIGURE_FOR: Final = {
    "text": _CONFIGURE,
    "image": _CONFIGURE.replace('"apiKey"', '"imageModel": "gpt-image-1", "apiKey"'),
}


@cache
def every_tool() -> Mapping[str, StandardTool]:
    """Return the standard tools by name, whether or not they can be called here."""
    modules = [import_module(f"stratagem.gateway.catalogue.{family}") for family in _FAMILIES]
    return {tool.name: tool for module in modules for tool in module.TOOLS}


@cache
def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


class CatalogueTools:
    """The standard tools with the connections of one database. Safe to share between threads."""

    def __init__(self, foundation: Foundation, parts: CatalogueParts) -> None:
        self._foundation = foundation
        self._parts = parts
        self._lock = threading.Lock()
        self._revision = -1
        self._tools: dict[str, Tool] = {}

    def names(self) -> Collection[str]:
        """Return what they are called."""
        return every_tool().keys()

    def revision(self, reader: Reader) -> int:
        """Return how many events have changed a connection or a provider."""
        catalogue = reader.catalogue
        return catalogue.version_count(names.CONNECTION) + catalogue.version_count(names.PROVIDER)

    def tools(self, reader: Reader) -> Mapping[str, Tool]:
        """Return the tools as they are now."""
        revision = self.revision(reader)
        with self._lock:
            if revision != self._revision:
                self._tools = self._make_tools(reader)
                self._revision = revision
            return self._tools

    async def run(self, handler: Handler, run: Run) -> Any:
        """Run a tool that `handler` names, with the connections it holds."""
        tool = every_tool()[str(handler["name"])]
        given = ToolRun(
            run.arguments,
            run,
            handler.get("connections") or {},
            handler.get("models") or {},
            self._parts,
        )
        return await tool.run(given)

    def _make_tools(self, reader: Reader) -> dict[str, Tool]:
        connections = read_connections(self._foundation, reader)
        models = _read_models(self._foundation, reader)
        made: dict[str, Tool] = {}
        for tool in every_tool().values():
            usable = {
                name: each["settings"]
                for name, each in connections.items()
                if each["kind"] == tool.connection and tool.serves(each["settings"])
            }
            asked = _usable_models(tool, models)
            content = self._content(tool, usable, asked)
            made[tool.name] = Tool(content, 0, call_cost=_call_cost(tool, asked))
        return made

    def _content(
        self,
        tool: StandardTool,
        connections: Mapping[str, Settings],
        models: Mapping[str, Settings],
    ) -> dict[str, Any]:
        handler: dict[str, Any] = {"type": "builtin", "name": tool.name}
        if connections:
            handler["connections"] = dict(connections)
        if models:
            handler["models"] = dict(models)
        content = {
            "id": f"tool_{tool.name}",
            "provider": "stratagem",
            "version": self._foundation.version,
            "status": "active",
            "handler": handler,
            **tool.definition,
        }
        if tool.model and not tool.optional and (cost := _call_cost(tool, models)({})):
            content["pricing"] = {
                "model": "per_image" if tool.model == "image" else "per_token",
                "cost": cost,
            }
        lacking = _find_lack(tool, connections, models)
        return content if lacking is None else {**content, "unavailable": lacking}


def _find_lack(
    tool: StandardTool, connections: Mapping[str, Settings], models: Mapping[str, Settings]
) -> MissingPart | None:
    missing = [package for package in tool.packages if not _is_installed(package)]
    if missing:
        return {"reason": f"It needs {', '.join(missing)}.", "nextStep": _INSTALL}
    if tool.connection and not tool.optional and not connections:
        return {
            "reason": f"It has no connection of the kind {tool.connection}.",
            "nextStep": f"Set one: {_CONNECT[tool.connection]}",
        }
    if tool.model and not models and not tool.optional:
        wanted = "an image model" if tool.model == "image" else "a model"
        return {
            "reason": f"No provider (openai, anthropic, xai) is configured with {wanted}.",
            "nextStep": f"Configure one: {_CONFIGURE_FOR[tool.model]}",
        }
    return None


def _usable_models(tool: StandardTool, models: Mapping[str, Settings]) -> Mapping[str, Settings]:
    if tool.model == "image":
        return {name: each for name, each in models.items() if each.get("imageModel")}
    return models if tool.model else {}


def _call_cost(
    tool: StandardTool, models: Mapping[str, Settings]
) -> Callable[[Mapping[str, Any]], float]:
    """Return what says how much a call can cost at most: budgets count it before it is known."""

    def cost(arguments: Mapping[str, Any]) -> float:
        if tool.model is None or not tool.asks_model(arguments):
            return 0.0
        chosen = models.get(str(arguments.get("provider")))
        asked = models.values() if chosen is None else [chosen]
        return max((cost_max(tool.model, each, arguments) for each in asked), default=0.0)

    return cost


def _read_models(foundation: Foundation, reader: Reader) -> dict[str, Settings]:
    """Return the providers that can be asked: those with a model, on the default branch."""
    view = foundation.views.view(reader, "default")
    page, _next = reader.records.page(view.lineage, names.PROVIDERS)
    found: dict[str, Settings] = {}
    for name, version in page:
        if version.payload is not None:
            config = orjson.loads(version.payload)["config"]
            if config.get("model") and name in {"openai", "anthropic", "xai"}:
                found[name] = {**config, "provider": name}
    return found
