"""Where the arguments of a step come from: values at hand, earlier steps, tools put before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from stratagem import limits
from stratagem.gateway.advice.answers import InputSource, OtherSource
from stratagem.gateway.advice.retrieval.givers import (
    GENERAL_WORDS,
    Givers,
    Offer,
    fits,
    outputs,
    properties,
    words,
)
from stratagem.gateway.registry.tools import Tool

__all__ = ["Chainer", "Made", "Step", "required"]

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Made(NamedTuple):
    """A tool that is put before another one, because of what it gives."""

    tool: Tool
    user: Tool
    given: str


@dataclass(slots=True)
class Step:
    """A call of a plan: its arguments, and where each comes from."""

    id: str
    tool: Tool
    why: str
    arguments: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, InputSource | OtherSource] = field(default_factory=dict)


class Chainer:
    """Puts steps one after another, with a source for each argument.

    `preferred` says which of two tools that give the same should come before another one.
    """

    def __init__(
        self,
        givers: Givers,
        inputs: Mapping[str, Any],
        preferred: Callable[[Tool, Tool], tuple[Any, ...]],
    ) -> None:
        self._givers = givers
        self._inputs = inputs
        self._preferred = preferred
        self._looked_at = 0
        self._known: dict[tuple[str, str], list[Tool]] = {}
        # How far was looked in vain for what a tool needs, since the last step was put.
        self._failed: dict[str, int] = {}
        self.steps: list[Step] = []

    def put(self, tool: Tool, why: str, *, room: int) -> None:
        """Add a step; what gives it what it lacks comes before it, as far as there is room."""
        for name, schema in required(tool):
            for made in self._makers(name, schema, tool, room - 1):
                self._append(made.tool, f"It gives {made.given}, which {made.user.name} needs.")
                room -= 1
        self._append(tool, why)

    def _makers(self, name: str, schema: Any, tool: Tool, room: int) -> Sequence[Made]:
        """Return the fewest tools that give an argument and lack nothing themselves."""
        here = [step.tool for step in self.steps]
        if self._at_hand(name, schema, tool, here):
            return ()
        self._failed = {}
        for depth in range(1, min(room, limits.PLAN_DEPTH_MAX) + 1):
            found = self._made((name, schema), tool, here, frozenset({tool.name}), depth)
            if found is not None and len(found) <= room:
                return found
        return ()

    def _made(
        self,
        wanted: tuple[str, Any],
        user: Tool,
        here: list[Tool],
        busy: frozenset[str],
        depth: int,
    ) -> list[Made] | None:
        """Return tools that give something, none of them `busy`: so no tool waits for itself."""
        there = {tool.name for tool in here} | busy
        for tool in self._offering(*wanted, user):
            if tool.name in there or self._failed.get(tool.name, -1) >= depth:
                continue
            self._looked_at += 1
            if self._looked_at > limits.PLAN_LOOKED_AT_MAX:
                return None
            before = self._supplied(tool, here, busy | {tool.name}, depth - 1)
            if before is not None:
                return [*before, Made(tool, user, wanted[0])]
            self._failed[tool.name] = depth
        return None

    def _offering(self, name: str, schema: Any, user: Tool) -> list[Tool]:
        """Return the tools that give an argument, those to be preferred first."""
        known = self._known.get((user.name, name))
        if known is None:
            tools = {
                offer.tool.name: offer.tool
                for offer in islice(self._givers.of(name, schema, user), limits.PLAN_COMPARED_MAX)
                if offer.tool.status == "active"
            }
            ordered = sorted(tools.values(), key=lambda tool: self._preferred(tool, user))
            known = self._known[user.name, name] = ordered[: limits.PLAN_TRIED_MAX]
        return known

    def _supplied(
        self, tool: Tool, here: list[Tool], busy: frozenset[str], depth: int
    ) -> list[Made] | None:
        """Return what has to come before a tool so that it lacks nothing; None: it cannot be."""
        added: list[Made] = []
        for name, schema in required(tool):
            now = [*here, *(each.tool for each in added)]
            if self._at_hand(name, schema, tool, now):
                continue
            made = self._made((name, schema), tool, now, busy, depth) if depth > 0 else None
            if made is None:
                return None
            added += made
        return added

    def _at_hand(self, name: str, schema: Any, user: Tool, here: list[Tool]) -> bool:
        return (
            self._input(name, user) is not None
            or (isinstance(schema, Mapping) and "default" in schema)
            or any(fits(offer, name, schema, user) for tool in here for offer in outputs(tool))
        )

    def _append(self, tool: Tool, why: str) -> None:
        step = Step(self._free_id(tool.name), tool, why)
        for name, schema in required(tool):
            step.sources[name] = self._source(name, schema, step) or self._asked(name, schema, step)
        for name, schema in _optional(tool):
            known = self._source(name, schema, step, optional=True)
            if known is not None:
                step.sources[name] = known
        step.arguments = {name: source["value"] for name, source in step.sources.items()}
        self.steps.append(step)

    def _source(
        self, name: str, schema: Any, step: Step, *, optional: bool = False
    ) -> InputSource | OtherSource | None:
        """Return where an argument comes from, if from anywhere but the caller."""
        key = self._input(name, step.tool)
        # What a step made of a value at hand is what the next one is meant to have.
        found = self._given(name, schema, step, since=self._used_by(key))
        if found is not None:
            return found
        if key is not None:
            return _from_input(key, schema, "it is at hand")
        if not optional and isinstance(schema, Mapping) and "default" in schema:
            return {"from": "default", "value": schema["default"], "reason": "the schema's default"}
        return None

    def _given(self, name: str, schema: Any, step: Step, *, since: int) -> OtherSource | None:
        """Return the output of an earlier step that an argument is, the latest first."""
        for earlier in reversed(self.steps[since:]):
            for offer in outputs(earlier.tool):
                if fits(offer, name, schema, step.tool):
                    path = ".".join(map(_quoted, offer.path))
                    return {
                        "from": "step",
                        "step": earlier.id,
                        "path": ".".join(offer.path),
                        "value": f"${{{{ steps.{_quoted(earlier.id)}.result.{path} }}}}",
                        "reason": f"{earlier.tool.name} gives {offer.path[-1]}",
                    }
        return None

    def _used_by(self, key: str | None) -> int:
        """Return the first step that takes a value at hand; the number of steps if none does."""
        if key is None:
            return 0
        for at, step in enumerate(self.steps):
            if any(
                source["from"] == "input" and source["name"] == key
                for source in step.sources.values()
            ):
                return at
        return len(self.steps)

    def _input(self, name: str, user: Tool) -> str | None:
        """Return the value at hand that an argument is."""
        same = [name] if name in self._inputs else []
        same += [key for key in self._inputs if key != name and words(key) == words(name)]
        if not same:
            return None
        at = self._used_by(same[0])
        taken = at < len(self.steps) and self.steps[at].tool.name != user.name
        # Two tools that both take an `id` hardly ever mean the same one.
        return None if taken and words(name) <= GENERAL_WORDS else same[0]

    def _asked(self, name: str, schema: Any, step: Step) -> InputSource:
        others = {
            source["name"]: earlier.tool
            for earlier in self.steps
            for source in earlier.sources.values()
            if source["from"] == "input"
        }
        shared = name in others and words(name) <= GENERAL_WORDS and others[name] is not step.tool
        key = f"{step.id}_{name}" if shared or name in self._inputs else name
        for earlier in self.steps:
            if any(name in _many(offer) for offer in outputs(earlier.tool)):
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


def required(tool: Tool) -> list[tuple[str, Any]]:
    """Return the parameters that a tool cannot do without."""
    schema = tool.content["inputSchema"]
    names = schema.get("required")
    known = properties(schema)
    return [(name, known.get(name, {})) for name in names] if isinstance(names, list) else []


def _optional(tool: Tool) -> list[tuple[str, Any]]:
    needed = {name for name, _ in required(tool)}
    known = properties(tool.content["inputSchema"])
    return [(name, each) for name, each in known.items() if name not in needed]


def _many(offer: Offer) -> Mapping[str, Any]:
    """Return the fields of the elements, where an output is a list of objects."""
    schema = offer.schema
    return properties(schema.get("items")) if isinstance(schema, Mapping) else {}


def _from_input(key: str, schema: Any, reason: str) -> InputSource:
    return {
        "from": "input",
        "name": key,
        "value": f"${{{{ input.{_quoted(key)} }}}}",
        "schema": dict(schema) if isinstance(schema, Mapping) else {},
        "reason": reason,
    }


def _quoted(name: str) -> str:
    """Return a name as JMESPath takes it, in a text that ends with two braces."""
    if _PLAIN.fullmatch(name):
        return name
    return orjson.dumps(name).decode().replace("}", "\\u007d").replace("{", "\\u007b")
