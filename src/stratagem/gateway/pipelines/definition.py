"""The definition of a pipeline, parsed and checked before it runs.

Steps run in the order of the definition, and a reference can only name an earlier step, so there
can be no cycles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import values
from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.argument_models import Given, read
from stratagem.gateway.pipelines import templates
from stratagem.gateway.pipelines.expressions import Expression, compile_expression

__all__ = ["Fallback", "Pipeline", "Step", "parse_pipeline"]

_ID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SCOPE: Final = ("input", "steps", "previous")
_IN_ITEM: Final = (*_SCOPE, "item", "index")
_IN_FALLBACK: Final = (*_SCOPE, "error")
_MILLISECONDS: Final = 1000

_ToolName = Annotated[str, Field(min_length=1, max_length=limits.KEY_CHARS_MAX)]
_Text = Annotated[str, Field(min_length=1, max_length=limits.EXPRESSION_CHARS_MAX)]


class _RetryGiven(Given):
    attempts: int = Field(ge=1, le=limits.PIPELINE_ATTEMPTS_MAX)
    backoff: float = Field(
        limits.PIPELINE_BACKOFF_SECONDS_DEFAULT * _MILLISECONDS,
        ge=0,
        le=limits.PIPELINE_BACKOFF_SECONDS_MAX * _MILLISECONDS,
    )


class _FallbackGiven(Given):
    fallback: Any = None
    tool: _ToolName | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)


class _StepGiven(Given):
    id: str | None = Field(None, min_length=1, max_length=64)
    tool: _ToolName
    arguments: dict[str, Any] = Field(default_factory=dict)
    when: _Text | None = None
    for_each: Any = None
    concurrency: int = Field(
        limits.PIPELINE_PARALLEL_DEFAULT, ge=1, le=limits.PIPELINE_PARALLEL_MAX
    )
    retry: _RetryGiven | None = None
    on_error: Literal["stop", "continue"] | _FallbackGiven = "stop"
    timeout: float | None = Field(None, gt=0, le=limits.PIPELINE_STEP_SECONDS_MAX * _MILLISECONDS)


class _PipelineGiven(Given):
    name: str = Field("pipeline", min_length=1, max_length=limits.KEY_CHARS_MAX)
    description: str = Field("", max_length=limits.NOTES_CHARS_MAX)
    steps: list[_StepGiven] = Field(min_length=1, max_length=limits.PIPELINE_STEPS_MAX)
    output: Any = None


@dataclass(frozen=True, slots=True)
class Fallback:
    """What takes the place of a failed step: a value, or another tool's result."""

    value: Any = None
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `attempts` counts the first one; times are in seconds."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    when: Expression | None
    for_each: Any
    concurrency: int
    attempts: int
    backoff: float
    on_error: Literal["stop", "continue"] | Fallback
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A checked definition."""

    name: str
    description: str
    steps: tuple[Step, ...]
    output: Any
    definition: Mapping[str, Any]

    def __getitem__(self, step_id: str) -> Step:
        return next(step for step in self.steps if step.id == step_id)


def parse_pipeline(definition: Mapping[str, Any]) -> Pipeline:
    """Parse and check a definition.

    Raises:
        MissingRequired: A step has no tool, or there are no steps.
        ValidationFailed: A field is unknown or too large, an id is used twice, or a reference
            names no earlier step; `field` says where.
    """
    values.encode(definition, field="pipeline", bytes_max=limits.PIPELINE_BYTES_MAX)
    given = read(_PipelineGiven, definition)
    ids = _assign_ids(given.steps)
    steps: list[Step] = []
    for index, (step_id, step) in enumerate(zip(ids, given.steps, strict=True)):
        steps.append(_parse_step(step, step_id, ids[:index], f"steps[{index}]"))
    _check_references(templates.references(given.output, field="output"), _SCOPE, ids)
    return Pipeline(given.name, given.description, tuple(steps), given.output, dict(definition))


def _assign_ids(steps: Sequence[_StepGiven]) -> list[str]:
    """Return the ids of the steps; a step without one gets an id from its tool's name."""
    named = [step.id for step in steps if step.id is not None]
    taken: set[str] = set()
    ids: list[str] = []
    for index, step in enumerate(steps):
        field = f"steps[{index}].id"
        if step.id is None:
            chosen = _free_id(re.sub(r"[^A-Za-z0-9_-]", "_", step.tool)[:60], {*taken, *named})
        elif not _ID.fullmatch(step.id):
            raise ValidationFailed(
                f"`{field}`: {step.id!r} is not a valid name; use letters, digits, _ and -.",
                field=field,
            )
        elif step.id in taken:
            raise ValidationFailed(
                f"`{field}`: there are two steps called {step.id!r}.", field=field
            )
        else:
            chosen = step.id
        taken.add(chosen)
        ids.append(chosen)
    return ids


def _free_id(name: str, taken: set[str]) -> str:
    base = name if _ID.fullmatch(name) else f"_{name}"
    candidates = (base if count == 1 else f"{base}_{count}" for count in range(1, len(taken) + 3))
    return next(candidate for candidate in candidates if candidate not in taken)


def _parse_step(given: _StepGiven, step_id: str, earlier: Sequence[str], field: str) -> Step:
    for_each = given.for_each
    if isinstance(for_each, str) and "${{" not in for_each:
        # A list is required, so a text without braces can only be an expression.
        for_each = {"$ref": for_each}
    when = (
        None
        if given.when is None
        else compile_expression(_strip_braces(given.when), field=f"{field}.when")
    )
    _check_references([when] if when else [], _SCOPE, earlier)
    _check_references(templates.references(for_each, field=f"{field}.forEach"), _SCOPE, earlier)
    scope = _SCOPE if for_each is None else _IN_ITEM
    _check_references(
        templates.references(dict(given.arguments), field=f"{field}.arguments"), scope, earlier
    )
    retry = given.retry
    return Step(
        id=step_id,
        tool=given.tool,
        arguments=given.arguments,
        when=when,
        for_each=for_each,
        concurrency=given.concurrency,
        attempts=retry.attempts if retry else 1,
        backoff=(retry.backoff if retry else 0) / _MILLISECONDS,
        on_error=_parse_on_error(given.on_error, scope, earlier, f"{field}.onError"),
        timeout=None if given.timeout is None else given.timeout / _MILLISECONDS,
    )


def _parse_on_error(
    given: Literal["stop", "continue"] | _FallbackGiven,
    scope: Sequence[str],
    earlier: Sequence[str],
    field: str,
) -> Literal["stop", "continue"] | Fallback:
    if not isinstance(given, _FallbackGiven):
        return given
    has_value = "fallback" in given.model_fields_set
    if has_value == (given.tool is not None):
        raise ValidationFailed(
            f"`{field}` must have either a `fallback` value or a `tool` with its arguments.",
            field=field,
        )
    names = tuple({*scope, *_IN_FALLBACK})
    _check_references(
        templates.references(given.fallback, field=f"{field}.fallback"), names, earlier
    )
    arguments = dict(given.arguments)
    _check_references(templates.references(arguments, field=f"{field}.arguments"), names, earlier)
    return Fallback(given.fallback, given.tool, arguments)


def _strip_braces(text: str) -> str:
    """Return the expression of a condition without the `${{ }}` around it, if any."""
    stripped = text.strip()
    inner = stripped.startswith("${{") and stripped.endswith("}}")
    return stripped[3:-2] if inner else stripped


def _check_references(expressions: Any, names: Sequence[str], earlier: Sequence[str]) -> None:
    for expression in expressions:
        for root in expression.roots:
            _check_root(expression, root, names, earlier)


def _check_root(
    expression: Expression, root: tuple[str, ...], names: Sequence[str], earlier: Sequence[str]
) -> None:
    field = expression.field
    if root and root[0] not in names:
        raise ValidationFailed(
            f"`{field}`: there is no {root[0]!r} to refer to in {expression.text!r}.",
            field=field,
            hint=f"References begin with {', '.join(sorted(names))}.",
        )
    if len(root) > 1 and root[0] == "steps" and root[1] not in earlier:
        known = f"Earlier steps: {', '.join(earlier)}." if earlier else "It is the first step."
        raise ValidationFailed(
            f"`{field}` refers to {root[1]!r}, and no earlier step has that id.",
            field=field,
            hint=known,
        )
    parts = ("result", "status", "error")
    if len(root) > 2 and root[0] == "steps" and root[2] not in parts:  # noqa: PLR2004 -- third
        raise ValidationFailed(
            f"`{field}`: a step has {', '.join(parts)}, and no {root[2]!r}.",
            field=field,
            hint=f"Write steps.{root[1]}.result.{root[2]}.",
        )
