"""Plans of workflows: `workflow_plan`.

A goal is split into its parts, and each part gets its three best tools: the first is the step of
the plan, the others are alternatives, because the caller knows more than any score. An argument is
filled only with a value that the caller gave or with an output that the schema of an earlier step
names. Other arguments are open, and become inputs of the pipeline.

A plan is `runnable` when the schemas prove that each call of it is valid: nothing is open, no part
was left out, and no tool of it is a guess.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.advice.advice_service import AdviceContext, AdviceService, milliseconds_since
from stratagem.gateway.advice.answers import (
    InputSource,
    OpenArgument,
    PlanOption,
    PlanStep,
    StepSource,
    WorkflowPlan,
)
from stratagem.gateway.advice.argument_sources import (
    OutputField,
    fits,
    is_general,
    is_proven,
    outputs,
    parameters,
    same_name,
)
from stratagem.gateway.advice.execution_records import Chain
from stratagem.gateway.advice.inputs import PlanInput
from stratagem.gateway.advice.recommendations import describe_chain, reasoning
from stratagem.gateway.advice.recommender import ToolChoice
from stratagem.gateway.advice.retrieval import weights
from stratagem.gateway.definitions.schemas import Schema
from stratagem.gateway.pipelines.definition import parse_pipeline
from stratagem.gateway.registry.tools import Tool
from stratagem.search import analysis

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
_OPTIONS: Final = 3
_CHAINS_SHOWN: Final = 3
_SHOWN_CHARS: Final = 300
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class _Call:
    """A call of a plan.

    `invalid` has the inputs that do not fit a parameter, and why; `doubts` say why else it is not
    proven that the call is valid.
    """

    id: str
    part: str
    tool: Tool
    why: str
    score: float | None
    options: list[ToolChoice] = field(default_factory=list)
    sources: dict[str, InputSource | StepSource] = field(default_factory=dict)
    open: list[OpenArgument] = field(default_factory=list)
    invalid: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> dict[str, Any]:
        """Each argument as the pipeline takes it."""
        return {name: source["value"] for name, source in self.sources.items()}

    def uses(self, key: str) -> bool:
        """Whether an argument is an input of that name."""
        return any(
            source["from"] == "input" and source["name"] == key for source in self.sources.values()
        )


class WorkflowPlanner(AdviceService):
    """Plans the steps to a goal: `workflow_plan`."""

    def plan(self, given: PlanInput) -> WorkflowPlan:
        """Return steps for a goal, usable as a pipeline."""
        started = time.perf_counter()
        services = self._recommender.services()
        with self._snapshot(given.branch) as (reader, view):
            context = AdviceContext.of(reader, view, services)
            chains: list[Chain] = services.ask_patterns(lambda part: part.chains(reader, view), [])
            if given.tools is None:
                calls, unmatched, omitted = self._choose_tools(context, given)
            else:
                registry = self._parts.registry
                found = [registry.find(reader, view, name) for name in given.tools]
                calls = [_Call("", tool.name, tool, "You chose this tool.", None) for tool in found]
                unmatched, omitted = [], []
                self._doubt_unavailable(calls)
        for at, call in enumerate(calls):
            _complete(call, calls[:at], given.inputs)
        asked = {
            source["name"]: source["schema"]
            for call in calls
            for source in call.sources.values()
            if source["from"] == "input"
        }
        missing = [name for name in asked if name not in given.inputs]
        unproven = [doubt for call in calls for doubt in call.doubts]
        answer: WorkflowPlan = {
            "goal": given.goal,
            "steps": [
                _plan_step(call, calls[:at], chains, given.inputs) for at, call in enumerate(calls)
            ],
            "definition": _definition(given.name, calls),
            "inputs": {"type": "object", "properties": asked, "required": sorted(asked)},
            "missing": missing,
            "invalid": {key: why for call in calls for key, why in call.invalid.items()},
            "unmatched": unmatched,
            "omitted": omitted,
            "unproven": unproven,
            "runnable": False,
            "knownChains": [
                describe_chain(each)
                for each in chains
                if {*each.sequence} & {call.tool.name for call in calls}
            ][:_CHAINS_SHOWN],
            "processingTime": milliseconds_since(started),
            **services.status(),
        }
        open_ends = missing or answer["invalid"] or unmatched or omitted or unproven
        answer["runnable"] = bool(calls) and not open_ends
        return answer

    def _doubt_unavailable(self, calls: list[_Call]) -> None:
        """Note which tools that a caller named cannot be called now."""
        resting = self._resting_tools()
        for call in calls:
            if (why := self._why_unavailable(call.tool, resting)) is not None:
                call.doubts.append(f"{call.tool.name}: {why}")

    def _choose_tools(
        self, context: AdviceContext, given: PlanInput
    ) -> tuple[list[_Call], list[str], list[str]]:
        """Return a call for each part of a goal, the parts without a tool, and those left out."""
        known: dict[str, list[ToolChoice]] = {}

        def choices(part: str) -> list[ToolChoice]:
            if part not in known:
                known[part] = self._choose(context, part)[1][:_OPTIONS]
            return known[part]

        parts = _parts(given.goal)
        looked_at = parts[: limits.PLAN_PARTS_PER_STEP * given.max_steps]
        omitted = [part for part, _ in parts[len(looked_at) :]]
        calls: list[_Call] = []
        unmatched: list[str] = []
        for part in _join_parts(looked_at, choices):
            options = choices(part)
            if not options:
                unmatched.append(part)
            elif len(calls) == given.max_steps:
                omitted.append(part)
            else:
                best, *others = options
                why, score = f"For {part!r}: {reasoning(best)}", best.match.score
                calls.append(_Call("", part, best.tool, why, score, others))
        return calls, unmatched, omitted


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


def _join_parts(
    parts: list[tuple[str, bool]], choices: Callable[[str], list[ToolChoice]]
) -> Iterator[str]:
    """Yield the parts; one without a tool of its own is joined to the part before it."""

    def tool_of(part: str) -> str | None:
        found = choices(part)
        sure = found and found[0].match.score >= weights.SCORE_WEAK
        return found[0].tool.name if sure else None

    current = ""
    for part, apart in parts:
        if not current:
            current = part
        elif apart or _are_two(tool_of(current), tool_of(part)):
            yield current
            current = part
        else:
            current = f"{current}, {part}"
    if current:
        yield current


def _are_two(one: str | None, two: str | None) -> bool:
    """Whether two pieces of a part are jobs of their own: each has a tool, and another one."""
    return one is not None and two is not None and one != two


def _complete(call: _Call, earlier: list[_Call], inputs: Mapping[str, Any]) -> None:
    """Give a call its id, the sources of its arguments, and what is not proven of them."""
    base = re.sub(r"[^A-Za-z0-9_-]", "_", call.tool.name)[:50]
    taken = {each.id for each in earlier}
    numbered = (f"{base}_{number}" for number in range(2, len(taken) + 3))
    call.id = next(each for each in (base, *numbered) if each not in taken)
    if call.score is not None and call.score < weights.SCORE_SURE:
        call.doubts.append(f"{call.id}: it is uncertain whether this tool does {call.part!r}.")
    _fill(call, earlier, inputs)
    for argument in call.open:
        key = argument["name"]
        shared = key in inputs or (any(each.uses(key) for each in earlier) and is_general(key))
        named = f"{call.id}_{key}" if shared else key
        call.sources[key] = _from_input(named, argument["schema"], argument["reason"])
    # In the order of the schema, whatever they come from.
    ordered = [name for name in parameters(call.tool) if name in call.sources]
    call.sources = {name: call.sources[name] for name in ordered}
    _check_given(call, inputs)


def _fill(call: _Call, earlier: list[_Call], inputs: Mapping[str, Any]) -> None:
    for name, (schema, required) in parameters(call.tool).items():
        key = _matching_input(name, earlier, inputs)
        # What a step made of an input takes the place of that input in later steps.
        used = [at for at, each in enumerate(earlier) if key is not None and each.uses(key)]
        since = 0 if key is None else used[0] if used else len(earlier)
        found = _step_output(call.tool, name, schema, earlier[since:]) if required else None
        if found is not None:
            step, output = found
            call.sources[name] = _from_step(step, output)
            if not is_proven(output, name, call.tool):
                told = f"the output schema of {step.tool.name} does not guarantee it"
                call.doubts.append(f"{call.id}.{name}: {told}.")
        elif key is not None:
            call.sources[name] = _from_input(key, schema, "You gave this value.")
        elif required:
            call.open.append(_open_argument(name, schema, earlier))


def _step_output(
    tool: Tool, name: str, schema: Any, earlier: list[_Call]
) -> tuple[_Call, OutputField] | None:
    """Return the output of an earlier step that an argument is, the latest first."""
    for step in reversed(earlier):
        for output in outputs(step.tool):
            if fits(output, name, schema, tool):
                return step, output
    return None


def _matching_input(name: str, earlier: list[_Call], inputs: Mapping[str, Any]) -> str | None:
    """Return the input that an argument takes."""
    same = [key for key in (name, *inputs) if key in inputs and same_name(key, name)]
    # Two tools that both take an `id` hardly ever mean the same one.
    if not same or (is_general(name) and any(call.uses(same[0]) for call in earlier)):
        return None
    return same[0]


def _open_argument(name: str, schema: Any, earlier: list[_Call]) -> OpenArgument:
    lists = (
        output.tool.name
        for call in earlier
        for output in outputs(call.tool)
        if name in _element_fields(output.schema)
    )
    giver = next(lists, None)
    return {
        "name": name,
        "schema": dict(schema) if isinstance(schema, Mapping) else {},
        "reason": f"{giver} returns several values; choose one."
        if giver
        else "No step provides it.",
    }


def _element_fields(schema: Any) -> Mapping[str, Any]:
    """Return the fields of the elements, where an output is a list of objects."""
    items = schema.get("items") if isinstance(schema, Mapping) else None
    found = items.get("properties") if isinstance(items, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _check_given(call: _Call, inputs: Mapping[str, Any]) -> None:
    """Hold the given values of a call against its schema as they are, without any correction.

    What an earlier step gives is not there to be looked at: `is_proven` speaks for it, and lets no
    schema pass that has rules between arguments.
    """
    given = {
        name: source["name"]
        for name, source in call.sources.items()
        if source["from"] == "input" and source["name"] in inputs
    }
    values = {name: inputs[key] for name, key in given.items()}
    schema = call.tool.content["inputSchema"]
    required = [name for name in schema.get("required", ()) if name in given]
    checked = Schema({**schema, "required": required})
    between: list[str] = []
    for error in checked.errors(values, limits.VIOLATIONS_MAX):
        if error.instance_path:
            call.invalid.setdefault(given[error.instance_path[0]], error.message[:_SHOWN_CHARS])
        else:
            between.append(error.message[:_SHOWN_CHARS])
    if not (call.invalid or between) and not checked.accepts(values):
        between.append("the given values are too large to check.")
    if not call.open:
        call.doubts += [f"{call.id}: {message}" for message in between[:1]]


def _definition(name: str | None, calls: list[_Call]) -> dict[str, Any] | None:
    steps = [{"id": each.id, "tool": each.tool.name, "arguments": each.arguments} for each in calls]
    definition = {"name": name or "plan", "steps": steps}
    if not steps:
        return None
    parse_pipeline(definition)
    return definition


def _plan_step(
    call: _Call, earlier: list[_Call], chains: list[Chain], inputs: Mapping[str, Any]
) -> PlanStep:
    pair = (earlier[-1].tool.name if earlier else None, call.tool.name)
    worked = next((each for each in chains if each.sequence == pair), None)
    return {
        "id": call.id,
        "part": call.part,
        "tool": call.tool.name,
        "description": call.tool.description,
        "score": None if call.score is None else round(call.score, 4),
        "reasoning": call.why,
        "arguments": call.arguments,
        "sources": call.sources,
        "open": call.open,
        "alternatives": [_option(each, earlier, inputs) for each in call.options],
        "evidence": None if worked is None else describe_chain(worked),
    }


def _option(choice: ToolChoice, earlier: list[_Call], inputs: Mapping[str, Any]) -> PlanOption:
    call = _Call("", "", choice.tool, "", choice.match.score)
    _fill(call, earlier, inputs)
    return {
        "tool": choice.tool.name,
        "description": choice.tool.description,
        "score": round(choice.match.score, 4),
        "open": [argument["name"] for argument in call.open],
    }


def _from_input(key: str, schema: Any, reason: str) -> InputSource:
    return {
        "from": "input",
        "name": key,
        "value": f"${{{{ input.{_quote(key)} }}}}",
        "schema": dict(schema) if isinstance(schema, Mapping) else {},
        "reason": reason,
    }


def _from_step(step: _Call, output: OutputField) -> StepSource:
    path = ".".join(map(_quote, output.path))
    return {
        "from": "step",
        "step": step.id,
        "path": ".".join(output.path),
        "value": f"${{{{ steps.{_quote(step.id)}.result.{path} }}}}",
        "reason": f"{step.tool.name} gives {output.path[-1]}.",
    }


def _quote(name: str) -> str:
    """Return a name as JMESPath takes it, in a text that ends with two braces."""
    if _PLAIN.fullmatch(name):
        return name
    return orjson.dumps(name).decode().replace("}", "\\u007d").replace("{", "\\u007b")
