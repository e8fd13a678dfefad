"""workflow_plan: tools chained so that what one gives is what the next one takes.

A goal is parted into what is to be done one after another, and each part gets its best tool. Where
a tool lacks a required argument, one that gives it and lacks nothing itself comes before it.
Chains that worked before decide between tools that are nearly equal.

Each argument says where it comes from: a value at hand, an earlier step's output, the schema's
default, or the caller, who is asked for it as an input of the pipeline.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stratagem.engine.lineage import View
from stratagem.gateway.meta.bound import Answer, Meta, milliseconds_since
from stratagem.gateway.meta.inputs import PlanInput
from stratagem.gateway.meta.parts import Services
from stratagem.gateway.meta.recommender import Choice
from stratagem.gateway.meta.recommending import chain_told, reasoning
from stratagem.gateway.meta.records import Chain
from stratagem.gateway.pipelines import plan
from stratagem.gateway.recommendation.catalogue import Shelf
from stratagem.gateway.tools import Tool
from stratagem.search import analysis
from stratagem.storage.contract import Reader

__all__ = ["Planning"]

# Where one thing to do ends and the next begins.
_BORDER: Final = re.compile(
    r"[;.\n。；]\s*|,?\s+(?:and then|then|afterwards|after that|finally)\s+|\s*(?:->|→)\s*"  # noqa: RUF001 -- full stops and semicolons of other scripts
    r"|,\s+(?=[a-z]+\s)|\s+and\s+",
    re.IGNORECASE,
)
_PART_CHARS_MIN: Final = 3
_RELEVANT_MIN: Final = 0.3
# How much of the best score a tool may lack, and be preferred because its chain worked before.
_CHAIN_MARGIN: Final = 0.1
_CHAINS_SHOWN: Final = 3


@dataclass(slots=True)
class _Step:
    id: str
    tool: Tool
    why: str
    arguments: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Answer] = field(default_factory=dict)


class Planning(Meta):
    """Plans workflows."""

    def plan(self, given: PlanInput) -> Answer:
        """Return steps for a goal, usable as a pipeline."""
        started = time.perf_counter()
        services = self._recommender.services()
        with self._looking(given.branch) as (reader, view):
            chains: list[Chain] = services.learned(lambda part: part.chains(reader, view), [])
            shelf, chosen = self._chosen(reader, view, given, services, chains)
            steps = _arranged(shelf, chosen, given)
        definition = {
            "name": given.name or "plan",
            "steps": [
                {"id": each.id, "tool": each.tool.name, "arguments": each.arguments}
                for each in steps
            ],
        }
        if steps:
            plan(definition)
        asked = {
            source["name"]: source["schema"]
            for each in steps
            for source in each.sources.values()
            if source["from"] == "input"
        }
        missing = [name for name in asked if name not in given.inputs]
        return {
            "goal": given.goal,
            "steps": [_told(each, at, steps, chains) for at, each in enumerate(steps)],
            "definition": definition if steps else None,
            "inputs": {"type": "object", "properties": asked, "required": sorted(asked)},
            "missing": missing,
            "runnable": bool(steps) and not missing,
            "knownChains": [
                chain_told(each)
                for each in chains
                if {*each.sequence} & {step.tool.name for step in steps}
            ][:_CHAINS_SHOWN],
            "processingTime": milliseconds_since(started),
            **services.status(),
        }

    def _chosen(
        self, reader: Reader, view: View, given: PlanInput, services: Services, chains: list[Chain]
    ) -> tuple[Shelf, list[tuple[Tool, str]]]:
        """Return the tools in order, each with what speaks for it."""
        if given.tools:
            registry = self._switchboard.registry
            shelf = self._recommender.catalogue.shelf(reader, view)
            named = [registry.find(reader, view, name) for name in given.tools]
            return shelf, [(tool, "You named it.") for tool in named]
        shelf = self._recommender.catalogue.shelf(reader, view)
        chosen: list[tuple[Tool, str]] = []
        for part in _parts(given.goal)[: given.max_steps]:
            _shelf, choices = self._recommender.choose(reader, view, part, services)
            before = chosen[-1][0].name if chosen else None
            best = _preferred(choices, before, chains)
            if best is not None and best.tool.name != before:
                chosen.append((best.tool, f"For {part!r}: {reasoning(best)}"))
        return shelf, chosen


def _parts(goal: str) -> list[str]:
    """Return the things to do, one after another."""
    parts = [part.strip(" ,") for part in _BORDER.split(goal) if part]
    telling = [
        part for part in parts if len(part) >= _PART_CHARS_MIN and analysis.content_terms(part)
    ]
    return telling or [goal]


def _preferred(choices: list[Choice], before: str | None, chains: list[Chain]) -> Choice | None:
    """Return the best tool; of nearly equal ones, the one that worked after the step before."""
    if not choices or choices[0].match.score < _RELEVANT_MIN:
        return None
    near = [each for each in choices if each.match.score >= choices[0].match.score - _CHAIN_MARGIN]
    followed = {
        chain.sequence[1]: chain.belief.mean
        for chain in reversed(chains)
        if len(chain.sequence) == 2 and chain.sequence[0] == before  # noqa: PLR2004 -- a pair
    }
    return max(near, key=lambda each: (followed.get(each.tool.name, 0.0), each.match.score))


def _arranged(shelf: Shelf, chosen: list[tuple[Tool, str]], given: PlanInput) -> list[_Step]:
    """Return the steps with their arguments; a missing one may bring a step before it."""
    steps: list[_Step] = []
    # Those named by the caller are all; those found may need others before them.
    room = len(chosen) if given.tools else given.max_steps

    for at, (tool, why) in enumerate(chosen):
        for name, schema in _required(tool):
            left = len(chosen) - at
            if len(steps) + left < room and _sourced(name, schema, steps, given) is None:
                maker = _producer(shelf, (name, schema), tool, steps, given)
                if maker is not None:
                    because = f"It gives {name}, which {tool.name} needs."
                    steps.append(_step(maker, because, steps, given))
        steps.append(_step(tool, why, steps, given))
    return steps


def _step(tool: Tool, why: str, steps: list[_Step], given: PlanInput) -> _Step:
    step = _Step(_free_id(tool.name, steps), tool, why)
    sources = {
        name: _sourced(name, schema, steps, given) or _asked(name, schema)
        for name, schema in _required(tool)
    }
    for name, schema in _optional(tool):
        known = _sourced(name, schema, steps, given, optional=True)
        if known is not None:
            sources[name] = known
    step.sources = sources
    step.arguments = {name: source["value"] for name, source in sources.items()}
    return step


def _sourced(
    name: str, schema: Any, steps: list[_Step], given: PlanInput, *, optional: bool = False
) -> Answer | None:
    """Return where an argument comes from, if from anywhere but the caller."""
    if name in given.inputs:
        return _asked(name, schema)
    for step in reversed(steps):
        for path, produced in _outputs(step.tool):
            leaf = path.rpartition(".")[2]
            if _same_name(leaf, name, step.tool.name) and _compatible(produced, schema):
                dotted = f".{path}" if path else ""
                return {
                    "from": "step",
                    "step": step.id,
                    "path": path,
                    "value": f"${{{{ steps.{step.id}.result{dotted} }}}}",
                    "reason": f"{step.tool.name} gives {leaf or 'it'}",
                }
    if not optional and isinstance(schema, Mapping) and "default" in schema:
        return {"from": "default", "value": schema["default"], "reason": "the schema's default"}
    return None


def _asked(name: str, schema: Any) -> Answer:
    return {
        "from": "input",
        "name": name,
        "value": f"${{{{ input.{name} }}}}",
        "schema": schema if isinstance(schema, Mapping) else {},
        "reason": "it has to be given",
    }


def _producer(
    shelf: Shelf, wanted: tuple[str, Any], user: Tool, steps: list[_Step], given: PlanInput
) -> Tool | None:
    """Return a tool whose output has what is missing, and that lacks nothing itself.

    One that would need something else from the caller saves nothing.
    """
    name, schema = wanted
    there = {step.tool.name for step in steps} | {user.name}
    makers = [
        tool
        for tool in shelf.tools.values()
        if tool.status == "active"
        and tool.name not in there
        and any(
            _same_name(path.rpartition(".")[2], name, tool.name) and _compatible(produced, schema)
            for path, produced in _outputs(tool)
        )
        and all(_sourced(each, needs, steps, given) for each, needs in _required(tool))
    ]
    return max(
        makers,
        key=lambda tool: (shelf.index.likeness(tool.name, user.name), tool.name),
        default=None,
    )


def _outputs(tool: Tool) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a tool's output by path, two levels deep."""
    schema = tool.content.get("outputSchema")
    for name, each in _properties(schema).items():
        yield name, each
        for inner, deeper in _properties(each).items():
            yield f"{name}.{inner}", deeper


def _properties(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _required(tool: Tool) -> list[tuple[str, Any]]:
    schema = tool.content["inputSchema"]
    return [(name, _properties(schema).get(name, {})) for name in schema.get("required") or ()]


def _optional(tool: Tool) -> list[tuple[str, Any]]:
    schema = tool.content["inputSchema"]
    required = set(schema.get("required") or ())
    return [(name, each) for name, each in _properties(schema).items() if name not in required]


def _same_name(given: str, wanted: str, giver: str) -> bool:
    """Whether two names mean the same: alike, or `id` of what `get_user` gives for `user_id`."""
    one, two = _words(given), _words(wanted)
    if one == two:
        return True
    return one < two and len(one) > 0 and two - one <= _words(giver)


def _words(name: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]", " ", name)
    return set(analysis.terms(spaced))


def _compatible(produced: Any, wanted: Any) -> bool:
    one, two = _kinds(produced), _kinds(wanted)
    return not one or not two or bool(one & two)


def _kinds(schema: Any) -> set[str]:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = {kind} if isinstance(kind, str) else set(kind) if isinstance(kind, list) else set()
    # A whole number is a number.
    return kinds | ({"number"} if "integer" in kinds else set())


def _free_id(tool: str, steps: list[_Step]) -> str:
    base = re.sub(r"[^A-Za-z0-9_-]", "_", tool)[:50]
    taken = {step.id for step in steps}
    return next(
        each
        for each in (base, *(f"{base}_{number}" for number in range(2, len(steps) + 3)))
        if each not in taken
    )


def _told(step: _Step, at: int, steps: list[_Step], chains: list[Chain]) -> Answer:
    before = steps[at - 1].tool.name if at else None
    pair = next((each for each in chains if each.sequence == (before, step.tool.name)), None)
    return {
        "id": step.id,
        "tool": step.tool.name,
        "description": step.tool.description,
        "reasoning": step.why,
        "arguments": step.arguments,
        "sources": step.sources,
        "evidence": None if pair is None else chain_told(pair),
    }
