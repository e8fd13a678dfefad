"""The registered tools for a caller: `tools_validate`, `tools_discover`, `tools_compare`."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from fnmatch import fnmatchcase

from stratagem.engine.lineage import View
from stratagem.errors import StratagemError
from stratagem.gateway.advice.advice_service import AdviceService, milliseconds_since, source_of
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
from stratagem.gateway.advice.inputs import CompareInput, DiscoverInput, ValidateInput
from stratagem.gateway.advice.record_services import RecordServices
from stratagem.gateway.advice.retrieval.duplicates import difference, is_duplicate
from stratagem.gateway.calls import history
from stratagem.gateway.registry.tools import Tool
from stratagem.gateway.secret_grants import GrantRecord, effective_state, read_grants
from stratagem.storage.contract import Reader

__all__ = ["ToolInspection"]

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ToolInspection(AdviceService):
    """Checks, lists and compares registered tools."""

    def validate(self, given: ValidateInput) -> ToolValidation:
        """Return for each tool whether it can be called now."""
        started = time.perf_counter()
        with self._snapshot(given.branch) as (reader, view):
            tools = [
                (name, self._parts.registry.get(reader, view, name)) for name in given.tool_names
            ]
            default = self._parts.foundation.views.view(reader, "default")
            granted = read_grants(reader.records, default) if given.check_configuration else []
        results = [
            self._availability(name, tool, granted if given.check_configuration else None)
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
        """Return the tools that pass every filter, and how they group by category."""
        started = time.perf_counter()
        with self._snapshot(given.branch) as (reader, view):
            known = self._recommender.catalogue.tools_of(reader, view).tools
            every = [tool for tool in known.values() if self._parts.registry.shows(tool)]
        fitting = [tool for tool in every if _fits(tool, given)]
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
        """Return how tools differ: parameters, results of their calls, relevance for an intent."""
        started = time.perf_counter()
        services = self._recommender.services()
        with self._snapshot(given.branch) as (reader, view):
            registry = self._parts.registry
            tools = [registry.find(reader, view, name) for name in given.tool_names]
            view_tools, found = (
                self._recommender.choose(reader, view, given.intent, services, own=True)
                if given.intent
                else (self._recommender.catalogue.tools_of(reader, view), [])
            )
            scores = {each.tool.name: each.match.score for each in found}
            compared = [self._compared_tool(reader, view, tool, services) for tool in tools]
        for each in compared:
            if given.intent:
                each["relevanceScore"] = round(scores.get(each["name"], 0.0), 4)
        first = tools[0]
        return {
            "tools": compared,
            "sharedParameters": _shared_parameters(tools),
            "differences": [
                {
                    "from": first.name,
                    "to": tool.name,
                    "twins": is_duplicate(
                        first.content,
                        tool.content,
                        view_tools.index.likeness(first.name, tool.name),
                    ),
                    "difference": difference(first.content, tool.content),
                }
                for tool in tools[1:]
            ],
            "best": _leaders(compared),
            "processingTime": milliseconds_since(started),
            **services.status(),
        }

    def _availability(
        self, name: str, tool: Tool | None, granted: list[GrantRecord] | None
    ) -> ToolAvailability:
        if tool is None:
            return {"toolName": name, "available": False, "reason": "There is no such tool."}
        answer: ToolAvailability = {
            "toolName": tool.name,
            "available": True,
            "category": tool.category,
            "description": tool.description,
            "source": source_of(tool),
        }
        if (reason := self._why_unavailable(tool, self._resting_tools())) is not None:
            answer["available"] = False
            answer["reason"] = reason
        if granted is not None:
            answer["configuration"] = self._check_handler(tool, granted)
            answer["available"] = answer["available"] and answer["configuration"]["valid"]
        return answer

    def _check_handler(self, tool: Tool, granted: list[GrantRecord]) -> HandlerCheck:
        """Check the handler as registration does, and that its secrets were granted."""
        errors: list[str] = []
        warnings: list[str] = []
        try:
            warnings = self._parts.runners.check(tool.handler)
        except StratagemError as error:
            errors.append(error.message)
        known = {
            each["name"]
            for each in granted
            if each["tool"] == tool.name
            and effective_state(each, "tool", tool.handler_fingerprint)[0] == "active"
        }
        errors += [
            f"The secret {name} was not granted."
            for name in _referenced_secrets(str(dict(tool.handler)))
            if name not in known
        ]
        return {"valid": not errors, "errors": errors, "warnings": warnings}

    def _compared_tool(
        self, reader: Reader, view: View, tool: Tool, services: RecordServices
    ) -> ComparedTool:
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
            "evidence": services.ask_validation(
                lambda _part: _evidence(reader, view, tool.name), None
            ),
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


def _referenced_secrets(handler: str) -> list[str]:
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
    answer: DiscoveredTool = {
        "name": tool.name,
        "description": tool.description,
        "category": tool.category,
        "source": source_of(tool),
    }
    if (lacking := tool.unavailable) is not None:
        answer["unavailable"] = lacking
    if given.include_schema:
        answer["inputSchema"] = tool.content["inputSchema"]
    return answer


def _shared_parameters(tools: list[Tool]) -> list[str]:
    names = [set(tool.content["inputSchema"].get("properties") or {}) for tool in tools]
    return sorted(set.intersection(*names))


def _leaders(tools: list[ComparedTool]) -> dict[str, str | None]:
    """Return the best tool by each measure that is known of at least one."""

    def leader(values: dict[str, float | None], sign: int) -> str | None:
        known = {name: value for name, value in values.items() if value is not None}
        return max(known, key=lambda name: sign * known[name]) if known else None

    tried = {
        each["name"]: evidence
        for each in tools
        if (evidence := each["evidence"]) is not None and evidence["totalCalls"]
    }
    return {
        # What never worked is not the best of anything.
        "reliability": leader(
            {name: each["reliability"] for name, each in tried.items() if each["successRate"]}, 1
        ),
        "latency": leader(
            {name: each["avgLatency"] for name, each in tried.items() if each["successRate"]}, -1
        ),
        "relevance": leader({each["name"]: each.get("relevanceScore") for each in tools}, 1),
    }
