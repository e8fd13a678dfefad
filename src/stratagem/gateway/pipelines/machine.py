"""The state machine of a pipeline run: from the events so far to the next calls.

It is pure. A run is defined by its pipeline, its input and the events of its steps. `resume`
rebuilds from them the state in which a process crashed: calls that had not ended are made again,
calls that had ended are not. Only calls produce events; conditions, `forEach` lists and arguments
are computed again from the earlier results.

A step has one item for each element of its `forEach`, otherwise a single one. An item waits, runs,
and is settled: finished, recovered (by its fallback) or failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Literal, TypeAlias

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import StratagemError, ValidationFailed, blame_of
from stratagem.gateway.pipelines import templates
from stratagem.gateway.pipelines.answers import StepFailure
from stratagem.gateway.pipelines.definition import Fallback, Pipeline, Step
from stratagem.gateway.pipelines.expressions import is_truthy

__all__ = [
    "ItemState",
    "RequiredArguments",
    "State",
    "StepCall",
    "StepEvent",
    "StepResult",
    "apply",
    "failure_of",
    "next_calls",
    "resume",
    "start",
]

ItemStatus: TypeAlias = Literal["waiting", "running", "finished", "recovered", "failed"]
StepStatus: TypeAlias = Literal["finished", "recovered", "partial", "failed", "skipped"]
# Returns the required arguments of a tool, by the tool's name.
RequiredArguments: TypeAlias = Callable[[str], Sequence[str]]

_SETTLED: Final = frozenset({"finished", "recovered", "failed"})
# Errors that a retry cannot cure: the arguments or the caller are at fault.
_FINAL: Final = frozenset({"arguments", "caller"})


@dataclass(frozen=True, slots=True)
class StepEvent:
    """What happened to one call of a step; stored as plain JSON."""

    kind: Literal["started", "finished", "failed"]
    step: str
    index: int | None = None
    attempt: int = 1
    fallback: bool = False
    result: Any = None
    error: StepFailure | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the event as it is stored."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> StepEvent:
        """Return the event that was stored as `content`."""
        return cls(**content)


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call to make, after `delay` seconds.

    `repeated`: the same attempt began before a crash, and whether it took effect is unknown.
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
        """Return an event of this call."""
        return StepEvent(
            kind, self.step, self.index, self.attempt, self.fallback, result, error, seconds
        )


@dataclass(frozen=True, slots=True)
class ItemState:
    """The progress of one item of a step. `attempt` is the one that runs or comes next."""

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
class StepResult:
    """How a step ended; `result` of a step with `forEach` is the list of its items' results."""

    step: Step
    status: StepStatus
    result: Any = None
    error: StepFailure | None = None
    items: tuple[ItemState, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The state of a run. `elements` are those of the current step's `forEach`."""

    pipeline: Pipeline
    input: Any
    required: RequiredArguments
    step_results: tuple[StepResult, ...] = ()
    items: tuple[ItemState, ...] | None = None
    elements: tuple[Any, ...] | None = None
    stopped: bool = False

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self.stopped or len(self.step_results) == len(self.pipeline.steps)

    @property
    def step(self) -> Step:
        """The current step."""
        return self.pipeline.steps[len(self.step_results)]

    @property
    def previous(self) -> Any:
        """The last result of a step that was neither skipped nor failed, or else the input."""
        for step_result in reversed(self.step_results):
            if step_result.status not in {"skipped", "failed"}:
                return step_result.result
        return self.input

    def scope(self, index: int | None = None) -> dict[str, Any]:
        """Return the values that an expression of the current step can refer to."""
        scope = {"input": self.input, "previous": self.previous} | {
            "steps": {
                each.step.id: {"result": each.result, "status": each.status, "error": each.error}
                for each in self.step_results
            }
        }
        if index is not None and self.elements is not None:
            scope |= {"item": self.elements[index], "index": index}
        return scope


def start(pipeline: Pipeline, input_: Any, required: RequiredArguments | None = None) -> State:
    """Return the state of a run before its first call."""
    return _advance(State(pipeline, input_, required or (lambda _tool: ())))


def resume(
    pipeline: Pipeline,
    input_: Any,
    events: Iterable[StepEvent],
    required: RequiredArguments | None = None,
) -> State:
    """Return the state after the events; calls that had not ended will be made again."""
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


def next_calls(state: State) -> list[StepCall]:
    """Return the calls to make now, within the concurrency of the current step."""
    if state.ended or state.items is None:
        return []
    step = state.step
    room = step.concurrency - sum(item.status == "running" for item in state.items)
    waiting = [index for index, item in enumerate(state.items) if item.status == "waiting"]
    return [_next_call(state, step, index) for index in waiting[: max(room, 0)]]


def apply(state: State, event: StepEvent) -> State:
    """Return the state after an event; events after the end of a run are ignored.

    Raises:
        ValidationFailed: The event does not belong to this run.
    """
    if state.ended:
        return state
    position = event.index or 0
    if event.step != state.step.id or not state.items or position >= len(state.items):
        raise ValidationFailed(
            f"An event of {event.step!r} does not belong here: {state.step.id!r} is running.",
            field="events",
            hint="The events belong to another pipeline, or it was changed; start it again.",
        )
    item = _apply_to_item(state, position, event)
    items = (*state.items[:position], item, *state.items[position + 1 :])
    return _advance(replace(state, items=items))


def failure_of(error: StratagemError) -> StepFailure:
    """Return an error as it is stored with a step."""
    stored: StepFailure = {"code": error.code, "message": error.message}
    if "field" in error.details:
        stored["field"] = error.details["field"]
    return stored


def _next_call(state: State, step: Step, position: int) -> StepCall:
    assert state.items is not None
    item = state.items[position]
    tool = step.tool
    if item.fallback and isinstance(step.on_error, Fallback) and step.on_error.tool:
        tool = step.on_error.tool
    # Exponential backoff; an interrupted attempt has waited already.
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


def _apply_to_item(state: State, position: int, event: StepEvent) -> ItemState:
    """Return an item after an event of one of its calls."""
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
    return _fail_item(state, position, item, event.error)


def _fail_item(state: State, position: int, item: ItemState, error: StepFailure) -> ItemState:
    """Return an item after a failure: to be retried, replaced by its fallback, or failed."""
    step = state.step
    item = replace(item, error=error)
    blame = blame_of(error["code"])
    again = item.attempt < step.attempts and blame not in _FINAL
    if again and not item.fallback:
        return replace(item, status="waiting", attempt=item.attempt + 1)
    if item.fallback or not isinstance(step.on_error, Fallback):
        return replace(item, status="failed")
    scope = state.scope(position) | {"error": error}
    field = f"steps[{len(state.step_results)}].onError"
    try:
        if step.on_error.tool is None:
            value = templates.resolve(step.on_error.value, scope, field=field)
            return replace(item, status="recovered", result=value)
        template = step.on_error.arguments or {}
        arguments = _fill_arguments(state, step.on_error.tool, template, scope, field)
    except ValidationFailed as fault:
        return replace(item, status="failed", error=failure_of(fault))
    return replace(item, status="waiting", fallback=True, attempt=1, arguments=arguments)


def _advance(state: State) -> State:
    """Finish steps and enter the next ones until a call is needed or the run is over."""
    while not state.ended:
        if state.items is None:
            state = _enter_step(state)
            continue
        step = state.step
        broken = any(item.status == "failed" for item in state.items)
        stops = broken and step.on_error != "continue"
        if not stops and any(item.status not in _SETTLED for item in state.items):
            return state
        step_result = _summarize_items(step, state.items, several=state.elements is not None)
        if stops:
            step_result = replace(step_result, status="failed", result=None)
        state = _finish_step(state, step_result, stopped=stops)
    return state


def _finish_step(state: State, step_result: StepResult, *, stopped: bool = False) -> State:
    step_results = (*state.step_results, step_result)
    return replace(state, step_results=step_results, items=None, elements=None, stopped=stopped)


def _enter_step(state: State) -> State:
    """Return the state with the current step started, or skipped by its condition."""
    step = state.step
    field = f"steps[{len(state.step_results)}]"
    try:
        if step.when is not None and not is_truthy(step.when.search(state.scope())):
            return _finish_step(state, StepResult(step, "skipped"))
        if step.for_each is None:
            return replace(state, items=(_start_item(state, None),))
        elements = templates.resolve(step.for_each, state.scope(), field=f"{field}.forEach")
        state = replace(state, elements=tuple(_check_elements(elements, f"{field}.forEach")))
    except ValidationFailed as fault:
        item = ItemState({}, attempt=step.attempts)
        return replace(state, items=(_fail_item(state, 0, item, failure_of(fault)),))
    items = tuple(_start_item(state, index) for index in range(len(state.elements or ())))
    return replace(state, items=items)


def _check_elements(elements: Any, field: str) -> list[Any]:
    if not isinstance(elements, list):
        kind = "nothing" if elements is None else type(elements).__name__
        raise ValidationFailed(f"`{field}` needs a list, but got {kind}.", field=field)
    if len(elements) > limits.PIPELINE_ITEMS_MAX:
        raise ValidationFailed(
            f"`{field}` has {len(elements):,} elements; {limits.PIPELINE_ITEMS_MAX:,} are allowed.",
            field=field,
            limit=limits.PIPELINE_ITEMS_MAX,
        )
    return elements


def _start_item(state: State, index: int | None) -> ItemState:
    step = state.step
    field = f"steps[{len(state.step_results)}].arguments"
    try:
        return ItemState(
            _fill_arguments(state, step.tool, step.arguments, state.scope(index), field)
        )
    except ValidationFailed as fault:
        return _fail_item(
            state, index or 0, ItemState({}, attempt=step.attempts), failure_of(fault)
        )


def _fill_arguments(
    state: State, tool: str, template: Mapping[str, Any], scope: Mapping[str, Any], field: str
) -> dict[str, Any]:
    """Return a call's arguments; required ones that are left out come from the last result."""
    arguments: dict[str, Any] = templates.resolve(dict(template), scope, field=field)
    sources = [scope[name] for name in ("item", "previous") if isinstance(scope.get(name), Mapping)]
    for name in state.required(tool):
        found = [source[name] for source in sources if name in source]
        if name not in arguments and found:
            arguments[name] = found[0]
    return arguments


def _summarize_items(step: Step, items: tuple[ItemState, ...], *, several: bool) -> StepResult:
    failed = [item for item in items if item.status == "failed"]
    status: StepStatus = "finished"
    if failed:
        status = "failed" if len(failed) == len(items) else "partial"
    elif any(item.status == "recovered" for item in items):
        status = "recovered"
    results = [item.result for item in items]
    troubled = failed or [item for item in items if item.status == "recovered"]
    return StepResult(
        step=step,
        status=status,
        result=results if several else results[0],
        error=troubled[0].error if troubled else None,
        items=items,
    )
