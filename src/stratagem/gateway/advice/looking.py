"""tools_validate, tools_discover and tools_compare: what there is, and how it differs."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from fnmatch import fnmatchcase

from stratagem.engine.lineage import View
from stratagem.errors import StratagemError
from stratagem.gateway.advice.answers import (
    ComparedTool,
    DiscoveredTool,
    HandlerCheck,
    ToolAvailability,
    ToolComparison,
    ToolDiscovery,
    ToolEvidence,
    ToolValidation,
)
from stratagem.gateway.advice.bound import Meta, milliseconds_since, source_of
from stratagem.gateway.advice.inputs import CompareInput, DiscoverInput, ValidateInput
from stratagem.gateway.advice.parts import Services
from stratagem.gateway.advice.retrieval.twins import difference, is_twin
from stratagem.gateway.calls import history
from stratagem.gateway.registry.answers import SecretGrant
from stratagem.gateway.registry.secrets import grants
from stratagem.gateway.registry.tools import Tool
from stratagem.storage.contract import Reader

__all__ = ["Looking"]

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_WHY_NOT = {
    "disabled": "It was switched off.",
    "quarantined": "Its definition changed and waits for approval.",
}


class Looking(Meta):
    """Looks at tools."""

    def validate(self, given: ValidateInput) -> ToolValidation:
        """Return for each tool whether it can be called now."""
        started = time.perf_counter()
        with self._looking(given.branch) as (reader, view):
            tools = [
                (name, self._parts.registry.get(reader, view, name)) for name in given.tool_names
            ]
            default = self._parts.foundation.views.view(reader, "default")
            granted = grants(reader.records, default) if given.check_configuration else []
        results = [
            self._checked(name, tool, granted if given.check_configuration else None)
            for name, tool in tools
        ]
        available = sum(each["available"] for each in results)
        return {
            "totalChecked": len(results),
            "availableCount": available,
            "unavailableCount": len(results) - available,
            "allAvailable": available == len(results),
            "results": results,
            "processingTime": milliseconds_since(started),
        }

    def discover(self, given: DiscoverInput) -> ToolDiscovery:
        """Return the tools that fit every filter, and how they group."""
        started = time.perf_counter()
        with self._looking(given.branch) as (reader, view):
            every = self._recommender.catalogue.shelf(reader, view).tools
        fitting = [tool for tool in every.values() if _fits(tool, given)]
        groups: dict[str, list[str]] = defaultdict(list)
        for tool in fitting:
            groups[tool.category].append(tool.name)
        named = {"category": given.category, "source": given.source}
        named["namePattern"] = given.name_pattern
        return {
            "totalAvailable": len(every),
            "filteredCount": len(fitting),
            "filters": {name: each for name, each in named.items() if each is not None},
            "categoryGroups": dict(groups),
            "tools": [_discovered_tool(tool, given) for tool in fitting[: given.limit]],
            "processingTime": milliseconds_since(started),
        }

    def compare(self, given: CompareInput) -> ToolComparison:
        """Return how tools differ: what they take, how they did, what they are for."""
        started = time.perf_counter()
        services = self._recommender.services()
        with self._looking(given.branch) as (reader, view):
            registry = self._parts.registry
            tools = [registry.find(reader, view, name) for name in given.tool_names]
            shelf, found = (
                self._recommender.choose(reader, view, given.intent, services)
                if given.intent
                else (self._recommender.catalogue.shelf(reader, view), [])
            )
            scores = {each.tool.name: each.match.score for each in found}
            told = [self._compared(reader, view, tool, services) for tool in tools]
        for each in told:
            if given.intent:
                each["relevanceScore"] = round(scores.get(each["name"], 0.0), 4)
        first = tools[0]
        return {
            "tools": told,
            "sharedParameters": _shared(tools),
            "differences": [
                {
                    "from": first.name,
                    "to": tool.name,
                    "twins": is_twin(
                        first.content,
                        tool.content,
                        shelf.index.likeness(first.name, tool.name),
                    ),
                    "difference": difference(first.content, tool.content),
                }
                for tool in tools[1:]
            ],
            "best": _best(told),
            "processingTime": milliseconds_since(started),
            **services.status(),
        }

    def _checked(
        self, name: str, tool: Tool | None, granted: list[SecretGrant] | None
    ) -> ToolAvailability:
        if tool is None:
            return {"toolName": name, "available": False, "reason": "There is no such tool."}
        told: ToolAvailability = {
            "toolName": tool.name,
            "available": tool.status not in _WHY_NOT,
            "category": tool.category,
            "description": tool.description,
            "source": source_of(tool),
        }
        if reason := _WHY_NOT.get(tool.status):
            told["reason"] = reason
        elif absent := self._absent(tool):
            told["available"] = False
            told["reason"] = absent
        resting = {
            each["toolName"] for each in self._parts.breakers.list() if each["status"] == "open"
        }
        if tool.name in resting:
            told["available"] = False
            told["reason"] = "It failed too often and is given a rest."
        if granted is not None:
            told["configuration"] = self._configuration(tool, granted)
            told["available"] = told["available"] and told["configuration"]["valid"]
        return told

    def _absent(self, tool: Tool) -> str | None:
        """Return what is said of a function that another process has, and this one does not."""
        if tool.handler.get("type") != "python" or "callable" in tool.handler:
            return None
        try:
            return next(iter(self._parts.runners.check(tool.handler)), None)
        except StratagemError as error:
            return error.message

    def _configuration(self, tool: Tool, granted: list[SecretGrant]) -> HandlerCheck:
        """Check the handler as registration does, and that its secrets were granted."""
        errors: list[str] = []
        warnings: list[str] = []
        try:
            warnings = self._parts.runners.check(tool.handler)
        except StratagemError as error:
            errors.append(error.message)
        known = {each["name"] for each in granted if each["tool"] == tool.name}
        errors += [
            f"The secret {name} was not granted."
            for name in _secrets(str(dict(tool.handler)))
            if name not in known
        ]
        return {"valid": not errors, "errors": errors, "warnings": warnings}

    def _compared(self, reader: Reader, view: View, tool: Tool, services: Services) -> ComparedTool:
        schema = tool.content["inputSchema"]
        return {
            "name": tool.name,
            "description": tool.description,
            "category": tool.category,
            "status": tool.status,
            "source": source_of(tool),
            "parameters": sorted(schema.get("properties") or {}),
            "required": sorted(schema.get("required") or ()),
            "hasOutputSchema": tool.output is not None,
            "evidence": services.validated(lambda _part: _evidence(reader, view, tool.name), None),
        }


def _evidence(reader: Reader, view: View, tool: str) -> ToolEvidence:
    """Return the figures of a tool's calls; its reliability is not known before the first one."""
    figures = history.statistics(reader, view, tool)
    return {
        "totalCalls": figures["totalCalls"],
        "successRate": figures["successRate"],
        "reliability": figures["reliability"] if figures["totalCalls"] else None,
        "avgLatency": figures["avgLatency"],
        "p50Latency": figures["p50Latency"],
    }


def _secrets(handler: str) -> list[str]:
    return list(dict.fromkeys(_REFERENCE.findall(handler)))


def _fits(tool: Tool, given: DiscoverInput) -> bool:
    pattern = (given.name_pattern or "").casefold()
    name = tool.name.casefold()
    matches = fnmatchcase(name, pattern) if "*" in pattern or "?" in pattern else pattern in name
    return (
        given.category in {None, tool.category}
        and given.source in {None, source_of(tool)}
        and (not pattern or matches)
    )


def _discovered_tool(tool: Tool, given: DiscoverInput) -> DiscoveredTool:
    told: DiscoveredTool = {
        "name": tool.name,
        "description": tool.description,
        "category": tool.category,
        "source": source_of(tool),
    }
    if given.include_schema:
        told["inputSchema"] = tool.content["inputSchema"]
    return told


def _shared(tools: list[Tool]) -> list[str]:
    names = [set(tool.content["inputSchema"].get("properties") or {}) for tool in tools]
    return sorted(set.intersection(*names))


def _best(told: list[ComparedTool]) -> dict[str, str | None]:
    """Return which tool leads, by each measure that is known of at least one."""

    def leader(values: dict[str, float | None], sign: int) -> str | None:
        known = {name: value for name, value in values.items() if value is not None}
        return max(known, key=lambda name: sign * known[name]) if known else None

    tried = {
        each["name"]: evidence
        for each in told
        if (evidence := each["evidence"]) is not None and evidence["totalCalls"]
    }
    return {
        "reliability": leader({name: each["reliability"] for name, each in tried.items()}, 1),
        "latency": leader({name: each["avgLatency"] for name, each in tried.items()}, -1),
        "relevance": leader({each["name"]: each.get("relevanceScore") for each in told}, 1),
    }
