"""The step machine: from what has happened in a run to what is to be done next.

It is pure. A run is its pipeline, its input and the events of its steps, and `resumed` makes
from them the state that a crashed process was in; whatever had not ended by then is begun anew,
whatever had ended is never called again. Nothing but calls leaves events: conditions, lists to go
through and arguments follow from the results before them, so they are worked out again.

A step is made of items: one for each element of its `forEach`, else a single one. An item waits,
runs, and is settled: finished, recovered (a fallback took its place) or failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, TypeAlias

from stratagem import limits
from stratagem.errors import StratagemError, ValidationFailed, blame_of
from stratagem.gateway.pipelines import templates
from stratagem.gateway.pipelines.answers import StepFailure
from stratagem.gateway.pipelines.definition import Fallback, Pipeline, Step
from stratagem.gateway.pipelines.expressions import truthy

__all__ = [
    "Item",
    "Outcome",
    "Required",
    "State",
    "StepCall",
    "StepEvent",
    "apply",
    "failure",
    "next_steps",
    "resumed",
    "start",
]

ItemStatus: TypeAlias = Literal["waiting", "running", "finished", "recovered", "failed"]
StepStatus: TypeAlias = Literal["finished", "recovered", "partial", "failed", "skipped"]
# Which arguments a tool cannot do without, by the tool's name.
Required: TypeAlias = Callable[[str], Sequence[str]]

_SETTLED: Final = frozenset({"finished", "recovered", "failed"})
# What is wrong now will be wrong at the next attempt too.
_FINAL: Final = frozenset({"arguments", "caller"})


@dataclass(frozen=True, slots=True)
class StepEvent:
    """What happened to one call of a step: plain JSON when it is kept."""

    kind: Literal["started", "finished", "failed"]
    step: str
    index: int | None = None
    attempt: int = 1
    fallback: bool = False
    result: Any = None
    error: StepFailure | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the event as it is kept."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> StepEvent:
        """Read an event that was kept."""
        return cls(**content)


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call to be made now, after `delay` seconds.

    `repeated`: the same attempt was begun before a crash, and nobody knows how far it came.
    """

    step: str
    tool: str
    arguments: Mapping[str, Any]
    index: int | None
    attempt: int
    fallback: bool
    delay: float
    timeout: float | None
    repeated: bool

    @property
    def key(self) -> str:
        """The name of the call within its run, the same for each attempt."""
        place = self.step if self.index is None else f"{self.step}[{self.index}]"
        return f"{place}!" if self.fallback else place

    def event(
        self,
        kind: Literal["started", "finished", "failed"],
        *,
        result: Any = None,
        error: StepFailure | None = None,
        seconds: float = 0.0,
    ) -> StepEvent:
        """Return what happened to this call."""
        return StepEvent(
            kind, self.step, self.index, self.attempt, self.fallback, result, error, seconds
        )


@dataclass(frozen=True, slots=True)
class Item:
    """How far one element of a step has come. `attempt` is the one that runs or comes next."""

    arguments: Mapping[str, Any]
    status: ItemStatus = "waiting"
    attempt: int = 1
    calls: int = 0
    fallback: bool = False
    interrupted: bool = False
    result: Any = None
    error: StepFailure | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended; `result` of a step with `forEach` is the list of its items' results."""

    step: Step
    status: StepStatus
    result: Any = None
    error: StepFailure | None = None
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """A run at one moment. `elements` are what the present step's `forEach` goes through."""

    pipeline: Pipeline
    input: Any
    required: Required
    outcomes: tuple[Outcome, ...] = ()
    items: tuple[Item, ...] | None = None
    elements: tuple[Any, ...] | None = None
    stopped: bool = False

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to do."""
        return self.stopped or len(self.outcomes) == len(self.pipeline.steps)

    @property
    def step(self) -> Step:
        """The step that is under way."""
        return self.pipeline.steps[len(self.outcomes)]

    @property
    def previous(self) -> Any:
        """The last result there is; the pipeline's input before the first one."""
        for outcome in reversed(self.outcomes):
            if outcome.status not in {"skipped", "failed"}:
                return outcome.result
        return self.input

    def scope(self, index: int | None = None) -> dict[str, Any]:
        """Return what an expression of the present step can refer to."""
        scope = {"input": self.input, "previous": self.previous} | {
            "steps": {
                each.step.id: {"result": each.result, "status": each.status, "error": each.error}
                for each in self.outcomes
            }
        }
        if index is not None and self.elements is not None:
            scope |= {"item": self.elements[index], "index": index}
        return scope


def start(pipeline: Pipeline, input_: Any, required: Required | None = None) -> State:
    """Return the state of a run before its first call."""
    return _settled(State(pipeline, input_, required or (lambda _tool: ())))


def resumed(
    pipeline: Pipeline,
    input_: Any,
    events: Iterable[StepEvent],
    required: Required | None = None,
) -> State:
    """Return the state that the events lead to, with what was under way to be begun anew."""
    state = start(pipeline, input_, required)
    for event in events:
        state = apply(state, event)
    if state.ended or state.items is None:
        return state
    items = (
        replace(item, status="waiting", interrupted=True) if item.status == "running" else item
        for item in state.items
    )
    return replace(state, items=tuple(items))


def next_steps(state: State) -> list[StepCall]:
    """Return the calls that can be made now, as many as may run at once."""
    if state.ended or state.items is None:
        return []
    step = state.step
    room = step.concurrency - sum(item.status == "running" for item in state.items)
    waiting = [index for index, item in enumerate(state.items) if item.status == "waiting"]
    return [_call(state, step, index) for index in waiting[: max(room, 0)]]


def apply(state: State, event: StepEvent) -> State:
    """Return the state after an event; what ends after a run was stopped changes nothing.

    Raises:
        ValidationFailed: The event does not belong to this run.
    """
    if state.ended:
        return state
    position = event.index or 0
    if event.step != state.step.id or not state.items or position >= len(state.items):
        raise ValidationFailed(
            f"An event of {event.step!r} does not belong here: {state.step.id!r} is under way.",
            field="events",
            hint="The events belong to another pipeline, or it was changed; start it anew.",
        )
    item = _after(state, position, event)
    items = (*state.items[:position], item, *state.items[position + 1 :])
    return _settled(replace(state, items=items))


def failure(error: StratagemError) -> StepFailure:
    """Return an error as it is kept with a step."""
    kept: StepFailure = {"code": error.code, "message": error.message}
    if "field" in error.details:
        kept["field"] = error.details["field"]
    return kept


def _call(state: State, step: Step, position: int) -> StepCall:
    assert state.items is not None
    item = state.items[position]
    tool = step.tool
    if item.fallback and isinstance(step.on_error, Fallback) and step.on_error.tool:
        tool = step.on_error.tool
    # Doubling, as everybody does; an interrupted attempt has waited already.
    waits = item.attempt > 1 and not item.fallback and not item.interrupted
    delay = step.backoff * 2 ** (item.attempt - 2) if waits else 0.0
    return StepCall(
        step=step.id,
        tool=tool,
        arguments=item.arguments,
        index=None if state.elements is None else position,
        attempt=item.attempt,
        fallback=item.fallback,
        delay=min(delay, limits.PIPELINE_BACKOFF_SECONDS_MAX),
        timeout=step.timeout,
        repeated=item.interrupted,
    )


def _after(state: State, position: int, event: StepEvent) -> Item:
    """Return an item after something happened to it."""
    assert state.items is not None
    item = state.items[position]
    if item.status in _SETTLED:
        return item
    if event.kind == "started":
        return replace(item, status="running", calls=item.calls + 1, interrupted=False)
    item = replace(item, seconds=item.seconds + event.seconds)
    if event.kind == "finished":
        status: ItemStatus = "recovered" if item.fallback else "finished"
        return replace(item, status=status, result=event.result, error=item.error)
    assert event.error is not None, "an event of a failure says what failed"
    return _failed(state, position, item, event.error)


def _failed(state: State, position: int, item: Item, error: StepFailure) -> Item:
    """Return an item after a failure: to be tried again, to be replaced, or failed for good."""
    step = state.step
    item = replace(item, error=error)
    blame = blame_of(error["code"])
    again = item.attempt < step.attempts and blame not in _FINAL
    if again and not item.fallback:
        return replace(item, status="waiting", attempt=item.attempt + 1)
    if item.fallback or not isinstance(step.on_error, Fallback):
        return replace(item, status="failed")
    scope = state.scope(position) | {"error": error}
    field = f"steps[{len(state.outcomes)}].onError"
    try:
        if step.on_error.tool is None:
            value = templates.resolve(step.on_error.value, scope, field=field)
            return replace(item, status="recovered", result=value)
        template = step.on_error.arguments or {}
        arguments = _filled(state, step.on_error.tool, template, scope, field)
    except ValidationFailed as fault:
        return replace(item, status="failed", error=failure(fault))
    return replace(item, status="waiting", fallback=True, attempt=1, arguments=arguments)


def _settled(state: State) -> State:
    """Return the state with every step ended that needs no call any more."""
    while not state.ended:
        if state.items is None:
            state = _entered(state)
            continue
        step = state.step
        broken = any(item.status == "failed" for item in state.items)
        stops = broken and step.on_error != "continue"
        if not stops and any(item.status not in _SETTLED for item in state.items):
            return state
        outcome = _outcome(step, state.items, several=state.elements is not None)
        if stops:
            outcome = replace(outcome, status="failed", result=None)
        state = _left(state, outcome, stopped=stops)
    return state


def _left(state: State, outcome: Outcome, *, stopped: bool = False) -> State:
    outcomes = (*state.outcomes, outcome)
    return replace(state, outcomes=outcomes, items=None, elements=None, stopped=stopped)


def _entered(state: State) -> State:
    """Return the state with the next step begun or skipped."""
    step = state.step
    field = f"steps[{len(state.outcomes)}]"
    try:
        if step.when is not None and not truthy(step.when.search(state.scope())):
            return _left(state, Outcome(step, "skipped"))
        if step.for_each is None:
            return replace(state, items=(_item(state, None),))
        elements = templates.resolve(step.for_each, state.scope(), field=f"{field}.forEach")
        state = replace(state, elements=tuple(_checked(elements, f"{field}.forEach")))
    except ValidationFailed as fault:
        item = Item({}, attempt=step.attempts)
        return replace(state, items=(_failed(state, 0, item, failure(fault)),))
    items = tuple(_item(state, index) for index in range(len(state.elements or ())))
    return replace(state, items=items)


def _checked(elements: Any, field: str) -> list[Any]:
    if not isinstance(elements, list):
        kind = "nothing" if elements is None else type(elements).__name__
        raise ValidationFailed(f"`{field}` goes through a list, and got {kind}.", field=field)
    if len(elements) > limits.PIPELINE_ITEMS_MAX:
        raise ValidationFailed(
            f"`{field}` has {len(elements):,} elements; {limits.PIPELINE_ITEMS_MAX:,} are allowed.",
            field=field,
            limit=limits.PIPELINE_ITEMS_MAX,
        )
    return elements


def _item(state: State, index: int | None) -> Item:
    step = state.step
    field = f"steps[{len(state.outcomes)}].arguments"
    try:
        return Item(_filled(state, step.tool, step.arguments, state.scope(index), field))
    except ValidationFailed as fault:
        return _failed(state, index or 0, Item({}, attempt=step.attempts), failure(fault))


def _filled(
    state: State, tool: str, template: Mapping[str, Any], scope: Mapping[str, Any], field: str
) -> dict[str, Any]:
    """Return a call's arguments; what is required and left out is taken from the last result."""
    arguments: dict[str, Any] = templates.resolve(dict(template), scope, field=field)
    sources = [scope[name] for name in ("item", "previous") if isinstance(scope.get(name), Mapping)]
    for name in state.required(tool):
        found = [source[name] for source in sources if name in source]
        if name not in arguments and found:
            arguments[name] = found[0]
    return arguments


def _outcome(step: Step, items: tuple[Item, ...], *, several: bool) -> Outcome:
    failed = [item for item in items if item.status == "failed"]
    status: StepStatus = "finished"
    if failed:
        status = "failed" if len(failed) == len(items) else "partial"
    elif any(item.status == "recovered" for item in items):
        status = "recovered"
    results = [item.result for item in items]
    troubled = failed or [item for item in items if item.status == "recovered"]
    return Outcome(
        step=step,
        status=status,
        result=results if several else results[0],
        error=troubled[0].error if troubled else None,
        items=items,
    )
