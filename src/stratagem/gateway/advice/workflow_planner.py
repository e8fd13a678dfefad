"""Plans of workflows: tools chained so that the output of one is the input of the next.

This is `workflow_plan`.

A goal is split into its parts, and each part gets its best tool. Where a tool lacks a required
argument, tools that output it and lack nothing themselves come before it
(see `plan_builder`). Chains that worked before decide between tools that are nearly equal.

Each argument has a source: an input of the caller, an earlier step's output, the schema's
default, or the caller, who is asked for it as an input of the pipeline. A part that no tool does is
named: a plan that leaves something out is not runnable.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from stratagem import limits
from stratagem.engine.lineage import View
from stratagem.errors import StratagemError
from stratagem.gateway.advice.advice_service import AdviceService, milliseconds_since
from stratagem.gateway.advice.answers import PlanStep, WorkflowPlan
from stratagem.gateway.advice.execution_records import Chain
from stratagem.gateway.advice.inputs import PlanInput
from stratagem.gateway.advice.plan_builder import PlanBuilder, PlannedCall
from stratagem.gateway.advice.recommendations import describe_chain, reasoning
from stratagem.gateway.advice.recommender import ToolChoice
from stratagem.gateway.advice.record_services import RecordServices
from stratagem.gateway.advice.retrieval.catalogue import ViewTools
from stratagem.gateway.advice.retrieval.tool_outputs import ToolOutputs
from stratagem.gateway.correction import correct
from stratagem.gateway.pipelines.definition import parse_pipeline
from stratagem.gateway.registry.tools import Tool
from stratagem.search import analysis
from stratagem.storage.contract import Reader

__all__ = ["WorkflowPlanner"]

# Where one thing to do ends and the next begins, in the languages of the lexicon.
_BORDER: Final = re.compile(
    r"[;\n\u3002\uff1b]\s*|[.!](?=\s|$)\s*"
    r"|(?:(?<!\s)\s++)?(?:->|→|⇒|然后|接着|之后|その後|次に|それから|그런 다음|그리고)\s*+"
    r"|(?:,\s*+|(?<!\s)\s++)?\b(?:and then|then|afterwards|after that|finally"
    r"|und dann|dann|danach|anschließend|y luego|luego|después|et puis|puis|ensuite"
    r"|e depois|depois|e poi|poi|quindi|en dan|затем|потом)\s+",
    re.IGNORECASE,
)
# Where it may end: these also join words that belong together.
_JOINT: Final = re.compile(r",\s++|(?<!\s)\s++(?:and|und|y|et|e|en|и)\s+(?![A-Z])|[\u3001\uff0c]")
_PART_CHARS_MIN: Final = 3
_RELEVANT_MIN: Final = 0.3
# How much of the best score a tool may lack, and be preferred because its chain worked before.
_CHAIN_MARGIN: Final = 0.1
_CHAINS_SHOWN: Final = 3


class WorkflowPlanner(AdviceService):
    """Plans the steps to a goal: `workflow_plan`."""

    def plan(self, given: PlanInput) -> WorkflowPlan:
        """Return steps for a goal, usable as a pipeline."""
        started = time.perf_counter()
        services = self._recommender.services()
        with self._snapshot(given.branch) as (reader, view):
            chains: list[Chain] = services.ask_patterns(lambda part: part.chains(reader, view), [])
            view_tools = self._recommender.catalogue.tools_of(reader, view)
            if given.tools is not None:
                registry = self._parts.registry
                found = [registry.find(reader, view, name) for name in given.tools]
                chosen = [(tool, "You named it.") for tool in found]
                unmatched: list[str] = []
                omitted: list[str] = []
            else:
                chosen, unmatched, omitted = self._choose_tools(
                    reader, view, given, services, chains
                )
            # Those named by the caller are all; those found may need others before them.
            named = given.tools is not None
            tool_outputs = (
                ToolOutputs(()) if named else self._recommender.catalogue.tool_outputs(view_tools)
            )
            steps = _arrange(view_tools, chosen, given, chains, tool_outputs)
        definition = {
            "name": given.name or "plan",
            "steps": [
                {"id": each.id, "tool": each.tool.name, "arguments": each.arguments}
                for each in steps
            ],
        }
        if steps:
            parse_pipeline(definition)
        asked = _required_inputs(steps)
        missing = [name for name in asked if name not in given.inputs]
        invalid = _invalid_inputs(asked, given.inputs)
        return {
            "goal": given.goal,
            "steps": [_plan_step(each, at, steps, chains) for at, each in enumerate(steps)],
            "definition": definition if steps else None,
            "inputs": {"type": "object", "properties": asked, "required": sorted(asked)},
            "missing": missing,
            "invalid": invalid,
            "unmatched": unmatched,
            "omitted": omitted,
            "runnable": bool(steps) and not (missing or invalid or unmatched or omitted),
            "knownChains": [
                describe_chain(each)
                for each in chains
                if {*each.sequence} & {step.tool.name for step in steps}
            ][:_CHAINS_SHOWN],
            "processingTime": milliseconds_since(started),
            **services.status(),
        }

    def _choose_tools(
        self,
        reader: Reader,
        view: View,
        given: PlanInput,
        services: RecordServices,
        chains: list[Chain],
    ) -> tuple[list[tuple[Tool, str]], list[str], list[str]]:
        """Return the tools in order with the reason for each, unmatched and omitted parts."""
        known: dict[str, list[ToolChoice]] = {}

        def choices(part: str) -> list[ToolChoice]:
            if part not in known:
                known[part] = self._recommender.choose(reader, view, part, services)[1]
            return known[part]

        parts = _parts(given.goal)
        looked_at = parts[: limits.PLAN_PARTS_PER_STEP * given.max_steps]
        omitted = [part for part, _ in parts[len(looked_at) :]]
        chosen: list[tuple[Tool, str]] = []
        unmatched: list[str] = []
        for part in _join_parts(looked_at, lambda part: _is_relevant(choices(part))):
            before = chosen[-1][0].name if chosen else None
            best = _prefer(choices(part), before, chains)
            if best is None:
                unmatched.append(part)
            elif len(chosen) == given.max_steps:
                omitted.append(part)
            elif best.tool.name != before:
                chosen.append((best.tool, f"For {part!r}: {reasoning(best)}"))
        return chosen, unmatched, omitted


def _parts(goal: str) -> list[tuple[str, bool]]:
    """Return the parts of a goal in order, and whether each is certainly separate from the last."""
    found: list[tuple[str, bool]] = []
    for whole in _BORDER.split(goal):
        pieces = [piece.strip(" ,") for piece in _JOINT.split(whole or "")]
        telling = [
            piece
            for piece in pieces
            if len(piece) >= _PART_CHARS_MIN and analysis.content_terms(piece)
        ]
        found += [(piece, at == 0) for at, piece in enumerate(telling)]
    return found or [(goal, True)]


def _join_parts(parts: list[tuple[str, bool]], relevant: Callable[[str], bool]) -> Iterator[str]:
    """Yield the parts; one without a tool of its own is joined to the part before it."""
    current = ""
    for part, apart in parts:
        if not current:
            current = part
        elif apart or (relevant(current) and relevant(part)):
            yield current
            current = part
        else:
            current = f"{current}, {part}"
    if current:
        yield current


def _is_relevant(choices: list[ToolChoice]) -> bool:
    return bool(choices) and choices[0].match.score >= _RELEVANT_MIN


def _prefer(
    choices: list[ToolChoice], before: str | None, chains: list[Chain]
) -> ToolChoice | None:
    """Return the best tool; of nearly equal ones, the one that worked after the step before."""
    if not _is_relevant(choices):
        return None
    near = [each for each in choices if each.match.score >= choices[0].match.score - _CHAIN_MARGIN]
    followed = _pair_reliability(chains)
    return max(
        near, key=lambda each: (followed.get((before, each.tool.name), 0.0), each.match.score)
    )


def _pair_reliability(chains: list[Chain]) -> dict[tuple[str | None, str], float]:
    """Return how likely it is, for two tools, that the second works after the first."""
    return {
        (chain.sequence[0], chain.sequence[1]): chain.belief.mean
        for chain in chains
        if len(chain.sequence) == 2  # noqa: PLR2004 -- a pair
    }


def _arrange(
    view_tools: ViewTools,
    chosen: list[tuple[Tool, str]],
    given: PlanInput,
    chains: list[Chain],
    tool_outputs: ToolOutputs,
) -> list[PlannedCall]:
    """Return the steps with their arguments, and before them the steps that supply arguments."""
    followed = _pair_reliability(chains)
    named = {tool.name for tool, _ in chosen}

    def preference_of(tool: Tool, user: Tool) -> tuple[Any, ...]:
        """Order by: asked for anyway, worked before, alike."""
        worked = followed.get((tool.name, user.name), 0.0)
        likeness = view_tools.index.likeness(tool.name, user.name)
        return tool.name not in named, -worked, -likeness, tool.name

    builder = PlanBuilder(tool_outputs, given.inputs, preference_of)
    for at, (tool, why) in enumerate(chosen):
        if given.tools is None and any(step.tool.name == tool.name for step in builder.steps):
            # It was put before a step that needs what it gives.
            continue
        left = len(chosen) - at - 1
        builder.add(tool, why, room=max(1, given.max_steps - len(builder.steps) - left))
    return builder.steps


def _required_inputs(steps: list[PlannedCall]) -> dict[str, dict[str, Any]]:
    return {
        source["name"]: source["schema"]
        for step in steps
        for source in step.sources.values()
        if source["from"] == "input"
    }


def _invalid_inputs(
    asked: Mapping[str, Mapping[str, Any]], inputs: Mapping[str, Any]
) -> dict[str, str]:
    """Return the inputs that do not fit the parameter they are used for, and why."""
    found: dict[str, str] = {}
    for name in asked.keys() & inputs.keys():
        schema = {"type": "object", "properties": {name: asked[name]}}
        try:
            checked = correct(schema, {name: inputs[name]})
        except StratagemError:
            # A schema that refers to other parts of its tool cannot be looked at by itself.
            continue
        if checked.applied is None and checked.errors:
            found[name] = checked.errors[0].message
    return found


def _plan_step(
    step: PlannedCall, at: int, steps: list[PlannedCall], chains: list[Chain]
) -> PlanStep:
    before = steps[at - 1].tool.name if at else None
    pair = next((each for each in chains if each.sequence == (before, step.tool.name)), None)
    return {
        "id": step.id,
        "tool": step.tool.name,
        "description": step.tool.description,
        "reasoning": step.why,
        "arguments": step.arguments,
        "sources": step.sources,
        "evidence": None if pair is None else describe_chain(pair),
    }
