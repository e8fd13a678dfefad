"""The steps of a plan, with a source for each argument: an input, an earlier step, a default."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from stratagem import limits
from stratagem.gateway.advice.answers import InputSource, OtherSource
from stratagem.gateway.advice.retrieval.tool_outputs import (
    GENERAL_WORDS,
    OutputField,
    ToolOutputs,
    fits,
    outputs,
    properties,
    words,
)
from stratagem.gateway.registry.tools import Tool

__all__ = ["PlanBuilder", "PlannedCall", "Supplier", "required_parameters"]

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Supplier(NamedTuple):
    """A tool that is put before another one because it outputs one of its arguments."""

    tool: Tool
    user: Tool
    given: str


@dataclass(slots=True)
class PlannedCall:
    """A call of a plan: its arguments, and the source of each."""

    id: str
    tool: Tool
    why: str
    arguments: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, InputSource | OtherSource] = field(default_factory=dict)


class PlanBuilder:
    """Builds the steps of a plan in order, with a source for each argument.

    `preferred` orders tools that output the same argument for another one.
    """

    def __init__(
        self,
        tool_outputs: ToolOutputs,
        inputs: Mapping[str, Any],
        preferred: Callable[[Tool, Tool], tuple[Any, ...]],
    ) -> None:
        self._tool_outputs = tool_outputs
        self._inputs = inputs
        self._preferred = preferred
        self._tried = 0
        self._known: dict[tuple[str, str], list[Tool]] = {}
        # The depth to which suppliers of a tool were searched in vain, since the last step.
        self._failed: dict[str, int] = {}
        self.steps: list[PlannedCall] = []

    def add(self, tool: Tool, why: str, *, room: int) -> None:
        """Add a step, and before it the suppliers of what it lacks, as far as there is room."""
        for name, schema in required_parameters(tool):
            for made in self._suppliers(name, schema, tool, room - 1):
                self._append(made.tool, f"It gives {made.given}, which {made.user.name} needs.")
                room -= 1
        self._append(tool, why)

    def _suppliers(self, name: str, schema: Any, tool: Tool, room: int) -> Sequence[Supplier]:
        """Return the fewest tools that output an argument and lack nothing themselves."""
        here = [step.tool for step in self.steps]
        if self._is_available(name, schema, tool, here):
            return ()
        self._failed = {}
        for depth in range(1, min(room, limits.PLAN_DEPTH_MAX) + 1):
            found = self._search_suppliers(
                (name, schema), tool, here, frozenset({tool.name}), depth
            )
            if found is not None and len(found) <= room:
                return found
        return ()

    def _search_suppliers(
        self,
        wanted: tuple[str, Any],
        user: Tool,
        here: list[Tool],
        busy: frozenset[str],
        depth: int,
    ) -> list[Supplier] | None:
        """Return tools that output an argument; none is `busy`, so no tool waits for itself."""
        there = {tool.name for tool in here} | busy
        for tool in self._candidates(*wanted, user):
            if tool.name in there or self._failed.get(tool.name, -1) >= depth:
                continue
            self._tried += 1
            if self._tried > limits.PLAN_LOOKED_AT_MAX:
                return None
            before = self._prerequisites(tool, here, busy | {tool.name}, depth - 1)
            if before is not None:
                return [*before, Supplier(tool, user, wanted[0])]
            self._failed[tool.name] = depth
        return None

    def _candidates(self, name: str, schema: Any, user: Tool) -> list[Tool]:
        """Return the tools that output an argument, the preferred ones first."""
        known = self._known.get((user.name, name))
        if known is None:
            tools = {
                output.tool.name: output.tool
                for output in islice(
                    self._tool_outputs.outputs_for(name, schema, user), limits.PLAN_COMPARED_MAX
                )
                if output.tool.status == "active"
            }
            ordered = sorted(tools.values(), key=lambda tool: self._preferred(tool, user))
            known = self._known[user.name, name] = ordered[: limits.PLAN_TRIED_MAX]
        return known

    def _prerequisites(
        self, tool: Tool, here: list[Tool], busy: frozenset[str], depth: int
    ) -> list[Supplier] | None:
        """Return the tools that supply all that a tool lacks; None where one is missing."""
        added: list[Supplier] = []
        for name, schema in required_parameters(tool):
            now = [*here, *(each.tool for each in added)]
            if self._is_available(name, schema, tool, now):
                continue
            made = (
                self._search_suppliers((name, schema), tool, now, busy, depth)
                if depth > 0
                else None
            )
            if made is None:
                return None
            added += made
        return added

    def _is_available(self, name: str, schema: Any, user: Tool, here: list[Tool]) -> bool:
        return (
            self._matching_input(name, user) is not None
            or (isinstance(schema, Mapping) and "default" in schema)
            or any(fits(output, name, schema, user) for tool in here for output in outputs(tool))
        )

    def _append(self, tool: Tool, why: str) -> None:
        step = PlannedCall(self._free_id(tool.name), tool, why)
        for name, schema in required_parameters(tool):
            step.sources[name] = self._source(name, schema, step) or self._requested_input(
                name, schema, step
            )
        for name, schema in _optional_parameters(tool):
            known = self._source(name, schema, step, optional=True)
            if known is not None:
                step.sources[name] = known
        step.arguments = {name: source["value"] for name, source in step.sources.items()}
        self.steps.append(step)

    def _source(
        self, name: str, schema: Any, step: PlannedCall, *, optional: bool = False
    ) -> InputSource | OtherSource | None:
        """Return the source of an argument; None where the caller has to give it."""
        key = self._matching_input(name, step.tool)
        # A step's output for an input takes the place of that input in later steps.
        found = self._step_output(name, schema, step, since=self._first_use(key))
        if found is not None:
            return found
        if key is not None:
            return _from_input(key, schema, "it is at hand")
        if not optional and isinstance(schema, Mapping) and "default" in schema:
            return {"from": "default", "value": schema["default"], "reason": "the schema's default"}
        return None

    def _step_output(
        self, name: str, schema: Any, step: PlannedCall, *, since: int
    ) -> OtherSource | None:
        """Return the output of an earlier step that an argument is, the latest first."""
        for earlier in reversed(self.steps[since:]):
            for output in outputs(earlier.tool):
                if fits(output, name, schema, step.tool):
                    path = ".".join(map(_quote, output.path))
                    return {
                        "from": "step",
                        "step": earlier.id,
                        "path": ".".join(output.path),
                        "value": f"${{{{ steps.{_quote(earlier.id)}.result.{path} }}}}",
                        "reason": f"{earlier.tool.name} gives {output.path[-1]}",
                    }
        return None

    def _first_use(self, key: str | None) -> int:
        """Return the first step that uses an input; the number of steps if none does."""
        if key is None:
            return 0
        for at, step in enumerate(self.steps):
            if any(
                source["from"] == "input" and source["name"] == key
                for source in step.sources.values()
            ):
                return at
        return len(self.steps)

    def _matching_input(self, name: str, user: Tool) -> str | None:
        """Return the input that an argument takes."""
        same = [name] if name in self._inputs else []
        same += [key for key in self._inputs if key != name and words(key) == words(name)]
        if not same:
            return None
        at = self._first_use(same[0])
        taken = at < len(self.steps) and self.steps[at].tool.name != user.name
        # Two tools that both take an `id` hardly ever mean the same one.
        return None if taken and words(name) <= GENERAL_WORDS else same[0]

    def _requested_input(self, name: str, schema: Any, step: PlannedCall) -> InputSource:
        others = {
            source["name"]: earlier.tool
            for earlier in self.steps
            for source in earlier.sources.values()
            if source["from"] == "input"
        }
        shared = name in others and words(name) <= GENERAL_WORDS and others[name] is not step.tool
        key = f"{step.id}_{name}" if shared or name in self._inputs else name
        for earlier in self.steps:
            if any(name in _element_fields(output) for output in outputs(earlier.tool)):
                why = f"{earlier.tool.name} gives several, and one has to be chosen"
                return _from_input(key, schema, why)
        return _from_input(key, schema, "it has to be given")

    def _free_id(self, tool: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_-]", "_", tool)[:50]
        taken = {step.id for step in self.steps}
        return next(
            each
            for each in (base, *(f"{base}_{number}" for number in range(2, len(taken) + 3)))
            if each not in taken
        )


def required_parameters(tool: Tool) -> list[tuple[str, Any]]:
    """Return the required parameters of a tool, with their schemas."""
    schema = tool.content["inputSchema"]
    names = schema.get("required")
    known = properties(schema)
    return [(name, known.get(name, {})) for name in names] if isinstance(names, list) else []


def _optional_parameters(tool: Tool) -> list[tuple[str, Any]]:
    needed = {name for name, _ in required_parameters(tool)}
    known = properties(tool.content["inputSchema"])
    return [(name, each) for name, each in known.items() if name not in needed]


def _element_fields(output: OutputField) -> Mapping[str, Any]:
    """Return the fields of the elements, where an output is a list of objects."""
    schema = output.schema
    return properties(schema.get("items")) if isinstance(schema, Mapping) else {}


def _from_input(key: str, schema: Any, reason: str) -> InputSource:
    return {
        "from": "input",
        "name": key,
        "value": f"${{{{ input.{_quote(key)} }}}}",
        "schema": dict(schema) if isinstance(schema, Mapping) else {},
        "reason": reason,
    }


def _quote(name: str) -> str:
    """Return a name as JMESPath takes it, in a text that ends with two braces."""
    if _PLAIN.fullmatch(name):
        return name
    return orjson.dumps(name).decode().replace("}", "\\u007d").replace("{", "\\u007b")
