"""Templates: arguments that contain references to earlier results.

A reference is `{"$ref": "EXPRESSION"}`, or `${{ EXPRESSION }}` in a text. A text that is a single
reference becomes the value itself, with its type; in a longer text the value is inserted as text.
`$${{` stands for `${{`, and `{"$literal": VALUE}` for a value that is not resolved. The value of a
reference is not resolved again, so a result cannot inject a reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from stratagem.errors import ValidationFailed
from stratagem.gateway.pipelines.expressions import EvaluationBudget, Expression, compile_expression

__all__ = ["references", "resolve"]

# An unterminated reference extends to the end of the text, so no other is searched in it.
_REFERENCE: Final = re.compile(
    r"(?P<escaped>\$\$\{\{)|\$\{\{(?P<inner>.*?)(?P<end>\}\}|\Z)", re.DOTALL
)
_REF: Final = "$ref"
_LITERAL: Final = "$literal"


def references(template: Any, *, field: str) -> Iterator[Expression]:
    """Yield every expression in a template, compiled.

    Raises:
        ValidationFailed: One is malformed; `field` says where.
    """
    if isinstance(template, str):
        for found in _REFERENCE.finditer(template):
            if found["end"]:
                yield compile_expression(found["inner"], field=field)
    elif isinstance(template, Mapping):
        if _LITERAL in template:
            _check_single_key(template, _LITERAL, field)
        elif _REF in template:
            yield compile_expression(_reference_text(template, field), field=field)
        else:
            for name, value in template.items():
                yield from references(value, field=f"{field}.{name}")
    elif isinstance(template, list):
        for index, value in enumerate(template):
            yield from references(value, field=f"{field}[{index}]")


def resolve(
    template: Any, scope: Mapping[str, Any], *, field: str, budget: EvaluationBudget | None = None
) -> Any:
    """Return a template with each reference replaced by its value.

    Raises:
        ValidationFailed: A reference inside a text has no value, or an expression fails.
    """
    budget = budget or EvaluationBudget(field)
    if isinstance(template, str):
        return _resolve_text(template, scope, field, budget)
    if isinstance(template, list):
        return [
            resolve(value, scope, field=f"{field}[{index}]", budget=budget)
            for index, value in enumerate(template)
        ]
    if not isinstance(template, Mapping):
        return template
    if _LITERAL in template:
        return template[_LITERAL]
    if _REF in template:
        return compile_expression(_reference_text(template, field), field=field).search(
            scope, budget
        )
    return {
        name: resolve(value, scope, field=f"{field}.{name}", budget=budget)
        for name, value in template.items()
    }


def _resolve_text(text: str, scope: Mapping[str, Any], field: str, budget: EvaluationBudget) -> Any:
    whole = _REFERENCE.fullmatch(text.strip())
    # Without the count, `${{ a }} and ${{ b }}` would match as one expression.
    if whole and whole["end"] and text.count("${{") == 1:
        return compile_expression(whole["inner"], field=field).search(scope, budget)

    def substitute(found: re.Match[str]) -> str:
        if not found["end"]:
            return found[0].replace("$${{", "${{")
        expression = compile_expression(found["inner"], field=field)
        return _render_value(expression.search(scope, budget), expression, field)

    return _REFERENCE.sub(substitute, text)


def _render_value(value: Any, expression: Expression, field: str) -> str:
    if value is None:
        raise ValidationFailed(
            f"`{field}` needs {expression.text!r} in its text, but it has no value.",
            field=field,
            hint="Check the path, or give the step a condition with `when`.",
        )
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _reference_text(template: Mapping[str, Any], field: str) -> str:
    _check_single_key(template, _REF, field)
    text = template[_REF]
    if not isinstance(text, str):
        raise ValidationFailed(f"`{field}`: the value of $ref is an expression.", field=field)
    return text


def _check_single_key(template: Mapping[str, Any], key: str, field: str) -> None:
    if len(template) > 1:
        raise ValidationFailed(
            f"`{field}`: {key} must be the only field of its object.", field=field
        )
