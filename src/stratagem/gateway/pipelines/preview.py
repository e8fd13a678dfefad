"""The dry run of a pipeline: its steps, with everything that is known before they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stratagem.errors import ValidationFailed
from stratagem.gateway.pipelines import templates
from stratagem.gateway.pipelines.answers import PipelinePreview, StepPreview
from stratagem.gateway.pipelines.definition import Fallback, Pipeline, Step, parse_pipeline
from stratagem.gateway.pipelines.expressions import Expression, is_truthy

__all__ = ["dry_run"]


def dry_run(
    definition: Pipeline | Mapping[str, Any],
    input_: Any,
    schema_of: Callable[[str], Mapping[str, Any] | None],
) -> PipelinePreview:
    """Return the steps of a pipeline with the arguments that are known before it runs.

    `schema_of` returns the input schema of a tool by its name, or None if there is no such tool.
    References to results stay unresolved.

    Raises:
        ValidationFailed: The definition is wrong.
    """
    pipeline = definition if isinstance(definition, Pipeline) else parse_pipeline(definition)
    steps = [
        _preview_step(step, index, input_, schema_of) for index, step in enumerate(pipeline.steps)
    ]
    return {
        "name": pipeline.name,
        "valid": all(step["toolExists"] and not step["problems"] for step in steps),
        "steps": steps,
    }


def _preview_step(
    step: Step,
    index: int,
    input_: Any,
    schema_of: Callable[[str], Mapping[str, Any] | None],
) -> StepPreview:
    known = _KnownScope(input_, first=index == 0)
    schema = schema_of(step.tool)
    problems: list[str] = [] if schema is not None else [f"There is no tool {step.tool!r}."]
    arguments = known.resolve(dict(step.arguments), f"steps[{index}].arguments", problems)
    required = list((schema or {}).get("required", ()))
    missing = [name for name in required if name not in step.arguments]
    if index == 0 and step.for_each is None:
        given = input_ if isinstance(input_, Mapping) else {}
        arguments |= {name: given[name] for name in missing if name in given}
        problems += [f"`{name}` is missing." for name in missing if name not in given]
        missing = []
    fallback = step.on_error.tool if isinstance(step.on_error, Fallback) else None
    if fallback is not None and schema_of(fallback) is None:
        problems.append(f"There is no tool {fallback!r}.")
    return {
        "id": step.id,
        "tool": step.tool,
        "toolExists": schema is not None,
        "arguments": arguments,
        "fromPreviousResult": missing,
        "runs": _evaluate_condition(step, known, problems),
        "items": _count_items(step, index, known, problems),
        "problems": problems,
    }


def _evaluate_condition(step: Step, known: _KnownScope, problems: list[str]) -> bool | None:
    """Tell whether a step's condition holds; None if it depends on a result."""
    if step.when is None:
        return True
    if not known.covers(step.when):
        return None
    try:
        return is_truthy(step.when.search(known.scope))
    except ValidationFailed as fault:
        problems.append(fault.message)
        return None


def _count_items(step: Step, index: int, known: _KnownScope, problems: list[str]) -> int | None:
    if step.for_each is None:
        return 1
    field = f"steps[{index}].forEach"
    if not all(map(known.covers, templates.references(step.for_each, field=field))):
        return None
    elements = known.resolve(step.for_each, field, problems)
    if not isinstance(elements, list):
        problems.append(f"`{field}` needs a list.")
        return None
    return len(elements)


class _KnownScope:
    """The values that references can use before any step has run."""

    def __init__(self, input_: Any, *, first: bool) -> None:
        self.scope = {"input": input_} | ({"previous": input_} if first else {})

    def covers(self, expression: Expression) -> bool:
        return all(root and root[0] in self.scope for root in expression.roots)

    def resolve(self, template: Any, field: str, problems: list[str]) -> Any:
        """Return a template with those references resolved whose values are known."""
        if isinstance(template, Mapping) and not {"$ref", "$literal"} & template.keys():
            return {
                name: self.resolve(value, f"{field}.{name}", problems)
                for name, value in template.items()
            }
        if isinstance(template, list):
            return [
                self.resolve(value, f"{field}[{index}]", problems)
                for index, value in enumerate(template)
            ]
        if not all(map(self.covers, templates.references(template, field=field))):
            return template
        try:
            return templates.resolve(template, self.scope, field=field)
        except ValidationFailed as fault:
            problems.append(fault.message)
            return template
